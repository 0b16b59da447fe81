package html

import (
	"fmt"
	"strings"
)

// figure is one or several panels with what belongs to them.
type figure struct {
	ID    string // of the page's element, and the beginning of its panels'
	Title string
	// Text says what is to be seen, for somebody who does not see it.
	Text    string
	Caption []string
	Keys    []key
	Panels  []panel
	Table   *Table // the same in numbers
	Wide    bool   // its panels need more room than a telephone has, and scroll
}

// key is an entry of a figure's legend, drawn in a square of 16.
type key struct {
	Text   string
	Shapes []shape
}

// panel is one drawing.
type panel struct {
	ID     string
	Title  string
	Text   string // likewise
	W, H   string // of the paper, in units of about a pixel
	Behind []shape
	Labels []label
	Marks  []mark
}

// shape is a path with the class that colours it.
type shape struct{ Class, D string }

// label is a text on the paper.
type label struct{ Class, X, Y, Text string }

// mark is what stands for a record, or for several: pointing at it shows what it
// stands for.
type mark struct {
	Class  string
	Tip    string
	Shapes []shape
}

// paper is a panel while it is drawn.
type paper struct {
	panel
	w, h float64
}

// The room around a plot for what is written beside it.
const (
	marginLeft   = 44
	marginRight  = 12
	marginTop    = 20
	marginBottom = 34
	columnWidth  = 360 // of a panel that two or three of stand side by side
	wideWidth    = 820
)

func newPaper(title string, w, h float64) *paper {
	return &paper{panel: panel{Title: title, W: place(w), H: place(h)}, w: w, h: h}
}

// behind draws what stands for nothing that could be pointed at.
func (p *paper) behind(class, d string) {
	if d != "" {
		p.Behind = append(p.Behind, shape{class, d})
	}
}

// write puts a text on the paper.
func (p *paper) write(class string, x, y float64, text string) {
	p.Labels = append(p.Labels, label{class, place(x), place(y), text})
}

// mark draws what a record is behind.
func (p *paper) mark(class, tip string, shapes ...shape) {
	p.Marks = append(p.Marks, mark{class, tip, shapes})
}

// along draws a horizontal axis alone, of a plot whose rows are no scale, with the
// lines behind the rows and its name under it.
func (p *paper) along(x scale, top, bottom float64, name string, ticks []tick) {
	var grid path
	for _, t := range ticks {
		grid.move(x.at(t.value), top)
		grid.down(bottom)
		p.write("t m", x.at(t.value), bottom+14, t.label)
	}
	p.behind("grid", grid.String())
	p.behind("axis", segment(x.from, bottom, x.to, bottom))
	p.write("t m", (x.from+x.to)/2, bottom+28, name)
}

// axes draws both, with the lines behind the plot and what is written beside
// them; the horizontal one's name stands under it, the other's above it.
func (p *paper) axes(x, y scale, xName, yName string, xTicks, yTicks []tick) {
	var lines path
	for _, t := range yTicks {
		at := y.at(t.value)
		lines.move(x.from, at)
		lines.across(x.to)
		p.write("t e", x.from-5, at+3.5, t.label)
	}
	for _, t := range xTicks {
		at := x.at(t.value)
		lines.move(at, y.from)
		lines.down(y.to)
		p.write("t m", at, y.from+14, t.label)
	}
	p.behind("grid", lines.String())
	var frame path
	frame.move(x.from, y.to)
	frame.down(y.from)
	frame.across(x.to)
	p.behind("axis", frame.String())
	p.write("t m", (x.from+x.to)/2, y.from+28, xName)
	p.write("t", 4, y.to-8, yName)
}

// path writes an SVG path.
type path struct{ out strings.Builder }

func (p *path) String() string              { return p.out.String() }
func (p *path) move(x, y float64)           { p.to("M", x, y) }
func (p *path) line(x, y float64)           { p.to("L", x, y) }
func (p *path) across(x float64)            { p.out.WriteString("H" + place(x)) }
func (p *path) down(y float64)              { p.out.WriteString("V" + place(y)) }
func (p *path) close()                      { p.out.WriteString("Z") }
func (p *path) empty() bool                 { return p.out.Len() == 0 }
func (p *path) to(how string, x, y float64) { p.out.WriteString(how + place(x) + " " + place(y)) }

// segment is one straight line.
func segment(x1, y1, x2, y2 float64) string {
	var p path
	p.move(x1, y1)
	switch {
	case y1 == y2:
		p.across(x2)
	case x1 == x2:
		p.down(y2)
	default:
		p.line(x2, y2)
	}
	return p.String()
}

// The glyphs around a point. The arms have different ones, so that nobody has to
// tell colours apart.
func circle(x, y, r float64) string {
	return fmt.Sprintf("M%s %sa%s %s 0 1 0 %s 0a%s %s 0 1 0 -%s 0Z", place(x-r), place(y), place(r), place(r), place(2*r), place(r), place(r), place(2*r))
}

func square(x, y, r float64) string {
	return fmt.Sprintf("M%s %sh%sv%sh-%sZ", place(x-r), place(y-r), place(2*r), place(2*r), place(2*r))
}

func cross(x, y, r float64) string {
	return fmt.Sprintf("M%s %sl%s %sm0 -%sl-%s %s", place(x-r), place(y-r), place(2*r), place(2*r), place(2*r), place(2*r), place(2*r))
}

func upward(x, y, r float64) string {
	return fmt.Sprintf("M%s %sl%s %sh-%sZ", place(x), place(y-r), place(r), place(2*r), place(2*r))
}

// glyph is an arm's.
func glyph(class string, x, y, r float64) string {
	if class == baselineClass {
		return square(x, y, r)
	}
	return circle(x, y, r)
}

// The classes of the two arms.
const (
	baselineClass  = "b"
	candidateClass = "c"
)
