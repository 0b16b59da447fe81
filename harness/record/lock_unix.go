//go:build unix

package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lock holds a bundle's directory for one run, so that nothing goes on in it
// while another does. The kernel lets go of it when the process ends, however
// that comes about.
func lock(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, RequestsFile), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("nothing can go on from %s: %w", dir, err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("a run is going on in %s: wait for its end, or interrupt it first", dir), file.Close())
	}
	return file, nil // a file system without locks holds nobody up
}
