//go:build unix && !linux

package process

import "syscall"

// group puts the child into a process group of its own.
func group() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
