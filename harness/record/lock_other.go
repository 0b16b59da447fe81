//go:build !unix

package record

import (
	"os"
	"path/filepath"
)

// lock holds nothing here: this system has no such locks.
func lock(dir string) (*os.File, error) {
	return os.Open(filepath.Join(dir, RequestsFile))
}
