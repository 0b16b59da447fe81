package crossing

import (
	"fmt"
	"math"
)

// Rate is how often each arm of a pair did well, of how many times.
type Rate struct{ Pair, Baseline, BaselineOf, Candidate, CandidateOf int }

// NonInferiority is whether the candidate does no worse than the baseline by
// more than a margin.
type NonInferiority struct {
	Margin float64  `json:"margin"`  // a share
	Mean   *float64 `json:"mean"`    // candidate's rate minus baseline's, over pairs
	PValue *float64 `json:"p_value"` // one-sided, exact sign flips of the difference plus the margin
	Shown  bool     `json:"shown"`   // at (1 − level)/2, as an interval at the level would
	// Degenerate says that nothing went wrong in either arm: there is no
	// difference that a test could see.
	Degenerate bool   `json:"degenerate"`
	Reason     string `json:"reason,omitempty"`
	K          int    `json:"k"`
}

// NonInferior tests paired rates against a margin, a share from 0 to 1.
func NonInferior(rates []Rate, margin, level float64) NonInferiority {
	out := NonInferiority{Margin: margin, K: len(rates)}
	if len(rates) == 0 {
		out.Reason = "no pair is in it"
		return out
	}
	out.Degenerate = true
	var differences, shifted []float64
	for _, r := range rates {
		if r.BaselineOf < 1 || r.CandidateOf < 1 {
			out.Degenerate, out.Reason = false, fmt.Sprintf("pair %d has an arm in which nothing was tried", r.Pair)
			return out
		}
		d := float64(r.Candidate)/float64(r.CandidateOf) - float64(r.Baseline)/float64(r.BaselineOf)
		differences, shifted = append(differences, d), append(shifted, d+margin)
		out.Degenerate = out.Degenerate && r.Baseline == r.BaselineOf && r.Candidate == r.CandidateOf
	}
	m := math.Round(mean(differences)*1e9) / 1e9
	p := oneSided(shifted)
	out.Mean, out.PValue = &m, &p
	alpha := float64((1 - level) / 2)
	out.Shown = p <= alpha+1e-12 && mean(shifted) > 0
	switch {
	case out.Degenerate:
		out.Reason = "nothing went wrong in either arm, so no difference could be seen"
	case out.Shown:
	case 1/math.Pow(2, float64(len(rates))) > alpha:
		out.Reason = fmt.Sprintf("%d pairs can't show it: the test goes no lower than 1/2^%d", len(rates), len(rates))
	case margin == 0:
		out.Reason = "a margin of 0 asks for superiority"
	default:
		out.Reason = "the pairs do not exclude a loss as large as the margin"
	}
	return out
}
