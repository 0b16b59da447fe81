package metric_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/harness/record/recordtest"
)

func TestPercentilesAreNumpysDefault(t *testing.T) {
	g := NewWithT(t)
	data, err := os.ReadFile("testdata/percentiles.json")
	g.Expect(err).NotTo(HaveOccurred())
	var table struct {
		Cases []struct {
			Values  []float64
			P, Want float64
		}
	}
	g.Expect(json.Unmarshal(data, &table)).To(Succeed())
	g.Expect(len(table.Cases)).To(BeNumerically(">", 50))
	for _, c := range table.Cases {
		g.Expect(metric.Percentile(c.Values, c.P)).To(BeNumerically("~", c.Want, 1e-9), "p%g of n = %d", c.P, len(c.Values))
	}
	g.Expect(math.IsNaN(metric.Percentile(nil, 50))).To(BeTrue())
	g.Expect(math.IsNaN(metric.Percentile([]float64{1}, 101))).To(BeTrue())
}

func TestCensoredPercentiles(t *testing.T) {
	seen := func(v float64) metric.Censored { return metric.Censored{Value: v} }
	cut := func(v float64) metric.Censored { return metric.Censored{Value: v, AtLeast: true} }
	for _, test := range []struct {
		name   string
		values []metric.Censored
		p      float64
		want   float64
		bound  bool
	}{
		{"nothing censored", []metric.Censored{seen(1), seen(2), seen(3)}, 50, 2, false},
		{"censored above what counts", []metric.Censored{seen(1), seen(2), cut(60)}, 50, 2, false},
		{"the upper neighbour is censored", []metric.Censored{seen(1), seen(2), cut(60), cut(60)}, 50, 31, true},
		{"censored below could lie above", []metric.Censored{cut(1), seen(2), seen(3)}, 50, 2, true},
		{"an observed one of the same length comes first", []metric.Censored{cut(2), seen(2), seen(1)}, 50, 2, false},
		{"all censored", []metric.Censored{cut(60), cut(60)}, 95, 60, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			v, bound := metric.CensoredPercentile(test.values, test.p)
			NewWithT(t).Expect(v).To(Equal(test.want))
			NewWithT(t).Expect(bound).To(Equal(test.bound))
		})
	}
}

// TestALowerBoundIsNeverAboveTheTruth simulates attempts whose true length is
// known, cuts them at a timeout, and holds the bound against the percentile of
// the truth.
func TestALowerBoundIsNeverAboveTheTruth(t *testing.T) {
	g := NewWithT(t)
	state := uint64(1)
	random := func() float64 { // xorshift: the same everywhere
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		return float64(state>>11) / (1 << 53)
	}
	exact, bounds := 0, 0
	for range 2000 {
		n := 1 + int(random()*30)
		var truth []float64
		var values []metric.Censored
		for range n {
			v, limit := -math.Log(random())*40, 20+random()*60
			truth = append(truth, v)
			values = append(values, metric.Censored{Value: min(v, limit), AtLeast: v > limit})
		}
		for _, p := range []float64{50, 95} {
			got, bound := metric.CensoredPercentile(values, p)
			want := metric.Percentile(truth, p)
			if bound {
				bounds++
				g.Expect(got).To(BeNumerically("<=", want+1e-9))
			} else {
				exact++
				g.Expect(got).To(BeNumerically("~", want, 1e-9))
			}
		}
	}
	g.Expect(exact).To(BeNumerically(">", 100))
	g.Expect(bounds).To(BeNumerically(">", 100))
}

func ns(v int64) *int64 { return &v }
func n(v int) *int      { return &v }

func TestAttemptDurations(t *testing.T) {
	g := NewWithT(t)
	r := record.Request{ScheduledAt: 100, SentAt: ns(150), FirstTokenAt: ns(250), LastTokenAt: ns(1250), EndedAt: 1300, OutputTokens: n(11)}
	latency, _ := metric.Latency(r)
	ttft, _ := metric.TTFT(r)
	delay, _ := metric.ScheduleDelay(r)
	tpot, _ := metric.TPOT(r)
	rate, _ := metric.OutputRate(r)
	g.Expect([]int64{latency, metric.EffectiveLatency(r), ttft, delay}).To(Equal([]int64{1150, 1200, 100, 50}))
	g.Expect(tpot).To(Equal(100.0))
	g.Expect(rate).To(BeNumerically("~", 11/1150e-9, 1))
	r.OutputTokens = n(1)
	_, reason := metric.TPOT(r)
	g.Expect(reason).To(ContainSubstring("takes two"))
	_, reason = metric.TTFT(record.Request{Nulls: map[string]string{"first_token_at_ns": "the completion is empty"}})
	g.Expect(reason).To(ContainSubstring("empty"))
}

