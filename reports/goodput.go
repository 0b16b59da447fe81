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
	"assay/harness/plan"
)

// goodputFile is the figure of a concurrency run's results, in its bundle.
const goodputFile = "goodput.svg"

// level is an arm's goodput at one tier.
type level struct {
	clients           float64
	median, low, high float64
	failed            bool // some of its attempts
}

// levels are an arm's, of the tiers that have one.
func levels(tiers []metric.Tier, arm func(metric.Tier) metric.Arm) []level {
	var out []level
	for _, t := range tiers {
		a := arm(t)
		if s := a.Goodput; s.Median.Value != nil && s.Min != nil && s.Max != nil {
			out = append(out, level{float64(t.Tier), *s.Median.Value, *s.Min, *s.Max, a.Counts.Failed > 0})
		}
	}
	return out
}

// goodput draws both arms' token goodput against the clients that came at once:
// a mark at each tier's median, and a bar over the range of its waves.
func goodput(b Bundle) ([]byte, error) {
	base, cand := names(b)
	arms := []struct {
		name   string
		levels []level
		ink    color.Color
		aside  float64 // so that the arms' bars at a tier lie side by side
		full   draw.GlyphDrawer
		empty  draw.GlyphDrawer
	}{
		{cand, levels(b.Summary.Tiers, func(t metric.Tier) metric.Arm { return t.Candidate }), ink, 1.03, draw.CircleGlyph{}, draw.RingGlyph{}},
		{base, levels(b.Summary.Tiers, func(t metric.Tier) metric.Arm { return t.Baseline }), crossed, 1 / 1.03, draw.BoxGlyph{}, draw.SquareGlyph{}},
	}
	p := plot.New()
	// The unit stands here, since the library puts a label beside a logarithmic
	// axis where no room is.
	p.Title.Text = fmt.Sprintf("%s and %s: token goodput, tok/s, median and range of waves", cand, base)
	if b.Summary.Provenance == "emulated" {
		p.Title.Text += ", emulated"
	}
	if !b.Summary.Validity.Valid {
		p.Title.Text += ", INVALID"
	}
	p.Title.Padding = vg.Points(4)
	p.X.Label.Text = "clients at once"
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Points(2)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = outside, outside
	p.Add(grid)
	var all []level
	failed := false
	for _, a := range arms {
		all = append(all, a.levels...)
		for _, l := range a.levels {
			failed = failed || l.failed
		}
	}
	axes(p, b.Summary.Tiers, all)
	for _, a := range arms {
		if len(a.levels) == 0 {
			p.Legend.Add(a.name + ": no tier has a goodput")
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
			if a.levels[i].failed {
				style.Shape = hollow{a.full, a.empty}
			}
			return style
		}
		p.Add(line, bars, marks)
		p.Legend.Add(a.name, line, marks)
	}
	if failed {
		p.Legend.Add("hollow: some attempts failed; their tokens are in no goodput")
	}
	return drawn(p, vg.Points(6))
}

// series is an arm's line through its medians, and the bars over its ranges.
func series(levels []level, aside float64) (*plotter.Line, *plotter.YErrorBars, error) {
	ranges := struct {
		plotter.XYs
		plotter.YErrors
	}{}
	for _, l := range levels {
		ranges.XYs = append(ranges.XYs, plotter.XY{X: l.clients * aside, Y: l.median})
		ranges.YErrors = append(ranges.YErrors, struct{ Low, High float64 }{l.median - l.low, l.high - l.median})
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

// axes are logarithmic: tiers grow by factors, and so may goodputs. Where they
// don't, or one is zero, which has no logarithm, theirs begins at zero. Both
// leave the legend a strip above everything.
func axes(p *plot.Plot, tiers []metric.Tier, all []level) {
	var places []plot.Tick
	low, high := math.Inf(1), 0.0
	for _, t := range tiers {
		places = append(places, plot.Tick{Value: float64(t.Tier), Label: strconv.Itoa(t.Tier)})
		low, high = min(low, float64(t.Tier)), max(high, float64(t.Tier))
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.ConstantTicks(places)
	p.X.Min, p.X.Max = low/1.25, high*1.25
	low, high = math.Inf(1), 0.0
	for _, l := range all {
		low, high = min(low, l.low), max(high, l.high)
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

// figures are the drawings of a bundle, by their names, in their order.
func figures(b Bundle) ([]file, error) {
	var out []file
	if b.Plan.Experiment == plan.Concurrency {
		figure, err := goodput(b)
		if err != nil {
			return nil, fmt.Errorf("the figure of the goodput can't be drawn: %w", err)
		}
		out = append(out, file{goodputFile, figure})
	}
	for _, l := range b.Summary.Lanes {
		figure, err := curve(b, l)
		if err != nil {
			return nil, fmt.Errorf("the figure of the %s lane can't be drawn: %w", l.Lane, err)
		}
		out = append(out, file{curveFile(l.Lane), figure})
	}
	return out, nil
}
