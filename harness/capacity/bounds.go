package capacity

import "gonum.org/v1/gonum/mathext"

// LowerBound is the lower confidence bound of a share of which within of n were
// seen, one-sided (Clopper and Pearson, Biometrika 26, 1934): the share at
// which so many or more would be seen with probability 1 − confidence. It is
// the beta distribution's quantile, which takes numbers that aren't whole too,
// as effective ones are (Korn and Graubard, Survey Methodology 24, 1998). For a
// percentile this is the order statistics' distribution-free bound. Without an
// attempt it is 0.
func LowerBound(within, n, confidence float64) float64 {
	if within <= 0 {
		return 0
	}
	return bisect(func(p float64) bool { return mathext.RegIncBeta(within, n-within+1, p) > 1-confidence })
}

// UpperBound is likewise the upper one: 1 less the lower bound of the rest.
func UpperBound(within, n, confidence float64) float64 {
	return 1 - LowerBound(n-within, n, confidence)
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
