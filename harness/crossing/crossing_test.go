package crossing_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/crossing"
)

// steady is a pair with a debt in seconds of which each of n requests repays
// so much.
func steady(number int, debt, gain float64, n int) crossing.Pair {
	d := []float64{debt}
	for i := 1; i <= n; i++ {
		d = append(d, debt-gain*float64(i))
	}
	p := curves([][]float64{d})[0]
	p.Number = number
	return p
}

func TestWhenACurveCrosses(t *testing.T) {
	for name, c := range map[string]struct {
		d                []float64 // D(0), D(1) …
		scheduled, dwell int
		first, sustained int // 0: none
		censored         int
		applicable       bool
	}{
		"never":                      {[]float64{3, 2, 1, 0.5}, 3, 1, 0, 0, 3, true},
		"at the end":                 {[]float64{3, 2, 1, 0}, 3, 1, 3, 3, 0, true},
		"too late for the dwell":     {[]float64{3, 2, 1, -1}, 3, 2, 3, 0, 3, true},
		"for a whole dwell":          {[]float64{3, 2, -1, -1}, 3, 2, 2, 2, 0, true},
		"and back again":             {[]float64{3, -1, 1, 2}, 3, 1, 1, 0, 3, true},
		"twice":                      {[]float64{3, -1, 1, -1}, 3, 1, 1, 3, 0, true},
		"touching zero counts":       {[]float64{3, 0, 0, 0}, 3, 3, 1, 1, 0, true},
		"until a failure":            {[]float64{3, -1, -1}, 3, 1, 1, 0, 2, true},
		"without a debt":             {[]float64{0, -1, -1, -1}, 3, 1, 0, 0, 0, false},
		"with a lead from the start": {[]float64{-1, -2, -3, -4}, 3, 1, 0, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a, err := crossing.Analyze(curves([][]float64{c.d}), crossing.Options{Requests: c.scheduled, Dwell: c.dwell, Level: 0.95, Resamples: 100})
			g.Expect(err).NotTo(HaveOccurred())
			p := a.Pairs[0]
			number := func(n *int) int {
				if n == nil {
					return 0
				}
				return *n
			}
			g.Expect([]any{number(p.First), number(p.Sustained), p.CensoredAt, p.Applicable}).To(Equal([]any{c.first, c.sustained, c.censored, c.applicable}))
			g.Expect(p.End == nil).To(Equal(len(c.d) <= c.scheduled))
		})
	}
}

func TestWhatTheObservedIncrementsWouldGive(t *testing.T) {
	g := NewWithT(t)
	model := func(p crossing.Pair, n int) crossing.Modelled {
		a, err := crossing.Analyze([]crossing.Pair{p}, crossing.Options{Requests: n, Dwell: 1, Level: 0.95, Resamples: 100})
		g.Expect(err).NotTo(HaveOccurred())
		return a.Pairs[0].Modelled
	}
	g.Expect(*model(steady(1, 10, 1, 4), 4).At).To(Equal(10))
	g.Expect(*model(steady(1, 10.5, 1, 4), 4).At).To(Equal(11))
	g.Expect(model(steady(1, 10, 1, 4), 4).Label).To(Equal("Modelled frozen exact-observed-outcome sequence time crossing at request 10"))
	g.Expect(*model(steady(1, 2, 1, 4), 4).At).To(Equal(2), "within what was observed")
	g.Expect(*model(steady(1, 1e6, 1, 4), 4).At).To(Equal(1_000_000))
	// A sequence that dips under its own end is crossed in the dip: the second
	// repetition begins at 3, and is at 0 after its second request.
	g.Expect(*model(curves([][]float64{{4, 3, 1, 3}})[0], 3).At).To(Equal(5))
	g.Expect(model(steady(1, 10, 0, 4), 4)).To(And(HaveField("At", BeNil()), HaveField("Reason", "the observed increments repay nothing")))
	g.Expect(model(steady(1, 10, -1, 4), 4).Reason).To(Equal("the observed increments repay nothing"))
	g.Expect(model(steady(1, -1, 1, 4), 4).Reason).To(Equal("there is no debt to repay"))
	g.Expect(model(steady(1, 10, 1, 4), 5).Reason).To(Equal("the sequence was not whole, so there is none to repeat"))
}

