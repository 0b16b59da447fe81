package html

import (
	"cmp"
	"fmt"
	"slices"

	"assay/harness/crossing"
	"assay/harness/metric"
	"assay/harness/record"
)

// mostPoints is how many points of a pair's curve can be pointed at.
const mostPoints = 48

// curves is the figure of D(n), a panel a lane.
func (p Page) curves() figure {
	base, cand := p.names()
	f := figure{
		ID: "crossing", Title: fmt.Sprintf("D(n): %s minus %s, from the start of each initialization", cand, base) + p.emulated(),
		Text: fmt.Sprintf("How far %s is behind %s after each request, as a mean over pairs with its band, and pair by pair. Below zero %s is ahead.", cand, base, cand),
		Caption: []string{
			fmt.Sprintf("D(n): %s's time from the start of its initialization to its n-th terminal moment, minus %s's. Below zero %s is ahead. A thin line is one pair; a ring where it crossed first.", cand, base, cand),
		},
		Keys: []key{
			{"mean of pairs", []shape{{"c mean", segment(0, 8, 16, 8)}}},
			{"pointwise interval", []shape{{"inside", "M0 3h16v10h-16Z"}}},
			{"simultaneous band", []shape{{"outside", "M0 3h16v10h-16Z"}}},
			{"one pair", []shape{{"pair", segment(0, 8, 16, 8)}}},
			{"first crossing of a pair", []shape{{"b hollow", circle(8, 8, 3.6)}}},
		},
		Table: &Table{Title: "Mean D(n) over pairs, in seconds", Head: []string{"lane", "n", "pairs", "mean", "pointwise", "band"}},
	}
	for _, l := range p.Summary.Lanes {
		if l.Kept.Result == nil {
			f.Caption = append(f.Caption, fmt.Sprintf("%s lane: no curve: %s.", l.Lane, l.Kept.Reason))
			continue
		}
		f.Panels = append(f.Panels, p.curve(l))
		c := l.Kept.Result.Curve
		for _, i := range evenly(len(c), 13) {
			f.Table.Rows = append(f.Table.Rows, []string{
				string(l.Lane), fmt.Sprint(c[i].N), fmt.Sprint(c[i].Pairs), fmt.Sprintf("%.3f", c[i].Mean), between(c[i].Low, c[i].High), between(c[i].BandLow, c[i].BandHigh),
			})
		}
	}
	return f
}

func between(low, high *float64) string {
	if low == nil || high == nil {
		return "null"
	}
	return fmt.Sprintf("%.3f to %.3f", *low, *high)
}

func (p Page) curve(l metric.Lane) panel {
	const height = 260
	r := l.Kept.Result
	paper := newPaper(fmt.Sprintf("%s lane, %d pairs", l.Lane, r.K), columnWidth, height)
	pairs := p.pairs(l)
	low, high := 0.0, 0.0
	for _, c := range r.Curve {
		low, high = min(low, c.Mean), max(high, c.Mean)
		for _, v := range []*float64{c.BandLow, c.BandHigh, c.Low, c.High} {
			if v != nil {
				low, high = min(low, *v), max(high, *v)
			}
		}
	}
	for _, one := range pairs {
		for _, v := range one.d {
			low, high = min(low, v), max(high, v)
		}
	}
	room := float64((high-low)*0.05) + 1e-9
	x := scale{min: 0, max: float64(max(l.Requests, 1)), from: marginLeft, to: columnWidth - marginRight}
	y := scale{min: low - room, max: high + room, from: height - marginBottom, to: marginTop}
	for _, band := range []struct {
		class     string
		low, high func(crossing.Point) *float64
	}{
		{"outside", func(c crossing.Point) *float64 { return c.BandLow }, func(c crossing.Point) *float64 { return c.BandHigh }},
		{"inside", func(c crossing.Point) *float64 { return c.Low }, func(c crossing.Point) *float64 { return c.High }},
	} {
		paper.behind(band.class, around(r.Curve, band.low, band.high, x, y))
	}
	paper.axes(x, y, "n, requests ended one after the other", "D(n), s", x.ticks(6), y.ticks(6))
	paper.behind("zero", segment(x.from, y.at(0), x.to, y.at(0)))
	for _, one := range pairs {
		var line path
		for n, v := range one.d {
			if n == 0 {
				line.move(x.at(0), y.at(v))
			} else {
				line.line(x.at(float64(n)), y.at(v))
			}
		}
		paper.behind("pair", line.String())
	}
	var mean path
	for i, c := range r.Curve {
		if i == 0 {
			mean.move(x.at(float64(c.N)), y.at(c.Mean))
		} else {
			mean.line(x.at(float64(c.N)), y.at(c.Mean))
		}
	}
	paper.behind("c mean", mean.String())
	for _, one := range pairs {
		for _, n := range evenly(len(one.d), mostPoints) {
			paper.mark("pairdot", one.tip(n), shape{"", circle(x.at(float64(n)), y.at(one.d[n]), 1.1)})
		}
		if one.first > 0 && one.first < len(one.d) {
			paper.mark("b hollow", fmt.Sprintf("pair %d crossed first at request %d\n%s", one.pair, one.first, one.tip(one.first)),
				shape{"", circle(x.at(float64(one.first)), y.at(one.d[one.first]), 3.6)})
		}
	}
	for _, i := range evenly(len(r.Curve), mostPoints) {
		c := r.Curve[i]
		paper.mark("c dot", fmt.Sprintf("mean D(%d) of %d pairs: %.3f s, pointwise %s, band %s (summary.json)", c.N, c.Pairs, c.Mean, between(c.Low, c.High), between(c.BandLow, c.BandHigh)),
			shape{"", circle(x.at(float64(c.N)), y.at(c.Mean), 1.5)})
	}
	paper.Text = fmt.Sprintf("%d of %d pairs crossed by request %d.", r.Crossed.By, r.Crossed.Of, l.Requests)
	if v := r.End.Mean; v != nil {
		paper.Text += fmt.Sprintf(" Mean D(%d) is %.3f s.", l.Requests, *v)
	}
	return paper.panel
}

