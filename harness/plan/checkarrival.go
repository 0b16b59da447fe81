package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// arrivalSpans are the times that an arrival plan may write out.
func arrivalSpans(p *Plan) []writtenSpan {
	var spans []writtenSpan
	if a := p.Arrivals; a != nil {
		spans = append(spans,
			writtenSpan{"arrivals.warmup", a.Warmup, 0}, writtenSpan{"arrivals.measure", a.Measure, 1}, writtenSpan{"arrivals.drain", a.Drain, 1},
			writtenSpan{"arrivals.over", a.Over, 1}, writtenSpan{"arrivals.dial_ahead", a.DialAhead, 1}, writtenSpan{"arrivals.think", a.Think, 1})
		for i, s := range a.Steps {
			spans = append(spans, writtenSpan{fmt.Sprintf("arrivals.steps[%d].for", i), s.For, 1})
		}
	}
	if g := p.Gates.ScheduleDelay; g != nil {
		spans = append(spans, writtenSpan{"gates.schedule_delay", *g, 1})
	}
	if s := p.Search; s != nil {
		for _, o := range s.SLO.times() {
			spans = append(spans, writtenSpan{"search.slo." + o.Name, Duration(o.Limit), 1})
		}
	}
	return spans
}

// own are the keys of arrivals that belong to some processes only.
var own = map[string][]string{
	"rates": {"constant", "poisson", "gamma"}, "burstiness": {"gamma"}, "from": {"ramp"}, "to": {"ramp"}, "over": {"ramp"}, "steps": {"step"},
	"offsets": {"trace"}, "scale": {"trace"},
}

// arrivals checks what an arrival plan has instead of a sweep.
func (d *document) arrivals(p *Plan) {
	a := p.Arrivals
	before := len(d.mistakes.List)
	if a.Process != "" {
		for _, key := range []string{"rates", "burstiness", "from", "to", "over", "steps", "offsets", "scale"} {
			has, takes := d.has("arrivals."+key), slices.Contains(own[key], a.Process)
			switch {
			case has && !takes:
				d.odd("arrivals."+key, "a %s process has none: it is for %s", a.Process, strings.Join(own[key], ", "))
			case !has && takes && key != "burstiness" && key != "from" && key != "scale":
				d.odd("arrivals."+key, "missing: a %s process needs %s", a.Process, key)
			}
		}
	}
	d.conversations(p)
	seen := map[Rate]int{}
	for i, r := range a.Rates {
		at := fmt.Sprintf("arrivals.rates[%d]", i)
		if first, twice := seen[r]; twice {
			d.odd(at, "%s stands there already, as rates[%d]: name each rate once", r, first)
		}
		seen[r] = i
		if r < 1e-6 {
			d.odd(at, "%s brings nothing: write a rate such as 0.5rps", r)
		}
	}
	last := Duration(0)
	for i, o := range a.Offsets {
		at := fmt.Sprintf("arrivals.offsets[%d]", i)
		switch {
		case o < 0:
			d.odd(at, "%s is before the trace's beginning: offsets count from there", o)
		case o < last:
			d.odd(at, "%s comes after %s: offsets count from the trace's beginning and never fall", o, last)
		default:
			last = o
		}
	}
	if a.Beyond != "" && !d.has("arrivals.in_flight") {
		d.odd("arrivals.beyond", "there is no limit to go beyond: write in_flight too, or leave it out")
	}
	sound := len(d.mistakes.List) == before && !d.bad["arrivals"]
	for path := range d.bad {
		sound = sound && !strings.HasPrefix(path, "arrivals.")
	}
	searched := len(d.mistakes.List)
	if p.Search != nil {
		d.search(p)
	} else {
		for i, c := range p.Claims {
			if c == ClaimSLORate {
				d.odd(fmt.Sprintf("claims[%d]", i), "%s is what a search finds, and the plan has none: write search, or leave the claim out", c)
			}
		}
	}
	if sound { // what follows draws the arrivals
		d.drawn(p, len(d.mistakes.List) == searched && !d.bad["search"])
	}
}

