package main

import (
	"assay/harness/plan"
	"assay/harness/record"
)

// arrivalRows are an arrival plan's open loops; nothing of other plans.
func arrivalRows(row func(string, string, ...any), p *plan.Plan, s plan.Schedule) {
	a := p.Arrivals
	if a == nil {
		return
	}
	row("arrivals", "%s, %s of warm-up, measured for %s and %s at least, drained for %s at most", a.Process, a.Warmup, a.Measure, count(a.MinRequests, "request"), a.Drain)
	if a.InFlight > 0 {
		row("in flight", "at most %d; beyond it: %s", a.InFlight, a.Beyond)
	}
	for _, l := range s.Lifecycles {
		if l.Position != 1 {
			continue // the other arm of the pair has the same
		}
		for _, w := range l.Waves {
			if w.Open() {
				row("", "pair %d: %s, %s", l.Pair, record.Rate(w.Rate), count(w.Arrivals, "request"))
			}
		}
	}
	if p.Search != nil {
		row("search", "from %s to %s, to within %s, at most %s", p.Search.From, p.Search.To, p.Search.Within, count(p.Capacity(1).MostProbes(), "probe"))
		for _, o := range p.Search.SLO.Objectives() {
			row("", "%s", o)
		}
	}
}

// arrivalWorst is how long the open loops of each lifecycle take at most.
func arrivalWorst(row func(string, string, ...any), p *plan.Plan) {
	if p.Arrivals == nil {
		return
	}
	row("", "each lifecycle: open loops %s", p.CurveTime())
	if p.Search != nil {
		row("", "each lifecycle: search %s, if it takes every probe that it may", p.SearchTime())
	}
}
