package recorded_test

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"assay/claim"
	"assay/harness/crossing"
	"assay/harness/record"
	"assay/suites/recorded"
	"assay/suites/suite"
)

func TestRecorded(t *testing.T) { suite.Main(t, "Recorded", "recorded") }

// The published facts, each with the SHA-256 that it has as published.
var facts = map[string]string{
	"testdata/rtx4090-eager-compiled.json": "5ced567f990e2d8714d499ebb2ad7361104a3e99c8d56f6c460edc6c77812fef",
	"testdata/declared.json":               "2216bdaac11eae0f56dda85a9089ccabe5caf9a57536d3bb54512a817c848547",
	"testdata/t4-concurrency.json":         "92d41337e94e9e23b73621c0ac88dbec4480ffa893f102b36c9948d2a7aca0ac",
}

// published reads facts that nobody has touched.
func published(file string) []byte {
	GinkgoHelper()
	data, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	Expect(digest(data)).To(Equal(facts[file]), "%s is not as it was published", file)
	return data
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func theRun() *recorded.Run {
	GinkgoHelper()
	run, err := recorded.ParseRun(published("testdata/rtx4090-eager-compiled.json"))
	Expect(err).NotTo(HaveOccurred())
	return run
}

func theCost() *recorded.Cost {
	GinkgoHelper()
	cost, err := recorded.ParseCost(published("testdata/declared.json"))
	Expect(err).NotTo(HaveOccurred())
	return cost
}

// printed matches a number that was published with six digits after the point.
func printed(v float64) types.GomegaMatcher { return BeNumerically("~", v, 5e-7) }

var _ = Describe("eager and compiled vLLM on one RTX 4090, one pair", Label("recorded"), Ordered, func() {
	var run *recorded.Run
	var cost *recorded.Cost

	BeforeAll(func() { run, cost = theRun(), theCost() })

	// analysed is what a pair shows over the 12 requests.
	analysed := func(p crossing.Pair) crossing.Analysis {
		GinkgoHelper()
		a, err := crossing.Analyze([]crossing.Pair{p}, crossing.Options{Requests: 12, Dwell: 12, Level: 0.95, Resamples: 1000, Seed: 1})
		Expect(err).NotTo(HaveOccurred())
		return a
	}

	It("has 24 requests, 12 to each, the same ones", func() {
		Expect(run.Requests).To(HaveLen(24))
		Expect(run.Of("eager")).To(HaveLen(12))
		Expect(run.Of("compiled")).To(HaveLen(12))
	})

	DescribeTable("has its scopes, each by its own name, to the nanosecond and as printed",
		func(mode string, want recorded.Scopes, initialization, readyToEnd, requestPhase, latencySum, invokedToEnd float64) {
			s, l := run.Scopes(mode), run.Lifecycle(mode)
			Expect(s).To(Equal(want))
			Expect(s.Initialization.Seconds()).To(printed(initialization))
			Expect(s.ReadyToEnd.Seconds()).To(printed(readyToEnd))
			Expect(s.RequestPhase.Seconds()).To(printed(requestPhase))
			Expect(s.LatencySum.Seconds()).To(printed(latencySum))
			Expect(s.InvokedToEnd.Seconds()).To(printed(invokedToEnd))
			Expect([]float64{l.InitializationSeconds, l.RequestPhaseSeconds, l.HostLifecycleSeconds}).To(
				Equal([]float64{s.Initialization.Seconds(), s.ReadyToEnd.Seconds(), s.InvokedToEnd.Seconds()}),
				"what was published as the request phase is ready_to_end, and as the host lifecycle invoked_to_end")
		},
		Entry("eager", "eager", recorded.Scopes{
			Initialization: 64_600_270_000, ReadyToEnd: 23_017_732_000, RequestPhase: 22_953_382_000, LatencySum: 22_861_589_948, InvokedToEnd: 132_292_676_000,
		}, 64.600270, 23.017732, 22.953382, 22.861590, 132.292676),
		Entry("compiled", "compiled", recorded.Scopes{
			Initialization: 119_143_334_000, ReadyToEnd: 17_189_201_000, RequestPhase: 17_134_182_000, LatencySum: 17_046_030_152, InvokedToEnd: 175_954_381_000,
		}, 119.143334, 17.189201, 17.134182, 17.046030, 175.954381),
	)

	It("adds up its times to first token", func() {
		Expect(run.TTFTSum("eager")).To(printed(9.218718))
		Expect(run.TTFTSum("compiled")).To(printed(9.237278))
	})

	It("has a debt of 54.543 s, of which 12 requests win 5.816 s back", func() {
		debt, _ := run.ByMoments().Difference(0)
		Expect(debt).To(Equal(int64(54_543_064_000)))
		won := run.Scopes("eager").LatencySum - run.Scopes("compiled").LatencySum
		Expect(won.Seconds()).To(BeNumerically("~", 5.816, 5e-4))
	})

	It("has a residue in both published variants", func() {
		byLatencies, _ := run.ByLatencies().Difference(12)
		byMoments, _ := run.ByMoments().Difference(12)
		Expect(byLatencies).To(Equal(int64(48_727_504_204)))
		Expect(byMoments).To(Equal(int64(48_723_142_000)))
		Expect(*analysed(run.ByLatencies()).End.Mean).To(printed(48.727504))
		Expect(*analysed(run.ByMoments()).End.Mean).To(printed(48.723142))
	})

	It("explains the 4.362 ms between them by what eager spent outside its latencies and compiled did not", func() {
		byLatencies, _ := run.ByLatencies().Difference(12)
		byMoments, _ := run.ByMoments().Difference(12)
		eager, compiled := run.Uncounted("eager"), run.Uncounted("compiled")
		more := eager.Minus(compiled)
		Expect(more.Sum()).To(Equal(time.Duration(byLatencies - byMoments)))
		Expect(more.Sum().Seconds()).To(BeNumerically("~", 0.004362, 5e-7))
		Expect(more).To(Equal(recorded.Uncounted{
			Before:  722 * time.Microsecond,    // from readiness to the first request
			Between: 3_485 * time.Microsecond,  // in the 11 gaps between requests
			Within:  155_204 * time.Nanosecond, // between a request's two moments and its latency
		}))
		// The request phase has the gaps, the latency sum has not.
		for mode, u := range map[string]recorded.Uncounted{"eager": eager, "compiled": compiled} {
			s := run.Scopes(mode)
			Expect(u.Between+u.Within).To(Equal(s.RequestPhase-s.LatencySum), mode)
		}
	})

	It("crosses at request 113 in the model, by either variant, and was seen to cross nowhere", func() {
		for _, pair := range []crossing.Pair{run.ByLatencies(), run.ByMoments()} {
			result := analysed(pair).Pairs[0]
			Expect(result.First).To(BeNil())
			Expect(result.Sustained).To(BeNil())
			Expect(result.CensoredAt).To(Equal(12))
			Expect(result.Modelled.At).To(HaveValue(Equal(113)))
			Expect(result.Modelled.Label).To(Equal("Modelled frozen exact-observed-outcome sequence time crossing at request 113"))
		}
	})

	It("is 0.191134 s short of it at request 112, and 0.161496 s past it at 113", func() {
		// The sequence laid on end by end, one request at a time.
		repeated := func(p crossing.Pair) []int64 {
			debt, _ := p.Difference(0)
			d := []int64{debt}
			for n := 1; n <= 113; n++ {
				i := (n-1)%12 + 1
				after, _ := p.Difference(i)
				before, _ := p.Difference(i - 1)
				d = append(d, d[n-1]+after-before)
			}
			return d
		}
		byMoments, byLatencies := repeated(run.ByMoments()), repeated(run.ByLatencies())
		Expect(byMoments[112:]).To(Equal([]int64{191_134_000, -161_496_000}))
		Expect(byMoments[:113]).To(HaveEach(BeNumerically(">", 0)))
		Expect(byLatencies[:113]).To(HaveEach(BeNumerically(">", 0)))
		Expect(byLatencies[113]).To(BeNumerically("<", 0))
	})

	It("counts its tokens", func() {
		Expect([]int{run.InputTokens("eager"), run.InputTokens("compiled")}).To(HaveEach(82_732))
		Expect(run.OutputTokens("eager")).To(Equal(426))
		Expect(run.OutputTokens("compiled")).To(Equal(444))
	})

	It("answers alike at 8 of 12 ordinals, and is right at 10 and at 12", func() {
		var at []int
		for _, d := range run.Divergences() {
			at = append(at, d.Ordinal)
		}
		Expect(at).To(Equal([]int{7, 8, 11, 12}))
		Expect(run.Correct("eager")).To(Equal(10))
		Expect(run.Correct("compiled")).To(Equal(12))
	})

	It("has its peaks of sampled memory", func() {
		Expect(run.Lifecycle("eager").PeakGPUMemoryMiB).To(Equal(23_707))
		Expect(run.Lifecycle("compiled").PeakGPUMemoryMiB).To(Equal(21_951))
	})

	It("has a cost that is declared, and pays for whole seconds that have both lifecycles in them", func() {
		Expect(cost.Amount).To(Equal(0.484358))
		Expect(cost.Currency).To(Equal("USD"))
		Expect(cost.Provenance).To(Equal(record.Declared), "no record has it")
		seconds := math.Round(cost.Seconds())
		Expect(seconds).To(Equal(4471.0))
		Expect(cost.Of(time.Duration(seconds) * time.Second)).To(printed(cost.Amount))
		// What the records can say is how much of it they see.
		seen := run.Scopes("eager").InvokedToEnd + run.Scopes("compiled").InvokedToEnd
		Expect(cost.Of(seen)).To(printed(0.033393))
		whole := run.Lifecycle("compiled").Ended.Sub(run.Lifecycle("eager").HostInvocationStarted)
		Expect(whole.Seconds()).To(And(BeNumerically(">", seen.Seconds()), BeNumerically("<", seconds)))
	})
})

var _ = Describe("what is said of that pair", Label("recorded"), func() {
	judged := func(e recorded.Evidence, name string) recorded.Statement {
		GinkgoHelper()
		statements, err := e.Statements()
		Expect(err).NotTo(HaveOccurred())
		i := slices.IndexFunc(statements, func(s recorded.Statement) bool { return s.Name == name })
		Expect(i).To(BeNumerically(">=", 0), "nobody judges %q", name)
		return statements[i]
	}

	// What other evidence would have had, one fact each. They are applied in
	// the order in which a statement lists them.
	type fact = func(*recorded.Evidence)
	replicated := func(e *recorded.Evidence) {
		for n := 2; n <= 8; n++ {
			p := e.Pairs[0]
			p.Number = n
			e.Pairs, e.Latencies = append(e.Pairs, p), append(e.Latencies, e.Latencies[0])
		}
	}
	counterbalanced := func(e *recorded.Evidence) {
		for i := range e.Pairs {
			e.Pairs[i].CandidateFirst = i%2 == 1
		}
	}
	ahead := func(e *recorded.Evidence) { // compiled from the first request on
		for i := range e.Pairs {
			candidate := &e.Pairs[i].Candidate
			candidate.Terminals = slices.Clone(candidate.Terminals)
			for n := range candidate.Terminals {
				candidate.Terminals[n] = candidate.Initialization + int64(n)
			}
			baseline := &e.Pairs[i].Baseline
			baseline.Terminals = slices.Clone(baseline.Terminals)
			for n := range baseline.Terminals {
				baseline.Terminals[n] += int64(time.Hour)
			}
		}
	}
	elsewhere := func(e *recorded.Evidence) { e.Setups = append(e.Setups, "another model on another GPU") }
	alike := func(e *recorded.Evidence) { e.Divergences = nil }
	right := func(e *recorded.Evidence) { e.Correct = map[string]int{"eager": 12, "compiled": 12} }
	timed := func(name, mode string) fact {
		return func(e *recorded.Evidence) {
			for i, c := range e.Components {
				if c.Name == name && c.Mode == mode {
					seconds := 1.0
					e.Components[i].Seconds = &seconds
				}
			}
		}
	}
	invoiced := func(e *recorded.Evidence) {
		number := "1"
		e.Cost.Invoice, e.Cost.Provenance = &number, record.Attested
	}

	DescribeTable("is refused where its author refused it, for reasons that the records have, and for as long as they have one of them",
		func(name string, verdict claim.Verdict, reasons []string, facts ...fact) {
			s := judged(theRun().Evidence(*theCost()), name)
			Expect(s.Verdict).To(Equal(verdict))
			Expect(s.Reasons).To(Equal(reasons))
			// With every missing fact it would be supported; with all but one it
			// still is not.
			for without := -1; without < len(facts); without++ {
				e := theRun().Evidence(*theCost())
				for i, f := range facts {
					if i != without {
						f(&e)
					}
				}
				if without < 0 {
					Expect(judged(e, name).Verdict).To(Equal(claim.Supported), "with all that was missing: %v", judged(e, name).Reasons)
				} else {
					Expect(judged(e, name).Verdict).To(Equal(verdict), "without fact %d", without+1)
				}
			}
		},
		Entry(nil, recorded.BreakEven, claim.Unsupported, []string{
			"k = 1: it takes 6 pairs before a two-sided sign-flip test can reach 95 %",
			"0 of 1 pairs crossed: pair 1 is right-censored at 12, where compiled is +48.723142 s from eager",
		}, replicated, ahead),
		Entry(nil, recorded.CrossingSeen, claim.Unsupported, []string{
			"0 of 1 pairs crossed: pair 1 is right-censored at 12, where compiled is +48.723142 s from eager",
		}, ahead),
		Entry(nil, recorded.FasterInGeneral, claim.Unsupported, []string{
			"k = 1: it takes 6 pairs before a two-sided sign-flip test can reach 95 %",
			"the mean difference of the latency sums is -5.815560 s, with p = 1 by two-sided sign flips",
			"no counterbalance: the same arm came first in every pair",
			"one set-up: Qwen/Qwen3-8B on one NVIDIA GeForce RTX 4090",
			"outputs are equal at 8 of 12 ordinals, and differ at [7 8 11 12]",
			"right answers: 10 of 12 in eager, 12 of 12 in compiled",
		}, replicated, counterbalanced, elsewhere, alike, right),
		Entry(nil, recorded.EqualOutputs, claim.Unsupported, []string{
			"outputs are equal at 8 of 12 ordinals, and differ at [7 8 11 12]",
		}, alike),
		Entry(nil, recorded.EqualQuality, claim.Unsupported, []string{
			"k = 1: it takes 6 pairs before a two-sided sign-flip test can reach 95 %",
			"right answers: 10 of 12 in eager, 12 of 12 in compiled",
		}, replicated, right),
		Entry(nil, recorded.Repeatable, claim.Unsupported, []string{
			"k = 1: it takes 6 pairs before a two-sided sign-flip test can reach 95 %",
			"the mean difference of the latency sums is -5.815560 s, with p = 1 by two-sided sign flips",
			"no counterbalance: the same arm came first in every pair",
		}, replicated, counterbalanced),
		Entry(nil, recorded.ComponentTimes, claim.NotApplicable, []string{
			"eager, compilation: null, not applicable in eager mode",
			"eager, graph capture: null, not applicable in eager mode",
			"compiled, compilation: null, not exposed by the engine or not positive",
			"compiled, graph capture: null, no stable component timing exposed",
		}, timed("compilation", "eager"), timed("graph capture", "eager"), timed("compilation", "compiled"), timed("graph capture", "compiled")),
		Entry(nil, recorded.ProviderSpend, claim.Unsupported, []string{
			"the figure is declared, from the console at a list rate of 0.39 an hour, boot to termination; no invoice is attached",
		}, invoiced),
	)

	It("is supported where it is narrow: the latencies of these requests, and a crossing in a model", func() {
		e := theRun().Evidence(*theCost())
		lower := judged(e, recorded.LowerLatencies)
		Expect(lower.Verdict).To(Equal(claim.Supported))
		Expect(lower.Sentence).To(Equal("In these 12 requests to each, compiled's latencies add up to less than eager's."))
		Expect(lower.Reasons).To(Equal([]string{"pair 1: compiled 17.046030 s, eager 22.861590 s"}))
		modelled := judged(e, recorded.ModelCrossing)
		Expect(modelled.Verdict).To(Equal(claim.Supported))
		Expect(modelled.Provenance).To(Equal(record.Modelled), "never an observation")
		Expect(modelled.Sentence).To(Equal("Modelled frozen exact-observed-outcome sequence time crossing at request 113"))
	})

	It("is supported there only while the records say so", func() {
		e := theRun().Evidence(*theCost())
		e.Latencies[0].Eager, e.Latencies[0].Compiled = e.Latencies[0].Compiled, e.Latencies[0].Eager
		Expect(judged(e, recorded.LowerLatencies).Verdict).To(Equal(claim.Unsupported))
		e.Pairs[0].Baseline, e.Pairs[0].Candidate = e.Pairs[0].Candidate, e.Pairs[0].Baseline
		for _, name := range []string{recorded.ModelCrossing, recorded.BreakEven, recorded.CrossingSeen} {
			Expect(judged(e, name).Verdict).To(Equal(claim.NotApplicable), name)
			Expect(judged(e, name).Reasons).To(Equal([]string{"there is no debt to repay"}))
		}
	})

	It("is not supported by pairs that agree on the contrary", func() {
		e := theRun().Evidence(*theCost())
		e.Latencies[0].Eager, e.Latencies[0].Compiled = e.Latencies[0].Compiled, e.Latencies[0].Eager
		for _, f := range []fact{replicated, counterbalanced, elsewhere, alike, right} {
			f(&e)
		}
		for _, name := range []string{recorded.FasterInGeneral, recorded.Repeatable} {
			Expect(judged(e, name).Verdict).To(Equal(claim.Unsupported))
			Expect(judged(e, name).Reasons).To(Equal([]string{"the mean difference of the latency sums is +5.815560 s, with p = 0.007812 by two-sided sign flips"}))
		}
	})

	It("is judged from the records: others give other verdicts", func() {
		run := theRun()
		for i := range run.Requests {
			run.Requests[i].OutputTokenIDs, run.Requests[i].Correct = []int{1}, true
		}
		e := run.Evidence(*theCost())
		Expect(judged(e, recorded.EqualOutputs).Verdict).To(Equal(claim.Supported))
		Expect(judged(e, recorded.EqualQuality).Reasons).To(HaveExactElements(HavePrefix("k = 1")))
	})
})

var _ = Describe("a naive server and vLLM on one Tesla T4, a published table", Label("recorded"), func() {
	var table *recorded.Table

	BeforeEach(func() {
		var err error
		table, err = recorded.ParseTable(published("testdata/t4-concurrency.json"))
		Expect(err).NotTo(HaveOccurred())
		Expect(table.Tiers).To(HaveLen(4))
	})

	It("has 630 requests: three waves at each tier, to both servers", func() {
		total := 0
		var attempted []int
		for _, t := range table.Tiers {
			Expect(t.Naive.Attempted).To(Equal(table.Repeats * t.Clients))
			Expect(t.VLLM.Attempted).To(Equal(t.Naive.Attempted))
			attempted = append(attempted, t.Naive.Attempted)
			total += t.Naive.Attempted + t.VLLM.Attempted
		}
		Expect(attempted).To(Equal([]int{3, 24, 96, 192}))
		Expect(total).To(Equal(630))
		Expect(table.Requests).To(Equal(total))
	})

	DescribeTable("has speed-ups that its rounded medians allow",
		func(row, clients int, speedUp, low, high float64, rounds bool) {
			t := table.Tiers[row]
			Expect(t.Clients).To(Equal(clients))
			Expect(t.SpeedUp).To(Equal(speedUp))
			least, ratio, most := t.Ratio()
			Expect(least).To(BeNumerically("~", low, 0.005))
			Expect(most).To(BeNumerically("~", high, 0.005))
			// A speed-up was rounded from some ratio in the range.
			Expect(speedUp + 0.05).To(BeNumerically(">=", least))
			Expect(speedUp - 0.05).To(BeNumerically("<=", most))
			Expect(math.Round(ratio*10)/10 == speedUp).To(Equal(rounds), "the rounded medians themselves give %.3f", ratio)
		},
		Entry("1 client", 0, 1, 3.3, 3.24, 3.26, true),
		Entry("8 clients", 1, 8, 14.4, 14.37, 14.44, true),
		Entry("32 clients", 2, 32, 48.6, 48.46, 48.72, true),
		Entry("64 clients: from medians before they were rounded", 3, 64, 81.1, 81.03, 81.47, false),
	)

	DescribeTable("has failures whose rate is rounded half up",
		func(row, failed, tenths int) {
			t := table.Tiers[row]
			Expect(t.Naive.Failed).To(Equal(failed))
			Expect(t.Naive.FailedTenths()).To(Equal(tenths))
			Expect(t.VLLM.FailedTenths()).To(BeZero())
		},
		Entry("1 client", 0, 0, 0),
		Entry("8 clients", 1, 0, 0),
		Entry("32 clients: 56.25 % is 56.3 %, where half to even has 56.2 %", 2, 54, 563),
		Entry("64 clients: 80.208… % is 80.2 %", 3, 154, 802),
	)
})

var _ = Describe("facts that somebody changed", Label("recorded"), func() {
	It("are known by their SHA-256, whatever byte it was", func() {
		for file, sum := range facts {
			data := published(file)
			for i := 0; i < len(data); i += 97 {
				data[i] ^= 1
				Expect(digest(data)).NotTo(Equal(sum), "byte %d of %s", i, file)
				data[i] ^= 1
			}
		}
	})

	DescribeTable("are refused where they contradict themselves", func(file, old, new string, says ...string) {
		text := string(published(file))
		changed := strings.Replace(text, old, new, 1)
		Expect(changed).NotTo(Equal(text), "there is no %s to change", old)
		err := parse(file, []byte(changed))
		for _, s := range says {
			Expect(err).To(MatchError(ContainSubstring(s)))
		}
	},
		Entry("a field that nobody knows", "testdata/rtx4090-eager-compiled.json", `"title"`, `"headline"`, `unknown field "headline"`),
		Entry("another arm", "testdata/rtx4090-eager-compiled.json", `"mode": "eager"`, `"mode": "lazy"`, "one lifecycle of eager and then one of compiled"),
		Entry("a request of another arm", "testdata/rtx4090-eager-compiled.json", "\"mode\": \"eager\",\n   \"ordinal\": 3,", "\"mode\": \"lazy\",\n   \"ordinal\": 3,",
			`request 3 is of mode "lazy"`, "11 requests in eager and 12 in compiled", "ordinal 3 is missing"),
		Entry("an ordinal missing", "testdata/rtx4090-eager-compiled.json", `"ordinal": 7`, `"ordinal": 13`, "ordinal 7 is missing"),
		Entry("another prompt", "testdata/rtx4090-eager-compiled.json", `"input_token_count": 1611`, `"input_token_count": 1612`, "ordinal 1 was not asked the same"),
		Entry("a moment moved", "testdata/rtx4090-eager-compiled.json", `"ended_at": "2026-09-03T16:26:35.238248Z"`, `"ended_at": "2026-09-03T16:26:35.338248Z"`,
			"eager: request 2's start at 2026-09-03T16:26:35.244758Z comes before request 1's end", "eager, ordinal 1: its latency of 0.961775 s is 0.100025 s from what its moments say"),
		Entry("a lifecycle of centuries", "testdata/rtx4090-eager-compiled.json", `"2026-09-03T16:24:45Z"`, `"1726-09-03T16:24:45Z"`, "168h0m0s is the most"),
		Entry("a first token after the end", "testdata/rtx4090-eager-compiled.json", `"ttft_seconds": 0.24242854118347168`, `"ttft_seconds": 1.2`, "1.2 s is not within its latency"),
		Entry("no tokens", "testdata/rtx4090-eager-compiled.json", `"max_tokens": 96`, `"max_tokens": 64`, "compiled, ordinal 11: it has 65 output tokens: 1 to 64"),
		Entry("no finish", "testdata/rtx4090-eager-compiled.json", `"finish_reason": "stop"`, `"finish_reason": ""`, "eager, ordinal 1: it has no finish reason"),
		Entry("a null without a reason", "testdata/rtx4090-eager-compiled.json", `"no stable component timing exposed"`, `""`, "compiled: cuda_graph_seconds is null without a reason"),
		Entry("another null without a reason", "testdata/rtx4090-eager-compiled.json", `"not exposed by the engine or not positive"`, `""`, "compiled: compilation_seconds is null without a reason"),
		Entry("something after the end", "testdata/declared.json", "\n}\n", "\n}\n{}", "something after its end"),
		Entry("a cost that somebody saw", "testdata/declared.json", `"declared"`, `"client_observed"`, "a cost is declared, or attested with its invoice"),
		Entry("an invoice that nobody attests", "testdata/declared.json", `"invoice": null`, `"invoice": "1"`, "attested with its invoice"),
		Entry("a rate of nothing", "testdata/declared.json", `0.39`, `0`, "at more than 0"),
		Entry("more failures than attempts", "testdata/t4-concurrency.json", `"failed": 54`, `"failed": 97`, "32 clients, naive: 97 of 96 failed"),
		Entry("a median outside of its range", "testdata/t4-concurrency.json", `"median": 324.2`, `"median": 32.42`, "8 clients, vllm: goodput 32.42 [323.7–325.8]"),
	)
})

// parse reads a file's text by its own parser.
func parse(file string, data []byte) error {
	var err error
	switch file {
	case "testdata/rtx4090-eager-compiled.json":
		_, err = recorded.ParseRun(data)
	case "testdata/declared.json":
		_, err = recorded.ParseCost(data)
	case "testdata/t4-concurrency.json":
		_, err = recorded.ParseTable(data)
	}
	return err
}
