package html

import (
	"fmt"
	"slices"

	"assay/harness/metric"
	"assay/harness/record"
)

// figures are the page's, in their order, each with a panel at least.
func (p Page) figures() []figure {
	at := p.lines()
	var out []figure
	switch {
	case p.Plan.Pairing != nil:
		out = append(out, p.curves())
		out = append(out, p.pairTimelines()...)
		groups := p.laneGroups()
		out = append(out, p.distribution("ttft", "TTFT", "From the first byte of the request written to the first event with a token.", groups, ttft),
			p.distribution("latency", "Latency", "From the first byte of the request written to the end.", groups, latency))
	case p.Plan.Arrivals != nil:
		groups := p.rateGroups()
		out = append(out, p.arrivals())
		if p.Plan.Search != nil {
			out = append(out, p.probes())
		}
		out = append(out, p.loopTimelines(at)...)
		out = append(out, p.distribution("ttft", "TTFT", "From the scheduled moment to the first event with a token; measured attempts.", groups, effectiveTTFT),
			p.distribution("latency", "Latency", "From the scheduled moment to the end; measured attempts.", groups, effectiveLatency))
	default:
		groups := p.tierGroups()
		out = append(out, p.goodput())
		out = append(out, p.waveTimelines(at)...)
		out = append(out, p.distribution("ttft", "TTFT", "From the first byte of the request written to the first event with a token.", groups, ttft),
			p.distribution("latency", "Latency", "From the first byte of the request written to the end.", groups, latency))
	}
	out = append(out, p.schedule())
	out = slices.DeleteFunc(out, func(f figure) bool { return len(f.Panels) == 0 })
	for i := range out {
		for j := range out[i].Panels {
			out[i].Panels[j].ID = fmt.Sprintf("%s-%d", out[i].ID, j+1)
		}
	}
	return out
}

// group is the attempts of both arms for which something holds.
func (p Page) group(name string, is func(r *record.Request) bool) group {
	g := group{name: name}
	for i, arm := range p.names2() {
		g.arms[i] = side{arm: arm, class: p.class(arm)}
	}
	for i := range p.Run.Requests {
		r := &p.Run.Requests[i]
		if r.Warmup || !is(r) {
			continue
		}
		for j := range g.arms {
			if g.arms[j].arm == r.Arm {
				g.arms[j].at = append(g.arms[j].at, i)
			}
		}
	}
	return g
}

func (p Page) tierGroups() []group {
	var out []group
	for _, t := range p.Summary.Tiers {
		if t.Status != "not_selected" {
			out = append(out, p.group(record.Clients(t.Tier), func(r *record.Request) bool { return r.Tier == t.Tier }))
		}
	}
	return out
}

func (p Page) laneGroups() []group {
	var out []group
	for _, l := range p.Summary.Lanes {
		out = append(out, p.group(string(l.Lane)+" lane", func(r *record.Request) bool { return r.Lane == string(l.Lane) }))
	}
	return out
}

func (p Page) rateGroups() []group {
	curve := map[key2]bool{}
	for _, w := range p.Summary.Waves {
		curve[key2{w.Lifecycle, w.Number}] = w.Open && w.Probe == 0
	}
	var out []group
	for _, rate := range p.Summary.Rates {
		if rate.Status != "not_selected" {
			out = append(out, p.group(record.Rate(rate.Rate), func(r *record.Request) bool {
				return curve[key2{r.Lifecycle, r.Wave}] && r.Rate == rate.Rate
			}))
		}
	}
	return out
}

// waveTimelines are a figure a tier, the largest first: it shows the most.
func (p Page) waveTimelines(at map[key2][]int) []figure {
	var out []figure
	for _, t := range slices.Backward(p.Summary.Tiers) {
		var spans []span
		for _, arm := range p.names2() {
			if w, why, ok := p.middle(arm, func(w metric.Wave) bool { return !w.Open && w.Tier == t.Tier }, at); ok {
				spans = append(spans, p.spanOf(w, fmt.Sprintf("%s, %s", arm, record.Clients(t.Tier)), why, at[key2{w.Lifecycle, w.Number}]))
			}
		}
		if len(spans) > 0 {
			out = append(out, p.timelines(fmt.Sprintf("timeline-%d", t.Tier), fmt.Sprintf("Every attempt of a wave of %s", record.Clients(t.Tier)), "the release", spans))
		}
	}
	return out
}

// loopTimelines are a figure a rate.
func (p Page) loopTimelines(at map[key2][]int) []figure {
	var out []figure
	for i, r := range slices.Backward(p.Summary.Rates) {
		var spans []span
		for _, arm := range p.names2() {
			if w, why, ok := p.middle(arm, func(w metric.Wave) bool { return w.Open && w.Probe == 0 && w.Rate == r.Rate }, at); ok {
				spans = append(spans, p.spanOf(w, fmt.Sprintf("%s, %s", arm, record.Rate(r.Rate)), why, at[key2{w.Lifecycle, w.Number}]))
			}
		}
		if len(spans) > 0 {
			out = append(out, p.timelines(fmt.Sprintf("timeline-%d", i+1), fmt.Sprintf("Every attempt of an open loop at %s, its warm-up too", record.Rate(r.Rate)), "the open loop's start", spans))
		}
	}
	return out
}

// pairTimelines are a figure a lane: the pair whose D(N) is the middle one, each
// arm from the start of its initialization on.
func (p Page) pairTimelines() []figure {
	var out []figure
	for _, l := range p.Summary.Lanes {
		pair, why := middlePair(l)
		var spans []span
		for _, arm := range p.names2() {
			for _, c := range p.Run.Lifecycles {
				started := moment(c, "started")
				if c.Pair != pair || c.Arm != arm || started == nil {
					continue
				}
				at := p.sequence(c.Number)
				if len(at) == 0 {
					continue
				}
				var wave record.Wave
				for _, w := range p.Run.Waves {
					if w.Lifecycle == c.Number && w.Number == p.Run.Requests[at[0]].Wave {
						wave = w
					}
				}
				s := p.spanOf(wave, fmt.Sprintf("%s, lifecycle %d", arm, c.Number), "", at)
				s.zero = *started
				spans = append(spans, s)
			}
		}
		if len(spans) > 0 {
			spans[0].why = why
			out = append(out, p.timelines("timeline-"+string(l.Lane), fmt.Sprintf("Every attempt of a pair, %s lane", l.Lane), "the start of the initialization", spans))
		}
	}
	return out
}

// middlePair is the pair whose D(N) is the median one; of an even number it is
// the lower of the two in the middle. The first scheduled, where there is none.
func middlePair(l metric.Lane) (int, string) {
	type end struct {
		pair int
		at   float64
	}
	var ends []end
	if r := l.Kept.Result; r != nil {
		for i, one := range r.Pairs {
			if one.End != nil && i < len(l.Kept.Pairs) {
				ends = append(ends, end{l.Kept.Pairs[i], *one.End})
			}
		}
	}
	if len(ends) == 0 {
		if len(l.Scheduled) == 0 {
			return 0, ""
		}
		return l.Scheduled[0], fmt.Sprintf("Pair %d, the first, since none has a D(N).", l.Scheduled[0])
	}
	slices.SortStableFunc(ends, func(a, b end) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	e := ends[(len(ends)-1)/2]
	return e.pair, fmt.Sprintf("Pair %d, whose D(%d), %.3f s, is the middle one of %d.", e.pair, l.Requests, e.at, len(ends))
}
