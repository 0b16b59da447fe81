package crossing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// maxExact is the most pairs for which all sign patterns are tried; beyond it
// sampledFlips of them are drawn.
const (
	maxExact     = 20
	sampledFlips = 100_000
)

// Effect is a mean over pairs with what can be inferred from it, in seconds.
type Effect struct {
	Mean         *float64  `json:"mean"`
	K            int       `json:"k"`
	Reason       string    `json:"reason,omitempty"` // why there is no mean
	PValue       *float64  `json:"p_value"`          // two-sided, of a mean of 0
	PValueMethod string    `json:"p_value_method,omitempty"`
	Inverted     *Interval `json:"inverted"`  // by inverting the sign-flip test
	Bootstrap    *Interval `json:"bootstrap"` // percentile, of whole pairs
	// Label is "descriptive" where so few pairs can't show anything at the level.
	Label string `json:"label,omitempty"`
}

// Interval is two-sided. An end that is null is unbounded: so few pairs exclude
// nothing on that side.
type Interval struct {
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
}

// effect infers from each pair's value in ns.
func effect(values []float64, reason string, o Options) Effect {
	e := Effect{K: len(values), Reason: reason}
	if reason != "" {
		return e
	}
	m := seconds(mean(values))
	p, exact := signFlip(values, o.Seed)
	e.Mean, e.PValue = &m, &p
	e.PValueMethod = "exact sign flips over all 2^k"
	if !exact {
		e.PValueMethod = fmt.Sprintf("sampled sign flips, %d of 2^%d", sampledFlips, len(values))
	}
	if i, ok := InvertSignFlip(values, o.Level, o.Seed); ok {
		e.Inverted = &i
	} else {
		e.Inverted = &Interval{}
	}
	if len(values) > 1 {
		e.Bootstrap = bootstrapMean(values, o)
	}
	if len(values) < fewestPairs(o.Level) {
		e.Label = "descriptive"
	}
	return e
}

// SignFlip is the two-sided p-value of the mean of paired effects under the
// hypothesis that each one's sign is a coin's: the share of sign patterns whose
// mean is at least as far from zero. Up to 20 effects all 2^k patterns are
// tried, and it is exact; beyond that they are sampled, always the same. NaN:
// there is no effect.
func SignFlip(effects []float64) (p float64, exact bool) { return signFlip(effects, 0) }

func signFlip(effects []float64, seed uint64) (float64, bool) {
	if len(effects) == 0 {
		return math.NaN(), true
	}
	observed := math.Abs(sum(effects))
	// Patterns that are equal in exact arithmetic must count as equal.
	least := observed - float64(1e-12*math.Max(1, observed))
	extreme, all := 0, 0
	exact := eachFlip(effects, seed, func(s float64) {
		all++
		if math.Abs(s) >= least {
			extreme++
		}
	})
	if !exact { // the observed pattern is one of them
		extreme, all = extreme+1, all+1
	}
	return float64(extreme) / float64(all), exact
}

// oneSided is the share of sign patterns whose sum is at least as large.
func oneSided(effects []float64) float64 {
	observed := sum(effects)
	least := observed - float64(1e-12*math.Max(1, math.Abs(observed)))
	extreme, all := 0, 0
	if exact := eachFlip(effects, 0, func(s float64) {
		all++
		if s >= least {
			extreme++
		}
	}); !exact {
		extreme, all = extreme+1, all+1
	}
	return float64(extreme) / float64(all)
}

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

// eachFlip visits the sums of all sign patterns, or of a sample of them, and
// says whether it was all.
func eachFlip(effects []float64, seed uint64, visit func(sum float64)) bool {
	if len(effects) > maxExact {
		random := rand.New(rand.NewPCG(seed, 3))
		for range sampledFlips {
			s := 0.0
			for _, e := range effects {
				if random.Uint64()&1 == 0 {
					s -= e
				} else {
					s += e
				}
			}
			visit(s)
		}
		return false
	}
	// Each half's sums are made once, and every pair of them is a pattern.
	left, right := halfSums(effects[:len(effects)/2]), halfSums(effects[len(effects)/2:])
	for _, l := range left {
		for _, r := range right {
			visit(l + r)
		}
	}
	return true
}

func halfSums(effects []float64) []float64 {
	sums := []float64{0}
	for _, e := range effects {
		next := make([]float64, 0, 2*len(sums))
		for _, s := range sums {
			next = append(next, s+e, s-e)
		}
		sums = next
	}
	return sums
}

// InvertSignFlip is the interval of the means that the two-sided sign-flip test
// does not reject at 1 − level, in seconds of effects in ns. It is read off the
// ordered means of all subsets of the effects, between any two of which the
// true mean of a symmetric distribution is equally likely to lie (Hartigan,
// 1969): the test's p-value as a function of the mean steps at each. ok is
// false if both ends are unbounded.
func InvertSignFlip(effects []float64, level float64, seed uint64) (Interval, bool) {
	means := subsetMeans(effects, seed)
	slices.Sort(means)
	// Of 2^k patterns, the empty subset is the one without a mean.
	j := int(math.Floor(float64((1-level)/2*float64(len(means)+1)) + 1e-9))
	if j < 1 {
		return Interval{}, false
	}
	low, high := seconds(means[j-1]), seconds(means[len(means)-j])
	return Interval{Low: &low, High: &high}, true
}

func subsetMeans(effects []float64, seed uint64) []float64 {
	var means []float64
	if len(effects) > maxExact {
		random := rand.New(rand.NewPCG(seed, 4))
		for len(means) < sampledFlips-1 {
			s, n := 0.0, 0
			for _, e := range effects {
				if random.Uint64()&1 == 1 {
					s += e
					n++
				}
			}
			if n > 0 {
				means = append(means, s/float64(n))
			}
		}
		return means
	}
	sums, counts := []float64{0}, []int{0}
	for _, e := range effects {
		for i := range len(sums) {
			sums, counts = append(sums, sums[i]+e), append(counts, counts[i]+1)
		}
	}
	for i := 1; i < len(sums); i++ {
		means = append(means, sums[i]/float64(counts[i]))
	}
	return means
}
