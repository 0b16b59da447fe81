//go:build unix && !linux

package main

import (
	"os"
	"os/exec"
)

func placement() string {
	return "Null server and client have one processor each, which the system chooses"
}

// startOn starts a process that uses one processor at a time.
func startOn(_ int, c *exec.Cmd) error {
	c.Env = append(os.Environ(), "GOMAXPROCS=1")
	return c.Start()
}
