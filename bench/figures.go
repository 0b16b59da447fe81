package main

import (
	"fmt"
	"slices"
	"strings"

	"assay/harness/metric"
)

// figures are one quantity over the rounds.
type figures []float64

func (f figures) median() float64 { return metric.Median(f) }

// String is the median, and the range where the rounds differ in the digits
// that are shown.
func (f figures) String() string { return f.format("%.3g") }

func (f figures) format(verb string) string {
	show := func(v float64) string {
		if v >= 1000 {
			verb = "%.0f"
		}
		text := fmt.Sprintf(verb, v)
		if strings.Trim(text, "-0.") == "" {
			return strings.TrimPrefix(text, "-")
		}
		return text
	}
	least, median, most := show(slices.Min(f)), show(f.median()), show(slices.Max(f))
	if least == most {
		return median
	}
	return fmt.Sprintf("%s [%s–%s]", median, least, most)
}

// over is this quantity as a multiple of another's, round by round.
func (f figures) over(g figures) figures {
	out := make(figures, len(f))
	for i := range f {
		out[i] = f[i] / g[i]
	}
	return out
}
