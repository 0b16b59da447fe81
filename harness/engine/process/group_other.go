//go:build unix && !linux

package process

import "syscall"

// group puts the child into a process group of its own.
func group() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// RemoveLeftovers does nothing here: this system does not say with what
// environment a process was started.
func RemoveLeftovers() error { return nil }

func removeStrays(string) error { return nil }
