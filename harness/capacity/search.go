package capacity

import (
	"errors"
	"fmt"
	"math"
)

// Search declares what is sought: the highest rate at which all objectives
// hold. What it asks for next follows from the probes so far and from nothing
// else, so that whoever has their records can go through it again.
type Search struct {
	Objectives []Objective
	Confidence float64 // of each verdict, one-sided
	From, To   float64 // requests a second
	Within     float64 // the bracket is narrow enough at hi/lo ≤ 1 + this
	Tries      int     // probes of one rate at most; each has another seed
	Seed       uint64  // of the first probe; each next one has the next
}

// Result is a bracket and what led to it. Each verdict is wrong with
// probability 1 − confidence, and each further try of a rate is a
// further chance to be: the whole bracket is less sure than one of them. A rate
// that stayed undecided is in neither end.
type Result struct {
	Holds  *float64 `json:"holds"` // the highest rate shown to hold, requests a second; nil: none
	Fails  *float64 `json:"fails"` // the lowest rate shown to fail; nil: none
	Bound  *float64 `json:"bound"` // Fails/Holds − 1; nil where one of them is
	Probes []Probed `json:"probes"`
	// Reason is why the bracket is wider than was asked; empty if it is not.
	Reason string `json:"reason"`
}

// Check says everything that is wrong with the search at once, or nil.
func (s Search) Check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("capacity: "+format, args...)) }
	if len(s.Objectives) == 0 {
		fault("there is no objective: write one at least")
	}
	names := map[string]bool{}
	for i, o := range s.Objectives {
		if o.Name == "" {
			fault("objective %d has no name: write one", i+1)
		} else if names[o.Name] {
			fault("there are two objectives %q: leave one out", o.Name)
		}
		names[o.Name] = true
		if !(o.Share > 0 && o.Share < 1) {
			fault("the share of objective %q is %v: write more than 0 and less than 1; no number of attempts shows a share of all", o.Name, o.Share)
		}
	}
	if !(s.Confidence > 0.5 && s.Confidence < 1) {
		fault("the confidence is %v: write more than 0.5 and less than 1", s.Confidence)
	}
	if !(s.From > 0 && s.From <= s.To && s.To < math.Inf(1)) {
		fault("rates are sought from %v to %v: write more than 0, and an end that is no lower", s.From, s.To)
	}
	if !(s.Within >= 1e-6 && s.Within < math.Inf(1)) {
		fault("the bracket is to be within %v: write 0.000001 or more; 0.05 is usual", s.Within)
	}
	if s.Tries < 1 {
		fault("%d probes of a rate are allowed: write 1 or more", s.Tries)
	}
	return errors.Join(faults...)
}

// Next is the probe that a valid search asks for after those that are done: the
// rate in requests a second and the arrivals' seed. The rate is doubled from
// From until it fails or To is reached, then the bracket is halved on a
// logarithmic scale until it is narrow enough. A rate that stays undecided
// leaves two gaps, one to the highest rate that holds and one to the lowest
// that fails, which are halved likewise, the lower one first. It takes it for
// granted that a rate above one that fails fails too, and one below one that
// holds holds. over: there is none, since the search is at its end, or since it
// would not have asked for those that are done (see [Search.Follows]).
func (s Search) Next(done []Probed) (rate float64, seed uint64, over bool) {
	at, err := s.replay(done)
	if err != nil || at.over {
		return 0, 0, true
	}
	return at.rate, at.seed, false
}

// Follows says where the probes that are done are not those that the search
// asks for: at the first whose rate or seed is another, that has no verdict, or
// that comes after the search's end. That each verdict follows from the
// attempts is for [Search.Judge] to say.
func (s Search) Follows(done []Probed) error {
	_, err := s.replay(done)
	return err
}

// Result is what the probes that are done show. One of a search that is not at
// its end, or would not have asked for them, says so in its reason; the latter
// has no bracket.
func (s Search) Result(done []Probed) Result {
	r := Result{Probes: append([]Probed{}, done...)}
	at, err := s.replay(done)
	if err != nil {
		r.Reason = err.Error()
		return r
	}
	r.Reason = s.reason(at)
	if !at.over {
		r.Reason = fmt.Sprintf("the search was not at its end: %.4g requests a second was to be probed next", at.rate)
	}
	if at.holds > 0 {
		r.Holds = &at.holds
	}
	if !math.IsInf(at.fails, 1) {
		r.Fails = &at.fails
	}
	if r.Holds != nil && r.Fails != nil {
		bound := at.fails/at.holds - 1
		r.Bound = &bound
	}
	return r
}

// MostProbes is how many probes a valid search can take at most.
func (s Search) MostProbes() int {
	rates := 1
	for rate := s.From; rate < s.To; rate = min(2*rate, s.To) {
		rates++
	}
	// Undecided rates leave two gaps, each a doubling wide at most. A hair less
	// is asked of their halving than of the search, so that its rounding can't
	// add a rate.
	for gap := min(2, s.To/s.From); gap-1 > float64(s.Within*(1-1e-9)); gap = math.Sqrt(gap) {
		rates += 2
	}
	return rates * s.Tries
}

// FewestAttempts is how many measured attempts a probe needs at least before it
// can hold: so many all within the limit, and independent of one another.
func (s Search) FewestAttempts() int {
	most := 0
	for _, o := range s.Objectives {
		most = max(most, o.fewest(s.Confidence))
	}
	return most
}
