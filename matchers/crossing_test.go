package matchers_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"assay/claim"
	"assay/harness/crossing"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/matchers"
)

func at(n int) *int { return &n }

// says is what a matcher answers to a subject, and its message where it fails.
func says(t *testing.T, m types.GomegaMatcher, subject any) string {
	t.Helper()
	ok, err := m.Match(subject)
	switch {
	case err != nil:
		return "error: " + err.Error()
	case ok:
		return "yes"
	default:
		return m.FailureMessage(subject)
	}
}

func lane(pairs ...crossing.PairResult) metric.Lane {
	return metric.Lane{Lane: plan.Fixed, Baseline: metric.LaneArm{Arm: "eager"}, Kept: metric.Analysis{Result: &crossing.Analysis{K: len(pairs), Pairs: pairs}}}
}

func TestCrossingsOfPairs(t *testing.T) {
	g := NewWithT(t)
	crossed := crossing.PairResult{Pair: 1, Applicable: true, Debt: 3, First: at(40), Sustained: at(42)}
	touched := crossing.PairResult{Pair: 2, Applicable: true, Debt: 3, First: at(50), CensoredAt: 60}
	behind := crossing.PairResult{Pair: 3, Applicable: true, Debt: 3, CensoredAt: 60}
	nothing := crossing.PairResult{Pair: 4, Debt: -1}

	g.Expect(lane(crossed)).To(matchers.CrossBy(40))
	g.Expect(says(t, matchers.CrossBy(39), lane(crossed))).To(ContainSubstring("pair 1 crossed at request 40, sustained from 42 on"))
	g.Expect(says(t, matchers.CrossBy(60), lane(crossed, behind))).To(ContainSubstring("1 of 2 are not:\npair 3 did not cross, and is censored at 60"))
	g.Expect(lane(crossed)).To(matchers.SustainCrossing())
	g.Expect(says(t, matchers.SustainCrossing(), lane(crossed, touched))).To(ContainSubstring("pair 2 crossed at request 50 first, and is censored at 60"))
	g.Expect(lane(touched, behind)).To(matchers.BeCensored())
	g.Expect(says(t, matchers.BeCensored(), lane(nothing))).To(ContainSubstring("pair 4 has no debt to repay: D(0) is -1.000 s"))
	g.Expect(lane(crossed)).NotTo(matchers.BeCensored())
	for _, m := range []types.GomegaMatcher{matchers.CrossBy(1), matchers.SustainCrossing(), matchers.BeCensored()} {
		g.Expect(says(t, m, metric.Analysis{Reason: "no pair is in it"})).To(ContainSubstring("there is no result: no pair is in it"))
		g.Expect(says(t, m, lane())).NotTo(Equal("yes"), "no pair is no evidence")
		g.Expect(says(t, m, 3)).To(HavePrefix("error: "))
	}
}

func TestNotInferior(t *testing.T) {
	g := NewWithT(t)
	l := lane()
	l.Success.Degenerate = true
	g.Expect(l).To(matchers.NotBeInferiorTo("eager"))
	l.Correctness = &crossing.NonInferiority{K: 6, Margin: 0.05, Reason: "p = 0.3000"}
	g.Expect(says(t, matchers.NotBeInferiorTo("eager"), l)).To(ContainSubstring("over 6 pairs with a margin of 0.05: p = 0.3000"))
	l.Correctness.Shown = true
	g.Expect(l).To(matchers.NotBeInferiorTo("eager"))
	l.Success = crossing.NonInferiority{Reason: "p = 1.0000"}
	g.Expect(says(t, matchers.NotBeInferiorTo("eager"), l)).To(ContainSubstring("success"))
	g.Expect(says(t, matchers.NotBeInferiorTo("compiled"), l)).To(HavePrefix("error: "))
	g.Expect(says(t, matchers.NotBeInferiorTo("eager"), 1)).To(HavePrefix("error: "))
}

func answer(arm string, ordinal int, text string, ids ...int) record.Request {
	source := record.SourceTokenIDs
	return record.Request{Arm: arm, Ordinal: ordinal, PromptID: "copy/4/1", Outcome: record.OK, OutputText: text, OutputTokenIDs: ids, OutputTokensSource: &source}
}

