//go:build !unix

package environment

import "errors"

// FileDescriptors can't be read on this system.
func FileDescriptors() (uint64, error) {
	return 0, errors.New("this system has no limit of open files to read")
}
