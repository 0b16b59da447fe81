package capacity

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// Outcome is what one probe counted over its measured attempts.
type Outcome struct {
	Attempts int // all that were scheduled in the measurement, failed ones too
	Within   int // those that ended well and within the limit
}

// Probe offers a rate, in requests a second, with the arrivals of a seed.
type Probe func(ctx context.Context, rate float64, seed uint64) (Outcome, error)

// Search declares what is sought.
type Search struct {
	Quantile   float64 // the share that has to be within the limit, such as 0.95
	Confidence float64 // of each verdict, one-sided
	From, To   float64 // requests a second
	Within     float64 // the bracket is narrow enough at hi/lo ≤ 1 + this
	Tries      int     // probes of one rate at most; each has another seed
	Seed       uint64  // of the first probe; each next one has the next
}

// Probed is one probe as it was judged: by its own counts alone, since counts
// that are added up until they decide decide too easily.
type Probed struct {
	Rate    float64
	Seed    uint64
	Outcome Outcome
	Verdict Verdict
}

// Result is a bracket and what led to it. Each verdict is wrong with
// probability 1 − confidence at most, and each further try of a rate is a
// further chance to be: the whole bracket is less sure than one of them. A rate
// that stayed undecided is in neither end.
type Result struct {
	Holds  float64 // the highest rate shown to hold; 0: none
	Fails  float64 // the lowest rate shown to fail; +Inf: none up to To
	Bound  float64 // Fails/Holds − 1; +Inf where one of them is missing
	Probes []Probed
	// Reason is why the bracket is wider than was asked; empty if it is not.
	Reason string
}

// Run searches: the rate is doubled from From until it fails or To holds, then
// the bracket is halved on a logarithmic scale until it is narrow enough or a
// rate stays undecided. It takes it for granted that a rate above one that
// fails fails too. What was found before a probe's error comes back with it.
func (s Search) Run(ctx context.Context, probe Probe) (Result, error) {
	r := Result{Fails: math.Inf(1), Bound: math.Inf(1)}
	if err := s.check(); err != nil {
		return r, err
	}
	rate := s.From
	for {
		verdict, err := s.at(ctx, probe, rate, &r)
		if err != nil {
			return r, err
		}
		switch verdict {
		case Undecided:
			r.Reason = fmt.Sprintf("%.4g requests a second stayed undecided over %d probes: measure longer, or ask for a wider bracket", rate, s.Tries)
			return r, nil
		case Holds:
			r.Holds = rate
		case Fails:
			r.Fails = rate
		}
		r.Bound = math.Inf(1)
		if r.Holds > 0 {
			r.Bound = r.Fails/r.Holds - 1
		}
		switch {
		case r.Holds == 0:
			r.Reason = fmt.Sprintf("it fails at the lowest rate, %.4g requests a second: search from a lower one", rate)
			return r, nil
		case r.Holds >= s.To:
			r.Reason = fmt.Sprintf("it holds at the highest rate, %.4g requests a second: search to a higher one", rate)
			return r, nil
		case r.Bound <= s.Within:
			return r, nil
		case math.IsInf(r.Fails, 1):
			rate = min(2*rate, s.To)
		default:
			rate = math.Sqrt(r.Holds * r.Fails)
		}
	}
}

// at probes a rate until a probe decides.
func (s Search) at(ctx context.Context, probe Probe, rate float64, r *Result) (Verdict, error) {
	for range s.Tries {
		seed := s.Seed + uint64(len(r.Probes))
		outcome, err := probe(ctx, rate, seed)
		if err == nil && (outcome.Attempts < 0 || outcome.Within < 0 || outcome.Within > outcome.Attempts) {
			err = fmt.Errorf("%d of %d attempts are called within the limit, which can't be", outcome.Within, outcome.Attempts)
		}
		if err != nil {
			return Undecided, fmt.Errorf("capacity: the probe at %.4g requests a second, seed %d: %w", rate, seed, err)
		}
		verdict := Judge(outcome.Within, outcome.Attempts, s.Quantile, s.Confidence)
		r.Probes = append(r.Probes, Probed{rate, seed, outcome, verdict})
		if verdict != Undecided {
			return verdict, nil
		}
	}
	return Undecided, nil
}

func (s Search) check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("capacity: "+format, args...)) }
	if !(s.Quantile > 0 && s.Quantile < 1) {
		fault("the quantile is %v: write more than 0 and less than 1", s.Quantile)
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
