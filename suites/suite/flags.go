package suite

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// The flags that every suite knows, given after "--".
var (
	planFlag = flag.String("plan", "", "run this plan in place of the suite's own; a suite of another experiment leaves it alone")
	outFlag  = flag.String("out", "", "put the bundles here, a folder for each plan (default out/<plan>-<UTC time>)")

	resumeFlag = flag.String("resume", "", "go on with the interrupted run in this directory, after its last complete lifecycle; -plan names its plan")
	causeFlag  = flag.String("cause", "operator", "why that run was interrupted, one of the plan's resume.causes")
)

// moduleRoot is the folder with the go.mod above the current folder. Ginkgo
// runs a suite in its own folder, so that relative paths start at the root.
func moduleRoot() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			// A compiled suite that was carried to another machine: its own
			// folder is all there is.
			return here, nil
		}
	}
}

// atRoot makes a path that a person gave absolute.
func atRoot(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	root, err := moduleRoot()
	if err != nil {
		return "", fmt.Errorf("%s: where relative paths start is unknown: %w", path, err)
	}
	return filepath.Join(root, path), nil
}
