package crossing

import (
	"errors"
	"fmt"
	"math"
)

// Options say what is asked of the pairs.
type Options struct {
	Requests  int     // ordinals N that the sequence has
	Dwell     int     // ordinals up to the end over which D must stay at or below 0
	Level     float64 // of confidence, such as 0.95
	Resamples int     // of the bootstrap
	Seed      uint64  // of the bootstrap, and of sign flips that are sampled
}

func (o Options) validate() error {
	var errs []error
	if o.Requests < 1 {
		errs = append(errs, fmt.Errorf("a sequence of %d requests has no end to look at: write 1 or more", o.Requests))
	}
	if o.Dwell < 1 {
		errs = append(errs, fmt.Errorf("a dwell of %d holds nothing: write 1 or more", o.Dwell))
	}
	if !(o.Level > 0 && o.Level < 1) {
		errs = append(errs, fmt.Errorf("a level of %g is no confidence: write more than 0 and less than 1, such as 0.95", o.Level))
	}
	if o.Resamples < 1 {
		errs = append(errs, fmt.Errorf("%d resamples are none: write 1 or more, such as 20000", o.Resamples))
	}
	return errors.Join(errs...)
}

// Analysis is what a set of pairs shows. Durations are seconds, to the
// nanosecond.
type Analysis struct {
	K         int          `json:"k"` // pairs
	Requests  int          `json:"requests"`
	Dwell     int          `json:"dwell"`
	Level     float64      `json:"level"`
	Resamples int          `json:"resamples"`
	Seed      uint64       `json:"seed"`
	Pairs     []PairResult `json:"pairs"`
	Curve     []Point      `json:"curve"` // from n = 0 on, as far as any pair goes
	End       Effect       `json:"end"`   // mean D(N)
	Debt      Effect       `json:"debt"`  // mean D(0)
	Crossed   Count        `json:"crossed"`
	Sustained Count        `json:"sustained"`
	Mean      MeanCurve    `json:"mean"`
	Order     Estimate     `json:"order"`  // of the place within the pair
	Period    Estimate     `json:"period"` // of the place in the run
	Notes     []string     `json:"notes"`
}

// PairResult is one pair's.
type PairResult struct {
	Pair           int     `json:"pair"`
	CandidateFirst bool    `json:"candidate_first"`
	Debt           float64 `json:"debt"`
	// Applicable says that there is a debt to repay; without one a pair has no
	// crossing, and none is missing.
	Applicable bool `json:"applicable"`
	First      *int `json:"first"`     // smallest n with D(n) ≤ 0
	Sustained  *int `json:"sustained"` // smallest n from which D stays there to the end, over the dwell at least
	// CensoredAt is the last ordinal at which D is defined, where an applicable
	// pair has no sustained crossing; else 0.
	CensoredAt int      `json:"censored_at"`
	End        *float64 `json:"end"` // D(N); null where it is undefined
	Modelled   Modelled `json:"modelled"`
}

// Modelled is what the exact observed increments, repeated unchanged for ever,
// would give. It is never an observation.
type Modelled struct {
	Label  string `json:"label"` // always whole; empty where there is none
	At     *int   `json:"at"`
	Reason string `json:"reason,omitempty"`
}

// Point is the mean of D over the pairs that are defined at one ordinal, with
// its intervals where all pairs are.
type Point struct {
	N        int      `json:"n"`
	Pairs    int      `json:"pairs"`
	Mean     float64  `json:"mean"`
	Low      *float64 `json:"low"` // pointwise
	High     *float64 `json:"high"`
	BandLow  *float64 `json:"band_low"` // simultaneous over all n
	BandHigh *float64 `json:"band_high"`
}

// Count is how many of the pairs did it by the end.
type Count struct {
	By            int `json:"by"`
	Of            int `json:"of"`
	Censored      int `json:"censored"`
	NotApplicable int `json:"not_applicable"`
}

// MeanCurve is where the mean of all pairs crosses; null: it does not by the
// end, or by where the first pair ends.
type MeanCurve struct {
	First     *int `json:"first"`
	Sustained *int `json:"sustained"`
}

