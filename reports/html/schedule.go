package html

import (
	"fmt"
	"time"

	"assay/harness/record"
)

// The stretches of a lifecycle that the schedule's figure tells apart.
var stretches = []struct{ class, name, from, to string }{
	{"made", "made ready to start", "invoked", "started"},
	{"init", "initialization: started to ready", "started", "ready"},
	{"idle", "ready, and nothing sent", "ready", "first_sent"},
	{"serve", "request phase: first sent to last terminal", "first_sent", "last_terminal"},
	{"stop", "stopped and removed", "last_terminal", "removed"},
}

// schedule is the figure of the lifecycles in the order in which they ran.
func (p Page) schedule() figure {
	f := figure{
		ID: "schedule", Title: "The lifecycles, in the order in which they ran" + p.emulated(), Wide: true,
		Text:    "A row for each lifecycle against the time of the run, with the stretches from its invocation to its removal.",
		Caption: []string{"A row is a fresh server, from the host's invocation to its removal. What was not seen is not drawn; the reason is in lifecycles.jsonl."},
		Table:   &Table{Title: "Lifecycles: seconds from each one's invocation, measured", Head: []string{"lifecycle", "arm", "pair", "status", "started", "ready", "first sent", "last terminal", "removed"}},
	}
	for _, s := range stretches {
		f.Keys = append(f.Keys, key{s.name, []shape{{s.class + " bar", "M0 4h16v8h-16Z"}}})
	}
	type placed struct {
		record.Lifecycle
		from float64
	}
	var ran []placed
	var begin time.Time
	until := 0.0
	for _, l := range p.Run.Lifecycles {
		row := []string{fmt.Sprint(l.Number), l.Arm, fmt.Sprint(l.Pair), l.Status}
		for _, phase := range []string{"started", "ready", "first_sent", "last_terminal", "removed"} {
			text := "null"
			if at := moment(l, phase); at != nil {
				text = fmt.Sprintf("%.3f", float64(*at)/1e9)
			}
			row = append(row, text)
		}
		f.Table.Rows = append(f.Table.Rows, row)
		at, err := time.Parse(time.RFC3339Nano, l.Anchor)
		if err != nil || len(l.Moments) == 0 {
			continue // it did not run, which the table says
		}
		if begin.IsZero() || at.Before(begin) {
			begin = at
		}
		ran = append(ran, placed{l, float64(at.UnixNano())})
	}
	for i := range ran {
		ran[i].from = float64(ran[i].from-float64(begin.UnixNano())) / 1e9
		for _, m := range ran[i].Moments {
			if m.At != nil {
				until = max(until, ran[i].from+float64(*m.At)/1e9)
			}
		}
	}
	if len(ran) == 0 || until == 0 {
		return f
	}
	unit, name := 1.0, "seconds of the run, measured"
	if until > 300 {
		unit, name = 60, "minutes of the run"
	}
	each := min(20, max(11, 260/float64(len(ran))))
	height := marginTop + float64(each*float64(len(ran))) + marginBottom
	paper := newPaper("", wideWidth, height)
	longest := 0
	names := make([]string, len(ran))
	for n, l := range ran {
		names[n] = fmt.Sprintf("%d %s", l.Number, cut(l.Arm, 20))
		if l.Lane != "" {
			names[n] += ", " + l.Lane
		}
		longest = max(longest, len([]rune(names[n])))
	}
	left := 14 + float64(6.4*float64(longest)) // about as wide as the names
	x := scale{min: 0, max: until / unit, from: left, to: wideWidth - marginRight}
	bottom := height - marginBottom
	paper.along(x, marginTop, bottom, name, x.ticks(8))
	for n, l := range ran {
		top := marginTop + float64(each*float64(n))
		paper.write("t e "+p.class(l.Arm)+"t", left-6, top+each/2+3.5, names[n])
		for _, s := range stretches {
			from, to := moment(l.Lifecycle, s.from), moment(l.Lifecycle, s.to)
			if from == nil || to == nil || *to < *from {
				continue
			}
			a, b := x.at((l.from+float64(*from)/1e9)/unit), x.at((l.from+float64(*to)/1e9)/unit)
			paper.mark(s.class+" bar", fmt.Sprintf("lifecycle %d (%s), %s: %.3f s measured (lifecycles.jsonl)", l.Number, l.Arm, s.name, float64(*to-*from)/1e9),
				shape{"", fmt.Sprintf("M%s %sh%sv%sh-%sZ", place(a), place(top+1), place(max(b-a, 0.8)), place(each-2), place(max(b-a, 0.8)))})
		}
	}
	paper.Text = fmt.Sprintf("%d lifecycles over %.0f seconds.", len(ran), until)
	f.Panels = append(f.Panels, paper.panel)
	return f
}
