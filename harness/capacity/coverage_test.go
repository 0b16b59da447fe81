package capacity_test

import (
	"math"
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/capacity"
)

// sojourns are the response times of a single server in virtual time, first
// come first served, with Poisson arrivals and exponential service of mean 1,
// after a warm-up.
func sojourns(random *rand.Rand, rate float64, n int) []float64 {
	out, at, free := make([]float64, n), 0.0, 0.0
	for i := -3000; i < n; i++ {
		at += random.ExpFloat64() / rate
		free = max(at, free) + random.ExpFloat64()
		if i >= 0 {
			out[i] = free - at
		}
	}
	return out
}

// wrong are the shares of verdicts that are wrong where exactly 95 % are within
// the limit: by verdicts that should each come in 5 % of the probes at most.
type wrong struct{ holds, fails float64 }

func (w *wrong) count(v capacity.Verdict, runs int) {
	switch v {
	case capacity.Holds:
		w.holds += 1 / float64(runs)
	case capacity.Fails:
		w.fails += 1 / float64(runs)
	}
}

// What the package says of its own errors comes from here.
func TestHowOftenAVerdictIsWrong(t *testing.T) {
	const runs, n = 1000, 600
	log20 := math.Log(20)
	for _, test := range []struct {
		name                      string
		limit                     float64 // in mean service times
		times                     func(random *rand.Rand, limit float64) []float64
		independent, alone, whole wrong // at most, by what the verdict knows of how attempts hang together
		least                     wrong // of those taken for independent
	}{
		{name: "a server at 70 %", limit: 10, independent: wrong{0.55, 0.35}, least: wrong{0.4, 0.2}, alone: wrong{0.35, 0.05}, whole: wrong{0.1, 0.05}},
		{name: "a server at 85 %", limit: 20, independent: wrong{0.75, 0.3}, least: wrong{0.6, 0.15}, alone: wrong{0.65, 0.06}, whole: wrong{0.05, 0.05}},
		{name: "independent attempts", limit: log20, independent: wrong{0.06, 0.06}, alone: wrong{0.06, 0.06}, whole: wrong{0.05, 0.05}, times: func(random *rand.Rand, _ float64) []float64 {
			out := make([]float64, n)
			for i := range out {
				out[i] = random.ExpFloat64()
			}
			return out
		}},
	} {
		g := NewWithT(t)
		if test.times == nil {
			// The response time is exponential with rate 1 − λ: 95 % of them are
			// within ln(20)/(1 − λ).
			test.times = func(random *rand.Rand, limit float64) []float64 { return sojourns(random, 1-log20/limit, n) }
		}
		var independent, alone, whole wrong
		for seed := range runs {
			times := test.times(rand.New(rand.NewPCG(uint64(seed), 1)), test.limit)
			within, k := make([]bool, n), 0.0
			for i, v := range times {
				if within[i] = v <= test.limit; within[i] {
					k++
				}
			}
			switch {
			case capacity.LowerBound(k, n, 0.95) >= 0.95:
				independent.count(capacity.Holds, runs)
			case capacity.UpperBound(k, n, 0.95) < 0.95:
				independent.count(capacity.Fails, runs)
			}
			p, err := one.Judge(1, 0, capacity.Outcome{within})
			g.Expect(err).NotTo(HaveOccurred())
			alone.count(p.Verdict, runs)
			p, err = one.Judge(1, 0, capacity.Outcome{within}, times)
			g.Expect(err).NotTo(HaveOccurred())
			whole.count(p.Verdict, runs)
		}
		t.Logf("%s, wrongly held / failed: %.3f / %.3f as if independent, %.3f / %.3f by who was within, %.3f / %.3f by the values too",
			test.name, independent.holds, independent.fails, alone.holds, alone.fails, whole.holds, whole.fails)
		for _, c := range []struct{ got, most wrong }{{independent, test.independent}, {alone, test.alone}, {whole, test.whole}, {test.least, independent}} {
			g.Expect(c.got.holds).To(BeNumerically("<=", c.most.holds), test.name)
			g.Expect(c.got.fails).To(BeNumerically("<=", c.most.fails), test.name)
		}
	}
}
