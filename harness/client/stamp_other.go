//go:build !linux

package client

import (
	"errors"
	"net"
)

// stamp has no receive timestamps to ask for on this system.
func stamp(*net.TCPConn) (stamper, error) {
	return nil, errors.New("this system's kernel gives no receive timestamps that this client knows")
}