// Estimate is one number, or null with the reason.
type Estimate struct {
	Value  *float64 `json:"value"`
	Unit   string   `json:"unit"`
	Reason string   `json:"reason,omitempty"`
}

// Analyze computes everything that pairs show. The error has every fault of
// the pairs and the options at once: terminal moments that do not ascend or
// are beyond the sequence, no pair, an option that asks for nothing.
func Analyze(pairs []Pair, o Options) (Analysis, error) {
	errs := []error{o.validate()}
	if len(pairs) == 0 {
		errs = append(errs, errors.New("no pair: there is nothing to analyse"))
	}
	numbers := map[int]bool{}
	for _, p := range pairs {
		if numbers[p.Number] {
			errs = append(errs, fmt.Errorf("pair %d is there twice: each pair counts once", p.Number))
		}
		numbers[p.Number] = true
		errs = append(errs, p.validate(o.Requests))
	}
	if err := errors.Join(errs...); err != nil {
		return Analysis{}, err
	}
	a := Analysis{
		K: len(pairs), Requests: o.Requests, Dwell: o.Dwell, Level: o.Level, Resamples: o.Resamples, Seed: o.Seed,
		Crossed: Count{Of: len(pairs)}, Sustained: Count{Of: len(pairs)}, Notes: []string{},
	}
	for _, p := range pairs {
		a.add(p, o)
	}
	a.curve(pairs, o)
	ends, reason := at(pairs, o.Requests)
	a.End = effect(ends, reason, o)
	debts, reason := at(pairs, 0)
	a.Debt = effect(debts, reason, o)
	a.order(pairs, o.Requests)
	if fewest := fewestPairs(o.Level); a.K < fewest {
		a.Notes = append(a.Notes, fmt.Sprintf("descriptive: a two-sided sign-flip test over %d pairs goes no lower than 2/2^%d, and it takes %d to show anything at %g %%", a.K, a.K, fewest, 100*o.Level))
	}
	return a, nil
}

// fewestPairs is the smallest k with 2/2^k ≤ 1 − level.
func fewestPairs(level float64) int {
	k := 1
	for 2/float64(int(1)<<k) > 1-level+1e-12 && k < 62 {
		k++
	}
	return k
}

func (a *Analysis) add(p Pair, o Options) {
	debt, _ := p.Difference(0)
	r := PairResult{Pair: p.Number, CandidateFirst: p.CandidateFirst, Debt: seconds(float64(debt)), Applicable: debt > 0}
	if end, ok := p.Difference(o.Requests); ok {
		v := seconds(float64(end))
		r.End = &v
	}
	r.Modelled = p.model(o.Requests)
	if !r.Applicable {
		a.Crossed.NotApplicable++
		a.Sustained.NotApplicable++
		a.Pairs = append(a.Pairs, r)
		return
	}
	r.First, r.Sustained = crossings(p.last(), o, func(n int) float64 { d, _ := p.Difference(n); return float64(d) })
	count := func(c *Count, n *int) {
		if n != nil {
			c.By++
		} else {
			c.Censored++
		}
	}
	count(&a.Crossed, r.First)
	count(&a.Sustained, r.Sustained)
	if r.Sustained == nil {
		r.CensoredAt = p.last()
	}
	a.Pairs = append(a.Pairs, r)
}

// crossings finds the first and the sustained crossing of a curve that is
// defined up to an ordinal. One that ends early has no sustained crossing:
// nobody saw whether it would have stayed.
func crossings(defined int, o Options, d func(n int) float64) (first, sustained *int) {
	for n := 1; n <= defined; n++ {
		if d(n) <= 0 {
			first = &n
			break
		}
	}
	if defined < o.Requests {
		return first, nil
	}
	n := o.Requests + 1
	for n > 1 && d(n-1) <= 0 {
		n--
	}
	if o.Requests-n+1 >= o.Dwell {
		sustained = &n
	}
	return first, sustained
}

