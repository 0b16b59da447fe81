package main

import (
	"fmt"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// cores are those that this process may run on.
func cores() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var out []int
	for i := 0; len(out) < set.Count(); i++ {
		if set.IsSet(i) {
			out = append(out, i)
		}
	}
	return out
}

func placement() string {
	if of := cores(); len(of) > 1 {
		return fmt.Sprintf("Null server on core %d, client on core %d", of[0], of[1])
	}
	return "Null server and client share one core: read nothing into the figures"
}

// startOn starts a process that stays on one core, the n-th of this one's: a
// process inherits the mask of the thread that started it.
func startOn(n int, c *exec.Cmd) error {
	of := cores()
	if len(of) < 2 {
		return c.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return c.Start()
	}
	one.Set(of[n])
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("no core of its own for %s: %w", c.Args[1], err)
	}
	defer func() { _ = unix.SchedSetaffinity(0, &all) }()
	return c.Start()
}
