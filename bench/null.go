//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"assay/harness/null"
)

// nullAddresses are where one null server listens: a client has one range of
// ports for each address that it connects to, and 10,000 streams need room.
var nullAddresses = []string{"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"}

// serveNull prints its addresses and answers at a pace until its standard input
// closes; then it prints its log. Addresses that this system does not have are
// left out, but for the first.
func serveNull(arguments string) error {
	var pace null.Pace
	if arguments != "" {
		if err := json.Unmarshal([]byte(arguments), &pace); err != nil {
			return err
		}
	}
	server := null.New(pace)
	var addresses []string
	for i, host := range nullAddresses {
		l, err := server.Listen(host + ":0")
		if err != nil && i == 0 {
			return err
		}
		if err == nil {
			addresses = append(addresses, l.Addr().String())
		}
	}
	fmt.Println(strings.Join(addresses, " "))
	_, _ = io.Copy(io.Discard, os.Stdin)
	return json.NewEncoder(os.Stdout).Encode(server.Answered())
}
