package capacity_test

import (
	"math"
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/capacity"
)

// sojourns are the response times of a single server in virtual time, first
// come first served, with Poisson arrivals and service of mean 1, after a
// warm-up.
func sojourns(random *rand.Rand, rate float64, service func() float64, n int) []float64 {
	out, at, free := make([]float64, n), 0.0, 0.0
	for i := -3000; i < n; i++ {
		at += random.ExpFloat64() / rate
		free = max(at, free) + service()
		if i >= 0 {
			out[i] = free - at
		}
	}
	return out
}

// verdicts are the shares of probes that were found to hold and to fail.
type verdicts struct{ holds, fails float64 }

func (v *verdicts) count(of capacity.Verdict, runs int) {
	switch of {
	case capacity.Holds:
		v.holds += 1 / float64(runs)
	case capacity.Fails:
		v.fails += 1 / float64(runs)
	}
}

// Where exactly the share asked for is within the limit, either verdict is wrong, and each
// should come in 5 % of the probes at most. What the package says of its own
// errors comes from here.
func TestHowOftenAVerdictIsWrong(t *testing.T) {
	const runs = 1000
	log20 := math.Log(20)
	// The response time of one server with exponential service is exponential
	// with rate 1 − λ: 95 % of them are within ln(20)/(1 − λ).
	markov := func(load float64, n int) func(*rand.Rand) []float64 {
		return func(random *rand.Rand) []float64 { return sojourns(random, load, random.ExpFloat64, n) }
	}
	const load = 0.85
	steady := 1.0 // the 95th percentile with constant service at this load
	for waits(steady-1, load) < 0.95 {
		steady += 1e-3
	}
	for _, test := range []struct {
		name                      string
		share                     float64
		limit                     float64 // in mean service times
		times                     func(*rand.Rand) []float64
		independent, alone, whole verdicts // at most, by what the verdict knows of how attempts hang together
		least                     verdicts // of those taken for independent
	}{
		{name: "exponential service at 70 %, 600 attempts", share: 0.95, limit: 10, times: markov(1-log20/10, 600), independent: verdicts{0.55, 0.35}, least: verdicts{0.4, 0.2}, alone: verdicts{0.35, 0.05}, whole: verdicts{0.1, 0.05}},
		{name: "exponential service at 85 %, 600 attempts", share: 0.95, limit: 20, times: markov(1-log20/20, 600), independent: verdicts{0.75, 0.3}, least: verdicts{0.6, 0.15}, alone: verdicts{0.65, 0.06}, whole: verdicts{0.05, 0.05}},
		{name: "constant service at 85 %, 1200 attempts", share: 0.95, limit: steady, independent: verdicts{0.6, 0.4}, least: verdicts{0.4, 0.2}, alone: verdicts{0.4, 0.06}, whole: verdicts{0.12, 0.05}, times: func(random *rand.Rand) []float64 {
			return sojourns(random, load, func() float64 { return 1 }, 1200)
		}},
		{name: "the median, exponential service at 93 %, 600 attempts", share: 0.5, limit: 10, times: markov(1-math.Ln2/10, 600), independent: verdicts{0.6, 0.6}, least: verdicts{0.4, 0.3}, alone: verdicts{0.25, 0.2}, whole: verdicts{0.25, 0.15}},
		{name: "600 independent attempts", share: 0.95, limit: log20, independent: verdicts{0.06, 0.06}, alone: verdicts{0.06, 0.06}, whole: verdicts{0.05, 0.05}, times: func(random *rand.Rand) []float64 {
			out := make([]float64, 600)
			for i := range out {
				out[i] = random.ExpFloat64()
			}
			return out
		}},
	} {
		g := NewWithT(t)
		search := one
		search.Objectives = []capacity.Objective{{Name: "latency", Share: test.share}}
		var independent, alone, whole verdicts
		for seed := range runs {
			times := test.times(rand.New(rand.NewPCG(uint64(seed), 1)))
			n, k := float64(len(times)), 0.0
			within := make([]bool, len(times))
			for i, v := range times {
				if within[i] = v <= test.limit; within[i] {
					k++
				}
			}
			switch {
			case capacity.LowerBound(k, n, 0.95) >= test.share:
				independent.count(capacity.Holds, runs)
			case capacity.UpperBound(k, n, 0.95) < test.share:
				independent.count(capacity.Fails, runs)
			}
			p, err := search.Judge(1, 0, capacity.Outcome{within})
			g.Expect(err).NotTo(HaveOccurred())
			alone.count(p.Verdict, runs)
			p, err = search.Judge(1, 0, capacity.Outcome{within}, times)
			g.Expect(err).NotTo(HaveOccurred())
			whole.count(p.Verdict, runs)
		}
		t.Logf("%s, wrongly held / failed: %.3f / %.3f as if independent, %.3f / %.3f by who was within, %.3f / %.3f by the values too",
			test.name, independent.holds, independent.fails, alone.holds, alone.fails, whole.holds, whole.fails)
		for _, c := range []struct{ got, most verdicts }{{independent, test.independent}, {alone, test.alone}, {whole, test.whole}, {test.least, independent}} {
			g.Expect(c.got.holds).To(BeNumerically("<=", c.most.holds), "%s", test.name)
			g.Expect(c.got.fails).To(BeNumerically("<=", c.most.fails), "%s", test.name)
		}
	}
}

// The price of not taking late neighbours for independent.
func TestHowOftenARateBelowTheCapacityIsFoundToHold(t *testing.T) {
	g := NewWithT(t)
	const runs, n, limit = 1000, 600, 10
	rate := 1 - math.Log(20)/limit
	for of, between := range map[float64][2]float64{0.9: {0.2, 0.32}, 0.7: {0.65, 0.8}} {
		var found verdicts
		for seed := range runs {
			random := rand.New(rand.NewPCG(uint64(seed), 2))
			times := sojourns(random, of*rate, random.ExpFloat64, n)
			within := make([]bool, n)
			for i, v := range times {
				within[i] = v <= limit
			}
			p, err := one.Judge(1, 0, capacity.Outcome{within}, times)
			g.Expect(err).NotTo(HaveOccurred())
			found.count(p.Verdict, runs)
		}
		t.Logf("%v of the capacity: %.3f found to hold, %.3f to fail", of, found.holds, found.fails)
		g.Expect(found.holds).To(And(BeNumerically(">", between[0]), BeNumerically("<", between[1])))
		g.Expect(found.fails).To(BeNumerically("<=", 0.01))
	}
}
