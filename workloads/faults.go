package workloads

import (
	"errors"
	"fmt"
	"strings"
)

// mostFaults is how many faulty places of a file are named: whoever reads more
// of them learns nothing new.
const mostFaults = 20

// faults collects what is wrong with a file.
type faults struct {
	place string // "line" or "element"
	named []error
	more  int
}

// add notes everything that is wrong with one place.
func (f *faults) add(n int, why ...string) {
	if len(f.named) == mostFaults {
		f.more++
		return
	}
	f.named = append(f.named, fmt.Errorf("%s %d: %s", f.place, n, strings.Join(why, "; ")))
}

// err is all of them, or nil.
func (f *faults) err() error {
	if f.more > 0 {
		return errors.Join(append(f.named[:len(f.named):len(f.named)], fmt.Errorf("and %d more faulty %ss: the first %d are named", f.more, f.place, mostFaults))...)
	}
	return errors.Join(f.named...)
}