// model repeats a pair's observed increments for ever.
func (p Pair) model(requests int) Modelled {
	debt, _ := p.Difference(0)
	end, whole := p.Difference(requests)
	switch {
	case debt <= 0:
		return Modelled{Reason: "there is no debt to repay"}
	case !whole:
		return Modelled{Reason: "the sequence was not whole, so there is none to repeat"}
	case end >= debt:
		return Modelled{Reason: "the observed increments repay nothing"}
	}
	// Whole repetitions in which even the lowest point stays above zero can be
	// skipped at once; from there on each request is looked at.
	gain := debt - end
	lowest := int64(0)
	for n := 1; n <= requests; n++ {
		d, _ := p.Difference(n)
		lowest = min(lowest, d-debt)
	}
	skipped := max(0, (debt+lowest)/gain-1)
	for repetition := skipped; ; repetition++ {
		base := debt - repetition*gain
		for n := 1; n <= requests; n++ {
			if d, _ := p.Difference(n); base+d-debt <= 0 {
				at := int(repetition)*requests + n
				return Modelled{At: &at, Label: fmt.Sprintf("Modelled frozen exact-observed-outcome sequence time crossing at request %d", at)}
			}
		}
	}
}

// at is D(n) of each pair in ns, or why there is none.
func at(pairs []Pair, n int) ([]float64, string) {
	var out []float64
	for _, p := range pairs {
		d, ok := p.Difference(n)
		if !ok {
			return nil, fmt.Sprintf("D(%d) is undefined in pair %d, which is defined up to %d", n, p.Number, p.last())
		}
		out = append(out, float64(d))
	}
	return out, ""
}

// curve is the mean of D over the pairs, with its intervals.
func (a *Analysis) curve(pairs []Pair, o Options) {
	common := o.Requests
	for _, p := range pairs {
		common = min(common, p.last())
	}
	for n := 0; n <= o.Requests; n++ {
		sum, k := 0.0, 0
		for _, p := range pairs {
			if d, ok := p.Difference(n); ok {
				sum += float64(d)
				k++
			}
		}
		if k == 0 {
			break
		}
		a.Curve = append(a.Curve, Point{N: n, Pairs: k, Mean: seconds(sum / float64(k))})
	}
	if a.K > 1 {
		a.band(pairs, common, o)
	} else {
		a.Notes = append(a.Notes, "one pair has no spread: there is no interval")
	}
	debt, _ := at(pairs, 0)
	if mean(debt) > 0 {
		a.Mean.First, a.Mean.Sustained = crossings(common, o, func(n int) float64 { v, _ := at(pairs, n); return mean(v) })
	}
}

// order estimates what the place within the pair and the place in the run do
// to D(N).
func (a *Analysis) order(pairs []Pair, requests int) {
	a.Order, a.Period = Estimate{Unit: "s"}, Estimate{Unit: "s per pair"}
	ends, reason := at(pairs, requests)
	if reason != "" {
		a.Order.Reason, a.Period.Reason = reason, reason
		return
	}
	var first, second []float64
	for i, p := range pairs {
		if p.CandidateFirst {
			first = append(first, ends[i])
		} else {
			second = append(second, ends[i])
		}
	}
	if len(first) == 0 || len(second) == 0 {
		a.Order.Reason = "the same arm came first in every pair"
	} else {
		v := seconds((mean(first) - mean(second)) / 2)
		a.Order.Value = &v
	}
	if len(pairs) < 3 {
		a.Period.Reason = fmt.Sprintf("%d pairs have no trend", len(pairs))
		return
	}
	// Least squares of D(N) on the place in the run, from 1.
	middle, top, bottom := float64(float64(len(pairs)+1)/2), 0.0, 0.0
	for i, end := range ends {
		x := float64(i+1) - middle
		top += float64(x * end)
		bottom += float64(x * x)
	}
	v := seconds(top / bottom)
	a.Period.Value = &v
}

// mean is the arithmetic mean.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// seconds are ns as a result shows them: whole ones.
func seconds(ns float64) float64 { return math.Round(ns) / 1e9 }

// quantile is Hyndman and Fan's type 7 of values that are sorted, q from 0 to 1.
func quantile(sorted []float64, q float64) float64 {
	h := float64(float64(len(sorted)-1) * q)
	low := int(math.Floor(h))
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + float64((h-float64(low))*(sorted[low+1]-sorted[low]))
}
