// Package protocol_test is the protocol itself, broken on purpose: real runs
// against emulated servers that misbehave, each of which must end with the
// right outcome, the right verdict, and nothing lost. No GPU, no Docker.
package protocol_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"assay/harness/plan"
	"assay/harness/record"
	. "assay/matchers"
	"assay/reports"
	"assay/suites/suite"
)

func TestProtocol(t *testing.T) { suite.Main(t, "Protocol") }

// scale is how much faster than emulated time these runs pass.
const scale = 100

// small is the plan that every violation changes: two waves of four clients an
// arm, on servers that keep the protocol.
func small() *plan.Plan {
	GinkgoHelper()
	return parsed(smallText)
}

// parsed is a plan's text with each old text replaced by the new one that
// follows it.
func parsed(text string, edits ...string) *plan.Plan {
	GinkgoHelper()
	p, err := plan.Parse("plan.yaml", []byte(strings.NewReplacer(edits...).Replace(text)))
	Expect(err).NotTo(HaveOccurred())
	return p
}

const smallText = `
schema: assay.plan/v1
name: protocol
experiment: concurrency
labels: [protocol]
seed: 11
time_scale: 100
model: {name: emulated, revision: none, served_as: emulated}
arms:
  - {name: serial, role: baseline, on_disconnect: cancel, engine: {emulated: {parameters: t4-naive}}}
  - {name: batching, role: candidate, on_disconnect: cancel, engine: {emulated: {parameters: t4-vllm}}}
workload: {prompts: eight, max_tokens: 16, temperature: 0, lane: natural}
schedule: {tiers: [4], repeats: 2, settle: {idle: 10m}}
timeouts: {ready: 10m, request: 60s, connect: 1000s, stop: 1000s}
gates: {client_lag: 500ms, coalesced: 100%}
claims: [goodput, failures, ttft]
`

// run runs a plan after a change, and checks what must hold whatever was
// broken: the bundle is whole and verifies, and every attempt is accounted for.
func run(ctx context.Context, change func(*plan.Plan)) reports.Bundle {
	GinkgoHelper()
	p := small()
	change(p)
	r, err := suite.NewRun(p, "")
	Expect(err).NotTo(HaveOccurred())
	b, err := r.All(ctx, filepath.Join(GinkgoT().TempDir(), "bundle"))
	Expect(err).NotTo(HaveOccurred())
	for _, w := range b.Run.Waves {
		if w.Status == "ran" || w.Status == "interrupted" {
			Expect(b.Run.Of(w)).To(AccountForEveryAttempt())
		}
	}
	v, err := reports.Verify(r.Dir())
	Expect(err).NotTo(HaveOccurred())
	// Only the JUnit report is not there: it is the suites that write it. What
	// the run says against itself, its records may show again.
	for _, reason := range v.Reasons {
		Expect(append(b.Summary.Validity.Reasons, "junit.xml: it is missing")).To(ContainElement(reason))
	}
	return b
}

// with gives the candidate a fault.
func with(faults ...plan.Fault) func(*plan.Plan) {
	return func(p *plan.Plan) { p.Arms[1].Engine.Emulated.Faults = faults }
}

// second is the candidate's second wave.
func second(b reports.Bundle) record.Population {
	GinkgoHelper()
	for _, w := range b.Run.Waves {
		if w.Arm == "batching" && w.Repeat == 2 {
			return b.Run.Of(w)
		}
	}
	Fail("the candidate has no second wave")
	return record.Population{}
}

