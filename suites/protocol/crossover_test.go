package protocol_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"assay/claim"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
	. "assay/matchers"
	"assay/reports"
	"assay/suites/suite"
)

// pairs is the crossover plan that every violation changes: six pairs a lane
// on servers that replay published timing, with a debt of two seconds that
// about six requests repay.
func pairs(edits ...string) *plan.Plan {
	GinkgoHelper()
	return parsed(pairsText, edits...)
}

const pairsText = `
schema: assay.plan/v1
name: pairs
experiment: crossover
labels: [protocol]
seed: 5
time_scale: 400
model: {name: emulated, revision: none, served_as: emulated}
arms:
  - {name: eager, role: baseline, on_disconnect: cancel, engine: {emulated: {parameters: rtx4090-eager, startup: 10s}}}
  - {name: compiled, role: candidate, on_disconnect: cancel, engine: {emulated: {parameters: rtx4090-compiled, startup: 12s}}}
lanes:
  fixed:   {tasks: mixed, requests: 12, cycle: 12, output_tokens: 96}
  natural: {tasks: retrieval, requests: 24, cycle: 12, max_tokens: 96}
schedule: {pairs: 6, poll: 1ms}
failure: exclude_pair
crossing: {dwell: 4}
inference: {resamples: 1000}
cost: {list_rate_per_hour: 3.6, currency: EUR, source: a list, boundary: boot to termination}
resume: {causes: [operator], at_most: 1}
timeouts: {ready: 10m, request: 100s, connect: 1000s, stop: 1000s}
gates: {client_lag: 500ms, coalesced: 100%}
claims: [output_identical, equal_token_count, natural_quality]
`

// crossover runs a plan and checks what must hold whatever was broken: the
// bundle verifies, but for the JUnit report that only a suite writes.
func crossover(ctx context.Context, p *plan.Plan) (reports.Bundle, string) {
	GinkgoHelper()
	r, err := suite.NewRun(p, "")
	Expect(err).NotTo(HaveOccurred())
	b, err := r.All(ctx, filepath.Join(GinkgoT().TempDir(), "bundle"))
	Expect(err).NotTo(HaveOccurred())
	Expect(against(r.Dir())).To(BeEmpty())
	return b, r.Dir()
}

// against is what verification says against a bundle.
func against(dir string) []string {
	GinkgoHelper()
	v, err := reports.Verify(dir)
	Expect(err).NotTo(HaveOccurred())
	var out []string
	for _, reason := range v.Reasons {
		if reason != "junit.xml: it is missing" {
			out = append(out, reason)
		}
	}
	return out
}

// inLane is a lane's numbers.
func inLane(b reports.Bundle, lane plan.Lane) metric.Lane {
	GinkgoHelper()
	for _, l := range b.Summary.Lanes {
		if l.Lane == lane {
			return l
		}
	}
	Fail("there is no such lane")
	return metric.Lane{}
}

// implied holds each claim whose pairs are all eligible to what its numbers say.
// How long a busy machine took is nobody's business here: whether six pairs
// crossed is a result, and either is right if the records say so.
func implied(b reports.Bundle) {
	GinkgoHelper()
	for _, c := range b.Claims.Claims {
		lane := inLane(b, c.Lane)
		a := lane.Eligible[c.Claim]
		if len(a.Pairs) < 6 {
			Expect(c.Verdict).To(Equal(claim.Unsupported))
			continue
		}
		// A pair without a debt has no crossing to miss: it only has to be ahead
		// at the end.
		ahead := a.Result.Sustained.By
		for _, p := range a.Result.Pairs {
			if !p.Applicable && p.End != nil && *p.End <= 0 {
				ahead++
			}
		}
		want := claim.Supported
		switch r := a.Result; {
		case *r.Debt.Mean <= 0:
			want = claim.NotApplicable
		case *r.End.PValue > 0.05 || *r.End.Mean >= 0 || ahead < 6:
			want = claim.Unsupported
		}
		Expect(c.Verdict).To(Equal(want), "%s: %v", c.Claim, c.Reasons)
	}
}

// only is a plan's change that leaves one lane.
var (
	onlyNatural = []string{"  fixed:   {tasks: mixed, requests: 12, cycle: 12, output_tokens: 96}\n", "", "equal_token_count, ", ""}
	onlyFixed   = []string{"  natural: {tasks: retrieval, requests: 24, cycle: 12, max_tokens: 96}\n", "", ", natural_quality", ""}
)

