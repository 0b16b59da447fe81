package html

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"assay/harness/metric"
	"assay/harness/record"
)

// Of a wave's attempts so many have a row of their own, and of a table as many.
const mostRows = 320

// A shorter wave beside one this many times longer is drawn again by itself.
const enlarged = 4

// span is a wave with its attempts, on a time axis that begins at zero.
type span struct {
	title string
	why   string // this wave, and not another
	wave  record.Wave
	at    []int // its attempts, by their places in the run's requests
	zero  int64 // ns on the lifecycle's clock
	end   int64 // the last terminal moment
	class string
}

// spanOf is a wave's, from its release on.
func (p Page) spanOf(w record.Wave, title, why string, at []int) span {
	s := span{title: title, why: why, wave: w, at: slices.Clone(at), class: p.class(w.Arm)}
	if w.ReleasedAt != nil {
		s.zero, s.end = *w.ReleasedAt, *w.ReleasedAt
	}
	for _, i := range s.at {
		s.end = max(s.end, p.Run.Requests[i].EndedAt)
	}
	slices.SortFunc(s.at, func(a, b int) int {
		x, y := &p.Run.Requests[a], &p.Run.Requests[b]
		return cmp.Or(cmp.Compare(x.ScheduledAt, y.ScheduledAt), cmp.Compare(firstToken(x), firstToken(y)), cmp.Compare(x.Ordinal, y.Ordinal))
	})
	return s
}

// firstToken is when an attempt's came, behind every other where none did: so
// what was served lies in the order in which it was.
func firstToken(r *record.Request) int64 {
	if r.FirstTokenAt == nil {
		return math.MaxInt64
	}
	return *r.FirstTokenAt
}

// timelines is the figure of waves, side by side on one time axis.
func (p Page) timelines(id, title, from string, spans []span) figure {
	f := figure{
		ID: id, Title: title + p.emulated(), Keys: timelineKeys(),
		Text:  "A row for each attempt, in the order of release and then of the first token, against the time: how long it was not sent, how long it waited for its first token, how long tokens came, and how it ended. The table below has the same moments.",
		Table: &Table{Title: "The attempts that are drawn: seconds from " + from, Head: []string{"line", "arm", "ordinal", "outcome", "scheduled", "sent", "first token", "last token", "ended"}},
	}
	most := 0.0
	for _, s := range spans {
		most = max(most, p.seconds(s.end-s.zero))
	}
	var why []string
	thinned := false
	for _, s := range spans {
		rows := p.rows(s.at)
		thinned = thinned || len(rows) < len(s.at)
		f.Panels = append(f.Panels, p.timeline(s, s.title, from, most, rows))
		if own := p.seconds(s.end - s.zero); own > 0 && own*enlarged < most {
			f.Panels = append(f.Panels, p.timeline(s, s.title+", the same, enlarged", from, own, rows))
		}
		if s.why != "" {
			why = append(why, s.why)
		}
		for _, i := range rows {
			r := &p.Run.Requests[i]
			f.Table.Rows = append(f.Table.Rows, []string{
				fmt.Sprint(i + 1), r.Arm, fmt.Sprint(r.Ordinal), string(r.Outcome),
				p.since(s.zero, &r.ScheduledAt), p.since(s.zero, r.SentAt), p.since(s.zero, r.FirstTokenAt), p.since(s.zero, r.LastTokenAt), p.since(s.zero, &r.EndedAt),
			})
		}
	}
	f.Caption = append(f.Caption, why...)
	f.Caption = append(f.Caption, "A row is an attempt, by release and then by first token, those without one last. Line: of requests.jsonl.")
	if thinned {
		f.Caption = append(f.Caption, fmt.Sprintf("Of a wave with more than %d attempts as many have a row, evenly by release; besides those, the first and the last, the longest wait for a first token, the longest attempt, and the first and last of each way to fail.", mostRows))
	}
	return f
}

func timelineKeys() []key {
	bar := func(class string) key { return key{Shapes: []shape{{class + " bar", "M0 5h16v6h-16Z"}}} }
	named := func(k key, text string) key { k.Text = text; return k }
	return []key{
		named(bar("late"), "not sent yet"), named(bar("wait"), "sent, waiting for a first token"), named(bar("flow"), "tokens came"),
		named(bar("badwait"), "waiting, and then it failed"), named(bar("badflow"), "tokens came, and then it failed"),
		{"failed", []shape{{"fail curve", cross(8, 8, 4)}}},
	}
}

// rows are the attempts that are drawn.
func (p Page) rows(at []int) []int {
	if len(at) <= mostRows {
		return at
	}
	keep := map[int]bool{}
	for _, i := range evenly(len(at), mostRows) {
		keep[i] = true
	}
	longest, slowest := 0, -1
	first, last := map[record.Outcome]int{}, map[record.Outcome]int{}
	wait := int64(-1)
	for i, n := range at {
		r, l := &p.Run.Requests[n], &p.Run.Requests[at[longest]]
		if metric.EffectiveLatency(*r) > metric.EffectiveLatency(*l) {
			longest = i
		}
		if v, reason := metric.EffectiveTTFT(*r); reason == "" && v > wait {
			slowest, wait = i, v
		}
		if _, seen := first[r.Outcome]; !seen {
			first[r.Outcome] = i
		}
		last[r.Outcome] = i
	}
	keep[longest] = true
	if slowest >= 0 {
		keep[slowest] = true
	}
	for _, o := range record.Outcomes[1:] {
		if i, is := first[o]; is {
			keep[i], keep[last[o]] = true, true
		}
	}
	var out []int
	for i, n := range at {
		if keep[i] {
			out = append(out, n)
		}
	}
	return out
}

