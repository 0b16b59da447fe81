package scheduler_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/montanaflynn/stats"
	. "github.com/onsi/gomega"

	"assay/harness/engine/emulated/scheduler"
)

// result is one arm at one tier, as the published table has it.
type result struct {
	goodput, least float64 // tok/s of three waves: the median, the minimum
	ttft           float64 // p95 over the ok attempts of all three, s
	failures       float64 // of all three
}

// published is the run that the parameter sets are fitted to: Tesla T4,
// Qwen2.5-1.5B-Instruct in FP16, vLLM 0.29.0 against a naive server, eight
// fixed prompts, at most 128 tokens, 60 s of patience.
var published = map[string]map[int]result{
	"t4-naive": {1: {19.7, 10.2, 0.181, 0}, 8: {22.5, 19.6, 25.269, 0}, 32: {19.7, 19.3, 50.903, 54}, 64: {18.7, 17.4, 53.251, 154}},
	"t4-vllm":  {1: {64.1, 60.4, 0.033, 0}, 8: {324.2, 323.7, 0.109, 0}, 32: {957.2, 950.6, 0.225, 0}, 64: {1519.3, 1405.2, 0.523, 0}},
}

var tiers = []int{1, 8, 32, 64}

const (
	timeout     = 60 * time.Second
	experiments = 15
	// lag is the mean time between two requests of a wave reaching the server.
	lag = 250 * time.Microsecond
)

// experiment serves three waves of each tier on one fresh server, each wave on
// an idle one, its requests coming in an order of their own.
func experiment(set string, seed uint64) map[int]result {
	p := scheduler.Sets()[set]
	s := scheduler.New(p, seed)
	random := rand.New(rand.NewPCG(seed, 2))
	out := map[int]result{}
	id := 0
	for _, clients := range tiers {
		var goodputs, ttfts []float64
		var r result
		for range 3 {
			var arrivals []scheduler.Arrival
			at := time.Duration(0)
			for _, i := range random.Perm(clients) {
				id++
				arrivals = append(arrivals, scheduler.Arrival{
					Job: scheduler.Job{ID: id, PromptTokens: 14 + p.TemplateTokens, OutputTokens: p.OutputTokens[i%8]}, At: at, Deadline: timeout,
				})
				at += time.Duration(random.ExpFloat64() * float64(lag))
			}
			tokens, wall := 0, time.Duration(0)
			for i, served := range scheduler.Simulate(s, arrivals, false) {
				wall = max(wall, served.Ended)
				if !served.OK {
					r.failures++
					continue
				}
				tokens += served.Tokens
				ttfts = append(ttfts, (served.First - arrivals[i].At).Seconds())
			}
			goodputs = append(goodputs, float64(tokens)/wall.Seconds())
		}
		r.goodput, _ = stats.Median(goodputs)
		r.least, _ = stats.Min(goodputs)
		r.ttft, _ = stats.Percentile(ttfts, 95)
		out[clients] = r
	}
	return out
}

func TestTheShippedSetsFitThePublishedRun(t *testing.T) {
	for set, table := range published {
		t.Run(set, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(scheduler.Sets()[set].Validate()).To(Succeed())
			var runs []map[int]result
			for seed := range experiments {
				runs = append(runs, experiment(set, 20260921+uint64(seed)))
			}
			for _, clients := range tiers {
				want := table[clients]
				check := func(name string, of func(result) float64, within float64) {
					var values []float64
					for _, run := range runs {
						values = append(values, of(run[clients]))
					}
					median, _ := stats.Median(values)
					low, high := slices.Min(values), slices.Max(values)
					t.Logf("%2d clients, %-8s published %8.3f, emulated %8.3f [%.3f–%.3f]", clients, name, of(want), median, low, high)
					g.Expect(median).To(BeNumerically("~", of(want), within*of(want)), "%s at %d clients", name, clients)
					for _, v := range []float64{low, high} {
						g.Expect(v).To(BeNumerically("~", of(want), 1.5*within*of(want)), "%s at %d clients, one experiment of %d", name, clients, experiments)
					}
				}
				check("goodput", func(r result) float64 { return r.goodput }, 0.10)
				check("failures", func(r result) float64 { return r.failures }, 0.10)
				if clients == 1 {
					check("least", func(r result) float64 { return r.least }, 0.10) // the cold one
					check("ttft", func(r result) float64 { return r.ttft }, 0.15)
				} else {
					check("ttft", func(r result) float64 { return r.ttft }, 0.10)
				}
			}
		})
	}
}

