package capacity

import "math"

// Verdict is what one probe, or all probes of a rate, say of the objective.
type Verdict string

// The verdicts.
const (
	Holds     Verdict = "holds"
	Fails     Verdict = "fails"
	Undecided Verdict = "undecided"
)

// LowerBound is the exact lower confidence bound of a share of which within of
// n were seen, one-sided (Clopper and Pearson, Biometrika 26, 1934): the share
// at which so many or more would be seen with probability 1 − confidence.
// For a percentile this is the order statistics' distribution-free bound.
func LowerBound(within, n int, confidence float64) float64 {
	if within <= 0 {
		return 0
	}
	return bisect(func(p float64) bool { return atLeast(within, n, p) > 1-confidence })
}

// UpperBound is likewise the upper one: 1 less the lower bound of the rest.
func UpperBound(within, n int, confidence float64) float64 {
	return 1 - LowerBound(n-within, n, confidence)
}

// Judge says whether the share of attempts within the limit is q or more: it
// holds if the lower bound is at least q, and fails if the upper one is below
// it. An attempt that failed is not within the limit.
func Judge(within, n int, q, confidence float64) Verdict {
	switch {
	case n < 1:
		return Undecided
	case LowerBound(within, n, confidence) >= q:
		return Holds
	case UpperBound(within, n, confidence) < q:
		return Fails
	}
	return Undecided
}

// bisect is the place in 0 to 1 from which on above is true.
func bisect(above func(float64) bool) float64 {
	low, high := 0.0, 1.0
	for range 60 {
		if mid := (low + high) / 2; above(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return (low + high) / 2
}

// atLeast is the probability of k or more of n, each of probability p in 0 to 1
// (both excluded).
func atLeast(k, n int, p float64) float64 {
	whole, _ := math.Lgamma(float64(n) + 1)
	sum := 0.0
	for i := k; i <= n; i++ {
		a, _ := math.Lgamma(float64(i) + 1)
		b, _ := math.Lgamma(float64(n-i) + 1)
		sum += math.Exp(whole - a - b + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return sum
}
