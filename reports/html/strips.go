package html

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"assay/harness/record"
)

// stripHeight is that of a quantity under a timeline, and mostLooks how many of
// its looks can be pointed at.
const (
	stripHeight = 50
	mostLooks   = 60
)

// series is one quantity over a wave.
type series struct {
	name   string
	unit   string
	class  string
	looks  []look
	steps  bool // it holds until the next
	source string
}

type look struct {
	at    int64 // ns on the lifecycle's clock
	value float64
}

// strips are what lies under a wave's timeline: the requests outstanding in an
// open loop, and what was looked at beside the load while it lasted.
func (p Page) strips(s span) []series {
	var out []series
	if s.wave.Open() {
		out = append(out, p.outstanding(s))
	}
	for _, t := range p.Run.Telemetry {
		if t.Lifecycle != s.wave.Lifecycle || t.Wave != s.wave.Number {
			continue
		}
		for _, q := range []struct {
			reading    record.Reading
			name, unit string
			times      float64
		}{{record.Power, "power", "W", 1e-3}, {record.MemoryUsed, "memory", "GiB", 1.0 / (1 << 30)}, {record.GPUUtilization, "utilisation", "%", 1}} {
			one := series{name: fmt.Sprintf("GPU %d %s", t.Device, q.name), unit: q.unit, class: s.class, source: record.TelemetryFile}
			for i, v := range t.Series[string(q.reading)] {
				if v != nil && i < len(t.At) {
					one.looks = append(one.looks, look{t.At[i], float64(float64(*v) * q.times)})
				}
			}
			out = append(out, one)
		}
	}
	for _, m := range p.Run.EngineMetrics {
		if m.Lifecycle != s.wave.Lifecycle || m.Wave != s.wave.Number {
			continue
		}
		for _, q := range []struct{ metric, name string }{{record.Running, "engine: running"}, {record.Waiting, "engine: waiting"}} {
			one := series{name: q.name, unit: "requests", class: s.class, source: record.EngineMetricsFile}
			for i, v := range m.Series[q.metric] {
				if v != nil && i < len(m.At) {
					one.looks = append(one.looks, look{m.At[i], *v})
				}
			}
			out = append(out, one)
		}
	}
	return slices.DeleteFunc(out, func(one series) bool {
		return !slices.ContainsFunc(one.looks, func(l look) bool { return l.at >= s.zero && l.at <= s.end })
	})
}

// outstanding is how many requests had come and not ended, whenever one came or
// ended.
func (p Page) outstanding(s span) series {
	type step struct {
		at int64
		by float64
	}
	var steps []step
	for _, i := range s.at {
		r := &p.Run.Requests[i]
		steps = append(steps, step{r.ScheduledAt, 1}, step{r.EndedAt, -1})
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	out := series{name: "come and not ended", unit: "requests", class: s.class, steps: true, source: record.RequestsFile}
	n := 0.0
	for _, step := range steps {
		n += step.by
		out.looks = append(out.looks, look{step.at, max(n, 0)})
	}
	return out
}

// strip draws a quantity from zero on, against the timeline's time axis.
func (p Page) strip(paper *paper, of span, s series, x scale, top float64) {
	zero, end := of.zero, of.end
	var within []look
	high := 0.0
	for _, l := range s.looks {
		if at := p.seconds(l.at - zero); l.at >= zero && l.at <= end && at <= x.max {
			within = append(within, l)
			high = max(high, l.value)
		}
	}
	y := scale{min: 0, max: max(high, 1e-9), from: top + stripHeight - 4, to: top + 20}
	paper.behind("axis", segment(x.from, y.from, x.to, y.from))
	paper.write("t", x.from+2, top+14, fmt.Sprintf("%s, up to %s %s", s.name, short(math.Round(float64(high*100))/100), s.unit))
	var line path
	drawn := extremes(within, 4*mostLooks)
	for n, i := range drawn {
		l := within[i]
		at, up := x.at(p.seconds(l.at-zero)), y.at(l.value)
		switch {
		case n == 0:
			line.move(at, up)
		case s.steps:
			line.across(at)
			line.down(up)
		default:
			line.line(at, up)
		}
	}
	paper.behind(s.class+" curve", line.String())
	for _, i := range extremes(within, mostLooks) {
		l := within[i]
		paper.mark(s.class+" dot", fmt.Sprintf("%s at %.3f s: %s %s (%s, lifecycle %d, wave %d)", s.name, p.seconds(l.at-zero), short(l.value), s.unit, s.source, of.wave.Lifecycle, of.wave.Number),
			shape{"", circle(x.at(p.seconds(l.at-zero)), y.at(l.value), 1.4)})
	}
}

// extremes are about so many places of looks: of each stretch of them its
// highest and its lowest, the first and the last look besides.
func extremes(looks []look, most int) []int {
	if len(looks) <= most {
		return evenly(len(looks), len(looks))
	}
	keep := map[int]bool{0: true, len(looks) - 1: true}
	parts := max(most/2-1, 1)
	for part := range parts {
		from, to := part*len(looks)/parts, (part+1)*len(looks)/parts
		low, high := from, from
		for i := from; i < to; i++ {
			if looks[i].value < looks[low].value {
				low = i
			}
			if looks[i].value > looks[high].value {
				high = i
			}
		}
		keep[low], keep[high] = true, true
	}
	out := make([]int, 0, len(keep))
	for i := range looks {
		if keep[i] {
			out = append(out, i)
		}
	}
	return out
}