func TestEveryFaultOfThePairsIsTold(t *testing.T) {
	g := NewWithT(t)
	_, err := crossing.Analyze(nil, crossing.Options{})
	for _, says := range []string{"a sequence of 0 requests", "a dwell of 0", "a level of 0", "0 resamples", "no pair"} {
		g.Expect(err).To(MatchError(ContainSubstring(says)))
	}
	bad := crossing.Pair{Number: 2, Baseline: crossing.Side{Initialization: -1, Terminals: []int64{5, 4}}, Candidate: crossing.Side{Initialization: 9, Terminals: []int64{8, 10, 11}}}
	_, err = crossing.Analyze([]crossing.Pair{bad, bad}, crossing.Options{Requests: 2, Dwell: 1, Level: 0.95, Resamples: 10})
	for _, says := range []string{
		"pair 2, baseline: its initialization is -1 ns", "pair 2, baseline: terminal moment 2 at 4 ns comes before 5 ns",
		"pair 2, candidate: terminal moment 1 at 8 ns comes before 9 ns", "pair 2, candidate: 3 terminal moments of a sequence of 2", "pair 2 is there twice",
	} {
		g.Expect(err).To(MatchError(ContainSubstring(says)))
	}
}

func TestAPairThatEndsEarlyLeavesTheOthersTheirCurve(t *testing.T) {
	g := NewWithT(t)
	pairs := []crossing.Pair{steady(1, 5, 1, 10), steady(2, 6, 1, 10), steady(3, 7, 1, 4)}
	a := analyse(t, pairs, 10, 2)
	g.Expect(a.Curve).To(HaveLen(11))
	g.Expect([]int{a.Curve[4].Pairs, a.Curve[5].Pairs}).To(Equal([]int{3, 2}))
	g.Expect(a.Curve[4].BandLow).NotTo(BeNil())
	g.Expect(a.Curve[5].BandLow).To(BeNil(), "no interval where a pair is missing")
	g.Expect(a.End.Mean).To(BeNil())
	g.Expect(a.End.Reason).To(Equal("D(10) is undefined in pair 3, which is defined up to 4"))
	g.Expect(a.Order.Reason).To(Equal(a.End.Reason))
	g.Expect([]int{a.Crossed.By, a.Crossed.Censored, a.Sustained.By}).To(Equal([]int{2, 1, 2}))
	g.Expect(a.Mean.Sustained).To(BeNil())
}

func TestOrderAndPeriodAreEstimated(t *testing.T) {
	g := NewWithT(t)
	// Two seconds for whoever comes second, and one more each pair.
	var pairs []crossing.Pair
	for i := range 6 {
		p := steady(i+1, 10+float64(i), 1, 4)
		p.CandidateFirst = i%3 == 0
		if !p.CandidateFirst {
			p = steady(i+1, 12+float64(i), 1, 4)
		}
		pairs = append(pairs, p)
	}
	a := analyse(t, pairs, 4, 1)
	first, second := (6.0+9)/2, (9.0+10+12+13)/4
	g.Expect(*a.Order.Value).To(BeNumerically("~", (first-second)/2, 1e-9))
	g.Expect(*a.Period.Value).To(BeNumerically(">", 0))
	a = analyse(t, pairs[1:3], 4, 1)
	g.Expect(a.Order.Reason).To(Equal("the same arm came first in every pair"))
	g.Expect(a.Period.Reason).To(Equal("2 pairs have no trend"))
}

func TestUnderSixPairsItIsADescription(t *testing.T) {
	g := NewWithT(t)
	var pairs []crossing.Pair
	for i := range 6 {
		pairs = append(pairs, steady(i+1, 1+float64(i)/10, 1, 4))
	}
	g.Expect(analyse(t, pairs, 4, 1).End.Label).To(BeEmpty())
	five := analyse(t, pairs[:5], 4, 1)
	g.Expect(five.End.Label).To(Equal("descriptive"))
	g.Expect(five.Notes).To(ContainElement(ContainSubstring("it takes 6 to show anything at 95 %")))
	g.Expect(*five.End.Inverted).To(Equal(crossing.Interval{}), "five pairs exclude nothing")
	one := analyse(t, pairs[:1], 4, 1)
	g.Expect(one.End.Bootstrap).To(BeNil())
	g.Expect(one.Notes).To(ContainElement("one pair has no spread: there is no interval"))
}

