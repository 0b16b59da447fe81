package record

import (
	"fmt"
	"slices"
	"strconv"
)

// Clients names a tier of clients as a sentence does: "1 client", "64 clients".
func Clients(n int) string {
	if n == 1 {
		return "1 client"
	}
	return fmt.Sprintf("%d clients", n)
}

// Population is the attempts that a statistic is computed over, always named.
type Population struct {
	Name      string // such as "naive, 64 clients, repeat 2"
	Scheduled int    // attempts that the schedule has for it
	Wave      *Wave  // the wave it is, where it is exactly one
	Attempts  []Request
}

// Where is the part of the population that a condition holds for, under a
// longer name.
func (p Population) Where(what string, holds func(Request) bool) Population {
	out := Population{Name: p.Name + ", " + what}
	out.Attempts = picked(p.Attempts, func(r *Request) bool { return holds(*r) })
	out.Scheduled = len(out.Attempts)
	return out
}

// OK is the part that ended well.
func (p Population) OK() Population {
	return p.Where("ok attempts", func(r Request) bool { return r.Outcome == OK })
}

// Failed is the part that did not.
func (p Population) Failed() Population {
	return p.Where("failed attempts", func(r Request) bool { return r.Outcome != OK })
}

// Counts are the attempts by outcome; every outcome is there.
func (p Population) Counts() map[Outcome]int {
	counts := map[Outcome]int{}
	for _, o := range Outcomes {
		counts[o] = 0
	}
	for _, r := range p.Attempts {
		counts[r.Outcome]++
	}
	return counts
}

// String names the population with its size.
func (p Population) String() string { return fmt.Sprintf("%s (n = %d)", p.Name, len(p.Attempts)) }

// Of is one wave's attempts.
func (run Run) Of(w Wave) Population {
	p := Population{Name: fmt.Sprintf("lifecycle %d (%s), %s, repeat %d", w.Lifecycle, w.Arm, Clients(w.Tier), w.Repeat), Scheduled: w.Scheduled(), Wave: &w}
	if w.Requests > 0 {
		p.Name = fmt.Sprintf("lifecycle %d (%s), %s sequence", w.Lifecycle, w.Arm, w.Lane)
	}
	if w.Open() {
		p.Name = fmt.Sprintf("lifecycle %d (%s), %s", w.Lifecycle, w.Arm, w.Loop())
	}
	if run.places.of(run.Requests) {
		at := run.places.at[[2]int{w.Lifecycle, w.Number}]
		p.Attempts = slices.Grow(p.Attempts, len(at))
		for _, i := range at {
			p.Attempts = append(p.Attempts, run.Requests[i])
		}
		return p
	}
	p.Attempts = picked(run.Requests, func(r *Request) bool { return r.Lifecycle == w.Lifecycle && r.Wave == w.Number })
	return p
}

// Indexed is the run with the places of each wave's requests looked up, for a
// reader who asks for many waves and changes none of the requests meanwhile.
func (run Run) Indexed() Run {
	at := map[[2]int][]int{}
	for i := range run.Requests {
		wave := [2]int{run.Requests[i].Lifecycle, run.Requests[i].Wave}
		at[wave] = append(at[wave], i)
	}
	run.places = &places{requests: run.Requests, at: at}
	return run
}

// places are those of each wave's requests in a run's, by lifecycle and wave.
type places struct {
	requests []Request
	at       map[[2]int][]int
}

// of is whether they are of these requests.
func (p *places) of(requests []Request) bool {
	return p != nil && len(p.requests) == len(requests) && (len(requests) == 0 || &p.requests[0] == &requests[0])
}

// At is an arm's recorded attempts at a tier, over all repeats and lifecycles;
// warm-up attempts are not in it.
func (run Run) At(arm string, tier int) Population {
	p := Population{Name: fmt.Sprintf("%s, %s", arm, Clients(tier))}
	for _, w := range run.Waves {
		if w.Arm == arm && w.Tier == tier && !w.Warmup && w.Status != "not_selected" {
			p.Scheduled += w.Scheduled()
		}
	}
	p.Attempts = picked(run.Requests, func(r *Request) bool { return r.Arm == arm && r.Tier == tier && !r.Warmup })
	return p
}

// Recorded is all that is recorded of an arm, over all tiers, repeats and
// lifecycles; warm-up attempts are not in it.
func (run Run) Recorded(arm string) Population {
	p := Population{Name: arm}
	for _, w := range run.Waves {
		if w.Arm == arm && !w.Warmup && w.Status != "not_selected" {
			p.Scheduled += w.Scheduled()
		}
	}
	p.Attempts = picked(run.Requests, func(r *Request) bool { return r.Arm == arm && !r.Warmup })
	return p
}

// picked are the requests that a condition holds for, nil if none. They are
// counted first: those of a large run take too much to be moved as they grow.
func picked(from []Request, holds func(*Request) bool) []Request {
	var at []int
	for i := range from {
		if holds(&from[i]) {
			at = append(at, i)
		}
	}
	out := slices.Grow([]Request(nil), len(at))
	for _, i := range at {
		out = append(out, from[i])
	}
	return out
}

// Loop names an open loop as a sentence does: "8 requests a second", "probe 2 at
// 5.657 requests a second".
func (w Wave) Loop() string {
	name := Rate(w.Rate)
	if w.Probe > 0 {
		name = fmt.Sprintf("probe %d at %s", w.Probe, name)
	}
	return name
}

// Rate names an open loop's rate as a sentence does; 0 is one that changes.
func Rate(rps float64) string {
	switch rps {
	case 0:
		return "a changing rate"
	case 1:
		return "1 request a second"
	}
	return strconv.FormatFloat(rps, 'g', 4, 64) + " requests a second"
}

// Measured is the part of an open loop that its windows measure.
func (p Population) Measured() Population {
	return p.Where("measured attempts", func(r Request) bool { return !r.Warmup })
}

// InLane is an arm's recorded attempts in a lane, over all of its lifecycles.
func (run Run) InLane(arm, lane string) Population {
	p := Population{Name: fmt.Sprintf("%s, %s lane", arm, lane)}
	for _, w := range run.Waves {
		if w.Arm == arm && w.Lane == lane && w.Status != "not_selected" {
			p.Scheduled += w.Scheduled()
		}
	}
	p.Attempts = picked(run.Requests, func(r *Request) bool { return r.Arm == arm && r.Lane == lane })
	return p
}
