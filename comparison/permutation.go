package comparison

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// maxSplits is the most ways to deal the lifecycles to two runs of which all are
// tried, which is 10 against 10; beyond it sampledSplits of them are drawn.
const (
	maxSplits     = 184_756
	sampledSplits = 100_000
)

// Interval is two-sided. An end that is null is unbounded: so few lifecycles
// exclude nothing on that side.
type Interval struct {
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
}

// Splits is in how many ways n + m lifecycles can be dealt to two runs of n and
// m. It is a float since it need not fit any integer.
func Splits(n, m int) float64 {
	c := 1.0
	for i := 1; i <= n; i++ {
		c = c * float64(m+i) / float64(i)
	}
	return math.Round(c)
}

// SmallestP is the smallest p-value that [Permutation] can give for n lifecycles
// against m: twice that of the one split which was seen.
func SmallestP(n, m int) float64 { return math.Min(1, 2/Splits(n, m)) }

// Permutation is the two-sided p-value of the difference of two means under the
// hypothesis that it does not matter which lifecycle was in which run: twice the
// share of all ways to deal them to the runs that give a difference at least as
// large in the direction of the smaller share (Fisher, The Design of
// Experiments, 1935; SciPy's permutation_test has the same definition). Up to
// 10 against 10 all ways are tried, and it is exact; beyond that they are drawn,
// always the same for a seed, and the one that was seen counts as one of them.
// NaN: a run has no lifecycle.
func Permutation(earlier, later []float64, seed uint64) (p float64, exact bool) {
	if len(earlier) == 0 || len(later) == 0 {
		return math.NaN(), true
	}
	// Splits that are equal in exact arithmetic must count as equal.
	tie := tolerance(earlier, later)
	up, down, all := 1, 1, 1 // the split that was seen
	exact = eachSwap(earlier, later, seed, func(d float64) {
		all++
		// The split's difference is at least the one that was seen if what it
		// swaps differs by no more than 0, as the other way round.
		if d <= tie {
			up++
		}
		if d >= -tie {
			down++
		}
	})
	return math.Min(1, 2*float64(min(up, down))/float64(all)), exact
}

// Invert is the interval of the shifts between two runs that [Permutation] does
// not reject at 1 − level. Dealing lifecycles anew swaps as many of one run for
// as many of the other, and gives a larger difference just where the shift
// exceeds the difference of the swapped ones' means: so the p-value as a
// function of the shift steps at each of these, and the ends are two of them
// (the argument of Hartigan, 1969, for two samples; see Good, Permutation,
// Parametric and Bootstrap Tests of Hypotheses, 2005, 3.2). An end is nil where
// it is unbounded.
func Invert(earlier, later []float64, level float64, seed uint64) Interval {
	if len(earlier) == 0 || len(later) == 0 {
		return Interval{}
	}
	var steps []float64
	eachSwap(earlier, later, seed, func(d float64) { steps = append(steps, d) })
	j := int(math.Floor(float64((1-level)/2*float64(len(steps)+1)) + 1e-9))
	if j < 1 {
		return Interval{}
	}
	slices.Sort(steps)
	low, high := steps[j-1], steps[len(steps)-j]
	return Interval{Low: &low, High: &high}
}

// method names how a p-value was found.
func method(n, m int, exact bool) string {
	if exact {
		return fmt.Sprintf("exact permutation of %d against %d lifecycles, over all %.0f splits", n, m, Splits(n, m))
	}
	return fmt.Sprintf("sampled permutation of %d against %d lifecycles, %d of %.3g splits", n, m, sampledSplits, Splits(n, m))
}

func tolerance(earlier, later []float64) float64 {
	most := 0.0
	for _, v := range slices.Concat(earlier, later) {
		most = math.Max(most, math.Abs(v))
	}
	return 1e-12 * most
}

// eachSwap visits, for every split but the one that was seen or for a sample of
// them, the mean of the later lifecycles that it swaps minus that of the earlier
// ones, and says whether it was all.
func eachSwap(earlier, later []float64, seed uint64, visit func(d float64)) bool {
	if Splits(len(earlier), len(later)) > maxSplits {
		sampleSwaps(earlier, later, seed, visit)
		return false
	}
	k := min(len(earlier), len(later))
	out, in := sums(earlier, k), sums(later, k)
	for size := 1; size <= k; size++ {
		for _, b := range in[size] {
			for _, a := range out[size] {
				visit((b - a) / float64(size))
			}
		}
	}
	return true
}

// sums are those of all subsets of up to k values, by their size.
func sums(values []float64, k int) [][]float64 {
	of := make([][]float64, k+1)
	of[0] = []float64{0}
	for _, v := range values {
		for size := k; size >= 1; size-- {
			for _, s := range of[size-1] {
				of[size] = append(of[size], s+v)
			}
		}
	}
	return of
}

func sampleSwaps(earlier, later []float64, seed uint64, visit func(d float64)) {
	random := rand.New(rand.NewPCG(seed, 5))
	n := len(earlier)
	places := make([]int, n+len(later))
	for i := range places {
		places[i] = i
	}
	for drawn := 0; drawn < sampledSplits; {
		// The first n places are dealt to the earlier run.
		for i := range n {
			j := i + random.IntN(len(places)-i)
			places[i], places[j] = places[j], places[i]
		}
		in, out, size := 0.0, 0.0, 0
		for i, place := range places {
			switch {
			case i < n && place >= n:
				in += later[place-n]
				size++
			case i >= n && place < n:
				out += earlier[place]
			}
		}
		if size > 0 {
			visit((in - out) / float64(size))
			drawn++
		}
	}
}
