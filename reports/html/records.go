package html

import (
	"fmt"
	"slices"
	"strings"

	"assay/claim"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
)

// Records are the waves that everything on the page stands on, a row each, which
// the claims lead to.
type Records struct {
	Rate, Lane bool // there is a rate, there is a lane: no clients then
	Waves      []waveRow
}

// waveRow is a wave with its attempts counted, and where they are in
// requests.jsonl.
type waveRow struct {
	ID                            string
	Lifecycle, Number             int
	Arm, Level, Repeat, Status    string
	Invalid                       string
	Attempts, OK, Failed          int
	Kinds, Wall, Goodput, InLines string
}

// ledger is a claim as the page shows it.
type ledger struct {
	Name, Where, Sentence, Verdict, Observation string
	Reasons                                     []string
	Behind                                      []behind
	Quiet                                       bool // it was not run: nothing was asked
}

// behind is what of one lifecycle a claim stands on.
type behind struct {
	Lifecycle int
	Waves     []waveLink
}

type waveLink struct {
	Number int
	ID     string
}

// anchor is the page's name of a wave.
func anchor(lifecycle, wave int) string { return fmt.Sprintf("w%d-%d", lifecycle, wave) }

// level is what a wave is at: clients, a rate, or a lane.
func (p Page) level(w metric.Wave) string {
	switch {
	case w.Open && w.Probe > 0:
		return fmt.Sprintf("probe %d at %s", w.Probe, record.Rate(w.Rate))
	case w.Open:
		return record.Rate(w.Rate)
	case p.Plan.Pairing != nil:
		return p.laneOf(w.Lifecycle) + " lane"
	}
	return record.Clients(w.Tier)
}

func (p Page) laneOf(lifecycle int) string {
	for _, l := range p.Summary.Lifecycles {
		if l.Number == lifecycle {
			return string(l.Lane)
		}
	}
	return ""
}

func (p Page) records() Records {
	out := Records{Rate: p.Plan.Arrivals != nil, Lane: p.Plan.Pairing != nil}
	lines := p.lines()
	for _, w := range p.Summary.Waves {
		if w.Status == "not_selected" {
			continue
		}
		row := waveRow{
			ID: anchor(w.Lifecycle, w.Number), Lifecycle: w.Lifecycle, Number: w.Number, Arm: w.Arm, Level: p.level(w),
			Repeat: fmt.Sprint(w.Repeat), Status: w.Status, Invalid: strings.Join(w.Validity.Reasons, "; "),
			Attempts: w.Counts.Attempted, OK: w.Counts.OK, Failed: w.Counts.Failed,
			Wall: value(w.Wall, " s"), Goodput: value(w.Goodput, " tok/s"), InLines: extent(lines[key2{w.Lifecycle, w.Number}]),
		}
		if w.Warmup {
			row.Status += ", warm-up"
		}
		var kinds []string
		for _, o := range record.Outcomes[1:] {
			if n := w.Counts.ByOutcome[o]; n > 0 {
				kinds = append(kinds, fmt.Sprintf("%d %s", n, o))
			}
		}
		row.Kinds = strings.Join(kinds, ", ")
		out.Waves = append(out.Waves, row)
	}
	return out
}

// key2 is a wave of a lifecycle.
type key2 struct{ lifecycle, wave int }

// lines are the places of each wave's attempts in the run's requests, from 0.
func (p Page) lines() map[key2][]int {
	out := map[key2][]int{}
	for i := range p.Run.Requests {
		r := &p.Run.Requests[i]
		k := key2{r.Lifecycle, r.Wave}
		out[k] = append(out[k], i)
	}
	return out
}

// extent writes lines of a file, which are numbered from 1.
func extent(at []int) string {
	switch {
	case len(at) == 0:
		return "none"
	case len(at) == 1:
		return fmt.Sprint(at[0] + 1)
	}
	return fmt.Sprintf("%d–%d", slices.Min(at)+1, slices.Max(at)+1)
}

func (p Page) ledger() []ledger {
	var out []ledger
	for _, c := range p.Claims.Claims {
		l := ledger{
			Name: string(c.Claim), Sentence: c.Sentence, Verdict: string(c.Verdict), Observation: c.Observation, Reasons: c.Reasons,
			Quiet: c.Verdict == claim.NotApplicable && len(c.Reasons) == 1 && (c.Reasons[0] == claim.NotRun || c.Reasons[0] == claim.LaneNotRun),
		}
		switch {
		case c.Lane != "":
			l.Where = string(c.Lane) + " lane"
		case c.Rate > 0:
			l.Where = record.Rate(c.Rate)
		case c.Claim == plan.ClaimSLORate:
			l.Where = "search"
		case p.Plan.Arrivals != nil:
			l.Where = record.Rate(0)
		default:
			l.Where = record.Clients(c.Tier)
		}
		for _, r := range c.Records {
			b := behind{Lifecycle: r.Lifecycle}
			for _, w := range r.Waves {
				b.Waves = append(b.Waves, waveLink{w, anchor(r.Lifecycle, w)})
			}
			l.Behind = append(l.Behind, b)
		}
		out = append(out, l)
	}
	return out
}

// value writes a summary's value with its unit, or null with the reason.
func value(v metric.Value, unit string) string {
	if v.Value == nil {
		return "null: " + v.Reason
	}
	text := figures3(*v.Value) + unit
	if v.AtLeast {
		text = "≥ " + text
	}
	return text
}

// figures3 writes a number to thousandths, or to three digits where it is less.
func figures3(v float64) string {
	if v != 0 && v < 0.01 && v > -0.01 {
		return fmt.Sprintf("%.3g", v)
	}
	return fmt.Sprintf("%.3f", v)
}