// chained gives a fixture's records their hashes, as a store would.
func chained(t *testing.T, p *plan.Plan, o recordtest.Options) record.Run {
	run, err := recordtest.Write(t.TempDir()+"/b", p, recordtest.Run(p, o))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return run
}

func TestASummaryByHand(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan()
	run := chained(t, p, recordtest.Options{Fails: func(r record.Request) bool { return r.Arm == "naive" && r.Tier == 4 && r.Ordinal == 4 }})
	s := metric.Summarize(p, run)
	g.Expect(s.Validity.Reasons).To(BeEmpty())
	tier := s.Tiers[1]
	// The serial server: three answers of 4 tokens, 20 ms each, in a wave that
	// lasts until the timeout of 10 s and 1 ms.
	g.Expect(*tier.Baseline.Goodput.Median.Value).To(BeNumerically("~", 12/10.001, 1e-6))
	// The batching one: 4 × 4 tokens, 2 ms each; the last was sent 3 µs late and
	// its end is 1 µs after its last token.
	g.Expect(*tier.Candidate.Goodput.Median.Value).To(BeNumerically("~", 16/0.008004, 1e-3))
	g.Expect(*tier.SpeedUp.Value).To(BeNumerically("~", *tier.Candidate.Goodput.Median.Value / *tier.Baseline.Goodput.Median.Value, 1e-4))
	g.Expect(tier.Baseline.Counts.Attempted).To(Equal(8))
	g.Expect(tier.Baseline.Counts.ByOutcome).To(HaveKeyWithValue(record.Timeout, 2))
	g.Expect(*tier.Baseline.FailureRate.Value).To(Equal(0.25))
	g.Expect(tier.Baseline.TTFT95.N).To(Equal(6))
	g.Expect(tier.Baseline.TTFTAll95.AtLeast).To(BeTrue())
	g.Expect(*tier.Baseline.TTFTAll95.Value).To(BeNumerically("~", 10, 0.01))
	g.Expect(tier.Baseline.TTFTAll95.Censored).To(Equal(2))
	g.Expect(tier.Baseline.TTFTAll50.AtLeast).To(BeFalse())
	g.Expect(tier.Outputs.Of).To(Equal(6))
	g.Expect(tier.Outputs.Equal).To(Equal(6))
}

func TestOutputsWithoutIDsAreComparedInAllThatTheySay(t *testing.T) {
	for name, change := range map[string]func(*record.Request){
		"text":        func(r *record.Request) { r.OutputText = "else" },
		"reasoning":   func(r *record.Request) { r.ReasoningText = "else" },
		"a call":      func(r *record.Request) { r.ToolCalls[0].Arguments = "else" },
		"a call more": func(r *record.Request) { r.ToolCalls = append(r.ToolCalls, record.ToolCall{Name: "f"}) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := recordtest.Plan()
			run := chained(t, p, recordtest.Options{})
			for i := range run.Requests {
				r, usage := &run.Requests[i], record.SourceUsage
				r.OutputTokensSource, r.ReasoningText, r.ToolCalls = &usage, "hm", []record.ToolCall{{Name: "f", Arguments: "{}"}}
				if r.Arm == "vllm" && r.Tier == 4 && r.Ordinal == 2 {
					change(r)
				}
			}
			outputs := metric.Summarize(p, run).Tiers[1].Outputs
			g.Expect(outputs.By).To(Equal("text"))
			g.Expect(outputs.Of).To(Equal(8))
			g.Expect(outputs.Equal).To(Equal(6))
		})
	}
}

func TestEmulatedTimeScalesResultsAndNotGates(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan("seed: 7", "seed: 7\ntime_scale: 20")
	s := metric.Summarize(p, chained(t, p, recordtest.Options{}))
	g.Expect(*s.Tiers[0].Baseline.TTFT50.Value).To(BeNumerically("~", 0.4, 1e-9), "20 ms measured")
	g.Expect(*s.Waves[0].ClientLagP99.Value).To(BeNumerically("~", 20e-6, 1e-12), "measured time")
	g.Expect(s.Provenance).To(Equal(record.Emulated))
}

func TestANullCountMakesGoodputNull(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan()
	run := chained(t, p, recordtest.Options{})
	for i := range run.Requests {
		if r := &run.Requests[i]; r.Arm == "vllm" && r.Tier == 4 && r.Ordinal == 2 {
			r.OutputTokens, r.OutputTokensSource = nil, nil
			r.Nulls["output_tokens"], r.Nulls["output_tokens_source"] = "nobody counted", "there is no count"
		}
	}
	tier := metric.Summarize(p, run).Tiers[1]
	g.Expect(tier.Candidate.Goodput.Median.Value).To(BeNil())
	g.Expect(tier.Candidate.Goodput.Median.Reason).To(ContainSubstring("nobody counted"))
	g.Expect(tier.SpeedUp.Value).To(BeNil())
}

