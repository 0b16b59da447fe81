package comparison

import (
	"cmp"
	"math"
	"slices"
)

// Holm are p-values that hold for several comparisons together: the probability
// that any of them is called small where there is no difference stays below the
// level (Holm, A Simple Sequentially Rejective Multiple Test Procedure,
// Scandinavian Journal of Statistics 6, 1979).
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	out := make([]float64, len(p))
	least := 0.0
	for place, i := range order {
		least = math.Max(least, math.Min(1, float64(len(p)-place)*p[i]))
		out[i] = least
	}
	return out
}

// FewestLifecycles is how many lifecycles of each arm each run needs before any
// of so many comparisons can be shown at a level, from 0 to 1.
func FewestLifecycles(comparisons int, level float64) int {
	k := 1
	for float64(comparisons)*SmallestP(k, k) > 1-level+1e-12 && k < 500 {
		k++
	}
	return k
}