var _ = Describe("the protocol", Label("protocol"), func() {
	It("finds nothing against a clean run", func(ctx SpecContext) {
		b := run(ctx, func(*plan.Plan) {})
		Expect(b.Summary).To(KeepTheProtocol())
		Expect(b.Claims.Claims).To(SupportOnly(plan.ClaimGoodput, plan.ClaimFailures, plan.ClaimTTFT))
		Expect(b.Run.At("serial", 4)).To(CompleteEveryRequest())
		Expect(b.Run.At("batching", 4)).To(HaveFailureRate("==", 0))
		Expect(b.Summary.Tiers[0].Outputs.Equal).To(Equal(8), "the emulated model answers a prompt the same in every mode")
	})

	It("asks for plain completions where the plan says so", func(ctx SpecContext) {
		none := ""
		b := run(ctx, func(p *plan.Plan) {
			p.Workload.API = plan.Completions
			p.Arms[0].Engine.Metrics = &none // so that idleness is seen by a probe
		})
		Expect(b.Summary).To(KeepTheProtocol())
		Expect(b.Run.At("serial", 4)).To(CompleteEveryRequest())
		Expect(b.Run.At("batching", 4)).To(CompleteEveryRequest())
		Expect(b.Summary.Tiers[0].Outputs.Equal).To(Equal(8))
		for _, w := range b.Run.Waves {
			if w.Arm == "serial" {
				Expect(w.Settle.Method).To(Equal("probe"))
				Expect(w.Settle.Idle).To(BeTrue(), w.Settle.Detail)
			}
		}
		chat := run(ctx, func(*plan.Plan) {})
		for i, r := range b.Run.Requests {
			Expect(*r.InputTokens).To(BeNumerically("<", *chat.Run.Requests[i].InputTokens), "no chat template is around the prompt")
		}
	})

	It("holds the client's account against the engine's", func(ctx SpecContext) {
		none := plan.Percent{}
		b := run(ctx, func(p *plan.Plan) {
			p.Telemetry = &plan.Telemetry{Engine: plan.Duration(10 * time.Millisecond)}
			p.Gates.Watch = plan.WatchGates{EngineTokens: &none, EngineTTFT: plan.Duration(time.Second)}
		})
		Expect(b.Summary).To(KeepTheProtocol())
		looks := 0
		for _, w := range b.Summary.Waves {
			engine := w.Watched.Engine
			Expect(*engine.EngineTokens.Value).To(Equal(*engine.ClientTokens.Value), "wave %d of %s", w.Number, w.Arm)
			Expect(engine.EngineTTFT.N).To(Equal(4))
			looks += engine.Looks
		}
		Expect(looks).To(BeNumerically(">", 0))
		Expect(b.Run.EngineMetrics).NotTo(BeEmpty())
		Expect(b.Run.Telemetry).To(BeEmpty(), "an emulated server has no GPU")
	})

	DescribeTable("keeps what a failed attempt showed, and calls it by its name",
		func(ctx SpecContext, fault plan.Fault, outcome record.Outcome, tokens int) {
			fault.Requests = []int{2, 6} // one in each of the candidate's waves
			b := run(ctx, with(fault))
			p := b.Run.At("batching", 4)
			Expect(p.Counts()).To(HaveKeyWithValue(outcome, 2), "%v", p.Counts())
			Expect(p.Counts()).To(HaveKeyWithValue(record.OK, 6))
			Expect(p).To(HaveFailureRate("==", 0.25))
			Expect(p).NotTo(CompleteEveryRequest())
			for _, r := range p.Failed().Attempts {
				Expect(r.OutputTokenIDs).To(HaveLen(tokens))
				if tokens > 0 {
					Expect(r.FirstTokenAt).NotTo(BeNil())
				}
			}
			Expect(b.Summary.Tiers[0].Candidate.FailedTokens).To(Equal(2*tokens), "tokens of failed attempts stand beside goodput, not in it")
			Expect(b.Summary).To(KeepTheProtocol(), "servers that fail are a result, not a breach")
		},
		Entry("a server that refuses", plan.Fault{Kind: plan.FaultRefuse}, record.ConnectError, 0),
		Entry("one that never begins to answer", plan.Fault{Kind: plan.FaultStallBefore}, record.Timeout, 0),
		Entry("one that stops in the middle", plan.Fault{Kind: plan.FaultStallAfter, After: 3}, record.Timeout, 3),
		Entry("a stream that is cut", plan.Fault{Kind: plan.FaultCut, After: 3}, record.Truncated, 3),
		Entry("an error under HTTP 200", plan.Fault{Kind: plan.FaultErrorEvent, After: 3}, record.StreamError, 3),
		Entry("an event that is no JSON", plan.Fault{Kind: plan.FaultMalformed, After: 3}, record.StreamError, 3),
		Entry("headers that come too late", plan.Fault{Kind: plan.FaultSlowHeaders, For: plan.Duration(200 * time.Second)}, record.Timeout, 0),
		Entry("a status that asks to come back later", plan.Fault{Kind: plan.FaultHTTPStatus, Status: 429}, record.HTTPError, 0),
		Entry("a stream without an end", plan.Fault{Kind: plan.FaultNoDone}, record.Truncated, 16),
	)

	It("keeps a reset stream's tokens as far as the kernel gave them out", func(ctx SpecContext) {
		b := run(ctx, with(plan.Fault{Kind: plan.FaultReset, After: 3, Requests: []int{2}}))
		Expect(b.Run.At("batching", 4).Counts()).To(HaveKeyWithValue(record.StreamError, 1))
	})

	It("waits out headers that are late, and charges them to the server", func(ctx SpecContext) {
		b := run(ctx, with(plan.Fault{Kind: plan.FaultSlowHeaders, For: plan.Duration(20 * time.Second)}))
		Expect(b.Run.At("batching", 4)).To(CompleteEveryRequest())
		Expect(b.Run.At("batching", 4)).To(HaveTTFT(50, ">=", plan.Duration(20*time.Second/scale)))
	})

	It("does not let survivors speak for those who failed", func(ctx SpecContext) {
		b := run(ctx, with(plan.Fault{Kind: plan.FaultStallBefore, Requests: []int{1, 2, 3, 5, 6, 7}}))
		tier := b.Summary.Tiers[0]
		Expect(*tier.Candidate.TTFT95.Value).To(BeNumerically("<", 10))
		Expect(*tier.Candidate.TTFTAll95.Value).To(BeNumerically(">=", 60))
		Expect(tier.Candidate.TTFTAll95.AtLeast).To(BeTrue())
		Expect(b.Run.At("batching", 4)).NotTo(HaveTTFT(95, "<=", plan.Duration(time.Second)))
	})

	It("catches a usage that lies against the token ids", func(ctx SpecContext) {
		b := run(ctx, with(plan.Fault{Kind: plan.FaultWrongUsage, Requests: []int{3}}))
		Expect(b.Summary).NotTo(KeepTheProtocol())
		Expect(b.Summary.Validity.Reasons).To(ContainElement(ContainSubstring("the engine's usage counts 23 output tokens, and it returned the ids of 16")))
	})

	It("says that outputs differ, and claims nothing about the engine", func(ctx SpecContext) {
		b := run(ctx, func(p *plan.Plan) {
			with(plan.Fault{Kind: plan.FaultOtherText, Requests: []int{1}})(p)
			p.Gates.Identity = "require"
		})
		Expect(b.Summary.Tiers[0].Outputs.Equal).To(Equal(7))
		for _, c := range b.Claims.Claims {
			Expect(c.Sentence).To(ContainSubstring("as configured"))
			Expect(string(c.Verdict)).NotTo(Equal("supported"))
		}
		Expect(b.Claims.Claims[0].Reasons).To(ContainElement(ContainSubstring("requires equal outputs, and 7 of 8 were")))
	})

	It("records a server that dies in the middle of the second wave", func(ctx SpecContext) {
		b := run(ctx, with(plan.Fault{Kind: plan.FaultExit, After: 5}))
		Expect(b.Summary).NotTo(KeepTheProtocol())
		Expect(b.Summary.Validity.Reasons).To(ContainElement(And(ContainSubstring("lifecycle 2 (batching) failed"), ContainSubstring("exit code 1"))))
		Expect(second(b).Failed().Attempts).NotTo(BeEmpty())
		Expect(second(b).Attempts).To(HaveLen(4))
	})

	It("records a server that never gets healthy", func(ctx SpecContext) {
		b := run(ctx, func(p *plan.Plan) {
			p.Arms[1].Engine.Emulated.Startup = plan.Duration(time.Hour)
			p.Timeouts.Ready = plan.Duration(20 * time.Second)
		})
		Expect(b.Summary.Status).To(Equal("interrupted"))
		Expect(b.Summary.Validity.Reasons).To(ContainElement(ContainSubstring("did not get ready within")))
		Expect(b.Summary.Tiers[0].SpeedUp.Value).To(BeNil())
	})

	Context("a server that goes on with requests whose clients have left", func() {
		// One request takes less than half of what clients wait on the serial
		// server, and all of a wave ten times as long: some seventy seconds of
		// emulated work are left for nobody. The time scale leaves more than three
		// of them, and a machine may be late with its first look by nearly as much:
		// the server's clock goes on meanwhile, and what it did before it was
		// looked at, it was not seen to do.
		slow := func(p *plan.Plan) {
			p.TimeScale = 20
			p.Arms[0].OnDisconnect = plan.Finish
			p.Sweep.Tiers = []int{32}
			p.Workload.MaxTokens = 64
			p.Timeouts.Request = plan.Duration(8 * time.Second)
		}
		// firstTTFT is the shortest of a wave, in emulated seconds: that of the
		// request which the server took first.
		firstTTFT := func(b reports.Bundle, repeat int) float64 {
			first := math.Inf(1)
			for _, r := range b.Run.At("serial", 32).OK().Attempts {
				if r.Repeat == repeat {
					first = min(first, float64(*r.FirstTokenAt-*r.SentAt)/1e9*b.Plan.TimeScale)
				}
			}
			return first
		}

		It("does not make the next wave pay for the last", func(ctx SpecContext) {
			b := run(ctx, slow)
			Expect(b.Run.At("serial", 32).Failed().Attempts).NotTo(BeEmpty())
			Expect(b.Summary).To(KeepTheProtocol())
			wave := b.Run.Waves[1]
			Expect(*wave.CarryOver).To(BeFalse())
			Expect(wave.Settle.Abandoned).To(BeNumerically(">", 0))
			Expect(*wave.Settle.Generated).To(BeNumerically(">", 16), "the server was seen to work for nobody before the wave")
			Expect(firstTTFT(b, 2)).To(BeNumerically("<", 2), "the first in the queue did not wait for an abandoned one")
		})

		It("marks a wave that is released onto what was left, if nobody settles", func(ctx SpecContext) {
			b := run(ctx, func(p *plan.Plan) {
				slow(p)
				p.Sweep.Settle = plan.Settle{None: true}
			})
			Expect(*b.Run.Waves[1].CarryOver).To(BeTrue())
			Expect(b.Summary).NotTo(KeepTheProtocol())
			Expect(b.Summary.Validity.Reasons).To(ContainElement(ContainSubstring("carry_over")))
		})

		It("catches an arm that is declared to cancel and does not", func(ctx SpecContext) {
			b := run(ctx, func(p *plan.Plan) {
				slow(p)
				p.Arms[0].OnDisconnect = plan.Cancel
				p.Arms[0].Engine.Emulated.Faults = []plan.Fault{{Kind: plan.FaultIgnoreDisconnect}}
			})
			Expect(b.Summary).NotTo(KeepTheProtocol())
			Expect(b.Summary.Validity.Reasons).To(ContainElement(ContainSubstring("on_disconnect: serial is declared to cancel")))
		})
	})

	It("refuses its own result when the client was the slow one", func(ctx SpecContext) {
		b := run(ctx, func(p *plan.Plan) { p.Gates.ClientLag = plan.Duration(time.Nanosecond) })
		Expect(b.Summary).NotTo(KeepTheProtocol())
		Expect(b.Summary.Validity.Reasons).To(ContainElement(ContainSubstring("client_saturated")))
	})

	It("starts nothing with a client that is not worth what the plan asks for, and keeps what it showed", func(ctx SpecContext) {
		p := small()
		p.Gates.ClientLag = plan.Duration(time.Nanosecond)
		r, err := suite.NewRun(p, "")
		Expect(err).NotTo(HaveOccurred())
		r.ProveClient()
		refused := r.Begin(ctx, filepath.Join(GinkgoT().TempDir(), "bundle"))
		Expect(r.Seal()).To(Succeed())
		kept, err := os.ReadFile(filepath.Join(r.Dir(), record.EnvironmentFile))
		Expect(err).NotTo(HaveOccurred())
		var e record.Environment
		Expect(json.Unmarshal(kept, &e)).To(Succeed())
		showed := e.Facts["client_proof"].Value
		Expect(showed).To(And(HaveKeyWithValue("streams", 4.0), HaveKeyWithValue("events", 400.0)))
		if showed.(map[string]any)["arrival_error_p99_ns"] == nil {
			Skip("this machine's wall clock was stepped just now, so that nothing is known of the arrivals' error")
		}
		Expect(refused).To(MatchError(ContainSubstring(
			"client_saturated: with 4 streams from a server that computes nothing, the p99 of the arrivals' error is")))
	})

	// After a second interrupt nothing stops the lifecycle before the run ends.
	DescribeTable("keeps what was seen when the run is stopped, and says that it was", func(ctx SpecContext, interrupts int) {
		stopping, stop := context.WithCancel(ctx)
		p := small()
		p.Arms[1].Engine.Emulated.Faults = []plan.Fault{{Kind: plan.FaultStallAfter, After: 2}}
		p.Timeouts.Request = plan.Duration(time.Hour)
		r, err := suite.NewRun(p, "")
		Expect(err).NotTo(HaveOccurred())
		dir := filepath.Join(GinkgoT().TempDir(), "bundle")
		Expect(r.Begin(ctx, dir)).To(Succeed())
		place := r.Schedule.Lifecycles[1]
		Expect(r.Start(stopping, place)).To(Succeed())
		time.AfterFunc(500*time.Millisecond, stop)
		attempts, err := r.Wave(stopping, place, place.Waves[0])
		Expect(err).NotTo(HaveOccurred())
		Expect(attempts).To(AccountForEveryAttempt())
		Expect(attempts.Counts()).To(HaveKeyWithValue(record.Cancelled, 4))
		Expect(attempts.Attempts[0].OutputTokenIDs).To(HaveLen(2))
		if interrupts == 1 {
			Expect(r.Stop(ctx)).To(Succeed())
		}
		b, err := r.Finish()
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Seal()).To(Succeed())
		Expect(b.Summary.Status).To(Equal("interrupted"))
		Expect(b.Run.Lifecycles[0].Status).To(Equal("interrupted"))
		v, err := reports.Verify(dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(v.Status).To(Equal("interrupted"))
		for _, reason := range v.Reasons {
			Expect(reason).To(Or(HavePrefix("junit.xml"), HavePrefix("order:")))
		}
	}, Entry("once", 1), Entry("twice", 2))

	It("calls everything emulated that is", func(ctx SpecContext) {
		b := run(ctx, func(*plan.Plan) {})
		for _, line := range strings.Split(reports.Markdown(b), "\n") {
			if strings.HasPrefix(line, "## Results") || strings.HasPrefix(line, "## TTFT") || strings.HasPrefix(line, "# ") {
				Expect(line).To(ContainSubstring("emulated"))
			}
		}
		Expect(string(b.Summary.Tiers[0].Candidate.Goodput.Median.Provenance)).To(Equal("emulated"))
		Expect(string(b.Run.Lifecycles[0].Identity["engine_version"].Provenance)).To(Equal("emulated"))
	})
})