func TestASpeedUpNeedsTheSameSource(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan()
	run := chained(t, p, recordtest.Options{})
	source := record.SourceUsage
	for i := range run.Requests {
		if run.Requests[i].Arm == "naive" {
			run.Requests[i].OutputTokensSource = &source
		}
	}
	tier := metric.Summarize(p, run).Tiers[0]
	g.Expect(tier.SpeedUp.Value).To(BeNil())
	g.Expect(tier.SpeedUp.Reason).To(ContainSubstring("counted from usage in naive and from token_ids in vllm"))
}

func TestHonestRunsHaveNothingThatNoneCanHave(t *testing.T) {
	for name, o := range map[string]recordtest.Options{
		"failures":    {Fails: func(r record.Request) bool { return r.Ordinal > 2 }},
		"partial":     {Selected: func(tier int) bool { return tier == 4 }},
		"half served": {Fails: func(r record.Request) bool { return r.Ordinal > 2 }, Partial: func(record.Request) int { return 2 }},
		"stopped":     {Stopped: func(lifecycle, wave int) bool { return lifecycle == 1 && wave == 3 }},
	} {
		t.Run(name, func(t *testing.T) {
			p := recordtest.Plan("lifecycles: 1", "lifecycles: 2, warmup: 1")
			NewWithT(t).Expect(metric.Check(p, chained(t, p, o))).To(BeEmpty())
		})
	}
}

// TestValidityIsCarriedUp follows one wave's fault to its tier
// and its run, and leaves the other tier alone.
func TestValidityIsCarriedUp(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan()
	run := chained(t, p, recordtest.Options{})
	run.Requests = append(run.Requests[:5:5], run.Requests[6:]...) // of lifecycle 1, wave 3
	s := metric.Summarize(p, run)
	g.Expect(s.Waves[2].Validity.Valid).To(BeFalse())
	g.Expect(s.Waves[2].Validity.Reasons).To(ContainElement("incomplete: lifecycle 1, wave 3: ordinal 4 has no attempt"))
	g.Expect(s.Waves[3].Validity.Valid).To(BeTrue())
	g.Expect(s.Tiers[1].Validity.Valid).To(BeFalse())
	g.Expect(s.Tiers[1].SpeedUp.Value).To(BeNil())
	g.Expect(s.Tiers[1].SpeedUp.Reason).To(ContainSubstring("the tier is invalid"))
	g.Expect(s.Tiers[0].Validity.Valid).To(BeTrue())
	g.Expect(s.Tiers[0].SpeedUp.Value).NotTo(BeNil())
	said := 0
	for _, r := range s.Validity.Reasons {
		said += strings.Count(r, "ordinal 4 has no attempt")
	}
	g.Expect(said).To(Equal(1), "once is enough: %v", s.Validity.Reasons)
}

func TestAStoppedRunIsInterrupted(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan()
	s := metric.Summarize(p, chained(t, p, recordtest.Options{Stopped: func(lifecycle, wave int) bool { return lifecycle == 2 && wave == 2 }}))
	g.Expect(s.Status).To(Equal("interrupted"))
	g.Expect(s.Validity.Valid).To(BeFalse())
	g.Expect(s.Tiers[0].Candidate.Counts.ByOutcome).To(HaveKeyWithValue(record.Cancelled, 1))
	g.Expect(s.Tiers[1].Candidate.Goodput.Median.Value).To(BeNil())
}

// TestAFailedAttemptKeepsItsFirstToken is what the published run's client got
// wrong: it threw it away.
func TestAFailedAttemptKeepsItsFirstToken(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan()
	late := func(r record.Request) bool { return r.Arm == "vllm" && r.Tier == 4 && r.Ordinal > 2 }
	arm := metric.Summarize(p, chained(t, p, recordtest.Options{Fails: late, Partial: func(record.Request) int { return 3 }})).Tiers[1].Candidate
	g.Expect(arm.TTFT95.N).To(Equal(4), "survivors")
	g.Expect(arm.TTFTFailed95.N).To(Equal(4), "a population of its own")
	g.Expect(*arm.TTFTFailed50.Value).To(BeNumerically("~", 0.002, 1e-9))
	g.Expect(arm.TTFTAll95.N).To(Equal(8))
	g.Expect(arm.TTFTAll95.AtLeast).To(BeFalse(), "its TTFT was observed: nothing is censored")
	g.Expect(arm.TTFTAll95.Censored).To(BeZero())
	g.Expect(arm.LatencyAll95.AtLeast).To(BeTrue(), "its latency was not")
	g.Expect(arm.LatencyAll95.Censored).To(Equal(4))
	g.Expect(arm.FailedTokens).To(Equal(12))
	g.Expect(*arm.Goodput.Median.Value).To(BeNumerically("~", 8/10.001, 1e-6), "tokens of failed attempts are not in it")
}