func TestTheSameSeedGivesTheSameSteps(t *testing.T) {
	g := NewWithT(t)
	g.Expect(experiment("t4-vllm", 1)).To(Equal(experiment("t4-vllm", 1)))
	g.Expect(experiment("t4-vllm", 1)).NotTo(Equal(experiment("t4-vllm", 2)))
}

func jobs(n, prompt, output int) []scheduler.Arrival {
	var out []scheduler.Arrival
	for i := range n {
		out = append(out, scheduler.Arrival{Job: scheduler.Job{ID: i, PromptTokens: prompt, OutputTokens: output}})
	}
	return out
}

func TestASerialServerTakesRequestsInTheirOrder(t *testing.T) {
	g := NewWithT(t)
	p := scheduler.Parameters{Mode: scheduler.Serial, Step: time.Second, Prefill: 2 * time.Second}
	served := scheduler.Simulate(scheduler.New(p, 1), jobs(3, 5, 4), true)
	for i, s := range served {
		g.Expect(s.OK).To(BeTrue())
		g.Expect(s.First).To(Equal(time.Duration(5*i+2) * time.Second))
		g.Expect(s.Ended).To(Equal(time.Duration(5*i+5) * time.Second))
	}
}

func TestAbandonedRequestsAreFinishedOrCancelled(t *testing.T) {
	for _, finish := range []bool{true, false} {
		g := NewWithT(t)
		p := scheduler.Parameters{Mode: scheduler.Serial, Step: time.Second, Prefill: time.Second}
		arrivals := jobs(3, 1, 10)
		for i := range arrivals[:2] {
			arrivals[i].Deadline = 5 * time.Second
		}
		served := scheduler.Simulate(scheduler.New(p, 1), arrivals, finish)
		g.Expect(served[0].OK).To(BeFalse())
		g.Expect(served[0].Tokens).To(Equal(5), "what came before the client left is kept")
		g.Expect(served[2].OK).To(BeTrue())
		if finish {
			g.Expect(served[2].Ended).To(Equal(30 * time.Second))
		} else {
			g.Expect(served[2].Ended).To(Equal(15 * time.Second))
		}
	}
}

func TestABatchServesAllThatRun(t *testing.T) {
	g := NewWithT(t)
	p := scheduler.Parameters{Mode: scheduler.Batching, Step: time.Second, PerSequence: 100 * time.Millisecond, MaxSequences: 10, MaxStepTokens: 1000, KVTokens: 1000}
	served := scheduler.Simulate(scheduler.New(p, 1), jobs(4, 5, 3), true)
	for _, s := range served {
		g.Expect(s.First).To(Equal(time.Second))
		g.Expect(s.Ended).To(Equal(time.Second + 2*1400*time.Millisecond))
	}
}

func TestTheKVBudgetMakesRequestsWaitAndBePreempted(t *testing.T) {
	g := NewWithT(t)
	p := scheduler.Parameters{Mode: scheduler.Batching, Step: time.Second, MaxSequences: 10, MaxStepTokens: 1000, KVTokens: 40}
	s := scheduler.New(p, 1)
	for _, a := range jobs(4, 10, 20) {
		s.Add(a.Job, 0)
	}
	tokens := map[int]int{}
	most := 0
	for {
		if _, busy := s.Begin(0); !busy {
			break
		}
		most = max(most, s.Load().Running)
		for _, t := range s.End() {
			tokens[t.ID]++
		}
		g.Expect(s.Load().KVUsage).To(BeNumerically("<=", 1))
	}
	g.Expect(tokens).To(Equal(map[int]int{0: 20, 1: 20, 2: 20, 3: 20}), "nobody loses a token or gets one twice")
	g.Expect(s.Load().Preemptions).To(BeNumerically(">", 0))
	g.Expect(most).To(BeNumerically("<", 4))
	g.Expect(s.Load().GeneratedTokens).To(Equal(80))
}

func TestLongPromptsAreSplitOverSteps(t *testing.T) {
	g := NewWithT(t)
	p := scheduler.Parameters{Mode: scheduler.Batching, Step: time.Second, MaxSequences: 10, MaxStepTokens: 100, KVTokens: 1000}
	served := scheduler.Simulate(scheduler.New(p, 1), jobs(1, 250, 1), true)
	g.Expect(served[0].First).To(Equal(3 * time.Second))
	g.Expect(served[0].Tokens).To(Equal(1))
}