// search checks what is looked for.
func (d *document) search(p *Plan) {
	s := p.Search
	if !p.Arrivals.Swept() && p.Arrivals.Process != "" {
		d.odd("search", "a %s process has no single rate to look for: use constant, poisson or gamma, or leave it out", p.Arrivals.Process)
	}
	if s.From > 0 && s.To > 0 && s.From >= s.To {
		d.odd("search.to", "%s is not above from, %s: write the rates between which to look", s.To, s.From)
	}
	for _, r := range []struct {
		path string
		rate Rate
	}{{"search.from", s.From}, {"search.to", s.To}} {
		if d.has(r.path) && r.rate < 1e-6 {
			d.odd(r.path, "%s brings nothing: write a rate such as 0.5rps", r.rate)
		}
	}
	if s.Within.Value < 0.1 {
		d.odd("search.within", "%s is narrower than a search can show: write 0.1%% or more, such as 5%%", s.Within)
	}
	if c := s.Confidence; c.Value <= 50 || c.Value >= 100 {
		d.odd("search.confidence", "%s is no confidence: write more than 50%% and less than 100%%, such as 90%%", c)
		return
	}
	if f := s.SLO.FailureRate; f != nil && (f.Value <= 0 || f.Value >= 100) {
		d.odd("search.slo.failure_rate", "%s can be shown by no number of requests: write more than 0%% and less than 100%%, such as 1%%", f)
		return
	}
	for _, o := range s.SLO.Objectives() {
		if o.Of == "tpot" && p.Workload.MaxTokens == 1 {
			d.odd("search.slo."+o.Name, "with max_tokens: 1 no answer has a TPOT, which takes two tokens: ask for more, or leave it out")
		}
	}
	least := max(p.Arrivals.MinRequests, int(math.Floor(float64(s.From)*p.Arrivals.Measure.D().Seconds())))
	if needed := p.Capacity(1).FewestAttempts(); least < needed {
		d.odd("arrivals.min_requests", "%d measured requests, which is what a probe at %s has, can't show the SLO at %s even if all keep it: it takes %d; write min_requests: %d or more, or a longer measure",
			least, s.From, s.Confidence, needed, needed)
	}
}

// conversations checks what a workload of conversations asks of its arrivals.
func (d *document) conversations(p *Plan) {
	has, talks := d.has("arrivals.think"), p.Workload.Source != nil && p.Workload.Source.Kind == ConversationSource
	switch {
	case has && !talks:
		d.odd("arrivals.think", "nobody thinks between requests that stand alone: leave it out, or have workload.source of the kind %s", ConversationSource)
	case !has && talks:
		d.odd("arrivals.think", "missing: write how long the user of a conversation thinks on average before the next turn, such as 8s")
	}
	if talks && p.Arrivals.Process != "" && !p.Arrivals.Swept() {
		d.odd("arrivals.process", "conversations begin at one rate: write constant, poisson or gamma")
	}
}

// drawn draws the plan's arrivals once, to say what can't be. searches says that
// there is nothing wrong with its search.
func (d *document) drawn(p *Plan, searches bool) {
	a := p.Arrivals
	rates := a.Levels()
	seconds := (a.Warmup + a.Measure).D().Seconds()
	all := 0.0
	for _, r := range rates {
		all += max(float64(r)*seconds, float64(a.MinRequests))
	}
	all *= 2 * float64(p.Sweep.Lifecycles)
	if all > mostRequests || 2*float64(p.Sweep.Lifecycles)*float64(len(rates)+p.Sweep.Warmup) > mostWaves {
		d.odd("arrivals", "about %.0f requests: stay at or below %d", all, mostRequests)
		return
	}
	for i, r := range rates {
		at := "arrivals"
		if a.Swept() {
			at = fmt.Sprintf("arrivals.rates[%d]", i)
		}
		s, err := p.declared(float64(r), p.derived("curve", 1, i))
		if n := len(s.Offsets); err == nil && (n == 0 || !s.Measured(s.Offsets[n-1])) {
			d.odd(at, "no request comes in the measurement: measure longer, or ask for min_requests")
		}
		if err != nil {
			for _, one := range flattened(err) {
				d.odd(at, "%s", strings.TrimPrefix(one.Error(), "arrivals: "))
			}
		}
	}
	t := p.Timeouts
	if max(t.Image, t.Ready, t.Stop, t.Connect, t.Request, p.Sweep.Settle.Idle).D() > longest {
		return // said already
	}
	// In floating point, which does not wrap around.
	worst := 0.0
	for _, r := range rates {
		worst += float64(p.OpenTime(float64(r)))
	}
	if p.Search != nil && searches && p.Search.From > 0 {
		worst += float64(p.Capacity(1).MostProbes()) * float64(p.OpenTime(float64(p.Search.From)))
	}
	worst = 2 * float64(p.Sweep.Lifecycles) * (worst + float64(t.Ready) + float64(t.Stop) + float64(p.Sweep.Warmup)*float64(t.Connect+t.Request))
	if worst > float64(longest) || worst/p.TimeScale > float64(longest) {
		d.odd("arrivals", "what is declared may take more than a year: run less, or wait less")
	}
}

// flattened are the errors that were joined.
func flattened(err error) []error {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		return many.Unwrap()
	}
	return []error{err}
}
