package workloads

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Dataset is what is recorded of a file that requests or lengths were taken
// from. Entries is always Taken and what LeftOut counts: nothing is dropped
// without its reason.
type Dataset struct {
	Kind    string `json:"kind"`           // one of [Kinds], or "lengths"
	File    string `json:"file,omitempty"` // the name without its folders
	SHA256  string `json:"sha256"`         // of the file's bytes, in hex
	License string `json:"license"`        // as declared
	// Column is the CSV column that lengths were read from.
	Column string `json:"column,omitempty"`
	// Window is the part of a trace's own time that was taken, and Speed by
	// what its times were divided; null where there are no times.
	Window *Window  `json:"window"`
	Speed  *float64 `json:"speed"`
	// Seed drew the entries that were taken; null where all were.
	Seed    *uint64        `json:"seed"`
	Entries int            `json:"entries"` // in the file
	Taken   int            `json:"taken"`
	LeftOut map[string]int `json:"left_out"` // by reason
}

// Window is a part of a trace, in the trace's own time from its first entry:
// From is in it, To is not.
type Window struct {
	From time.Duration `json:"from_ns"`
	To   time.Duration `json:"to_ns"` // 0: to the end
}

// String says how much was taken, and why the rest was not.
func (d Dataset) String() string {
	said := fmt.Sprintf("%d of %d entries taken", d.Taken, d.Entries)
	for _, reason := range slices.Sorted(maps.Keys(d.LeftOut)) {
		said += fmt.Sprintf(", %d left out: %s", d.LeftOut[reason], reason)
	}
	return strings.TrimSpace(said)
}

// Keep leaves the entries out that keep refuses, and counts them under its
// reason, such as "longer than the model's context".
func (d *Dataset) Keep(entries []Entry, reason string, keep func(Entry) bool) []Entry {
	kept := make([]Entry, 0, len(entries))
	for _, e := range entries {
		if keep(e) {
			kept = append(kept, e)
			continue
		}
		d.Taken--
		d.leave(reason)
	}
	return kept
}

func (d *Dataset) leave(reason string) {
	if d.LeftOut == nil {
		d.LeftOut = map[string]int{}
	}
	d.LeftOut[reason]++
}
