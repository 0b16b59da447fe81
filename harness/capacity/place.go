package capacity

import (
	"fmt"
	"math"
)

// place is where a search stands. Rates that stayed undecided lie between those
// that hold and those that fail.
type place struct {
	holds     float64 // the highest rate that holds; 0: none
	low, high float64 // the lowest and the highest undecided rate; 0: none
	fails     float64 // the lowest rate that fails; +Inf: none
	rate      float64 // to be probed next
	seed      uint64
	tries     int // of rate, so far
	over      bool
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
		case d.Verdict != Holds && d.Verdict != Fails && d.Verdict != Undecided:
			return wrong("there is no verdict %q", d.Verdict)
		}
		at.seed++
		if at.tries++; d.Verdict != Undecided || at.tries == s.Tries {
			at.take(d.Verdict)
			at.rate, at.over = s.after(at)
			at.tries = 0
		}
	}
	return at, nil
}

// take takes in what the rate that was probed was found to do.
func (p *place) take(v Verdict) {
	switch v {
	case Holds:
		if p.holds = p.rate; p.rate > p.high {
			p.low, p.high = 0, 0
		}
	case Fails:
		if p.fails = p.rate; p.rate < p.low {
			p.low, p.high = 0, 0
		}
	default:
		if p.high = max(p.high, p.rate); p.low == 0 || p.rate < p.low {
			p.low = p.rate
		}
	}
}

// after is the rate to be probed at a place, or that the search is over there.
func (s Search) after(p place) (rate float64, over bool) {
	top := max(p.holds, p.high)
	if math.IsInf(p.fails, 1) && top < s.To {
		return min(2*top, s.To), false
	}
	if s.narrow(p.holds, p.fails) {
		return 0, true
	}
	gaps := [][2]float64{{p.holds, p.fails}}
	if p.low > 0 {
		gaps = [][2]float64{{p.holds, p.low}, {p.high, p.fails}}
	}
	for _, g := range gaps {
		if low, high := g[0], g[1]; low > 0 && !math.IsInf(high, 1) && !s.narrow(low, high) {
			return low * math.Sqrt(high/low), false
		}
	}
	return 0, true
}

// narrow says whether two rates are as near as was asked.
func (s Search) narrow(low, high float64) bool { return low > 0 && high/low-1 <= s.Within }

// reason is why the bracket of a search that is over is wider than was asked.
func (s Search) reason(p place) string {
	switch {
	case p.fails == s.From:
		return fmt.Sprintf("it fails at the lowest rate, %.4g requests a second: search from a lower one", s.From)
	case p.holds == s.To:
		return fmt.Sprintf("it holds at the highest rate, %.4g requests a second: search to a higher one", s.To)
	case p.low > 0 && !s.narrow(p.holds, p.fails):
		which := fmt.Sprintf("%.4g to %.4g requests a second", p.low, p.high)
		if p.low == p.high {
			which = fmt.Sprintf("%.4g requests a second", p.low)
		}
		return fmt.Sprintf("%s stayed undecided, over %d probes of each rate: measure longer, allow more probes, or ask for a wider bracket", which, s.Tries)
	}
	return ""
}
