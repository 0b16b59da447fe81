//go:build !linux

package client

import (
	"errors"
	"net"
)

// stamped has no receive timestamps to ask for on this system.
func stamped(*net.TCPConn) (stamper, error) {
	return nil, errors.New("this system's kernel gives no receive timestamps that this client knows")
}