// What is true of any differences: a shift moves the interval along, a sign
// turns it over, an interval holds the mean.
func TestIntervalsMoveWithTheirDifferences(t *testing.T) {
	g := NewWithT(t)
	r := rand.New(rand.NewPCG(1, 1))
	for k := 6; k <= 12; k++ {
		var values, shifted, turned []float64
		sum := 0.0
		for range k {
			v := math.Round(r.NormFloat64() * 1e9)
			sum += v
			values, shifted, turned = append(values, v), append(shifted, v+5e9), append(turned, -v)
		}
		a, ok := crossing.InvertSignFlip(values, 0.95, 0)
		g.Expect(ok).To(BeTrue())
		b, _ := crossing.InvertSignFlip(shifted, 0.95, 0)
		c, _ := crossing.InvertSignFlip(turned, 0.95, 0)
		g.Expect(*b.Low).To(BeNumerically("~", *a.Low+5, 1e-8))
		g.Expect(*b.High).To(BeNumerically("~", *a.High+5, 1e-8))
		g.Expect(*c.Low).To(BeNumerically("~", -*a.High, 1e-8))
		g.Expect([]float64{*a.Low, *a.High}).To(HaveExactElements(BeNumerically("<", sum/1e9/float64(k)), BeNumerically(">", sum/1e9/float64(k))))
		p, _ := crossing.SignFlip(values)
		q, _ := crossing.SignFlip(turned)
		g.Expect(p).To(Equal(q))
		g.Expect(p <= 0.05).To(Equal(*a.Low > 0 || *a.High < 0), "the test and its inverse agree")
	}
}

func TestManyPairsAreSampledAlwaysTheSame(t *testing.T) {
	g := NewWithT(t)
	r := rand.New(rand.NewPCG(2, 1))
	var pairs []crossing.Pair
	for i := range 24 {
		pairs = append(pairs, steady(i+1, 5+r.NormFloat64(), 1, 4))
	}
	a := analyse(t, pairs, 4, 1)
	g.Expect(a.End.PValueMethod).To(Equal("sampled sign flips, 100000 of 2^24"))
	g.Expect(*a.End.Inverted.Low).To(BeNumerically("<", *a.End.Mean))
	g.Expect(analyse(t, pairs, 4, 1)).To(Equal(a))
}

func TestNotInferior(t *testing.T) {
	rates := func(k int, baseline, candidate, of int) (out []crossing.Rate) {
		for i := range k {
			out = append(out, crossing.Rate{Pair: i + 1, Baseline: baseline, BaselineOf: of, Candidate: candidate, CandidateOf: of})
		}
		return out
	}
	for name, c := range map[string]struct {
		rates             []crossing.Rate
		margin            float64
		shown, degenerate bool
		reason            string
	}{
		"nothing failed":          {rates(6, 12, 12, 12), 0, false, true, "nothing went wrong in either arm, so no difference could be seen"},
		"the same, no margin":     {rates(6, 10, 10, 12), 0, false, false, "a margin of 0 asks for superiority"},
		"the same, with a margin": {rates(6, 10, 10, 12), 0.05, true, false, ""},
		"better":                  {rates(6, 10, 11, 12), 0, true, false, ""},
		"worse than the margin":   {rates(6, 12, 10, 12), 0.05, false, false, "the pairs do not exclude a loss as large as the margin"},
		"too few":                 {rates(5, 10, 12, 12), 0.05, false, false, "5 pairs can't show it: the test goes no lower than 1/2^5"},
		"nobody tried":            {rates(6, 0, 0, 0), 0.05, false, false, "pair 1 has an arm in which nothing was tried"},
		"no pair":                 {nil, 0.05, false, false, "no pair is in it"},
	} {
		n := crossing.NonInferior(c.rates, c.margin, 0.95)
		NewWithT(t).Expect([]any{n.Shown, n.Degenerate, n.Reason}).To(Equal([]any{c.shown, c.degenerate, c.reason}), name)
	}
}

