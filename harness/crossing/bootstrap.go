package crossing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// resample draws pairs with replacement, k of them each time, and visits how
// often each pair was drawn.
func resample(k int, o Options, visit func(b int, times []float64)) {
	random := rand.New(rand.NewPCG(o.Seed, 2))
	times := make([]float64, k)
	for b := range o.Resamples {
		clear(times)
		for range k {
			times[random.IntN(k)]++
		}
		visit(b, times)
	}
}

// weighted is the mean of values of which each counts so many times.
func weighted(values, times []float64) float64 {
	total := 0.0
	for i, v := range values {
		total += float64(times[i] * v)
	}
	return total / float64(len(values))
}

// bootstrapMean is the percentile interval of a mean of values in ns.
func bootstrapMean(values []float64, o Options) *Interval {
	means := make([]float64, o.Resamples)
	resample(len(values), o, func(b int, times []float64) { means[b] = weighted(values, times) })
	slices.Sort(means)
	low, high := seconds(quantile(means, (1-o.Level)/2)), seconds(quantile(means, (1+o.Level)/2))
	return &Interval{Low: &low, High: &high}
}

// band puts the intervals of the mean curve on its points up to an ordinal at
// which all pairs are defined. The same resamples serve all ordinals, so that
// the largest studentised deviation of each gives a band that holds for all of
// them at once (sup-t; Montiel Olea and Plagborg-Møller, 2019).
func (a *Analysis) band(pairs []Pair, common int, o Options) {
	k := len(pairs)
	values := make([][]float64, common+1)
	center := make([]float64, common+1)
	for n := range values {
		values[n], _ = at(pairs, n)
		center[n] = mean(values[n])
	}
	// One row an ordinal, so that each is sorted where it lies.
	means := make([][]float64, common+1)
	flat := make([]float64, (common+1)*o.Resamples)
	for n := range means {
		means[n], flat = flat[:o.Resamples:o.Resamples], flat[o.Resamples:]
	}
	resample(k, o, func(b int, times []float64) {
		for n := range means {
			means[n][b] = weighted(values[n], times)
		}
	})
	spread := make([]float64, common+1)
	still := 0
	for n := range means {
		spread[n] = deviation(means[n])
		if spread[n] == 0 {
			still++
		}
	}
	largest := make([]float64, o.Resamples)
	for n := range means {
		if spread[n] == 0 {
			continue
		}
		for b, m := range means[n] {
			largest[b] = max(largest[b], math.Abs(m-center[n])/spread[n])
		}
	}
	slices.Sort(largest)
	width := quantile(largest, o.Level)
	for n := range means {
		slices.Sort(means[n])
		p := &a.Curve[n]
		p.Low, p.High = ns(quantile(means[n], (1-o.Level)/2)), ns(quantile(means[n], (1+o.Level)/2))
		p.BandLow, p.BandHigh = ns(center[n]-float64(width*spread[n])), ns(center[n]+float64(width*spread[n]))
	}
	if still > 0 {
		a.Notes = append(a.Notes, fmt.Sprintf("at %d of %d ordinals every pair has the same D: the band is as narrow as the mean there", still, common+1))
	}
}

func ns(v float64) *float64 {
	s := seconds(v)
	return &s
}

// deviation is the standard deviation of resampled means.
func deviation(values []float64) float64 {
	m := mean(values)
	total := 0.0
	for _, v := range values {
		d := v - m
		total += float64(d * d)
	}
	d := math.Sqrt(total / float64(len(values)))
	if d < 1e-3 { // of a ns: rounding, and no spread
		return 0
	}
	return d
}
