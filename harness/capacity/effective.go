package capacity

import (
	"math"
	"math/bits"
	"slices"
)

// tails are how many times more attempts than may be late are taken for late,
// up to half of all, to see how those that are hang together.
var tails = []float64{1, 2, 4, 10}

// designEffect is how many times wider than independent ones the attempts make
// the variance of their share within the limit: the largest of what being
// within the limit shows, and being within the values' own quantile at the
// share that is asked for, and at lower ones. Where few attempts or none are
// late the limit itself shows little of how they hang together, and takes them
// for independent just when they were all lucky together; the values still show
// it.
func designEffect(within []bool, values []float64, share float64) float64 {
	most := inflation(within)
	if len(values) == 0 {
		return most
	}
	sorted := slices.Sorted(slices.Values(values))
	below := make([]bool, len(values))
	for _, times := range tails {
		// A hair more, for a share such as 0.9 has no exact rest.
		late := min(len(sorted)/2, int(float64(times*(1-share)*float64(len(sorted)))+1e-6))
		for i, v := range values {
			below[i] = v <= sorted[len(sorted)-1-late]
		}
		most = max(most, inflation(below))
	}
	return most
}

// inflation is the variance of the mean of a sequence in order, divided by what
// it would be if its elements were independent; 1 at least, and where all are
// the same. The variance is by Geyer's initial monotone sequence (Statistical
// Science 7, 1992): autocovariances are added two by two until a pair's sum is
// no longer positive, none counting for more than one before it. They are
// counts of pairs, so that it is the same on every machine.
func inflation(x []bool) float64 {
	n := len(x)
	words, sums := make([]uint64, n/64+2), make([]int, n+1)
	for i, b := range x {
		sums[i+1] = sums[i]
		if b {
			sums[i+1]++
			words[i/64] |= 1 << (i % 64)
		}
	}
	share := float64(sums[n]) / float64(n)
	// covariance is that at a lag, times n.
	covariance := func(lag int) float64 {
		both := 0
		for w := 0; w+lag/64 < len(words)-1; w++ {
			// A shift by 64 gives 0, as it has to where the lag is whole words.
			later := words[w+lag/64]>>(lag%64) | words[w+lag/64+1]<<(64-lag%64)
			both += bits.OnesCount64(words[w] & later)
		}
		ends := float64(sums[n-lag] + sums[n] - sums[lag])
		return float64(both) - float64(share*ends) + float64(float64(n-lag)*float64(share*share))
	}
	variance := covariance(0)
	if variance <= 0 {
		return 1
	}
	sum, last := -variance, math.Inf(1)
	for lag := 0; lag+1 < n; lag += 2 {
		pair := covariance(lag) + covariance(lag+1)
		if pair <= 0 {
			break
		}
		last = min(last, pair)
		sum += 2 * last
	}
	return max(1, sum/variance)
}