func TestWarmUpAttemptsAreInNoResult(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan("lifecycles: 1", "lifecycles: 1, warmup: 3")
	s := metric.Summarize(p, chained(t, p, recordtest.Options{Fails: func(r record.Request) bool { return r.Warmup }}))
	g.Expect(s.Tiers[0].Baseline.Counts.Attempted).To(Equal(2))
	g.Expect(s.Tiers[0].Baseline.Counts.Failed).To(BeZero())
	g.Expect(s.Tiers[0].Baseline.Goodput.Median.N).To(Equal(2))
	g.Expect(s.Validity.Valid).To(BeTrue(), "%v", s.Validity.Reasons)
}

// TestTheReleaseLagIsComputedAnew does not believe the wave's own.
func TestTheReleaseLagIsComputedAnew(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan()
	run := chained(t, p, recordtest.Options{})
	run.Waves[2].ReleaseLag = ns(0)
	w := metric.Summarize(p, run).Waves[2]
	g.Expect(*w.ReleaseLag.Value).To(BeNumerically("~", 3e-6, 1e-15))
	g.Expect(w.ReleaseLag.N).To(Equal(4))
	g.Expect(*w.ClientLagP50.Value).To(Equal(20e-6))
	g.Expect(*w.ClientLagMax.Value).To(Equal(20e-6))
}

func TestGapsAreEventsApart(t *testing.T) {
	g := NewWithT(t)
	r := record.Request{Events: []record.Event{{Arrival: 10, Tokens: n(1)}, {Arrival: 15, Tokens: n(3)}, {Arrival: 40}}}
	g.Expect(metric.Gaps(r)).To(Equal([]metric.Gap{{NS: 5, Tokens: n(3)}, {NS: 25}}))
	g.Expect(metric.Gaps(record.Request{})).To(BeEmpty())
}

