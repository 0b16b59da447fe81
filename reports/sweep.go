package reports

import (
	"fmt"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"assay/harness/metric"
)

// goodputFile is the figure of a concurrency run's results, in its bundle, and
// ttftFile that of an arrival run's.
const (
	goodputFile = "goodput.svg"
	ttftFile    = "ttft.svg"
)

// level is an arm's at one level of what a plan varies: a mark, and the range of
// the bar around it.
type level struct {
	at              float64
	mark, low, high float64
	hollow          bool // there is more to be said of it, in the legend
}

// sweep is a figure of both arms against what a plan varies.
type sweep struct {
	title, along        string
	ticks               []plot.Tick // of what is varied
	baseline, candidate []level
	none, hollow        string   // what an arm without a level lacks, and what a hollow mark says
	limit               *float64 // a line across; nil: none
	limited             string   // what the line is
}

// goodput draws both arms' token goodput against the clients that came at once:
// a mark at each tier's median, and a bar over the range of its waves.
func goodput(b Bundle) (*plot.Plot, error) {
	base, cand := names(b)
	of := func(arm func(metric.Tier) metric.Arm) []level {
		var out []level
		for _, t := range b.Summary.Tiers {
			a := arm(t)
			if s := a.Goodput; s.Median.Value != nil && s.Min != nil && s.Max != nil {
				out = append(out, level{float64(t.Tier), *s.Median.Value, *s.Min, *s.Max, a.Counts.Failed > 0})
			}
		}
		return out
	}
	s := sweep{
		// The unit stands here, since the library puts a label beside a logarithmic
		// axis where no room is.
		title: fmt.Sprintf("%s and %s: token goodput, tok/s, median and range of waves", cand, base), along: "clients at once",
		baseline: of(func(t metric.Tier) metric.Arm { return t.Baseline }), candidate: of(func(t metric.Tier) metric.Arm { return t.Candidate }),
		none: "no tier has a goodput", hollow: "some attempts failed; their tokens are in no goodput",
	}
	for _, t := range b.Summary.Tiers {
		s.ticks = append(s.ticks, plot.Tick{Value: float64(t.Tier), Label: strconv.Itoa(t.Tier)})
	}
	return s.draw(b)
}

// waits draws both arms' TTFT from the scheduled moment against the rate: a mark
// at the p95, and a bar from the p50 to the p99.
func waits(b Bundle) (*plot.Plot, error) {
	base, cand := names(b)
	of := func(arm func(metric.Rate) metric.OpenArm) []level {
		var out []level
		for _, r := range b.Summary.Rates {
			a := arm(r)
			if a.EffectiveTTFT50.Value != nil && a.EffectiveTTFT95.Value != nil && a.EffectiveTTFT99.Value != nil {
				out = append(out, level{r.Rate, *a.EffectiveTTFT95.Value, *a.EffectiveTTFT50.Value, *a.EffectiveTTFT99.Value, a.EffectiveTTFT99.AtLeast})
			}
		}
		return out
	}
	s := sweep{
		title: fmt.Sprintf("%s and %s: TTFT from the scheduled moment, s, p95 and from p50 to p99", cand, base), along: "requests a second",
		baseline: of(func(r metric.Rate) metric.OpenArm { return r.Baseline }), candidate: of(func(r metric.Rate) metric.OpenArm { return r.Candidate }),
		none: "no rate has a TTFT", hollow: "cut short by failures; at least so long",
	}
	for _, r := range b.Summary.Rates {
		s.ticks = append(s.ticks, plot.Tick{Value: r.Rate, Label: strconv.FormatFloat(r.Rate, 'g', -1, 64)})
	}
	if p := b.Plan.Search; p != nil && p.SLO.TTFT95 > 0 {
		limit := p.SLO.TTFT95.D().Seconds()
		s.limit, s.limited = &limit, "the SLO's p95, "+p.SLO.TTFT95.String()
	}
	return s.draw(b)
}

