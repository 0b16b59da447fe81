package capacity_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/capacity"
)

func TestBoundsAreSciPys(t *testing.T) {
	g := NewWithT(t)
	data, err := os.ReadFile("testdata/bounds.json")
	g.Expect(err).NotTo(HaveOccurred())
	var table struct {
		Cases []struct {
			Within, N                int
			Confidence, Lower, Upper float64
		}
	}
	g.Expect(json.Unmarshal(data, &table)).To(Succeed())
	g.Expect(len(table.Cases)).To(BeNumerically(">=", 30))
	for _, c := range table.Cases {
		g.Expect(capacity.LowerBound(c.Within, c.N, c.Confidence)).To(BeNumerically("~", c.Lower, 1e-9), "%+v", c)
		g.Expect(capacity.UpperBound(c.Within, c.N, c.Confidence)).To(BeNumerically("~", c.Upper, 1e-9), "%+v", c)
	}
}

// responses simulates a queue in virtual time, first come first served: Poisson
// arrivals, one or more servers. It returns waiting times and response times.
func responses(random *rand.Rand, rate float64, servers, n int, service func() float64) (waits, whole []float64) {
	free := make([]float64, servers)
	at := 0.0
	for range n {
		at += random.ExpFloat64() / rate
		s := 0
		for i := range free {
			if free[i] < free[s] {
				s = i
			}
		}
		start, took := max(at, free[s]), service()
		free[s] = start + took
		waits, whole = append(waits, start-at), append(whole, start-at+took)
	}
	return waits, whole
}

func TestTheSimulatedQueueIsTheTextbooks(t *testing.T) {
	g := NewWithT(t)
	random := rand.New(rand.NewPCG(1, 2))
	for _, q := range []struct {
		service func() float64
		squared float64 // mean of the service time's square; its mean is 1
	}{{func() float64 { return 1 }, 1}, {random.ExpFloat64, 2}} {
		const rate = 0.7
		var means []float64
		for range 40 {
			waits, _ := responses(random, rate, 1, 50_000, q.service)
			sum := 0.0
			for _, w := range waits[1000:] {
				sum += w / float64(len(waits)-1000)
			}
			means = append(means, sum)
		}
		mean, square := 0.0, 0.0
		for _, m := range means {
			mean += m / 40
		}
		for _, m := range means {
			square += (m - mean) * (m - mean) / 39
		}
		// Pollaczek and Khinchine: λ·E[S²] / (2·(1−ρ)).
		g.Expect(mean).To(BeNumerically("~", rate*q.squared/(2*(1-rate)), 3*math.Sqrt(square/40)))
	}
}

// limit is on the 95th percentile of the response time, in mean service times.
const limit = 10.0

// exponential searches for the capacity of servers with exponential service of
// mean 1.
func exponential(servers int, want float64, t *testing.T) {
	for _, seed := range []uint64{1, 1000, 2000} {
		g := NewWithT(t)
		s := capacity.Search{Quantile: 0.95, Confidence: 0.95, From: 0.1, To: 64, Within: 0.02, Tries: 5, Seed: seed}
		r, err := s.Run(t.Context(), func(_ context.Context, rate float64, seed uint64) (capacity.Outcome, error) {
			random := rand.New(rand.NewPCG(seed, 7))
			_, whole := responses(random, rate, servers, 201_000, random.ExpFloat64)
			// Neighbours in a queue wait alike: every fortieth is counted, so that
			// those counted are nearly independent, which the bounds ask for.
			out := capacity.Outcome{}
			for i := 1000; i < len(whole); i += 40 {
				out.Attempts++
				if whole[i] <= limit {
					out.Within++
				}
			}
			return out, nil
		})
		g.Expect(err).NotTo(HaveOccurred())
		t.Logf("%d servers, seed %d: holds at %.4f, fails at %.4f, truth %.4f, %d probes %s", servers, seed, r.Holds, r.Fails, want, len(r.Probes), r.Reason)
		g.Expect(r.Holds).To(BeNumerically("~", want, 0.03*want))
		g.Expect(r.Fails).To(BeNumerically(">=", 0.97*want))
	}
}

func TestTheSearchFindsTheCapacityOfOneServer(t *testing.T) {
	// The response time is exponential with rate 1 − λ: p95 is ln(20)/(1 − λ).
	exponential(1, 1-math.Log(20)/limit, t)
}

func TestTheSearchFindsTheCapacityOfThreeServers(t *testing.T) {
	// M/M/c: with probability C (Erlang's) a request waits, an exponential time
	// of rate c − λ, and then is served for another of rate 1.
	const c = 3.0
	within := func(rate float64) float64 {
		sum, term := 0.0, 1.0
		for k := 0.0; k < c; k++ {
			sum += term
			term *= rate / (k + 1)
		}
		waits := term / (1 - rate/c) / (sum + term/(1-rate/c))
		v := c - rate
		return 1 - (1-waits)*math.Exp(-limit) - waits*(v*math.Exp(-limit)-math.Exp(-v*limit))/(v-1)
	}
	low, high := 2.1, c
	for range 60 {
		if mid := (low + high) / 2; within(mid) >= 0.95 {
			low = mid
		} else {
			high = mid
		}
	}
	exponential(3, low, t)
}

func TestTheSearchSaysWhatItCouldNotShow(t *testing.T) {
	g := NewWithT(t)
	s := capacity.Search{Quantile: 0.95, Confidence: 0.95, From: 1, To: 8, Within: 0.05, Tries: 3}
	share := func(within int) capacity.Probe {
		return func(context.Context, float64, uint64) (capacity.Outcome, error) {
			return capacity.Outcome{Attempts: 200, Within: within}, nil
		}
	}
	r, err := s.Run(t.Context(), share(190))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Probes).To(HaveLen(3))
	g.Expect(r.Reason).To(ContainSubstring("undecided over 3 probes"))
	seeds := []uint64{}
	for _, p := range r.Probes {
		seeds = append(seeds, p.Seed)
	}
	g.Expect(slices.Compact(seeds)).To(HaveLen(3))
	r, _ = s.Run(t.Context(), share(200))
	g.Expect([]any{r.Holds, r.Fails, r.Bound}).To(Equal([]any{8.0, math.Inf(1), math.Inf(1)}))
	r, _ = s.Run(t.Context(), share(100))
	g.Expect([]any{r.Holds, r.Fails, len(r.Probes)}).To(Equal([]any{0.0, 1.0, 1}))
	_, err = s.Run(t.Context(), share(201))
	g.Expect(err).To(MatchError(ContainSubstring("201 of 200")))
	broken := errors.New("no server")
	_, err = s.Run(t.Context(), func(context.Context, float64, uint64) (capacity.Outcome, error) { return capacity.Outcome{}, broken })
	g.Expect(err).To(MatchError(broken))
	_, err = capacity.Search{}.Run(t.Context(), nil)
	g.Expect(err).To(MatchError(And(ContainSubstring("quantile"), ContainSubstring("confidence"), ContainSubstring("rates"), ContainSubstring("bracket"), ContainSubstring("0 probes"))))
}
