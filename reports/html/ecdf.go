package html

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"assay/harness/metric"
)

// group is the attempts of both arms at one level of what a plan varies, by
// their places in the run's requests.
type group struct {
	name string
	arms [2]side
}

type side struct {
	arm, class string
	at         []int
}

// waited is one attempt's duration.
type waited struct {
	at int
	metric.Censored
}

// Of a curve no more than so many steps are drawn and so many points shown; of
// attempts that were cut off, so many ticks.
const (
	mostSteps = 240
	mostTicks = 40
)

// distribution is the figure of a duration over all attempts, a panel a group.
func (p Page) distribution(id, what, counted string, groups []group, of delay) figure {
	base, cand := p.names()
	f := figure{
		ID: id, Title: what + ", over all attempts" + p.emulated(),
		Text: fmt.Sprintf("For each group of attempts, the share of all attempts of %s and of %s whose %s was no longer than the time on the horizontal axis. The table below has percentiles of the same.", base, cand, what),
		Caption: []string{
			counted + " Every attempt counts, failed ones too: one that failed before it could be seen is right-censored. It raises no curve, so that a curve which stays below 100 % ends at the share that was seen; a tick on it is where attempts were cut off.",
		},
		Keys: []key{
			{base, []shape{{"b curve", segment(0, 8, 16, 8)}, {"b dot", square(8, 8, 2.5)}}},
			{cand, []shape{{"c curve", segment(0, 8, 16, 8)}, {"c dot", circle(8, 8, 2.5)}}},
			{"cut off: known only to be longer", []shape{{"fail curve", segment(8, 2, 8, 14)}}},
		},
		Table: &Table{Title: "Percentiles of " + what + " in seconds, all attempts, failures right-censored", Head: []string{"group", "arm", "n", "censored", "p10", "p50", "p90", "p95", "p99", "longest"}},
	}
	low, high := math.Inf(1), 0.0
	values := make([][2][]waited, len(groups))
	for i, g := range groups {
		for j, s := range g.arms {
			for _, at := range s.at {
				v, atLeast, ok := of(p, at)
				if !ok {
					continue
				}
				values[i][j] = append(values[i][j], waited{at, metric.Censored{Value: v, AtLeast: atLeast}})
				if v > 0 {
					low, high = min(low, v), max(high, v)
				}
			}
			slices.SortFunc(values[i][j], func(a, b waited) int {
				return cmp.Or(a.Compare(b.Censored), cmp.Compare(a.at, b.at))
			})
		}
	}
	if high == 0 {
		return figure{}
	}
	x := scale{min: low / 1.15, max: high * 1.15, from: marginLeft, to: columnWidth - marginRight, log: true}
	thinned := false
	for i, g := range groups {
		if len(values[i][0])+len(values[i][1]) == 0 {
			continue
		}
		const height = 220
		paper := newPaper(g.name, columnWidth, height)
		y := scale{min: 0, max: 1, from: height - marginBottom, to: marginTop}
		shares := []tick{{0, "0"}, {0.25, "25"}, {0.5, "50"}, {0.75, "75"}, {1, "100 %"}}
		paper.axes(x, y, what+", s", "of all attempts", x.ticks(6), shares)
		text := ""
		for j, s := range g.arms {
			thinned = p.ecdf(paper, s, values[i][j], x, y) || thinned
			f.Table.Rows = append(f.Table.Rows, percentiles(g.name, s.arm, values[i][j]))
			text += fmt.Sprintf("%s: %s. ", s.arm, seen(values[i][j]))
		}
		paper.Text = text
		f.Panels = append(f.Panels, paper.panel)
	}
	if thinned {
		f.Caption = append(f.Caption, fmt.Sprintf("Drawn through %d of an arm's attempts at most, evenly by rank, the shortest and the longest among them; the percentiles in the table are over every attempt.", mostSteps))
	}
	return f
}

// ecdf draws one arm's curve and says whether it left points out.
func (p Page) ecdf(paper *paper, s side, values []waited, x, y scale) (thinned bool) {
	if len(values) == 0 {
		return false
	}
	n := float64(len(values))
	var seen, cutOff []waited
	ranks := []int{}
	for _, v := range values {
		if v.AtLeast {
			cutOff = append(cutOff, v)
			continue
		}
		seen = append(seen, v)
		ranks = append(ranks, len(seen))
	}
	var line path
	line.move(x.from, y.at(0))
	shown := evenly(len(seen), mostSteps)
	for _, i := range shown {
		line.across(x.at(seen[i].Value))
		line.down(y.at(float64(ranks[i]) / n))
	}
	line.across(x.to)
	paper.behind(s.class+" curve", line.String())
	for _, i := range shown {
		share := float64(ranks[i]) / n
		paper.mark(s.class+" dot", fmt.Sprintf("%.4f s: as long or shorter %.1f %% of %d\n%s", seen[i].Value, float64(100*share), len(values), p.named(seen[i].at)),
			shape{"", glyph(s.class, x.at(seen[i].Value), y.at(share), 1.3)})
	}
	for _, i := range evenly(len(cutOff), mostTicks) {
		share := 0.0
		for _, v := range seen {
			if v.Value <= cutOff[i].Value {
				share += 1 / n
			}
		}
		at, up := x.at(cutOff[i].Value), y.at(share)
		paper.mark("fail curve", fmt.Sprintf("longer than %.4f s: cut off\n%s", cutOff[i].Value, p.named(cutOff[i].at)), shape{"", segment(at, up-4, at, up+4)})
	}
	if len(cutOff) > 0 {
		share := float64(len(seen)) / n
		up := y.at(share) - 6
		if share > 0.9 {
			up = y.at(share) + 14
		}
		paper.write("t e "+s.class+"t", x.to-2, up, fmt.Sprintf("%d of %d cut off", len(cutOff), len(values)))
	}
	return len(shown) < len(seen)
}

// evenly are so many places of n at most, evenly spaced, the first and the last
// among them.
func evenly(n, most int) []int {
	if n <= most {
		most = n
	}
	out := make([]int, 0, most)
	for i := range most {
		at := i
		if most > 1 {
			at = i * (n - 1) / (most - 1)
		}
		out = append(out, at)
	}
	return out
}

func percentiles(name, arm string, values []waited) []string {
	row := []string{name, arm, fmt.Sprint(len(values)), "", "null", "null", "null", "null", "null", "null"}
	censored := 0
	var of []metric.Censored
	for _, v := range values {
		of = append(of, v.Censored)
		if v.AtLeast {
			censored++
		}
	}
	row[3] = fmt.Sprint(censored)
	if len(of) == 0 {
		return row
	}
	for i, q := range []float64{10, 50, 90, 95, 99, 100} {
		row[4+i] = bound(metric.CensoredPercentile(of, q))
	}
	return row
}

// bound writes seconds that may be a lower bound.
func bound(v float64, atLeast bool) string {
	if atLeast {
		return fmt.Sprintf("≥ %.4f", math.Floor(float64(v*1e4))/1e4)
	}
	return fmt.Sprintf("%.4f", v)
}

// seen says a distribution in words.
func seen(values []waited) string {
	if len(values) == 0 {
		return "no attempt"
	}
	var of []metric.Censored
	censored := 0
	for _, v := range values {
		of = append(of, v.Censored)
		if v.AtLeast {
			censored++
		}
	}
	return fmt.Sprintf("%d attempts, %d of them cut off, median %s s, p95 %s s", len(values), censored, bound(metric.CensoredPercentile(of, 50)), bound(metric.CensoredPercentile(of, 95)))
}
