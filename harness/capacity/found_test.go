package capacity_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/capacity"
	"assay/harness/engine/emulated/scheduler"
)

// slo is an objective with its limit, in seconds.
type slo struct {
	capacity.Objective
	limit float64
	of    func(attempt) float64
}

var (
	ttft = func(limit float64) slo {
		return slo{capacity.Objective{Name: "ttft_p95", Share: 0.95}, limit, func(a attempt) float64 { return a.ttft }}
	}
	tpot = func(limit float64) slo {
		return slo{capacity.Objective{Name: "tpot_p95", Share: 0.95}, limit, func(a attempt) float64 { return a.tpot }}
	}
)

// raced says that the race detector is on.
var raced bool

// finds searches for the capacity of a server at three seeds, and holds that
// both ends of the bracket are within 3 % of it.
func finds(t *testing.T, s server, search capacity.Search, requests int, want float64, slos ...slo) {
	if raced {
		t.Skip("a search is one goroutine, and takes a minute under the race detector")
	}
	for _, o := range slos {
		search.Objectives = append(search.Objectives, o.Objective)
	}
	for _, seed := range []uint64{1, 1000, 2000} {
		g := NewWithT(t)
		search.Seed = seed
		g.Expect(search.Check()).To(Succeed())
		var done []capacity.Probed
		for {
			rate, seed, over := search.Next(done)
			if over {
				break
			}
			served := s.serve(g, rate, seed, requests)
			var outcome capacity.Outcome
			var values [][]float64
			for _, o := range slos {
				var within []bool
				var of []float64
				for _, a := range served {
					if v := o.of(a); !math.IsNaN(v) {
						within, of = append(within, v <= o.limit), append(of, v)
					}
				}
				outcome, values = append(outcome, within), append(values, of)
			}
			p, err := search.Judge(rate, seed, outcome, values...)
			g.Expect(err).NotTo(HaveOccurred())
			done = append(done, p)
		}
		r := search.Result(done)
		g.Expect(r.Holds).NotTo(BeNil(), r.Reason)
		g.Expect(r.Fails).NotTo(BeNil(), r.Reason)
		t.Logf("seed %d: holds at %.3f (%+.1f %%), fails at %.3f (%+.1f %%), truth %.3f, %d probes %s",
			seed, *r.Holds, 100*(*r.Holds/want-1), *r.Fails, 100*(*r.Fails/want-1), want, len(done), r.Reason)
		g.Expect(*r.Holds).To(BeNumerically("~", want, 0.03*want))
		g.Expect(*r.Fails).To(BeNumerically("~", want, 0.03*want))
		g.Expect(len(done)).To(BeNumerically("<=", search.MostProbes()))
	}
}

// The response time of M/M/1 is exponential with rate μ − λ: its 95th
// percentile is ln(20)/(μ − λ).
func TestTheSearchFindsTheCapacityOfAServerWithExponentialService(t *testing.T) {
	t.Parallel()
	const limit = 2 // s
	want := 1/service.Seconds() - math.Log(20)/limit
	search := capacity.Search{Confidence: 0.9, From: 4.8, To: 9.6, Within: 0.02, Tries: 2}
	finds(t, exponential, search, 70_000, want, ttft(limit))
}

// waits is the probability that the wait in M/D/1 is at most t service times at
// a load (Erlang, 1909; Crommelin, Post Office Electrical Engineers' Journal
// 25, 1932).
func waits(t, load float64) float64 {
	sum, factorial := 0.0, 1.0
	for i := 0.0; i <= t; i++ {
		if i > 0 {
			factorial *= i
		}
		sum += math.Pow(-load*(t-i), i) / factorial * math.Exp(load*(t-i))
	}
	return (1 - load) * sum
}

func TestTheSearchFindsTheCapacityOfAServerWithConstantService(t *testing.T) {
	t.Parallel()
	const limit = 1 // s: nine services' wait, and one's service
	low, high := 0.1, 0.99
	for range 50 {
		if mid := (low + high) / 2; waits(limit/service.Seconds()-1, mid) >= 0.95 {
			low = mid
		} else {
			high = mid
		}
	}
	search := capacity.Search{Confidence: 0.9, From: 4.8, To: 9.6, Within: 0.02, Tries: 2}
	finds(t, constant, search, 30_000, low/service.Seconds(), ttft(limit))
}

// batching is the set "t4-vllm" with answers of its declared lengths.
func batching() server {
	p := scheduler.Sets()["t4-vllm"]
	return server{parameters: p, prompt: 38, answer: func(random *rand.Rand) (int, int) {
		return p.OutputTokens[random.IntN(len(p.OutputTokens))], 0
	}}
}

func TestTheSearchFindsTheCapacityOfABatchingServer(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	data, err := os.ReadFile("testdata/batching.json")
	g.Expect(err).NotTo(HaveOccurred())
	var table struct {
		Cases []struct {
			Objective string
			Limit     float64 `json:"limit_s"`
			Rate      float64
		}
	}
	g.Expect(json.Unmarshal(data, &table)).To(Succeed())
	g.Expect(table.Cases).To(HaveLen(2))
	first, pace := table.Cases[0], table.Cases[1]
	g.Expect([]string{first.Objective, pace.Objective}).To(Equal([]string{"ttft_p95", "tpot_p95"}))
	search := capacity.Search{Confidence: 0.9, From: 8, To: 24, Within: 0.02, Tries: 2}
	// Each by itself, and both, whose capacity is the lower one's.
	finds(t, batching(), search, 20_000, first.Rate, ttft(first.Limit))
	finds(t, batching(), search, 20_000, min(first.Rate, pace.Rate), ttft(first.Limit), tpot(pace.Limit))
}