func TestIdenticalOutputsShowTheFirstDivergence(t *testing.T) {
	g := NewWithT(t)
	of := func(attempts ...record.Request) record.Population {
		return record.Population{Name: "a sequence", Attempts: attempts}
	}
	base := of(answer("eager", 1, "one two three", 1, 2, 3), answer("eager", 2, "four", 4))
	g.Expect(of(answer("compiled", 1, "one two three", 1, 2, 3), answer("compiled", 2, "four", 4))).To(matchers.HaveIdenticalOutputs(base))
	text := says(t, matchers.HaveIdenticalOutputs(base), of(answer("compiled", 1, "one two three", 1, 2, 3), answer("compiled", 2, "five", 5)))
	g.Expect(text).To(And(ContainSubstring("1 of 2 ordinals are equal"), ContainSubstring(`the first divergence: ordinal 2 (copy/4/1), token 1: id 4 in eager, id 5 in compiled`), ContainSubstring(`eager: "four"`), ContainSubstring(`compiled: "five"`)))
	g.Expect(says(t, matchers.HaveIdenticalOutputs(base), of(answer("compiled", 1, "one two", 1, 2), answer("compiled", 2, "four", 4)))).
		To(ContainSubstring("token 3: id 3 in eager, the end in compiled"))
	g.Expect(says(t, matchers.HaveIdenticalOutputs(base), of(answer("compiled", 1, "one two three", 1, 2, 3)))).To(ContainSubstring("1 ordinals of a sequence have no counterpart"))
	g.Expect(says(t, matchers.HaveIdenticalOutputs(base), of())).To(ContainSubstring("nothing to compare"))
	failed := answer("compiled", 2, "four", 4)
	failed.Outcome = record.Timeout
	g.Expect(says(t, matchers.HaveIdenticalOutputs(base), of(answer("compiled", 1, "", 1, 2, 3), failed))).To(ContainSubstring("ordinal 2 is ok in eager and timeout in compiled"))
	blind := answer("compiled", 2, "four", 4)
	blind.OutputTokensSource = nil
	g.Expect(says(t, matchers.HaveIdenticalOutputs(base), of(answer("compiled", 1, "", 1, 2, 3), blind))).To(ContainSubstring("no token ids"))
	g.Expect(says(t, matchers.HaveIdenticalOutputs(of(base.Attempts[0], base.Attempts[0])), base)).To(HavePrefix("error: "))
	g.Expect(says(t, matchers.HaveIdenticalOutputs(base), 1)).To(HavePrefix("error: "))
}

func TestAnswersPassTheirEvaluation(t *testing.T) {
	g := NewWithT(t)
	right, wrong := true, false
	a, b, c := answer("eager", 1, "7"), answer("eager", 2, "8"), answer("eager", 3, "")
	a.Correct, b.Correct, c.Nulls = &right, &wrong, map[string]string{"correct": "the attempt failed"}
	g.Expect(record.Population{Attempts: []record.Request{a}}).To(matchers.PassEvaluation())
	g.Expect(says(t, matchers.PassEvaluation(), record.Population{Name: "p", Attempts: []record.Request{a, b}})).To(And(ContainSubstring("1 of 2 answers are right"), ContainSubstring(`ordinal 2 (copy/4/1) answered "8"`)))
	g.Expect(says(t, matchers.PassEvaluation(), record.Population{Attempts: []record.Request{c}})).To(ContainSubstring("was not evaluated: the attempt failed"))
	g.Expect(says(t, matchers.PassEvaluation(), record.Population{})).To(ContainSubstring("there is no attempt"))
}

func TestANullHasItsReason(t *testing.T) {
	g := NewWithT(t)
	l := record.Lifecycle{
		Identity: map[string]record.Fact{"compilation_seconds": {Reason: "no stable interface"}, "image": {Value: "x"}, "odd": {}},
		Moments:  []record.Moment{{Phase: "ready", Reason: "never"}}, Nulls: map[string]string{"exit": "not started"},
	}
	g.Expect(l).To(matchers.HaveNull("compilation_seconds", "no stable interface"))
	g.Expect(l).To(matchers.HaveNull("ready", "never"))
	g.Expect(l).To(matchers.HaveNull("exit", "not started"))
	g.Expect(says(t, matchers.HaveNull("compilation_seconds", "a log"), l)).To(ContainSubstring("it is null for the reason: no stable interface"))
	g.Expect(says(t, matchers.HaveNull("image", "none"), l)).To(ContainSubstring("it is not null"))
	g.Expect(says(t, matchers.HaveNull("odd", "none"), l)).To(ContainSubstring("without a reason"))
	g.Expect(says(t, matchers.HaveNull("nowhere", "none"), l)).To(HavePrefix("error: "))
	g.Expect(says(t, matchers.HaveNull("exit", ""), l)).To(HavePrefix("error: "))
	g.Expect(says(t, matchers.HaveNull("outcome", "x"), answer("eager", 1, ""))).To(ContainSubstring("it is not null"))
}

func TestClaimsAreSupportedWhereverTheyAreJudged(t *testing.T) {
	g := NewWithT(t)
	yes := claim.Claim{Claim: plan.ClaimEqualTokenCount, Lane: plan.Fixed, Verdict: claim.Supported, Reasons: []string{"p"}}
	no := claim.Claim{Claim: plan.ClaimOutputIdentical, Lane: plan.Fixed, Verdict: claim.Unsupported, Sentence: "S.", Reasons: []string{"outputs differ"}}
	g.Expect([]claim.Claim{yes, no}).To(matchers.SupportClaim(plan.ClaimEqualTokenCount))
	g.Expect(says(t, matchers.SupportClaim(plan.ClaimOutputIdentical), []claim.Claim{yes, no})).To(And(ContainSubstring("unsupported: S."), ContainSubstring("outputs differ")))
	g.Expect(says(t, matchers.SupportClaim(plan.ClaimNaturalQuality), []claim.Claim{yes})).To(ContainSubstring("there is no verdict on it"))
	g.Expect(says(t, matchers.SupportClaim(plan.ClaimNaturalQuality), 1)).To(HavePrefix("error: "))
}