func TestTheFrontEndPassesRequestsOnOneByOne(t *testing.T) {
	g := NewWithT(t)
	p := scheduler.Parameters{Mode: scheduler.Batching, Step: time.Second, Admission: 400 * time.Millisecond, MaxSequences: 10, MaxStepTokens: 100, KVTokens: 1000}
	served := scheduler.Simulate(scheduler.New(p, 1), jobs(4, 5, 1), true)
	var first []time.Duration
	for _, s := range served {
		first = append(first, s.First)
	}
	// Passed on at 0.4, 0.8, 1.2 and 1.6 s; steps begin at 0.4, 1.4 and 2.4 s.
	g.Expect(first).To(Equal([]time.Duration{1400 * time.Millisecond, 2400 * time.Millisecond, 2400 * time.Millisecond, 3400 * time.Millisecond}))
}

func TestWhoIsCancelledInAStepHoldsItsPlaceUntilItsEnd(t *testing.T) {
	g := NewWithT(t)
	p := scheduler.Parameters{Mode: scheduler.Batching, Step: time.Second, MaxSequences: 2, MaxStepTokens: 100, KVTokens: 1000}
	s := scheduler.New(p, 1)
	for id := range 3 {
		s.Add(scheduler.Job{ID: id, PromptTokens: 5, OutputTokens: 3}, 0)
	}
	s.Begin(0)
	s.Cancel(1)
	g.Expect(s.Load().Running).To(Equal(2), "a server is not idle in the middle of a step")
	g.Expect(s.End()).To(Equal([]scheduler.Token{{ID: 0}}))
	g.Expect(s.Load().Running).To(Equal(1))
	s.Cancel(2)
	g.Expect(s.Load().Waiting).To(Equal(0))
}

func TestParametersAreRefusedTogether(t *testing.T) {
	g := NewWithT(t)
	for _, p := range scheduler.Sets() {
		g.Expect(p.Validate()).To(Succeed())
	}
	bad := scheduler.Parameters{Mode: "both", Step: -1, Noise: 2, OutputTokens: []int{0}}
	g.Expect(bad.Validate()).To(MatchError(And(
		ContainSubstring(`no mode "both"`), ContainSubstring("Step"), ContainSubstring("Noise of 2"), ContainSubstring("ContextTokens"), ContainSubstring("OutputTokens[0]"),
	)))
	batching := scheduler.Parameters{Mode: scheduler.Batching, Step: 1, ContextTokens: 10}
	g.Expect(batching.Validate()).To(MatchError(And(ContainSubstring("MaxSequences"), ContainSubstring("MaxStepTokens"), ContainSubstring("KVTokens"))))
}

func TestWhoIsPreemptedIsComputedAnew(t *testing.T) {
	g := NewWithT(t)
	p := scheduler.Parameters{Mode: scheduler.Batching, Step: time.Millisecond, PerPromptToken: time.Second, MaxSequences: 10, MaxStepTokens: 1000, KVTokens: 30}
	s := scheduler.New(p, 1)
	served := scheduler.Simulate(s, jobs(2, 10, 8), true)
	g.Expect(s.Load().Preemptions).To(Equal(1))
	// Both prompts, and the second's again with the five tokens that it had.
	g.Expect(served[1].Ended.Truncate(time.Second)).To(Equal((10 + 10 + 10 + 5) * time.Second))
	g.Expect(s.Load().PromptTokens).To(Equal(20), "each request's once")
}

func TestAShippedSetCanBeOverridden(t *testing.T) {
	g := NewWithT(t)
	want := scheduler.Sets()["t4-vllm"]
	got := scheduler.Sets()["t4-vllm"]
	g.Expect(yaml.UnmarshalWithOptions([]byte("{step: 20ms, kv_tokens: 4096, noise: 0, output_tokens: [5]}"), &got, yaml.Strict())).To(Succeed())
	want.Step, want.KVTokens, want.Noise, want.OutputTokens = 20*time.Millisecond, 4096, 0, []int{5}
	g.Expect(got).To(Equal(want))
	g.Expect(yaml.UnmarshalWithOptions([]byte("{stepp: 20ms}"), &got, yaml.Strict())).NotTo(Succeed())
}
