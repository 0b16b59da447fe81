package capacity

import (
	"fmt"
	"math"
	"slices"
)

// Probed is one probe as it was judged: by its own attempts alone, since counts
// that are added up until they decide decide too easily.
type Probed struct {
	Rate       float64  `json:"rate"` // requests a second
	Seed       uint64   `json:"seed"` // of the arrivals
	Objectives []Judged `json:"objectives"`
	Verdict    Verdict  `json:"verdict"`
}

// Judge judges a probe.
//
// It holds if every objective does, each at the search's confidence: that all
// hold is then said wrongly no more often than that one does, since where it is
// wrong one of them had to be judged wrongly (the intersection–union test,
// Berger, Technometrics 24, 1982). It fails if any objective does. There any of
// m could be the one judged wrongly, and each is judged at 1 − (1−confidence)/m
// (Bonferroni). All else is undecided: an objective that no attempt has a value
// of too, unless another fails.
//
// values are, for each objective and as its list in the outcome, what was held
// against the limit, in any unit, more being worse: +Inf for an attempt that
// failed before its value could be seen; nil for an objective that has none, as
// a failure rate has not. They are there to see how far attempts hang together.
// Without them this is seen only from which were within, which finds too many
// rates to hold: the package says how many.
//
// It is an error if the outcome has not one list for each objective, or if there
// are values that aren't of each, or of each attempt, or one is no number.
func (s Search) Judge(rate float64, seed uint64, o Outcome, values ...[]float64) (Probed, error) {
	wrong := func(format string, args ...any) (Probed, error) {
		return Probed{}, fmt.Errorf("capacity: the probe at %.4g requests a second, seed %d, "+format, append([]any{rate, seed}, args...)...)
	}
	if len(o) != len(s.Objectives) {
		return wrong("has the outcomes of %d objectives, and %d are sought: give one list for each", len(o), len(s.Objectives))
	}
	if values != nil && len(values) != len(s.Objectives) {
		return wrong("has the values of %d objectives, and %d are sought: give one list for each, or none", len(values), len(s.Objectives))
	}
	p := Probed{Rate: rate, Seed: seed, Verdict: Holds}
	for i, objective := range s.Objectives {
		var of []float64
		if values != nil {
			of = values[i]
			if of != nil && len(of) != len(o[i]) {
				return wrong("has %d attempts and %d values of %q: give one for each", len(o[i]), len(of), objective.Name)
			}
			if at := slices.IndexFunc(of, math.IsNaN); at >= 0 {
				return wrong("has no number as value %d of %q: give +Inf where the attempt failed before it", at+1, objective.Name)
			}
		}
		j := objective.judge(o[i], of, s.Confidence, len(s.Objectives))
		p.Objectives = append(p.Objectives, j)
		switch {
		case j.Verdict == Fails:
			p.Verdict = Fails
		case j.Verdict == Undecided && p.Verdict == Holds:
			p.Verdict = Undecided
		}
	}
	return p, nil
}