// TestWhatNoHonestRunCanHaveIsFound breaks records one way at a time.
func TestWhatNoHonestRunCanHaveIsFound(t *testing.T) {
	p := recordtest.Plan()
	request := func(change func(*record.Request)) func(*record.Run) {
		return func(run *record.Run) { change(&run.Requests[5]) }
	}
	for _, test := range []struct {
		name     string
		change   func(*record.Run)
		says     string
		byServer bool // a server can do it all by itself
	}{
		{"an attempt dropped", func(run *record.Run) { run.Requests = append(run.Requests[:5:5], run.Requests[6:]...) }, "has no attempt", false},
		{"an attempt doubled", func(run *record.Run) { run.Requests = append(run.Requests, run.Requests[5]) }, "no retries", false},
		{"an outcome that is none", request(func(r *record.Request) { r.Outcome = "fine" }), "which is none", false},
		{"a first token nulled", request(func(r *record.Request) { r.FirstTokenAt = nil; r.Nulls["first_token_at_ns"] = "lost" }), "first_token_at_ns is not the arrival", false},
		{"a token before the request", request(func(r *record.Request) { r.SentAt = ns(r.EndedAt + 1) }), "before sent_at_ns", false},
		{"an early end", request(func(r *record.Request) { r.EndedAt = *r.FirstTokenAt - 1 }), "ended_at_ns is", false},
		{"events out of order", request(func(r *record.Request) { r.Events[2].Arrival = 1 }), "event 3 arrived at", false},
		{"a bracket turned round", request(func(r *record.Request) { r.Events[1].Earliest = r.Events[1].Arrival + 5 }), "before the earliest", false},
		{"an id too many", request(func(r *record.Request) { r.OutputTokenIDs = append(r.OutputTokenIDs, 9) }), "output_token_ids has 5", false},
		{"a count too high", request(func(r *record.Request) { r.OutputTokens = n(9) }), "output_tokens is 9 by token ids", false},
		{"a usage that lies", request(func(r *record.Request) { r.UsageOutputTokens = n(9) }), "usage counts 9", true},
		{"more tokens than asked for", request(func(r *record.Request) {
			r.OutputTokens, r.UsageOutputTokens, r.OutputTokenIDs = n(5), n(5), append(r.OutputTokenIDs, 9)
			*r.Events[0].Tokens = 2
		}), "5 output tokens, and at most 4 were asked for", true},
		{"a negative lag", request(func(r *record.Request) { r.ClientLag[0] = -1 }), "nothing is read before it arrives", false},
		{"lags missing", request(func(r *record.Request) { r.ClientLag = r.ClientLag[1:] }), "4 events and 3 client lags", false},
		{"all lags missing", request(func(r *record.Request) { r.ClientLag = nil }), "4 events and 0 client lags", false},
		{"a count without its source", request(func(r *record.Request) {
			r.OutputTokensSource, r.Nulls["output_tokens_source"] = nil, "lost"
		}), "a token count without its source", false},
		{"a source that is none", request(func(r *record.Request) { source := "chunks"; r.OutputTokensSource = &source }), "output_tokens_source is \"chunks\"", false},
		{"a failure without an error", request(func(r *record.Request) { r.Outcome = record.Truncated }), "called truncated and has no error", false},
		{"more coalesced events than events", request(func(r *record.Request) { r.Coalesced = 5 }), "5 of 4 events are called coalesced", false},
		{"ok with an error", request(func(r *record.Request) { text := "x"; r.Error = &text; delete(r.Nulls, "error") }), "called ok and has the error", false},
		{"ok without HTTP 200", request(func(r *record.Request) { r.HTTPStatus = n(500) }), "without HTTP 200", false},
		{"a null without a reason", request(func(r *record.Request) { r.Nulls = nil }), "null without a reason", false},
		{"a timeout that came early", request(func(r *record.Request) {
			text := "x"
			r.Outcome, r.Error = record.Timeout, &text
			delete(r.Nulls, "error")
		}), "called a timeout after", false},
		{"another prompt", request(func(r *record.Request) { r.PromptID = "eight/8" }), "was asked", false},
		{"another prompt in one arm", func(run *record.Run) {
			for i := range run.Requests {
				if r := &run.Requests[i]; r.Arm == "naive" && r.Ordinal == 2 {
					r.PromptID = "eight/7"
				}
			}
		}, "naive was asked eight/7, and vllm was asked eight/2", false},
		{"a prompt one token longer", request(func(r *record.Request) { r.InputTokens = n(13) }), "input tokens", true},
		{"another release", request(func(r *record.Request) { r.ScheduledAt-- }), "the wave was released at", false},
		{"another arm", request(func(r *record.Request) { r.Arm = "vllm" }), "not the schedule's", false},
		{"another plan", request(func(r *record.Request) { r.PlanSHA256 = strings.Repeat("0", 64) }), "another plan", false},
		{"a wave one client short", func(run *record.Run) { run.Waves[2].Tier = 3 }, "the schedule has", false},
		{"a wave missing", func(run *record.Run) { run.Waves = run.Waves[1:] }, "it has 0 records", false},
		{"waves out of order", func(run *record.Run) { run.Waves[0].Executed, run.Waves[1].Executed = 2, 1 }, "order:", false},
		{"waves that overlap", func(run *record.Run) { at := *run.Waves[1].ReleasedAt - second; run.Waves[1].ReleasedAt = &at }, "before wave 1 had ended", false},
		{"a release lag made small", func(run *record.Run) { run.Waves[3].ReleaseLag = ns(0) }, "release_lag", false},
		{"a time scale of another plan", func(run *record.Run) { run.Lifecycles[0].TimeScale = 2 }, "time_scale: lifecycle 1: 2, the plan has 1", false},
		{"an environment of another run", func(run *record.Run) { run.Environment.PlanSHA256 = "" }, "plan_sha256: environment", false},
		{"a wave that ran without a release", func(run *record.Run) {
			run.Waves[0].ReleasedAt = nil
			run.Waves[0].Nulls["released_at_ns"] = "lost"
		}, "it ran and has no release", false},
		{"attempts of a wave that was not selected", func(run *record.Run) { run.Waves[0].Status = "not_selected" }, "it is not_selected, and has 1 attempts", false},
		{"a release lag of nothing", func(run *record.Run) {
			r := &run.Requests[0]
			r.SentAt, r.Nulls["sent_at_ns"] = nil, "lost"
		}, "the wave has a release lag, and nothing was sent", false},
		{"a lifecycle missing", func(run *record.Run) { run.Lifecycles = run.Lifecycles[:1] }, "lifecycle 2 (vllm): it has 0 records", false},
		{"lifecycles in another order", func(run *record.Run) { run.Lifecycles[0].Executed, run.Lifecycles[1].Executed = 2, 1 }, "order:", false},
		{"another engine", func(run *record.Run) { run.Lifecycles[1].Engine = "container" }, "the plan has a emulated", false},
		{"a lifecycle's clock turned back", func(run *record.Run) { run.Lifecycles[0].Moments[2].At = ns(1) }, "first_listening at 1 ns comes before started", false},
		{"a server that was asked to leave after it had", func(run *record.Run) { run.Lifecycles[0].Moments[7].At = ns(second) }, "exited at 1000000000 ns comes before stop_requested", false},
		{"a moment twice", func(run *record.Run) {
			run.Lifecycles[0].Moments = append(run.Lifecycles[0].Moments, run.Lifecycles[0].Moments[0])
		}, "the moment invoked twice", false},
		{"a request phase made short", func(run *record.Run) {
			at := *run.Lifecycles[0].Moments[5].At - 1
			run.Lifecycles[0].Moments[5].At = &at
		}, "its last_terminal is", false},
		{"a null moment without a reason", func(run *record.Run) { run.Lifecycles[0].Moments[2].At = nil }, "its moment first_listening is null without a reason", false},
		{"a lifecycle's null without a reason", func(run *record.Run) { run.Lifecycles[0].Exit = nil }, "its exit is null without a reason", false},
		{"a fact's null without a reason", func(run *record.Run) { run.Lifecycles[0].Identity["engine"] = record.Fact{} }, "its engine is null without a reason", false},
		{"a wave of a lifecycle that did not run", func(run *record.Run) { run.Lifecycles[1].Executed = 0 }, "its lifecycle did not", false},
		{"a wave's null without a reason", func(run *record.Run) { run.Waves[1].Client = nil }, "client is null without a reason", false},
		{"a settling after the release", func(run *record.Run) { run.Waves[1].Settle.Until = *run.Waves[1].ReleasedAt + 1 }, "settle: lifecycle 1, wave 2: it settled from", false},
		{"a busy server called idle", func(run *record.Run) { run.Waves[1].Settle.Running = n(2) }, "called idle with requests running", false},
		{"a backlog denied", func(run *record.Run) { run.Waves[1].Settle.Idle, run.Waves[1].Settle.Waiting = false, n(2) }, "carry_over is not what its settling saw", false},
		{"abandoned attempts denied", func(run *record.Run) {
			r := &run.Requests[0]
			r.Outcome, r.Error = record.Cancelled, r.FinishReason
			delete(r.Nulls, "error")
		}, "0 attempts of the wave before were abandoned, and 1 were", false},
		{"a clock read too late", func(run *record.Run) { run.Waves[0].ClockReadings.Before.After = *run.Waves[0].ReleasedAt + 1 }, "not around it", false},
		{"a clock's step denied", func(run *record.Run) { run.Waves[0].ClockReadings.After.Wall += second }, "stepped is false, and its readings say true", false},
		{"the kernel's times over a step", func(run *record.Run) {
			run.Waves[0].ClockReadings.After.Wall += second
			run.Waves[0].ClockReadings.Stepped = true
		}, "the wall clock was stepped inside the wave", false},
		{"times of no provenance", request(func(r *record.Request) { r.Clock.Provenance = record.Modelled }), "which no arrival can be", false},
		{"an event before the request", request(func(r *record.Request) { r.Events[0].Earliest = *r.SentAt - 1 }), "event 1 can have arrived at", false},
		{"tokens under an HTTP error", request(func(r *record.Request) { r.Outcome, r.HTTPStatus = record.HTTPError, n(503) }), "and 4 events with a token arrived", false},
		{"an answer without a connection", request(func(r *record.Request) { r.Outcome = record.ConnectError }), "and was answered with HTTP 200", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			run := chained(t, p, recordtest.Options{})
			g.Expect(metric.Check(p, run)).To(BeEmpty())
			test.change(&run)
			found := metric.Check(p, run)
			i := slices.IndexFunc(found, func(f metric.Finding) bool { return strings.Contains(f.String(), test.says) })
			g.Expect(i).To(BeNumerically(">=", 0), "%v", found)
			g.Expect(found[i].ByServer).To(Equal(test.byServer))
			g.Expect(metric.Summarize(p, run).Validity.Valid).To(BeFalse())
		})
	}
}

