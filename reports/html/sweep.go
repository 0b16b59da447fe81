package html

import (
	"fmt"
	"math"
	"strconv"

	"assay/harness/metric"
	"assay/harness/record"
)

// level is an arm's at one level of what a plan varies: a point, the range of
// the bar around it, and the points that it sums up.
type level struct {
	at               float64
	point, low, high float64
	tip              string
	hollow           bool // failures have a part in it, which the caption says
	single           []single
}

// single is one wave's part in a level.
type single struct {
	value float64
	tip   string
}

// sweep is a panel of both arms against what a plan varies.
type sweep struct {
	title, along, up string
	ticks            []tick // of what is varied
	arms             [2][]level
	limit            *float64 // a line across; nil: none
	linear           bool     // the vertical axis
	most             float64  // its end; 0: a little above the highest point
	identity         bool     // a line on which both axes are the same
}

// draw draws it; the zero panel where there is no level.
func (s sweep) draw(names [2]string) panel {
	const height = 240
	paper := newPaper(s.title, columnWidth, height)
	low, high := math.Inf(1), 0.0
	for _, arm := range s.arms {
		for _, l := range arm {
			low, high = min(low, l.low), max(high, l.high)
			for _, one := range l.single {
				low, high = min(low, one.value), max(high, one.value)
			}
		}
	}
	if math.IsInf(low, 1) {
		return panel{}
	}
	if s.limit != nil {
		low, high = min(low, *s.limit), max(high, *s.limit)
	}
	if s.identity {
		for _, t := range s.ticks {
			low, high = min(low, t.value), max(high, t.value)
		}
	}
	x := scale{min: s.ticks[0].value / 1.3, max: s.ticks[len(s.ticks)-1].value * 1.3, from: marginLeft, to: columnWidth - marginRight, log: true}
	if s.ticks[0].value <= 0 {
		x = scale{min: -1, max: 1, from: x.from, to: x.to}
	}
	y := scale{min: 0, max: max(high*1.08, 1e-9), from: height - marginBottom, to: marginTop}
	if !s.linear && low > 0 && (high/low >= 10 || s.identity) {
		y.min, y.max, y.log = low/1.3, high*1.3, true
	}
	if s.most > 0 {
		y.max = s.most
	}
	paper.axes(x, y, s.along, s.up, s.ticks, y.ticks(5))
	if s.limit != nil {
		paper.behind("limit", segment(x.from, y.at(*s.limit), x.to, y.at(*s.limit)))
	}
	if s.identity {
		var line path
		for i, t := range s.ticks {
			if i == 0 {
				line.move(x.at(t.value), y.at(t.value))
			} else {
				line.line(x.at(t.value), y.at(t.value))
			}
		}
		paper.behind("limit", line.String())
	}
	for i, arm := range s.arms {
		class := [2]string{baselineClass, candidateClass}[i]
		aside := [2]float64{-3, 3}[i] // so that the arms' bars lie side by side
		var line, bars path
		for n, l := range arm {
			at := x.at(l.at) + aside
			if n == 0 {
				line.move(at, y.at(l.point))
			} else {
				line.line(at, y.at(l.point))
			}
			if l.high > l.low {
				bars.move(at, y.at(l.low))
				bars.down(y.at(l.high))
				bars.move(at-3, y.at(l.low))
				bars.across(at + 3)
				bars.move(at-3, y.at(l.high))
				bars.across(at + 3)
			}
		}
		paper.behind(class+" curve", line.String())
		paper.behind(class+" range", bars.String())
		for _, l := range arm {
			at := x.at(l.at) + aside
			for _, one := range l.single {
				paper.mark(class+" faint", one.tip, shape{"", glyph(class, at+float64(2*aside), y.at(one.value), 1.6)})
			}
			how := class + " dot"
			if l.hollow {
				how = class + " hollow"
			}
			paper.mark(how, l.tip, shape{"", glyph(class, at, y.at(l.point), 3.6)})
			paper.Text += fmt.Sprintf("%s at %s: %s. ", names[i], short(l.at), short(l.point))
		}
	}
	return paper.panel
}

// names2 are the arms', baseline first.
func (p Page) names2() [2]string { b, c := p.names(); return [2]string{b, c} }

// armKeys are the legend of a figure of both arms.
func (p Page) armKeys(hollow string) []key {
	b, c := p.names()
	keys := []key{
		{b, []shape{{"b curve", segment(0, 8, 16, 8)}, {"b dot", square(8, 8, 3.6)}}},
		{c, []shape{{"c curve", segment(0, 8, 16, 8)}, {"c dot", circle(8, 8, 3.6)}}},
	}
	if hollow != "" {
		keys = append(keys, key{hollow, []shape{{"c hollow", circle(4, 8, 3.4)}, {"b hollow", square(12, 8, 3)}}})
	}
	return keys
}

