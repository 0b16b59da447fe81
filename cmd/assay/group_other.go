//go:build !unix

package main

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func interrupt(c *exec.Cmd) error { return c.Process.Signal(os.Interrupt) }