const second = int64(time.Second)

func TestGates(t *testing.T) {
	p := recordtest.Plan()
	for _, test := range []struct {
		name   string
		change func(*record.Run)
		says   string
	}{
		{"a slow reader", func(run *record.Run) {
			for i := range run.Requests {
				for j := range run.Requests[i].ClientLag {
					run.Requests[i].ClientLag[j] = 30_000_000
				}
			}
		}, "client_saturated: the p99 of client lag is 30.000 ms"},
		{"coalesced reads", func(run *record.Run) {
			for i := range run.Requests {
				r := &run.Requests[i]
				r.Events[1].Earliest, r.Events[1].Arrival = r.Events[0].Arrival, r.Events[2].Arrival
				r.Coalesced = 2
			}
		}, "coalesced: 50.0 % of the events with a token came in a read with another one"},
		{"a burst that is none", func(run *record.Run) {
			at := *run.Requests[5].SentAt + second
			run.Requests[5].SentAt = &at
		}, "client_saturated: release_lag: the last request was sent 1000.003 ms after the first, the plan allows 1s"},
		{"a client that has no file left", func(run *record.Run) {
			run.Waves[0].Client.Held = &record.Held{Files: 1000, FilesLimit: 1024, Sockets: 5, Ports: 28232}
		}, "client_saturated: open_files: 1000 of the 1024 files"},
		{"a machine without a port left", func(run *record.Run) {
			says := "dial tcp 127.0.0.1:8000: connect: cannot assign requested address"
			run.Waves[0].Client.Held = &record.Held{Files: 10, FilesLimit: 1024, Sockets: 28230, Ports: 28232}
			run.Requests[0].Error = &says
		}, "client_saturated: ports: 1 attempts were not made, since this machine had none left (at release 10 of 1024 files were open, and 28230 TCP sockets for 28232 ports)"},
		{"a backlog", func(run *record.Run) { yes := true; run.Waves[0].CarryOver = &yes }, "carry_over"},
		{"a server that ignores its clients' leaving", func(run *record.Run) {
			run.Waves[1].Settle.Abandoned, run.Waves[1].Settle.Generated = 1, n(500)
		}, "on_disconnect"},
		{"a wave cut short", func(run *record.Run) { run.Waves[0].Status, run.Waves[0].Reason = "interrupted", "stopped" }, "interrupted"},
		{"a lifecycle that failed", func(run *record.Run) {
			run.Lifecycles[1].Status, run.Lifecycles[1].Error = "failed", "out of memory\nits last lines:\n  alas"
		}, "lifecycle 2 (vllm) failed: out of memory (its last lines are in lifecycles.jsonl)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := chained(t, p, recordtest.Options{})
			test.change(&run)
			v := metric.Summarize(p, run).Validity
			NewWithT(t).Expect(v.Valid).To(BeFalse())
			NewWithT(t).Expect(strings.Join(v.Reasons, "\n")).To(ContainSubstring(test.says))
		})
	}
}