// around is a closed ring along the upper ends and back along the lower ones.
func around(curve []crossing.Point, low, high func(crossing.Point) *float64, x, y scale) string {
	var ring path
	to := func(n int, v *float64) {
		switch {
		case v == nil:
		case ring.empty():
			ring.move(x.at(float64(n)), y.at(*v))
		default:
			ring.line(x.at(float64(n)), y.at(*v))
		}
	}
	for _, c := range curve {
		to(c.N, high(c))
	}
	for _, c := range slices.Backward(curve) {
		to(c.N, low(c))
	}
	if !ring.empty() {
		ring.close()
	}
	return ring.String()
}

// pairCurve is one pair's D(n), from n = 0 on, in seconds of the plan's time.
type pairCurve struct {
	pair  int
	d     []float64
	first int // crossing; 0: none
	lines [2][]int
}

func (c pairCurve) tip(n int) string {
	text := fmt.Sprintf("pair %d: D(%d) %.3f s", c.pair, n, c.d[n])
	if n > 0 {
		text += fmt.Sprintf(" (requests.jsonl, lines %d and %d)", c.lines[0][n-1]+1, c.lines[1][n-1]+1)
	}
	return text
}

// pairs are the curves of the pairs that the lane's result is over, from the
// moments in the records.
func (p Page) pairs(l metric.Lane) []pairCurve {
	var out []pairCurve
	for place, number := range l.Kept.Pairs {
		c := pairCurve{pair: number}
		var both [2]crossing.Side
		whole := true
		for i, arm := range p.names2() {
			var ok bool
			both[i], c.lines[i], ok = p.sideOf(number, arm)
			whole = whole && ok
		}
		if !whole {
			continue
		}
		if place < len(l.Kept.Result.Pairs) && l.Kept.Result.Pairs[place].First != nil {
			c.first = *l.Kept.Result.Pairs[place].First
		}
		of := crossing.Pair{Number: number, Baseline: both[0], Candidate: both[1]}
		for n := 0; ; n++ {
			d, ok := of.Difference(n)
			if !ok {
				break
			}
			c.d = append(c.d, p.seconds(d))
		}
		out = append(out, c)
	}
	return out
}

// sideOf is one arm's of a pair, up to its first failed ordinal, with the places
// of its attempts.
func (p Page) sideOf(pair int, arm string) (crossing.Side, []int, bool) {
	for _, l := range p.Run.Lifecycles {
		if l.Pair != pair || l.Arm != arm {
			continue
		}
		started, ready := moment(l, "started"), moment(l, "ready")
		if started == nil || ready == nil {
			return crossing.Side{}, nil, false
		}
		side := crossing.Side{Initialization: *ready - *started}
		at := p.sequence(l.Number)
		for n, i := range at {
			r := &p.Run.Requests[i]
			if r.Ordinal != n+1 || r.Outcome != record.OK {
				at = at[:n]
				break
			}
			side.Terminals = append(side.Terminals, r.EndedAt-*started)
		}
		return side, at, true
	}
	return crossing.Side{}, nil, false
}

// sequence are the places of a lifecycle's attempts, by ordinal.
func (p Page) sequence(lifecycle int) []int {
	var at []int
	for i := range p.Run.Requests {
		if p.Run.Requests[i].Lifecycle == lifecycle && !p.Run.Requests[i].Warmup {
			at = append(at, i)
		}
	}
	slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(p.Run.Requests[a].Ordinal, p.Run.Requests[b].Ordinal) })
	return at
}

// moment is when a lifecycle reached a phase, in ns on its clock; nil where that
// was not seen.
func moment(l record.Lifecycle, phase string) *int64 {
	for _, m := range l.Moments {
		if m.Phase == phase {
			return m.At
		}
	}
	return nil
}
