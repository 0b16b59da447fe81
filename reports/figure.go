package reports

import (
	"bytes"
	"errors"
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"assay/harness/plan"
)

// figure is one drawing of a bundle.
type figure struct {
	name   string // of its file
	of     string // what it is of, as an error says it
	margin vg.Length
	plot   func() (*plot.Plot, error)
}

// sweepMargin keeps a sweep's outermost labels on the paper.
var sweepMargin = vg.Points(6)

// drawings are a bundle's, in their order, the main one first.
func drawings(b Bundle) []figure {
	var out []figure
	if b.Plan.Experiment == plan.Concurrency {
		out = append(out, figure{goodputFile, "the goodput", sweepMargin, func() (*plot.Plot, error) { return goodput(b) }})
	}
	if b.Plan.Arrivals != nil {
		out = append(out, figure{ttftFile, "the TTFT", sweepMargin, func() (*plot.Plot, error) { return waits(b) }})
	}
	for _, l := range b.Summary.Lanes {
		out = append(out, figure{curveFile(l.Lane), fmt.Sprintf("the %s lane", l.Lane), 0, func() (*plot.Plot, error) { return curve(b, l) }})
	}
	return out
}

// figures are the drawings of a bundle as files of it.
func figures(b Bundle) ([]file, error) {
	var out []file
	for _, f := range drawings(b) {
		p, err := f.plot()
		var data []byte
		if err == nil {
			data, err = drawn(p, f.margin)
		}
		if err != nil {
			return nil, fmt.Errorf("the figure of %s can't be drawn: %w", f.of, err)
		}
		out = append(out, file{f.name, data})
	}
	return out, nil
}

// resolution is a picture's, in dots an inch: twice that of most screens.
const resolution = 192

// Picture is a bundle's main figure as a PNG, for where an SVG is not shown: the
// same drawing.
func Picture(b Bundle) ([]byte, error) {
	all := drawings(b)
	if len(all) == 0 {
		return nil, errors.New("the bundle has no figure: nothing of its plan ran")
	}
	p, err := all[0].plot()
	if err != nil {
		return nil, fmt.Errorf("the figure of %s can't be drawn: %w", all[0].of, err)
	}
	canvas := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(figureWidth, figureHeight), vgimg.UseDPI(resolution))}
	p.Draw(draw.Crop(draw.New(canvas), all[0].margin, -all[0].margin, 0, 0))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
