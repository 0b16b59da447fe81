package html

import (
	"fmt"
	"math"
	"strings"

	"assay/harness/metric"
	"assay/harness/record"
)

// probes is the figure of the searches, a panel a lifecycle.
func (p Page) probes() figure {
	f := figure{
		ID: "probes", Title: "The searches, probe by probe" + p.emulated(),
		Text:    "For each search the rates that it probed, in order, with what each showed: the objective holds, fails, or neither.",
		Caption: []string{"A search doubles the rate until the SLO fails, then halves the bracket. The lines: the highest rate shown to keep it, and the lowest shown not to."},
		Keys: []key{
			{"holds", []shape{{"holds", upward(8, 8, 4)}}}, {"fails", []shape{{"fail curve", cross(8, 8, 4)}}}, {"undecided", []shape{{"c hollow", circle(8, 8, 3.6)}}},
		},
		Table: &Table{Title: "Probes", Head: []string{"lifecycle", "arm", "probe", "rate, rps", "verdict", "objectives"}},
	}
	low, high, longest := math.Inf(1), 0.0, 1
	for _, s := range p.Summary.Searches {
		for _, q := range s.Probes {
			low, high = min(low, q.Rate), max(high, q.Rate)
		}
		longest = max(longest, len(s.Probes))
	}
	for _, s := range p.Summary.Searches {
		if len(s.Probes) > 0 {
			f.Panels = append(f.Panels, p.search(s, low, high, longest))
		}
		for i, q := range s.Probes {
			f.Table.Rows = append(f.Table.Rows, []string{fmt.Sprint(s.Lifecycle), s.Arm, fmt.Sprint(i + 1), figures3(q.Rate), string(q.Verdict), objectives(q)})
		}
	}
	return f
}

func objectives(q metric.Probe) string {
	var parts []string
	for _, o := range q.Objectives {
		parts = append(parts, fmt.Sprintf("%s %d of %d within, %.3f to %.3f", o.Name, o.Within, o.Of, o.Lower, o.Upper))
	}
	return strings.Join(parts, "; ")
}

func (p Page) search(s metric.Searched, low, high float64, longest int) panel {
	const height = 200
	paper := newPaper(fmt.Sprintf("%s, lifecycle %d", s.Arm, s.Lifecycle), columnWidth, height)
	x := scale{min: 0.5, max: float64(longest) + 0.5, from: marginLeft, to: columnWidth - marginRight}
	y := scale{min: low / 1.3, max: high * 1.3, from: height - marginBottom, to: marginTop, log: true}
	var steps []tick
	for _, i := range evenly(longest, 10) {
		steps = append(steps, tick{float64(i + 1), fmt.Sprint(i + 1)})
	}
	paper.axes(x, y, "probe", "requests a second", steps, y.ticks(5))
	for _, of := range []metric.Value{s.Holds, s.Fails} {
		if of.Value != nil {
			paper.behind("limit", segment(x.from, y.at(*of.Value), x.to, y.at(*of.Value)))
		}
	}
	var line path
	for i, q := range s.Probes {
		if i == 0 {
			line.move(x.at(1), y.at(q.Rate))
		} else {
			line.line(x.at(float64(i+1)), y.at(q.Rate))
		}
	}
	paper.behind("pair", line.String())
	for i, q := range s.Probes {
		at, up := x.at(float64(i+1)), y.at(q.Rate)
		tip := fmt.Sprintf("probe %d at %s: %s\n%s\nlifecycle %d, wave %d", i+1, record.Rate(q.Rate), q.Verdict, objectives(q), s.Lifecycle, q.Wave)
		switch q.Verdict {
		case "holds":
			paper.mark("holds", tip, shape{"", upward(at, up, 4)})
		case "fails":
			paper.mark("fail curve", tip, shape{"", cross(at, up, 4)})
		default:
			paper.mark("c hollow", tip, shape{"", circle(at, up, 3.6)})
		}
		paper.Text += fmt.Sprintf("Probe %d at %s: %s. ", i+1, record.Rate(q.Rate), q.Verdict)
	}
	return paper.panel
}