func TestALastTokenWhoseReadBroughtTheEndTooIsNoLateReader(t *testing.T) {
	g := NewWithT(t)
	run := chained(t, recordtest.Plan(), recordtest.Options{})
	for i := range run.Requests {
		r := &run.Requests[i]
		// The end came right behind the last token, so that its bracket begins at
		// the token before, and the bound on the lag is the whole gap.
		last := len(r.Events) - 1
		r.Events[last].Earliest = r.Events[last-1].Arrival
		r.ClientLag[last], r.Coalesced = r.Events[last].Arrival-r.Events[last].Earliest, 1
		g.Expect(metric.KnownLag(*r)).To(Equal([]int64{20_000, 20_000, 20_000, 20_000}))
		g.Expect(metric.Shared(*r)).To(Equal(0))
	}
	w := metric.Summarize(recordtest.Plan(), run).Waves[0]
	g.Expect(w.Validity.Reasons).To(BeEmpty())
	g.Expect(*w.ClientLagMax.Value).To(Equal(20e-6))
	g.Expect(*w.Coalesced.Value).To(Equal(0.0))
}

func TestTokensOfOneReadShareItsLag(t *testing.T) {
	g := NewWithT(t)
	r := record.Request{
		Events:    []record.Event{{Earliest: 100, Arrival: 100}, {Earliest: 100, Arrival: 300}, {Earliest: 100, Arrival: 300}, {Earliest: 400, Arrival: 400}},
		ClientLag: []int64{7, 243, 243, 9}, // the second read at 350, the one before it at 107
	}
	g.Expect(metric.KnownLag(r)).To(Equal([]int64{7, 50, 50, 9}))
	g.Expect(metric.Shared(r)).To(Equal(2))
}