func (s sweep) draw(b Bundle) (*plot.Plot, error) {
	base, cand := names(b)
	arms := []struct {
		name   string
		levels []level
		ink    color.Color
		aside  float64 // so that the arms' bars at a level lie side by side
		full   draw.GlyphDrawer
		empty  draw.GlyphDrawer
	}{
		{cand, s.candidate, ink, 1.03, draw.CircleGlyph{}, draw.RingGlyph{}},
		{base, s.baseline, crossed, 1 / 1.03, draw.BoxGlyph{}, draw.SquareGlyph{}},
	}
	p := plot.New()
	p.Title.Text = s.title
	if b.Summary.Provenance == "emulated" {
		p.Title.Text += ", emulated"
	}
	if !b.Summary.Validity.Valid {
		p.Title.Text += ", INVALID"
	}
	p.Title.Padding = vg.Points(4)
	p.X.Label.Text = s.along
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Points(2)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = outside, outside
	p.Add(grid)
	var all []level
	hollows := false
	for _, a := range arms {
		all = append(all, a.levels...)
		for _, l := range a.levels {
			hollows = hollows || l.hollow
		}
	}
	s.axes(p, all)
	for _, a := range arms {
		if len(a.levels) == 0 {
			p.Legend.Add(a.name + ": " + s.none)
			continue
		}
		line, bars, err := series(a.levels, a.aside)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = a.ink, vg.Points(1)
		bars.Color, bars.Width, bars.CapWidth = a.ink, vg.Points(1.2), vg.Points(5)
		marks, err := plotter.NewScatter(line.XYs)
		if err != nil {
			return nil, err
		}
		marks.GlyphStyle = draw.GlyphStyle{Color: a.ink, Radius: vg.Points(3), Shape: a.full}
		marks.GlyphStyleFunc = func(i int) draw.GlyphStyle {
			style := marks.GlyphStyle
			if a.levels[i].hollow {
				style.Shape = hollow{a.full, a.empty}
			}
			return style
		}
		p.Add(line, bars, marks)
		p.Legend.Add(a.name, line, marks)
	}
	if s.limit != nil {
		line, err := plotter.NewLine(plotter.XYs{{X: p.X.Min, Y: *s.limit}, {X: p.X.Max, Y: *s.limit}})
		if err != nil {
			return nil, err
		}
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		p.Add(line)
		p.Legend.Add(s.limited, line)
	}
	if hollows {
		p.Legend.Add("hollow: " + s.hollow)
	}
	return p, nil
}

// series is an arm's line through its marks, and the bars over its ranges.
func series(levels []level, aside float64) (*plotter.Line, *plotter.YErrorBars, error) {
	ranges := struct {
		plotter.XYs
		plotter.YErrors
	}{}
	for _, l := range levels {
		ranges.XYs = append(ranges.XYs, plotter.XY{X: l.at * aside, Y: l.mark})
		ranges.YErrors = append(ranges.YErrors, struct{ Low, High float64 }{l.mark - l.low, l.high - l.mark})
	}
	line, err := plotter.NewLine(ranges.XYs)
	if err != nil {
		return nil, nil, err
	}
	bars, err := plotter.NewYErrorBars(ranges)
	return line, bars, err
}

// hollow is a mark's outline on white: what lies behind does not show through.
type hollow struct{ full, outline draw.GlyphDrawer }

// DrawGlyph draws it.
func (h hollow) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	c.SetColor(color.White)
	h.full.DrawGlyph(c, style, at)
	c.SetColor(style.Color)
	h.outline.DrawGlyph(c, style, at)
}

// axes are logarithmic: what is varied grows by factors, and so may what is
// shown. Where that does not, or is zero, which has no logarithm, its axis begins
// at zero. Both leave the legend a strip above everything.
func (s sweep) axes(p *plot.Plot, all []level) {
	low, high := math.Inf(1), 0.0
	for _, t := range s.ticks {
		low, high = min(low, t.Value), max(high, t.Value)
	}
	if low > 0 {
		p.X.Scale = plot.LogScale{}
		p.X.Min, p.X.Max = low/1.25, high*1.25
	} else { // one rate, which changes
		p.X.Min, p.X.Max = -1, 1
	}
	p.X.Tick.Marker = plot.ConstantTicks(s.ticks)
	low, high = math.Inf(1), 0.0
	for _, l := range all {
		low, high = min(low, l.low), max(high, l.high)
	}
	if s.limit != nil && len(all) > 0 {
		low, high = min(low, *s.limit), max(high, *s.limit)
	}
	const strip = 0.25 // of the axis
	switch {
	case high == 0:
		p.Y.Min, p.Y.Max = 0, 1
	case low > 0 && high/low >= 10:
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(decades)
		p.Y.Min, p.Y.Max = low/1.25, high*math.Pow(high/low, strip)
	default:
		p.Y.Min, p.Y.Max = 0, high*(1+strip)
	}
}

// decades are ticks at the powers of ten, labelled, and at two and five times
// those, labelled where there are few.
func decades(low, high float64) []plot.Tick {
	var out []plot.Tick
	few := high/low < 1e3
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for _, times := range []float64{1, 2, 5} {
			v := times * math.Pow(10, e)
			if v < low || v > high {
				continue
			}
			tick := plot.Tick{Value: v}
			if times == 1 || few {
				tick.Label = strconv.FormatFloat(v, 'f', -1, 64)
			}
			out = append(out, tick)
		}
	}
	return out
}
