package capacity

import "fmt"

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
// It is an error if the outcome has not one list for each objective.
func (s Search) Judge(rate float64, seed uint64, o Outcome) (Probed, error) {
	if len(o) != len(s.Objectives) {
		return Probed{}, fmt.Errorf("capacity: the probe at %.4g requests a second, seed %d, has the outcomes of %d objectives, and %d are sought: give one list for each", rate, seed, len(o), len(s.Objectives))
	}
	p := Probed{Rate: rate, Seed: seed, Verdict: Holds}
	for i, objective := range s.Objectives {
		j := objective.judge(o[i], s.Confidence, len(s.Objectives))
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