// TestNotesAreNoReasons has what is worth knowing, and makes nothing invalid.
func TestNotesAreNoReasons(t *testing.T) {
	yes := true
	for _, test := range []struct {
		name   string
		p      *plan.Plan
		change func(*record.Run)
		says   string
	}{
		{"a backlog that the plan only reports", recordtest.Plan("claims: [", "gates: {carry_over: report}\nclaims: ["), func(run *record.Run) {
			w := &run.Waves[1]
			w.Settle.Idle, w.Settle.Running, w.CarryOver = false, n(2), &yes
		}, "1 client: lifecycle 1 (naive), repeat 2: carry_over: the wave was released onto what the last one had left, which the plan only reports"},
		{"a backlog that nobody could see", recordtest.Plan(), func(run *record.Run) {
			w := &run.Waves[1]
			w.Settle.Idle, w.Settle.Running, w.Settle.Waiting, w.CarryOver = false, nil, nil, nil
			w.Nulls["carry_over"] = "no gauges"
		}, "carry_over was not seen: no gauges"},
		{"a clock that was stepped", recordtest.Plan(), func(run *record.Run) {
			w := &run.Waves[1]
			w.ClockReadings.After.Wall += second
			w.ClockReadings.Stepped = true
			for i := range run.Requests {
				if r := &run.Requests[i]; r.Lifecycle == w.Lifecycle && r.Wave == w.Number {
					r.Clock = record.TimeSource{Provenance: record.ClientObserved, Reason: "the wall clock was stepped inside the wave"}
					r.ClientLag = nil
				}
			}
		}, "the wall clock was stepped inside the wave"},
		{"no kernel times", recordtest.Plan(), func(run *record.Run) {
			for i := range run.Requests {
				run.Requests[i].Clock = record.TimeSource{Provenance: record.ClientObserved, Reason: "not on this system"}
				run.Requests[i].ClientLag = nil
			}
		}, "client_lag was not checked: no kernel receive times"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			run := chained(t, test.p, recordtest.Options{})
			test.change(&run)
			v := metric.Summarize(test.p, run).Validity
			g.Expect(v.Reasons).To(BeEmpty())
			g.Expect(v.Notes).To(ContainElement(ContainSubstring(test.says)))
		})
	}
}

func TestAWarmUpsGatesBindNothing(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan("lifecycles: 1", "lifecycles: 1, warmup: 1")
	run := chained(t, p, recordtest.Options{})
	for i := range run.Requests[0].ClientLag {
		run.Requests[0].ClientLag[i] = second
	}
	s := metric.Summarize(p, run)
	g.Expect(s.Waves[0].Validity.Valid).To(BeFalse(), "its own")
	g.Expect(s.Validity.Reasons).To(BeEmpty(), "it is in no result")
}

func TestTheFixedLaneIsExact(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan("lane: natural", "lane: fixed")
	run := chained(t, p, recordtest.Options{})
	g.Expect(metric.Check(p, run)).To(BeEmpty())
	r := &run.Requests[5]
	r.OutputTokens, r.UsageOutputTokens, r.OutputTokenIDs, r.Events, r.ClientLag = n(3), n(3), r.OutputTokenIDs[:3], r.Events[:3], r.ClientLag[:3]
	r.LastTokenAt = &r.Events[2].Arrival
	found := metric.Check(p, run)
	g.Expect(found).To(HaveLen(1))
	g.Expect(found[0].ByServer).To(BeTrue())
	g.Expect(found[0].Text).To(ContainSubstring("3 output tokens in the fixed lane, which needs exactly 4"))
}

func TestAnInputThatIsNotAlwaysAnsweredTheSame(t *testing.T) {
	g := NewWithT(t)
	ids := record.SourceTokenIDs
	answer := func(input string, outcome record.Outcome, tokens ...int) record.Request {
		return record.Request{PromptID: "eight/" + input, InputSHA256: input, Outcome: outcome, OutputTokenIDs: tokens, OutputTokensSource: &ids}
	}
	p := record.Population{Attempts: []record.Request{
		answer("1", record.OK, 5, 6, 7), answer("1", record.OK, 5, 9), answer("1", record.OK, 5, 6, 7), answer("1", record.OK, 5, 6),
		answer("2", record.OK, 5), answer("2", record.OK, 5), answer("2", record.Timeout, 8),
		answer("3", record.OK, 1),
	}}
	g.Expect(metric.DeterminismOf(p)).To(Equal(metric.Determinism{
		By: "token_ids", Inputs: 2, Same: 1,
		Varied: []metric.Varying{{PromptID: "eight/1", Answers: 4, Outputs: 3, Frequent: 2, Position: 2}},
	}))

	// One prompt sent in several bodies is several inputs, always in one order.
	var several record.Population
	for i := range 16 {
		for n := range 4 {
			r := answer(fmt.Sprintf("%02d", i), record.OK, max(0, n-i%3))
			r.PromptID = "eight/1"
			several.Attempts = append(several.Attempts, r)
		}
	}
	first := metric.DeterminismOf(several)
	for range 20 {
		g.Expect(metric.DeterminismOf(several)).To(Equal(first))
	}

	text := "text"
	for i := range p.Attempts {
		p.Attempts[i].OutputTokensSource, p.Attempts[i].OutputTokenIDs = &text, nil
		p.Attempts[i].OutputText = "the same"
	}
	p.Attempts[1].OutputText = "another"
	d := metric.DeterminismOf(p)
	g.Expect(d.By).To(Equal("text"))
	g.Expect(d.Varied).To(Equal([]metric.Varying{{PromptID: "eight/1", Answers: 4, Outputs: 2, Frequent: 3}}))
}