func faulty(p *plan.Plan, arm int, fault plan.Fault) *plan.Plan {
	p.Arms[arm].Engine.Emulated.Faults = []plan.Fault{fault}
	return p
}

// clone is a run that can be broken without breaking the one that it is of.
func clone(run record.Run) record.Run {
	GinkgoHelper()
	data, err := json.Marshal(run)
	Expect(err).NotTo(HaveOccurred())
	var out record.Run
	Expect(json.Unmarshal(data, &out)).To(Succeed())
	return out
}

var _ = Describe("the ten rules of a crossover", Label("protocol"), Ordered, func() {
	var clean reports.Bundle
	var dir string

	// broken is the summary of the clean run's records after a change.
	broken := func(change func(*record.Run)) metric.Summary {
		GinkgoHelper()
		run := clone(clean.Run)
		change(&run)
		return reports.Derive(clean.Plan, run).Summary
	}

	BeforeAll(func(ctx SpecContext) { clean, dir = crossover(ctx, pairs()) }, NodeTimeout(2*time.Minute))

	It("are kept by a clean run, whose claims are what its records say", func() {
		Expect(clean.Summary).To(KeepTheProtocol())
		Expect(clean.Run).To(KeepOrder(clean.Plan))
		fixed, natural := inLane(clean, plan.Fixed), inLane(clean, plan.Natural)
		Expect(fixed).To(NotBeInferiorTo("eager"))
		Expect(natural).To(NotBeInferiorTo("eager"))
		Expect(fixed.Exact.Exact).To(Equal(2 * 6 * 12))
		Expect(fixed.Identity.Equal).To(Equal(6 * 12))
		implied(clean)
		Expect(clean.Claims.InLane(plan.Natural)).NotTo(SupportClaim(plan.ClaimOutputIdentical), "the published answers to four prompts differ in length")
		Expect(clean.Run.InLane("eager", "natural")).To(PassEvaluation())
	})

	It("1: two lanes: a fixed one whose count is not exact is invalid", func(ctx SpecContext) {
		b, _ := crossover(ctx, faulty(pairs(onlyFixed...), 1, plan.Fault{Kind: plan.FaultShortAnswer, Requests: []int{3}}))
		Expect(b.Summary).NotTo(KeepTheProtocol())
		Expect(b.Summary.Validity.Reasons).To(ContainElement(ContainSubstring("95 output tokens in the fixed lane, which needs exactly 96")))
		Expect(b.Claims.Claims).NotTo(SupportClaim(plan.ClaimEqualTokenCount))
		Expect(inLane(b, plan.Fixed).Kept.Result).To(BeNil(), "no number that depends on it")
	})

	It("1: and prompts of an exact length, by the engine's own count", func(ctx SpecContext) {
		exact := append([]string{"cycle: 12, output_tokens: 96", "cycle: 12, output_tokens: 96, input_tokens: [300, 500]"}, onlyFixed...)
		b, dir := crossover(ctx, pairs(exact...))
		Expect(b.Summary).To(KeepTheProtocol())
		for _, r := range b.Run.Requests {
			Expect(r.InputTokens).To(HaveValue(Equal([]int{300, 500}[(r.Ordinal-1)%2])), r.PromptID)
		}
		texts, err := reports.ReadTasks(dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(texts).To(HaveLen(12))
		run := clone(b.Run)
		*run.Requests[4].InputTokens = 301
		Expect(reports.Derive(b.Plan, run).Summary.Validity.Reasons).To(ContainElement(ContainSubstring("301 input tokens, and the plan makes it exactly 300")))
	})

	It("2: fresh lifecycles: one of another making is invalid, and so are caches that are not as declared", func() {
		s := broken(func(run *record.Run) {
			run.Lifecycles[5].Identity["parameters"] = record.Fact{Value: "another", Provenance: record.Emulated}
			run.Lifecycles[6].Caches["prefix"] = record.Fact{Value: "on", Provenance: record.EngineReported}
		})
		Expect(s.Validity.Reasons).To(ContainElement(ContainSubstring("fresh: lifecycle 6: its parameters is another")))
		Expect(s.Validity.Reasons).To(ContainElement(ContainSubstring("caches: lifecycle 7: the engine says that prefix caching is on, and the plan declares it off")))
	})

	It("3: counterbalanced order: another order than the schedule's is invalid, and both effects are estimated", func() {
		s := broken(func(run *record.Run) {
			run.Lifecycles[0], run.Lifecycles[1] = run.Lifecycles[1], run.Lifecycles[0]
			run.Lifecycles[0].Executed, run.Lifecycles[1].Executed = 1, 2
		})
		Expect(s.Validity.Reasons).To(ContainElement(ContainSubstring("order: lifecycle 1: it ran after lifecycle 2, against the schedule")))
		s = broken(func(run *record.Run) { run.Requests[0].ScheduleSHA256 = strings.Repeat("0", 64) })
		Expect(s.Validity.Reasons).To(ContainElement(ContainSubstring("the record is of another schedule")))
		result := inLane(clean, plan.Fixed).Kept.Result
		Expect(result.Order.Value).NotTo(BeNil())
		Expect(result.Period.Value).NotTo(BeNil())
	})

	It("4: inference on pairs: a claim that counts requests does not hold, and too few pairs claim nothing", func(ctx SpecContext) {
		Expect(inLane(clean, plan.Fixed).Kept.Result.K).To(Equal(6), "and not 72 requests")
		Expect(rewritten(dir, "claims.json", func(s string) string { return strings.Replace(s, "over 6 pairs", "over 72 requests", 1) })).
			To(ContainElement(ContainSubstring("claims.json")))
		few := []string{"pairs: 6", "pairs: 2", onlyFixed[0], onlyFixed[1]}
		_, err := plan.Parse("few.yaml", []byte(strings.NewReplacer(append(few, onlyFixed[2:]...)...).Replace(pairsText)))
		Expect(err).To(MatchError(ContainSubstring("2 pairs can't support a claim at 95%")))
		b, _ := crossover(ctx, pairs(append(few, "claims: [output_identical, equal_token_count, natural_quality]", "claims: []")...))
		Expect(inLane(b, plan.Fixed).Kept.Result.End.Label).To(Equal("descriptive"))
	})

	It("5: gates before the run: other outputs and worse answers carry no claim, and a gate that is changed afterwards is another plan", func(ctx SpecContext) {
		b, _ := crossover(ctx, faulty(pairs(onlyFixed...), 1, plan.Fault{Kind: plan.FaultOtherText, Requests: []int{7}}))
		Expect(b.Summary).To(KeepTheProtocol(), "it is a result, not a breach")
		Expect(b.Claims.Claims).NotTo(SupportClaim(plan.ClaimOutputIdentical))
		implied(b)
		lane := inLane(b, plan.Fixed)
		Expect(lane.Eligible[plan.ClaimOutputIdentical].Out).To(HaveLen(6))
		Expect(lane.Identity.Pairs[0].First).To(HaveField("Ordinal", 7))

		b, _ = crossover(ctx, faulty(pairs(onlyNatural...), 1, plan.Fault{Kind: plan.FaultWrongAnswer, Requests: []int{2, 9}}))
		Expect(b.Claims.Claims).NotTo(SupportClaim(plan.ClaimNaturalQuality))
		Expect(inLane(b, plan.Natural)).NotTo(NotBeInferiorTo("eager"))
		Expect(inLane(b, plan.Natural).Candidate.Correct).To(Equal(6 * 22))

		Expect(rewritten(dir, "plan.yaml", func(s string) string { return strings.Replace(s, "identity: report", "identity: none", 1) })).
			To(ContainElement(ContainSubstring("it is of another plan")))
	})

	It("6: no retries: a second attempt is invalid, and a failed one takes its pair out of the result but not out of sight", func(ctx SpecContext) {
		s := broken(func(run *record.Run) { run.Requests = append(run.Requests, run.Requests[3]) })
		Expect(s.Validity.Reasons).To(ContainElement(ContainSubstring("ordinal 4 has 2 attempts: there are no retries")))
		p := pairs(onlyNatural...)
		b, _ := crossover(ctx, faulty(p, 1, plan.Fault{Kind: plan.FaultCut, After: 3, Requests: []int{20}}))
		lane := inLane(b, plan.Natural)
		Expect(lane.Candidate.Counts.Failed).To(Equal(6))
		Expect(lane.Kept.Pairs).To(BeEmpty(), "every pair had one")
		Expect(lane.Kept.Out).To(HaveLen(6))
		Expect(lane.Every.Result.K).To(Equal(6), "the result with every pair in is shown too")
		Expect(b.Claims.Claims).NotTo(SupportClaim(plan.ClaimNaturalQuality))
		p.Pairing.Failure = plan.StopPair
		b, _ = crossover(ctx, p)
		lane = inLane(b, plan.Natural)
		Expect(lane.Kept.Result.Pairs[0].CensoredAt).To(Equal(19), "D is undefined from the failed ordinal on")
		Expect(lane.Kept.Result.End.Mean).To(BeNil())
	})

	It("7: component times: one that no interface of the engine gave is invalid", func() {
		for _, l := range clean.Run.Lifecycles {
			Expect(l).To(HaveNull("compilation_seconds", "no stable interface of the engine says it"))
		}
		s := broken(func(run *record.Run) {
			run.Lifecycles[1].Identity["compilation_seconds"] = record.Fact{Value: 41.2, Provenance: record.Derived}
		})
		Expect(s.Validity.Reasons).To(ContainElement(ContainSubstring("component: lifecycle 2: its compilation_seconds is 41.2 by derived, and only an interface of the engine can say it")))
	})

	It("8: cost: a lower bound at list rate, named as such, and no spend without an invoice", func() {
		cost := clean.Summary.Cost
		Expect(cost.ListRateLowerBound.AtLeast).To(BeTrue())
		Expect(cost.ListRateLowerBound.Provenance).To(Equal(record.Declared))
		Expect(cost.Spend.Value).To(BeNil())
		Expect(cost.Spend.Reason).To(Equal("no invoice is attached"))
		Expect(cost.Spend.Provenance).To(Equal(record.Attested), "never observed")
		Expect(rewritten(dir, "summary.json", func(s string) string { return strings.Replace(s, "no invoice is attached", "paid", 1) })).
			To(ContainElement(ContainSubstring("cost.provider_spend.reason")))
	})

	It("9: the crossing is observed: a sequence that ends before it is censored, and what a model says of it is no claim", func(ctx SpecContext) {
		b, _ := crossover(ctx, pairs(append([]string{"startup: 12s", "startup: 100s"}, onlyNatural...)...))
		lane := inLane(b, plan.Natural)
		Expect(lane).To(BeCensored())
		Expect(lane.Kept.Result.Pairs[0].Modelled.Label).To(HavePrefix("Modelled frozen exact-observed-outcome sequence time crossing at request "))
		Expect(b.Claims.Claims).NotTo(SupportClaim(plan.ClaimNaturalQuality))
		Expect(b.Claims.Claims[1].Reasons).To(ContainElement(ContainSubstring("not repaid")))
	})

	It("10: and replicated past it: a sequence that stops at the first change of sign is invalid", func() {
		s := broken(func(run *record.Run) {
			var kept []record.Request
			for _, r := range run.Requests {
				if r.Lifecycle != 3 || r.Ordinal <= 7 {
					kept = append(kept, r)
				}
			}
			run.Requests = kept
		})
		Expect(s.Validity.Reasons).To(ContainElement(ContainSubstring("ordinal 8 has no attempt")))
		Expect(s.Validity.Valid).To(BeFalse())
	})

	It("holds an A/A plan to what its own records imply", func(ctx SpecContext) {
		b, _ := crossover(ctx, pairs(append([]string{"rtx4090-compiled, startup: 12s", "rtx4090-eager, startup: 10s"}, onlyFixed...)...))
		Expect(b.Summary).To(KeepTheProtocol())
		implied(b)
	})

	It("keeps bad input out of every number: a missing ordinal, unequal prompts, another plan's record", func() {
		for _, c := range []struct {
			says   string
			change func(*record.Run)
		}{
			{"ordinal 1 has no attempt", func(run *record.Run) { run.Requests = run.Requests[1:] }},
			{"prompts", func(run *record.Run) { run.Requests[2].PromptID = "copy/9/9" }},
			{"the record is of another plan", func(run *record.Run) { run.Requests[2].PlanSHA256 = strings.Repeat("0", 64) }},
		} {
			s := broken(c.change)
			Expect(s.Validity.Reasons).To(ContainElement(ContainSubstring(c.says)))
			l := s.Lanes[0]
			Expect(l.Kept.Pairs).NotTo(ContainElement(1))
			Expect(l.Kept.Out[0].Reason).To(ContainSubstring(c.says))
		}
	})
})

var _ = Describe("a run that was interrupted", Label("protocol"), func() {
	// interrupted runs a plan until its n-th lifecycle is being served.
	interrupted := func(ctx context.Context, p *plan.Plan, n int) string {
		GinkgoHelper()
		r, err := suite.NewRun(p, "")
		Expect(err).NotTo(HaveOccurred())
		dir := filepath.Join(GinkgoT().TempDir(), "bundle")
		Expect(r.Begin(ctx, dir)).To(Succeed())
		for _, place := range r.Schedule.Lifecycles[:n] {
			Expect(r.Start(ctx, place)).To(Succeed())
			serving, cancel := context.WithCancel(ctx)
			if place.Number == n {
				cancel()
			}
			_, err := r.Wave(serving, place, place.Waves[0])
			Expect(err).NotTo(HaveOccurred())
			Expect(r.Stop(ctx)).To(Succeed())
			cancel()
		}
		_, err = r.Finish()
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Seal()).To(Succeed())
		return dir
	}

	It("goes on after its last complete lifecycle, with a pair added for the one that was cut", func(ctx SpecContext) {
		p := pairs(onlyFixed...)
		dir := interrupted(ctx, p, 4)
		b := resumed(ctx, p, dir)
		Expect(b.Summary).To(KeepTheProtocol())
		Expect(b.Summary.Status).To(Equal("complete"))
		lane := inLane(b, plan.Fixed)
		Expect(lane.Kept.Pairs).To(Equal([]int{1, 3, 4, 5, 6, 7}))
		Expect(lane.Status).To(Equal("complete"), "the pair that was cut has another in its place")
		Expect(lane.Baseline.Counts.Failed+lane.Candidate.Counts.Failed).To(BeZero(), "what an interruption cut is no arm's failure")
		Expect(lane.Kept.Out).To(ConsistOf(HaveField("Reason", ContainSubstring("the pair was abandoned"))))
		Expect(b.Summary.Invocations).To(ConsistOf(And(HaveField("Abandoned", 2), HaveField("Added", 7), HaveField("Cause", "operator"), HaveField("After", 4))))
		Expect(b.Run.Lifecycles[3].Status).To(Equal("interrupted"), "what was cut stays what it is")
		for _, c := range b.Claims.Claims {
			Expect(c.Reasons).To(ContainElement(ContainSubstring("pair 2 was abandoned and pair 7 added in its place")))
		}
	})

	It("is refused for a cause that the plan does not list, for another plan, and once too often", func(ctx SpecContext) {
		p := pairs(onlyFixed...)
		dir := interrupted(ctx, p, 3)
		again := func(p *plan.Plan, cause string) error {
			r, err := suite.NewRun(p, "")
			Expect(err).NotTo(HaveOccurred())
			return r.Resume(dir, cause)
		}
		Expect(again(p, "weather")).To(MatchError(ContainSubstring(`the cause "weather" is none of the plan's: write one of operator`)))
		Expect(again(pairs(append([]string{"seed: 5", "seed: 6"}, onlyFixed...)...), "operator")).To(MatchError(ContainSubstring("is of another plan")))
		none := pairs(append([]string{"resume: {causes: [operator], at_most: 1}\n", ""}, onlyFixed...)...)
		Expect(again(none, "operator")).To(MatchError(ContainSubstring("it has no resume")))
		data, err := os.ReadFile(filepath.Join(dir, record.EnvironmentFile))
		Expect(err).NotTo(HaveOccurred())
		var e record.Environment
		Expect(json.Unmarshal(data, &e)).To(Succeed())
		e.Invocations = []record.Invocation{{Cause: "operator", Abandoned: 9, Added: 13, Facts: map[string]record.Fact{}}}
		data, err = json.Marshal(e)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(dir, record.EnvironmentFile), data, 0o644)).To(Succeed())
		Expect(again(p, "operator")).To(MatchError(ContainSubstring("1 pairs were added already, which is all that the plan allows")))
	})

	It("does not replace a server that died by itself", func(ctx SpecContext) {
		p := faulty(pairs(onlyFixed...), 1, plan.Fault{Kind: plan.FaultExit, After: 3, Requests: []int{4}})
		b, dir := crossover(ctx, p)
		Expect(b.Summary.Validity.Reasons).To(ContainElement(ContainSubstring("failed")))
		r, err := suite.NewRun(p, "")
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Resume(dir, "operator")).To(MatchError(ContainSubstring("is complete: there is nothing to go on with")))
	})
})
