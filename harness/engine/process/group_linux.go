package process

import "syscall"

// group puts the child into a process group of its own, and has the kernel
// kill it when its parent dies.
func group() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
