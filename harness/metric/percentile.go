package metric

import (
	"cmp"
	"math"
	"slices"

	"github.com/montanaflynn/stats"
)

// PercentileType is how percentiles are interpolated: Hyndman and Fan's type 7
// (Sample Quantiles in Statistical Packages, The American Statistician 50,
// 1996), the default of numpy and R.
const PercentileType = "Hyndman-Fan 7"

// Percentile is the p-th percentile (0 to 100) of values by type 7; NaN of
// none.
func Percentile(values []float64, p float64) float64 {
	switch {
	case len(values) == 0 || p < 0 || p > 100:
		return math.NaN()
	case p == 0: // the library refuses it
		return slices.Min(values)
	}
	v, err := stats.Percentile(values, p)
	if err != nil {
		return math.NaN()
	}
	return v
}

// Median is the 50th percentile.
func Median(values []float64) float64 { return Percentile(values, 50) }

// Censored is a duration that was observed, or known only to be at least so
// long (right-censored: the attempt ended before it was over).
type Censored struct {
	Value   float64
	AtLeast bool
}

// Compare orders durations: a censored one is longer than an observed one of the
// same length.
func (c Censored) Compare(d Censored) int {
	if c.Value == d.Value && c.AtLeast != d.AtLeast {
		if c.AtLeast {
			return 1
		}
		return -1
	}
	return cmp.Compare(c.Value, d.Value)
}

// CensoredPercentile is the p-th percentile by type 7 over durations of which
// some are right-censored, and whether it is only a lower bound. Each censored
// duration stands in for itself with the time at which it was cut; since the
// true one is no shorter, every order statistic, and with it the percentile,
// is no smaller: a bound that needs no assumption about what was not seen. It
// is exact if no censored duration is among the order statistics up to the
// upper one that type 7 interpolates: then nothing that is unknown could move
// it. A server that fails at once has a low bound, so the number of censored
// durations belongs beside it.
func CensoredPercentile(values []Censored, p float64) (float64, bool) {
	if len(values) == 0 || p < 0 || p > 100 {
		return math.NaN(), false
	}
	sorted := slices.Clone(values)
	slices.SortFunc(sorted, Censored.Compare)
	// The rank by the library's own arithmetic, so that the two agree on which
	// order statistics it touches.
	upper := int(math.Ceil(float64(p/100) * float64(len(sorted)-1)))
	plain := make([]float64, len(sorted))
	bound := false
	for i, v := range sorted {
		plain[i] = v.Value
		bound = bound || i <= upper && v.AtLeast
	}
	return Percentile(plain, p), bound
}
