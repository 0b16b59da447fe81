package reports

import (
	"bytes"
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"assay/harness/crossing"
	"assay/harness/metric"
	"assay/harness/plan"
)

// curveFile is the figure of a lane's cumulative curve, in its bundle.
func curveFile(lane plan.Lane) string { return "curve-" + string(lane) + ".svg" }

// The figure's colours: told apart without red and green, and on paper.
var (
	ink      = color.RGBA{R: 0x1f, G: 0x4e, B: 0x79, A: 0xff}
	inside   = color.RGBA{R: 0x9d, G: 0xbe, B: 0xdb, A: 0xff}
	outside  = color.RGBA{R: 0xdd, G: 0xe8, B: 0xf2, A: 0xff}
	crossed  = color.RGBA{R: 0xc5, G: 0x5a, B: 0x11, A: 0xff}
	zeroLine = color.RGBA{R: 0x59, G: 0x59, B: 0x59, A: 0xff}
)

// curve draws a lane's mean D(n) with the band over all n, the pointwise
// interval inside it, and a mark at each pair's first crossing.
func curve(b Bundle, l metric.Lane) (*plot.Plot, error) {
	base, cand := names(b)
	p := plot.New()
	what := ""
	if b.Summary.Provenance == "emulated" {
		what = ", emulated"
	}
	p.Title.Text = fmt.Sprintf("%s minus %s, from the start of each initialization: %s lane%s", cand, base, l.Lane, what)
	p.X.Label.Text = "n, requests ended one after the other"
	p.Y.Label.Text = "D(n), s: below zero " + cand + " is ahead"
	p.X.Min, p.X.Max = 0, float64(l.Requests)*1.02 // room for a mark at the end
	p.Y.Tick.Marker = plot.TickerFunc(withZero)
	// Bottom left, where a debt that is being repaid leaves room; there, its text
	// runs to the right, where a wider font than the one measured does no harm.
	p.Legend.Left = true
	if err := fill(p, l); err != nil {
		return nil, err
	}
	return p, nil
}

// The size of a figure on paper.
const figureWidth, figureHeight = 9 * vg.Inch, 4.5 * vg.Inch

// drawn is a figure as it lies in a bundle, with a margin on either side.
func drawn(p *plot.Plot, margin vg.Length) ([]byte, error) {
	canvas := vgsvg.New(figureWidth, figureHeight)
	p.Draw(draw.Crop(draw.New(canvas), margin, -margin, 0, 0))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(out.Bytes(), []byte(measured), []byte(measured+alike)), nil
}

// The font that the drawing library measures texts with, and those that are as
// wide, for machines that don't have it.
const (
	measured = "font-family:Liberation Serif"
	alike    = ",Times New Roman,Times,serif"
)

func fill(p *plot.Plot, l metric.Lane) error {
	zero, err := plotter.NewLine(plotter.XYs{{X: 0, Y: 0}, {X: float64(l.Requests), Y: 0}})
	if err != nil {
		return err
	}
	zero.Color, zero.Dashes = zeroLine, []vg.Length{vg.Points(4), vg.Points(3)}
	r := l.Kept.Result
	if r == nil {
		p.Add(zero)
		p.Legend.Add("no pair is in it: " + l.Kept.Reason)
		return nil
	}
	for _, band := range []struct {
		name      string
		color     color.Color
		low, high func(crossing.Point) *float64
	}{
		{"simultaneous band", outside, func(p crossing.Point) *float64 { return p.BandLow }, func(p crossing.Point) *float64 { return p.BandHigh }},
		{"pointwise interval", inside, func(p crossing.Point) *float64 { return p.Low }, func(p crossing.Point) *float64 { return p.High }},
	} {
		if ring := around(r.Curve, band.low, band.high); len(ring) > 0 {
			area, err := plotter.NewPolygon(ring)
			if err != nil {
				return err
			}
			area.Color, area.LineStyle.Width = band.color, 0
			p.Add(area)
			p.Legend.Add(fmt.Sprintf("%s, %g %%, %d pairs", band.name, 100*r.Level, r.K), area)
		}
	}
	var mean plotter.XYs
	for _, point := range r.Curve {
		mean = append(mean, plotter.XY{X: float64(point.N), Y: point.Mean})
	}
	line, err := plotter.NewLine(mean)
	if err != nil {
		return err
	}
	line.Color, line.Width = ink, vg.Points(1.5)
	p.Add(zero, line)
	p.Legend.Add("mean of pairs", line)
	var marks plotter.XYs
	for _, pair := range r.Pairs {
		if pair.First != nil {
			marks = append(marks, plotter.XY{X: float64(*pair.First), Y: 0})
		}
	}
	if len(marks) > 0 {
		points, err := plotter.NewScatter(marks)
		if err != nil {
			return err
		}
		points.GlyphStyle = draw.GlyphStyle{Color: crossed, Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
		p.Add(points)
		p.Legend.Add("first crossing of a pair", points)
	}
	return uncrossed(p, l, r)
}

// uncrossed marks where each pair stood at the end that did not cross by then:
// a figure without them would show those that did alone.
func uncrossed(p *plot.Plot, l metric.Lane, r *crossing.Analysis) error {
	var ends plotter.XYs
	for _, pair := range r.Pairs {
		if pair.First == nil && pair.End != nil {
			ends = append(ends, plotter.XY{X: float64(l.Requests), Y: *pair.End})
		}
	}
	if len(ends) == 0 {
		return nil
	}
	points, err := plotter.NewScatter(ends)
	if err != nil {
		return err
	}
	points.GlyphStyle = draw.GlyphStyle{Color: crossed, Radius: vg.Points(3), Shape: draw.RingGlyph{}}
	p.Add(points)
	p.Legend.Add(fmt.Sprintf("D(%d) of a pair that has not crossed", l.Requests), points)
	return nil
}

// withZero are the usual ticks, and a label at zero, the line that decides.
func withZero(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Value == 0 {
			ticks[i].Label = "0"
			return ticks
		}
	}
	if low < 0 && high > 0 {
		ticks = append(ticks, plot.Tick{Value: 0, Label: "0"})
	}
	return ticks
}

// around is a closed ring along the upper ends and back along the lower ones.
func around(curve []crossing.Point, low, high func(crossing.Point) *float64) plotter.XYs {
	var ring plotter.XYs
	for _, p := range curve {
		if v := high(p); v != nil {
			ring = append(ring, plotter.XY{X: float64(p.N), Y: *v})
		}
	}
	for i := len(curve) - 1; i >= 0; i-- {
		if v := low(curve[i]); v != nil {
			ring = append(ring, plotter.XY{X: float64(curve[i].N), Y: *v})
		}
	}
	return ring
}
