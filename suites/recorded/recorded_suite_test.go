package recorded_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"assay/claim"
	"assay/harness/crossing"
	"assay/harness/metric"
	"assay/harness/record"
	"assay/suites/recorded"
	"assay/suites/suite"
)

func TestRecorded(t *testing.T) { suite.Main(t, "Recorded", "recorded") }

const file = "testdata/rtx4090-eager-compiled.json"

// printed matches a number that was published with six digits after the point.
func printed(v float64) types.GomegaMatcher { return BeNumerically("~", v, 5e-7) }

// lasted matches a duration that was published likewise, in seconds.
func lasted(v float64) types.GomegaMatcher {
	return WithTransform(func(d time.Duration) float64 { return d.Seconds() }, printed(v))
}

var _ = Describe("eager and compiled vLLM on one RTX 4090, one pair", Label("recorded"), Ordered, func() {
	var run *recorded.Run

	// analysed is what the pair shows over so many requests, by one of the two
	// ways to count them.
	analysed := func(p crossing.Pair) crossing.Analysis {
		GinkgoHelper()
		a, err := crossing.Analyze([]crossing.Pair{p}, crossing.Options{Requests: 12, Dwell: 12, Level: 0.95, Resamples: 1000, Seed: 1})
		Expect(err).NotTo(HaveOccurred())
		return a
	}

	BeforeAll(func() {
		data, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		sum := sha256.Sum256(data)
		Expect(hex.EncodeToString(sum[:])).To(Equal("5ced567f990e2d8714d499ebb2ad7361104a3e99c8d56f6c460edc6c77812fef"), "these are the facts as published")
		run, err = recorded.Load(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(run.Requests).To(HaveLen(24))
	})

	It("adds up its latencies and its times to first token", func() {
		Expect(run.LatencySum("eager")).To(printed(22.861590))
		Expect(run.LatencySum("compiled")).To(printed(17.046030))
		Expect(run.LatencySum("eager") - run.LatencySum("compiled")).To(BeNumerically("~", 5.816, 5e-4))
		Expect(run.TTFTSum("eager")).To(printed(9.218718))
		Expect(run.TTFTSum("compiled")).To(printed(9.237278))
	})

	DescribeTable("has its scopes, each by its own name, from the published moments",
		func(mode string, initialization, readyToEnd, requestPhase, invokedToEnd float64) {
			s, l := run.Scopes(mode), run.Lifecycle(mode)
			Expect(s.Initialization).To(lasted(initialization))
			Expect(s.ReadyToEnd).To(lasted(readyToEnd))
			Expect(s.RequestPhase).To(lasted(requestPhase))
			Expect(s.InvokedToEnd).To(lasted(invokedToEnd))
			Expect([]float64{l.InitializationSeconds, l.RequestPhaseSeconds, l.HostLifecycleSeconds}).To(HaveExactElements(printed(initialization), printed(readyToEnd), printed(invokedToEnd)),
				"what was published as the request phase is from readiness to the end of the process")
		},
		Entry("eager", "eager", 64.600270, 23.017732, 22.953382, 132.292676),
		Entry("compiled", "compiled", 119.143334, 17.189201, 17.134182, 175.954381),
	)

	It("has a debt, and a residue in both published variants, which differ by what no latency counts", func() {
		latencies, moments := run.ByLatencies(), run.ByMoments()
		debt, _ := latencies.Difference(0)
		Expect(debt).To(Equal(int64(54543064*time.Microsecond)), "54.543 s, to the microsecond that was published")
		byLatencies, byMoments := analysed(latencies), analysed(moments)
		Expect(*byLatencies.End.Mean).To(printed(48.727504))
		Expect(*byMoments.End.Mean).To(printed(48.723142))
		between := *byLatencies.End.Mean - *byMoments.End.Mean
		Expect(between).To(BeNumerically("~", 0.004362, 5e-7))
		// From readiness to the first request, and between requests, eager lost
		// so much more than compiled.
		Expect(run.Outside("eager") - run.Outside("compiled")).To(BeNumerically("~", between, 1e-8))
	})

	It("crosses at request 113 in the model, by either variant, and was seen to cross nowhere", func() {
		for _, pair := range []crossing.Pair{run.ByLatencies(), run.ByMoments()} {
			result := analysed(pair).Pairs[0]
			Expect(result.First).To(BeNil())
			Expect(result.CensoredAt).To(Equal(12))
			Expect(result.Modelled.Label).To(Equal("Modelled frozen exact-observed-outcome sequence time crossing at request 113"))
		}
		at := func(p crossing.Pair, n int) float64 {
			debt, _ := p.Difference(0)
			end, _ := p.Difference(12)
			rest, _ := p.Difference(n % 12)
			return float64(debt+int64(n/12)*(end-debt)+(rest-debt)) / 1e9
		}
		Expect(at(run.ByMoments(), 112)).To(printed(0.191134))
		Expect(at(run.ByMoments(), 113)).To(printed(-0.161496))
		Expect(at(run.ByLatencies(), 112)).To(BeNumerically(">", 0))
		Expect(at(run.ByLatencies(), 113)).To(BeNumerically("<", 0))
	})

	It("counts its tokens", func() {
		Expect([]int{run.InputTokens("eager"), run.InputTokens("compiled")}).To(HaveEach(82732))
		Expect(run.OutputTokens("eager")).To(Equal(426))
		Expect(run.OutputTokens("compiled")).To(Equal(444))
	})

	It("answers alike at 8 of 12 ordinals, and is right at 10 and at 12", func() {
		Expect(run.Divergent()).To(Equal([]int{7, 8, 11, 12}))
		Expect(run.Correct("eager")).To(Equal(10))
		Expect(run.Correct("compiled")).To(Equal(12))
	})

	It("has its peak of sampled memory and what was declared of its cost", func() {
		Expect(run.Lifecycle("eager").PeakGPUMemoryMiB).To(Equal(23707))
		Expect(run.Lifecycle("compiled").PeakGPUMemoryMiB).To(Equal(21951))
		data, err := os.ReadFile("testdata/declared.json")
		Expect(err).NotTo(HaveOccurred())
		var cost struct {
			Cost       float64
			Currency   string
			Boundary   string
			Provenance record.Provenance
		}
		Expect(json.Unmarshal(data, &cost)).To(Succeed())
		Expect(cost.Cost).To(Equal(0.484358))
		Expect(cost.Provenance).To(Equal(record.Declared), "it is nobody's observation")
		// At the list rate of 0.39 an hour the two host lifecycles are a
		// fifteenth of it: what was billed began before and ended after them.
		hours := (run.Scopes("eager").InvokedToEnd + run.Scopes("compiled").InvokedToEnd).Hours()
		Expect(cost.Cost).To(BeNumerically(">", 0.39*hours))
	})

	It("supports what it supports, and nothing that its author refused to say", func() {
		statements, err := run.Statements()
		Expect(err).NotTo(HaveOccurred())
		verdict := map[string]claim.Verdict{}
		reasons := map[string]string{}
		for _, s := range statements {
			verdict[s.Name], reasons[s.Name] = s.Verdict, strings.Join(s.Reasons, "; ")
			Expect(s.Reasons).NotTo(BeEmpty(), s.Name)
		}
		for name, says := range map[string]string{
			"break-even": "right-censored: D(12) is 48.723142 s", "faster in general": "no counterbalance", "output-identical": "8 of 12 ordinals; they differ at [7 8 11 12]",
			"equal quality": "10 of 12 are right in eager, 12 of 12 in compiled", "replicated": "1 pair", "provider spend": "no invoice",
		} {
			Expect(verdict).To(HaveKeyWithValue(name, claim.Unsupported))
			Expect(reasons[name]).To(ContainSubstring(says))
		}
		for name, says := range map[string]string{"compilation time": "compiled: null: not exposed by the engine", "graph capture time": "compiled: null: no stable component timing exposed"} {
			Expect(verdict).To(HaveKeyWithValue(name, claim.NotApplicable))
			Expect(reasons[name]).To(ContainSubstring(says))
		}
		Expect(verdict).To(HaveKeyWithValue("lower latency sum", claim.Supported))
		Expect(verdict).To(HaveKeyWithValue("modelled crossing", claim.Supported))
		Expect(statements[len(statements)-1].Provenance).To(Equal(record.Modelled), "never an observation")
	})

	It("is judged from its records: others give other verdicts", func() {
		other := *run
		other.Requests = append([]recorded.Request{}, run.Requests...)
		for i := range other.Requests {
			other.Requests[i].OutputTokenIDs, other.Requests[i].Correct = []int{1}, true
		}
		statements, err := other.Statements()
		Expect(err).NotTo(HaveOccurred())
		for _, s := range statements {
			if s.Name == "output-identical" {
				Expect(s.Verdict).To(Equal(claim.Supported))
			}
		}
	})

	It("refuses records that are not what was published", func() {
		data, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		for _, c := range []struct{ old, new, says string }{
			{`"title"`, `"headline"`, "unknown field"},
			{`"ordinal": 7`, `"ordinal": 13`, "ordinal 7 is missing"},
			{`"mode": "eager"`, `"mode": "lazy"`, "it needs a lifecycle of eager"},
		} {
			text := strings.Replace(string(data), c.old, c.new, 1)
			Expect(text).NotTo(Equal(string(data)), c.old)
			path := filepath.Join(GinkgoT().TempDir(), "changed.json")
			Expect(os.WriteFile(path, []byte(text), 0o644)).To(Succeed())
			_, err := recorded.Load(path)
			Expect(err).To(MatchError(ContainSubstring(c.says)))
		}
	})
})

var _ = Describe("a naive server and vLLM on one Tesla T4, the published table", Label("recorded"), func() {
	var table struct {
		Repeats  int
		Requests int
		Tiers    []struct {
			Clients      int
			NaiveGoodput float64 `json:"naive_goodput"`
			VLLMGoodput  float64 `json:"vllm_goodput"`
			SpeedUp      float64 `json:"speed_up"`
			NaiveFailed  int     `json:"naive_failed"`
			NaivePercent float64 `json:"naive_percent"`
			VLLMFailed   int     `json:"vllm_failed"`
		}
	}

	BeforeEach(func() {
		data, err := os.ReadFile("testdata/t4-concurrency.json")
		Expect(err).NotTo(HaveOccurred())
		Expect(json.Unmarshal(data, &table)).To(Succeed())
	})

	It("has 630 requests", func() {
		n := 0
		for _, t := range table.Tiers {
			n += 2 * table.Repeats * t.Clients
		}
		Expect(n).To(Equal(table.Requests))
		Expect(n).To(Equal(630))
	})

	It("has speed-ups that its rounded medians allow", func() {
		for _, t := range table.Tiers {
			low := (t.VLLMGoodput - 0.05) / (t.NaiveGoodput + 0.05)
			high := (t.VLLMGoodput + 0.05) / (t.NaiveGoodput - 0.05)
			Expect(t.SpeedUp+0.05).To(BeNumerically(">=", low), "%d clients", t.Clients)
			Expect(t.SpeedUp-0.05).To(BeNumerically("<=", high), "%d clients", t.Clients)
		}
		last := table.Tiers[3]
		Expect((last.VLLMGoodput - 0.05) / (last.NaiveGoodput + 0.05)).To(BeNumerically("~", 81.03, 0.005))
		Expect((last.VLLMGoodput + 0.05) / (last.NaiveGoodput - 0.05)).To(BeNumerically("~", 81.47, 0.005))
		Expect(metric.Median([]float64{1405.2, last.VLLMGoodput, 1549.9})).To(Equal(last.VLLMGoodput), "the median of three is one of them")
	})

	It("has failures as percentages, rounded half up", func() {
		for _, t := range table.Tiers {
			n := float64(table.Repeats * t.Clients)
			Expect(math.Floor(100*float64(t.NaiveFailed)/n + 0.5)).To(Equal(t.NaivePercent))
			Expect(t.VLLMFailed).To(BeZero())
		}
	})
})
