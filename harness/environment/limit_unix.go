//go:build unix

package environment

import "syscall"

// FileDescriptors is how many files this process may have open at once.
func FileDescriptors() (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	return uint64(limit.Cur), nil
}