// timeline draws a wave's attempts, what was outstanding in an open loop, and
// what was seen beside it.
func (p Page) timeline(s span, title, from string, until float64, rows []int) panel {
	strips := p.strips(s)
	each := min(9, max(1, 230/float64(max(len(rows), 1))))
	tall := float64(max(24, float64(each*float64(len(rows)))))
	top := float64(marginTop)
	height := top + tall + marginBottom + float64(float64(len(strips))*stripHeight)
	paper := newPaper(title, columnWidth, height)
	x := scale{min: 0, max: until, from: marginLeft, to: columnWidth - marginRight}
	y := scale{min: 0, max: max(float64(len(rows)), 1), from: top, to: top + tall}
	paper.write("t", 4, top-8, "attempts")
	paper.write("t e", marginLeft-5, y.at(0)+9, "1")
	if len(rows) > 1 {
		paper.write("t e", marginLeft-5, y.at(float64(len(rows)))+2, fmt.Sprint(len(s.at)))
	}
	bottom := y.to + float64(float64(len(strips))*stripHeight)
	paper.along(x, top, bottom, "seconds from "+from, x.ticks(5))
	failed := 0
	for n, i := range rows {
		if p.Run.Requests[i].Outcome != record.OK {
			failed++
		}
		p.row(paper, i, s.zero, x, y.at(float64(n)), each)
	}
	at := y.to
	for _, strip := range strips {
		p.strip(paper, s, strip, x, at)
		at += stripHeight
	}
	paper.Text = fmt.Sprintf("%s: %d attempts over %.3f s, %d rows drawn, %d of those failed.", s.title, len(s.at), p.seconds(s.end-s.zero), len(rows), failed)
	return paper.panel
}

// row draws an attempt.
func (p Page) row(paper *paper, i int, zero int64, x scale, top, tall float64) {
	r := &p.Run.Requests[i]
	at := func(ns int64) float64 { return x.at(p.seconds(ns - zero)) }
	thick := tall
	if tall > 2 {
		thick -= 0.4 // rows that have room are told apart
	}
	bar := func(from, to int64) string {
		left, right := at(from), at(to)
		return fmt.Sprintf("M%s %sh%sv%sh-%sZ", place(left), place(top), place(max(right-left, 0.6)), place(max(thick, 0.8)), place(max(right-left, 0.6)))
	}
	wait, flow := "wait", "flow"
	if r.Outcome != record.OK {
		wait, flow = "badwait", "badflow"
	}
	var shapes []shape
	sent := r.EndedAt
	if r.SentAt != nil {
		sent = *r.SentAt
	}
	if at(sent)-at(r.ScheduledAt) > 0.5 {
		shapes = append(shapes, shape{"late bar", bar(r.ScheduledAt, sent)})
	}
	first := r.EndedAt
	if r.FirstTokenAt != nil {
		first = *r.FirstTokenAt
	}
	if r.SentAt != nil {
		shapes = append(shapes, shape{wait + " bar", bar(sent, first)})
	}
	if r.FirstTokenAt != nil {
		until := r.EndedAt
		if r.LastTokenAt != nil && r.Outcome == record.OK {
			until = *r.LastTokenAt
		}
		shapes = append(shapes, shape{flow + " bar", bar(first, until)})
	}
	if r.Outcome != record.OK {
		shapes = append(shapes, shape{"fail curve", cross(at(r.EndedAt), top+tall/2, min(3, max(1.2, tall/2-0.2)))})
	}
	paper.mark("row", p.tip(i, zero), shapes...)
}

// middle picks the wave whose goodput is the median one, or of open loops, which
// have none each, the one of as many ok attempts, and says so. Of an even number
// it is the lower of the two in the middle.
func (p Page) middle(arm string, is func(metric.Wave) bool, at map[key2][]int) (record.Wave, string, bool) {
	var own []metric.Wave
	for _, w := range p.Summary.Waves {
		if w.Arm == arm && !w.Warmup && is(w) && len(at[key2{w.Lifecycle, w.Number}]) > 0 {
			own = append(own, w)
		}
	}
	what := "goodput, %.2f tok/s,"
	by := func(w metric.Wave) float64 {
		if w.Goodput.Value == nil {
			return 0
		}
		return *w.Goodput.Value
	}
	if !slices.ContainsFunc(own, func(w metric.Wave) bool { return w.Goodput.Value != nil }) {
		what, by = "number of ok attempts, %.0f,", func(w metric.Wave) float64 { return float64(w.Counts.OK) }
	}
	if len(own) == 0 {
		return record.Wave{}, "", false
	}
	slices.SortStableFunc(own, func(a, b metric.Wave) int { return cmp.Compare(by(a), by(b)) })
	w := own[(len(own)-1)/2]
	why := "the only one"
	if len(own) > 1 {
		why = fmt.Sprintf("whose "+what+" is the middle one of %d", by(w), len(own))
	}
	return p.recorded(w), fmt.Sprintf("%s: lifecycle %d, wave %d, %s.", arm, w.Lifecycle, w.Number, why), true
}

func (p Page) recorded(of metric.Wave) record.Wave {
	for _, w := range p.Run.Waves {
		if w.Lifecycle == of.Lifecycle && w.Number == of.Number {
			return w
		}
	}
	return record.Wave{}
}
