package crossing

import (
	"errors"
	"fmt"
)

// Side is one arm of a pair.
type Side struct {
	Initialization int64 // ns, started → ready
	// Terminals are the ns from initialization start to the n-th terminal
	// moment, ascending; they end before the first failed ordinal.
	Terminals []int64
}

func (s Side) at(n int) (int64, bool) {
	if n == 0 {
		return s.Initialization, true
	}
	if n < 0 || n > len(s.Terminals) {
		return 0, false
	}
	return s.Terminals[n-1], true
}

// Pair is two adjacent lifecycles, one of each arm: the unit of inference.
type Pair struct {
	Number              int  // from 1, in the order of execution within its lane
	CandidateFirst      bool // the order within the pair
	Baseline, Candidate Side
}

// Difference is D(n) in ns: the candidate's time from initialization start to
// its n-th terminal moment, minus the baseline's. D(0) is the debt. ok is false
// where it is undefined: from the first failed ordinal of either arm on.
func (p Pair) Difference(n int) (ns int64, ok bool) {
	b, okB := p.Baseline.at(n)
	c, okC := p.Candidate.at(n)
	return c - b, okB && okC
}

// last is the last ordinal at which the difference is defined.
func (p Pair) last() int { return min(len(p.Baseline.Terminals), len(p.Candidate.Terminals)) }

func (p Pair) validate(requests int) error {
	var errs []error
	for _, s := range []struct {
		name string
		side Side
	}{{"baseline", p.Baseline}, {"candidate", p.Candidate}} {
		if s.side.Initialization < 0 {
			errs = append(errs, fmt.Errorf("pair %d, %s: its initialization is %d ns: write 0 or more", p.Number, s.name, s.side.Initialization))
		}
		if n := len(s.side.Terminals); n > requests {
			errs = append(errs, fmt.Errorf("pair %d, %s: %d terminal moments of a sequence of %d", p.Number, s.name, n, requests))
		}
		before := s.side.Initialization
		for i, t := range s.side.Terminals {
			if t < before {
				errs = append(errs, fmt.Errorf("pair %d, %s: terminal moment %d at %d ns comes before %d ns, which was reached ahead of it", p.Number, s.name, i+1, t, before))
				break
			}
			before = t
		}
	}
	return errors.Join(errs...)
}
