package metric

import (
	"iter"
	"math"
	"slices"
)

// ranked is so many whole numbers of which some are looked for by their place in
// order. A large wave has more of them than should be held: those are gone
// through again and again.
type ranked struct {
	all       iter.Seq[int64]
	n         int
	low, high int64
	first     []int // how many lie in each range of the first round
}

// mostHeld is how many numbers are held.
const mostHeld = 1 << 20

func rank(all iter.Seq[int64]) *ranked {
	r := &ranked{all: all, low: math.MaxInt64, high: math.MinInt64}
	var held []int64
	for v := range all {
		if r.n++; r.n <= mostHeld {
			held = append(held, v)
		}
		r.low, r.high = min(r.low, v), max(r.high, v)
	}
	if r.n <= mostHeld {
		r.all = slices.Values(held)
	}
	return r
}

// percentile is [Percentile] of the numbers, each divided by a unit.
func (r *ranked) percentile(p, unit float64) float64 {
	if r.n == 0 || p < 0 || p > 100 {
		return math.NaN()
	}
	at := (p / 100) * float64(r.n-1)
	k := int(at)
	f := at - float64(k)
	lower := float64(r.at(k)) / unit
	if f == 0 || k+1 >= r.n {
		return lower
	}
	return lower + float64(f*(float64(r.at(k+1))/unit-lower))
}

// mostRanges is into how many a range is divided at a time.
const mostRanges = 1 << 16

// at is the number at a place, from 0, if they were in order. It counts how many
// lie in each of many equal ranges, and goes on in the one that the place is in.
func (r *ranked) at(place int) int64 {
	low, high := r.low, r.high
	if place == r.n-1 {
		return high
	}
	for low < high {
		ranges := min(mostRanges, max(16, r.n))
		width := uint64(high-low)/uint64(ranges) + 1
		counts := r.first
		if whole := low == r.low && high == r.high; counts == nil || !whole {
			counts = r.count(low, high, width, ranges)
			if whole {
				r.first = counts
			}
		}
		i := 0
		for place >= counts[i] {
			place -= counts[i]
			i++
		}
		low += int64(uint64(i) * width)
		high = min(high, low+int64(width-1))
	}
	return low
}

// count is how many numbers lie in each range of a width.
func (r *ranked) count(low, high int64, width uint64, ranges int) []int {
	counts := make([]int, ranges)
	for v := range r.all {
		if v >= low && v <= high {
			counts[uint64(v-low)/width]++
		}
	}
	return counts
}
