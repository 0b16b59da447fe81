package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"assay/harness/engine/owner"
)

// group puts the child into a process group of its own, and has the kernel
// kill it when its parent dies.
func group() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// RemoveLeftovers kills what servers of dead runs have left: the kernel ends a
// server with the run that started it, but not what the server started itself.
func RemoveLeftovers() error {
	return sweep(func(mark string) bool {
		by, _, _ := strings.Cut(mark, "#")
		o, err := owner.Parse(by)
		return err == nil && o.Gone()
	})
}

// removeStrays kills what has left the group of the server with a mark.
func removeStrays(mark string) error { return sweep(func(m string) bool { return m == mark }) }

// sweep kills every process that carries a mark which is meant.
func sweep(meant func(mark string) bool) error {
	found, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return err
	}
	self := strconv.Itoa(os.Getpid())
	var errs []error
	for _, path := range found {
		id := filepath.Base(filepath.Dir(path))
		pid, err := strconv.Atoi(id)
		if err != nil || id == self {
			continue
		}
		// The descriptor stands for this very process, whoever gets its id
		// after it.
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has ended
		}
		if mark, ok := markOf(path); ok && meant(mark) {
			if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
				errs = append(errs, fmt.Errorf("process %d, left by a server, can't be ended: %w; kill -9 it", pid, err))
			}
		}
		_ = unix.Close(fd)
	}
	return errors.Join(errs...)
}

// markOf reads the mark that a process was started with. Other users'
// environments can't be read, and are none of a run's.
func markOf(path string) (string, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	for _, entry := range bytes.Split(data, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(markVariable+"=")); ok {
			return string(value), true
		}
	}
	return "", false
}