func TestTheCalibrationIsWhatItsSeedGives(t *testing.T) {
	g := NewWithT(t)
	for _, k := range crossing.CalibratedPairs {
		lines, ok := crossing.Calibration(k)
		g.Expect(ok).To(BeTrue())
		g.Expect(lines).To(HaveLen(len(crossing.Distributions)))
		for _, l := range lines {
			g.Expect(l.FalseClaims).To(BeNumerically("<=", 0.05+3*math.Sqrt(0.05*0.95/float64(l.Experiments))), "at most nominal, within what so many experiments show: %+v", l)
			g.Expect(l.FalseCrossings).To(BeNumerically("<=", l.FalseClaims))
			g.Expect(l.Experiments).To(BeNumerically(">=", 2000))
			if l.Distribution != "skewed" {
				g.Expect(l.Inverted).To(BeNumerically(">=", 0.94))
			}
			g.Expect(l.Bootstrap).To(BeNumerically("<", 0.95), "it covers too little with so few pairs: %+v", l)
		}
	}
	_, ok := crossing.Calibration(9)
	g.Expect(ok).To(BeFalse())
	least, ok := crossing.SmallestEffect(2, 6)
	g.Expect(ok).To(BeTrue())
	g.Expect(least).To(BeNumerically("~", 3.5, 0.3))
	_, ok = crossing.SmallestEffect(2, 5)
	g.Expect(ok).To(BeFalse(), "five pairs show nothing, however large")
	// A short simulation, twice.
	g.Expect(crossing.Calibrate(6, "heavy-tailed", 50, 3)).To(Equal(crossing.Calibrate(6, "heavy-tailed", 50, 3)))
}

func FuzzAnalyze(f *testing.F) {
	f.Add(int64(5), int64(9), []byte{1, 2, 3}, []byte{1, 1, 9}, 3, 1, 0.95)
	f.Fuzz(func(t *testing.T, b, c int64, baseline, candidate []byte, requests, dwell int, level float64) {
		side := func(start int64, steps []byte) crossing.Side {
			s := crossing.Side{Initialization: start}
			for _, step := range steps {
				start += int64(int8(step))
				s.Terminals = append(s.Terminals, start)
			}
			return s
		}
		if requests > 1000 {
			return
		}
		a, err := crossing.Analyze([]crossing.Pair{{Number: 1, Baseline: side(b, baseline), Candidate: side(c, candidate)}},
			crossing.Options{Requests: requests, Dwell: dwell, Level: level, Resamples: 10})
		if err != nil {
			return
		}
		if _, err := json.Marshal(a); err != nil {
			t.Fatalf("an analysis that is no JSON: %v", err)
		}
		p := a.Pairs[0]
		if p.Sustained != nil && (p.First == nil || *p.First > *p.Sustained || a.Requests-*p.Sustained+1 < dwell) {
			t.Fatalf("sustained before it crossed, or for less than the dwell: %+v", p)
		}
	})
}

// The whole analysis of two lanes of eight pairs and 144 requests: under 2 s on
// one core and 200 MiB.
func BenchmarkAnalyze(b *testing.B) {
	r := rand.New(rand.NewPCG(9, 1))
	var pairs []crossing.Pair
	for i := range 8 {
		d := []float64{50 + r.NormFloat64()}
		for range 144 {
			d = append(d, d[len(d)-1]-0.5+0.1*r.NormFloat64())
		}
		p := curves([][]float64{d})[0]
		p.Number = i + 1
		pairs = append(pairs, p)
	}
	b.ReportAllocs()
	for b.Loop() {
		for range 2 {
			if _, err := crossing.Analyze(pairs, crossing.Options{Requests: 144, Dwell: 12, Level: 0.95, Resamples: 20_000, Seed: 1}); err != nil {
				b.Fatal(err)
			}
		}
	}
}