// goodput is both arms' token goodput against the clients that came at once, and
// beside it the share of attempts that failed.
func (p Page) goodput() figure {
	b, c := p.names()
	f := figure{
		ID: "goodput", Title: fmt.Sprintf("Token goodput of %s and %s against clients", b, c) + p.emulated(),
		Text: "The table at the top of the page has the same medians and ranges.",
		Caption: []string{
			"Goodput: a mark at each tier's median, a bar over the range of its waves, and each wave beside it. Output tokens of ok attempts over the time from the release to the last terminal moment; tokens of failed attempts are in no goodput.",
		},
		Keys: p.armKeys("some attempts failed"),
	}
	rates := sweep{title: "Token goodput of a wave", along: "clients at once", up: "tok/s"}
	failures := sweep{title: "Attempts that failed", along: "clients at once", up: "% of all attempts", linear: true, most: 100}
	failed := false
	for _, t := range p.Summary.Tiers {
		if t.Status == "not_selected" {
			continue
		}
		at := tick{float64(t.Tier), strconv.Itoa(t.Tier)}
		rates.ticks, failures.ticks = append(rates.ticks, at), append(failures.ticks, at)
		for i, a := range []metric.Arm{t.Baseline, t.Candidate} {
			where := fmt.Sprintf("%s, %s", a.Arm, record.Clients(t.Tier))
			if g := a.Goodput; g.Median.Value != nil && g.Min != nil && g.Max != nil {
				rates.arms[i] = append(rates.arms[i], level{
					at: at.value, point: *g.Median.Value, low: *g.Min, high: *g.Max, hollow: a.Counts.Failed > 0,
					tip:    fmt.Sprintf("%s: median %.1f tok/s, %.1f to %.1f, of %d waves (summary.json)", where, *g.Median.Value, *g.Min, *g.Max, g.Median.N),
					single: p.waves(a.Arm, func(w metric.Wave) bool { return w.Tier == t.Tier }),
				})
			}
			if n := a.Counts.Attempted; n > 0 {
				failed = failed || a.Counts.Failed > 0
				share := 100 * float64(a.Counts.Failed) / float64(n)
				failures.arms[i] = append(failures.arms[i], level{at: at.value, point: share, low: share, high: share, hollow: a.Counts.Failed > 0,
					tip: fmt.Sprintf("%s: %d of %d attempts failed (%.0f %%)", where, a.Counts.Failed, n, share)})
			}
		}
	}
	f.keep(rates.draw(p.names2()))
	if failed {
		f.keep(failures.draw(p.names2()))
	} else {
		f.Caption = append(f.Caption, "No attempt failed.")
	}
	return f
}

// waves are the goodputs of single waves.
func (p Page) waves(arm string, is func(metric.Wave) bool) []single {
	var out []single
	for _, w := range p.Summary.Waves {
		if w.Arm == arm && !w.Warmup && is(w) && w.Goodput.Value != nil {
			out = append(out, single{*w.Goodput.Value, fmt.Sprintf("%s, lifecycle %d, wave %d, repeat %d: %.1f tok/s, %d of %d ok", w.Arm, w.Lifecycle, w.Number, w.Repeat, *w.Goodput.Value, w.Counts.OK, w.Counts.Attempted)})
		}
	}
	return out
}

// keep adds the panels that have anything in them.
func (f *figure) keep(panels ...panel) {
	for _, one := range panels {
		if one.W != "" {
			f.Panels = append(f.Panels, one)
		}
	}
}

// arrivals is both arms' TTFT from the scheduled moment against the rate, and
// what they completed of what was offered.
func (p Page) arrivals() figure {
	b, c := p.names()
	f := figure{
		ID: "rates", Title: fmt.Sprintf("%s and %s against the rate of arrivals", b, c) + p.emulated(),
		Text: "The table at the top of the page has the same numbers.",
		Caption: []string{
			"TTFT: from the scheduled moment, over all measured attempts, failures right-censored; a mark at the p95 and a bar from the p50 to the p99. Completed: attempts that ended ok a second of the measurement; on the broken line everything that was offered is completed.",
		},
		Keys: p.armKeys("at least so long: cut short by failures"),
	}
	waits := sweep{title: "TTFT from the scheduled moment", along: "requests a second", up: "seconds, p95, and p50 to p99"}
	done := sweep{title: "Completed of what was offered", along: "requests a second that were offered", up: "completed a second", identity: true}
	if s := p.Plan.Search; s != nil && s.SLO.TTFT95 > 0 {
		limit := s.SLO.TTFT95.D().Seconds()
		waits.limit = &limit
		f.Caption = append(f.Caption, "The broken line in the first panel: the SLO's p95, "+s.SLO.TTFT95.String()+".")
	}
	for _, r := range p.Summary.Rates {
		if r.Status == "not_selected" {
			continue
		}
		at := tick{r.Rate, short(r.Rate)}
		if r.Rate == 0 {
			at.label = "changing"
		}
		waits.ticks, done.ticks = append(waits.ticks, at), append(done.ticks, at)
		for i, a := range []metric.OpenArm{r.Baseline, r.Candidate} {
			where := fmt.Sprintf("%s, %s", a.Arm.Arm, record.Rate(r.Rate))
			if low, mid, high := a.EffectiveTTFT50, a.EffectiveTTFT95, a.EffectiveTTFT99; low.Value != nil && mid.Value != nil && high.Value != nil {
				waits.arms[i] = append(waits.arms[i], level{at: r.Rate, point: *mid.Value, low: *low.Value, high: *high.Value, hollow: high.AtLeast,
					tip: fmt.Sprintf("%s: p50 %s, p95 %s, p99 %s, n = %d, %d cut off (summary.json)", where, value(low, " s"), value(mid, " s"), value(high, " s"), mid.N, mid.Censored)})
			}
			if v := a.Completed.Value; v != nil {
				done.arms[i] = append(done.arms[i], level{at: r.Rate, point: *v, low: *v, high: *v, hollow: a.Counts.Failed > 0,
					tip: fmt.Sprintf("%s: offered %s, completed %s a second", where, value(a.Offered, ""), value(a.Completed, ""))})
			}
		}
	}
	f.keep(waits.draw(p.names2()), done.draw(p.names2()))
	return f
}

// emulated marks the title of a figure whose numbers are.
func (p Page) emulated() string {
	if p.Summary.Provenance == record.Emulated {
		return " (emulated)"
	}
	return ""
}
