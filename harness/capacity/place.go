package capacity

import (
	"fmt"
	"math"
)

// place is where a search stands.
type place struct {
	holds  float64 // the highest rate that holds; 0: none
	fails  float64 // the lowest rate that fails; +Inf: none
	rate   float64 // to be probed next
	seed   uint64
	tries  int // of rate, so far
	over   bool
	reason string
}

// bound is how wide the bracket is; +Inf where it has an open end.
func (p place) bound() float64 {
	if p.holds == 0 {
		return math.Inf(1)
	}
	return p.fails/p.holds - 1
}

// replay goes through the probes that are done, and says which is the first
// that the search would not have asked for.
func (s Search) replay(done []Probed) (place, error) {
	at := place{fails: math.Inf(1), rate: s.From, seed: s.Seed}
	for i, d := range done {
		wrong := func(format string, args ...any) (place, error) {
			return place{}, fmt.Errorf("capacity: probe %d of %d is of %v requests a second, seed %d: "+format, append([]any{i + 1, len(done), d.Rate, d.Seed}, args...)...)
		}
		switch {
		case at.over:
			return wrong("the search was at its end before it")
		case d.Rate != at.rate || d.Seed != at.seed:
			return wrong("the search asks for %v, seed %d, there", at.rate, at.seed)
		}
		switch d.Verdict {
		case Holds:
			at.holds = at.rate
			at.decided(s)
		case Fails:
			at.fails = at.rate
			at.decided(s)
		case Undecided:
			if at.tries++; at.tries == s.Tries {
				at.over = true
				at.reason = fmt.Sprintf("%.4g requests a second stayed undecided over %d probes: measure longer, or ask for a wider bracket", at.rate, s.Tries)
			}
		default:
			return wrong("there is no verdict %q", d.Verdict)
		}
		at.seed++
	}
	return at, nil
}

// decided goes on to the next rate.
func (p *place) decided(s Search) {
	p.tries = 0
	switch {
	case p.holds == 0:
		p.over, p.reason = true, fmt.Sprintf("it fails at the lowest rate, %.4g requests a second: search from a lower one", p.rate)
	case p.holds >= s.To:
		p.over, p.reason = true, fmt.Sprintf("it holds at the highest rate, %.4g requests a second: search to a higher one", p.rate)
	case p.bound() <= s.Within:
		p.over = true
	case math.IsInf(p.fails, 1):
		p.rate = min(2*p.rate, s.To)
	default:
		p.rate = p.holds * math.Sqrt(p.fails/p.holds)
	}
}
