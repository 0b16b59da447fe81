package capacity

import "math"

// Objective is one part of what has to hold at a rate.
type Objective struct {
	Name string `json:"name"` // such as "ttft_p95"
	// Share of the attempts that has to be within the limit: 0.95 for a 95th
	// percentile, 0.99 for a failure rate of 1 %.
	Share float64 `json:"share"`
}

// Outcome says, for each objective of a search and in their order, which
// measured attempts were within its limit, in the order of their arrivals. An
// attempt that failed before its value could be seen is not within. Only one
// that can have no value of the objective's kind is left out, as a complete
// answer of one token has no TPOT.
type Outcome [][]bool

// Judged is an objective with what one probe shows of it.
type Judged struct {
	Name   string `json:"name"`
	Of     int    `json:"of"`     // attempts that have a value, failed ones too
	Within int    `json:"within"` // of those
	// Effective is how many independent attempts they are worth: Of divided by
	// the design effect of their order (Kish, Survey Sampling, 1965).
	Effective float64 `json:"effective"`
	// Lower and Upper are one-sided bounds of the share within the limit: Lower
	// at the search's confidence, Upper at 1 − (1−confidence)/m, m being the
	// number of objectives.
	Lower   float64 `json:"lower"`
	Upper   float64 `json:"upper"`
	Verdict Verdict `json:"verdict"`
}

// judge judges an objective by its attempts, and their values if there are any.
func (o Objective) judge(within []bool, values []float64, confidence float64, objectives int) Judged {
	j := Judged{Name: o.Name, Of: len(within), Upper: 1, Verdict: Undecided}
	for _, w := range within {
		if w {
			j.Within++
		}
	}
	if j.Of == 0 {
		return j // nothing was seen, and nothing is shown
	}
	j.Effective = float64(j.Of) / designEffect(within, values, o.Share)
	k := float64(j.Within) / float64(j.Of) * j.Effective
	j.Lower = LowerBound(k, j.Effective, confidence)
	j.Upper = UpperBound(k, j.Effective, 1-(1-confidence)/float64(objectives))
	switch {
	case j.Lower >= o.Share:
		j.Verdict = Holds
	case j.Upper < o.Share:
		j.Verdict = Fails
	}
	return j
}

// fewest is how many independent attempts it takes to hold, all of them within.
func (o Objective) fewest(confidence float64) int {
	return int(math.Ceil(math.Log(1-confidence) / math.Log(o.Share)))
}
