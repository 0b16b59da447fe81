package claim_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"assay/claim"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/harness/record/recordtest"
)

// judgePairs judges a crossover of recorded times: ready a second later, and
// eighty milliseconds won back by each request. change may break it.
func judgePairs(t *testing.T, change func(*record.Run), edits ...string) map[string]claim.Claim {
	t.Helper()
	p := recordtest.Pairs(edits...)
	right := true
	run := recordtest.Sequences(p, recordtest.Options{}, func(r record.Request) recordtest.Answered {
		if r.Lane == "natural" {
			return recordtest.Answered{PromptID: "task", Correct: &right}
		}
		return recordtest.Answered{PromptID: "task", Reason: "not in the fixed lane"}
	})
	if change != nil {
		change(&run)
	}
	run, err := recordtest.Write(t.TempDir()+"/b", p, run)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	out := map[string]claim.Claim{}
	for _, c := range claim.Judge(p, metric.Summarize(p, run)).Claims {
		out[string(c.Lane)+" "+string(c.Claim)] = c
	}
	return out
}

const long = "natural: {tasks: mixed, requests: 24, cycle: 12, max_tokens: 8}"

var lengthened = []string{"natural: {tasks: mixed, requests: 12, cycle: 12, max_tokens: 8}", long}

func TestSixPairsThatAllCrossSupportTheirClaims(t *testing.T) {
	g := NewWithT(t)
	claims := judgePairs(t, nil, lengthened...)
	g.Expect(claims).To(HaveLen(4))
	for name, c := range claims {
		g.Expect(c.Verdict).To(Equal(claim.Supported), "%s: %v", name, c.Reasons)
		g.Expect(*c.PValue).To(Equal(2.0 / 64))
		g.Expect(c.Records).To(HaveLen(12))
		g.Expect(c.Sentence).To(HavePrefix("In the " + strings.Fields(name)[0] + " lane, with "))
	}
	g.Expect(claims["fixed equal_token_count"].Sentence).To(ContainSubstring("exactly 8 output tokens in both arms at every ordinal"))
	g.Expect(claims["natural natural_quality"].Sentence).To(ContainSubstring("answers and success no worse by more than 0%"))
}

func TestWhatTakesAClaimOfPairsAway(t *testing.T) {
	each := func(run *record.Run, arm, lane string, change func(r *record.Request)) {
		for i := range run.Requests {
			if r := &run.Requests[i]; r.Arm == arm && r.Lane == lane {
				change(r)
			}
		}
	}
	for name, c := range map[string]struct {
		claim, verdict, says string
		change               func(*record.Run)
		edits                []string
	}{
		"the sequence ends before the crossing": {"natural natural_quality", "unsupported", "not repaid, p = 0.0312", nil, nil},
		"one output differs in each pair": {"fixed output_identical", "unsupported", "6 of 6 pairs are not in it; pair 1: outputs: 23 of 24 ordinals are equal", func(run *record.Run) {
			each(run, "compiled", "fixed", func(r *record.Request) {
				if r.Ordinal == 5 {
					r.OutputTokenIDs[7] = 9999
				}
			})
		}, lengthened},
		"one output differs in one pair": {"fixed output_identical", "unsupported", "descriptive: over 5 pairs", func(run *record.Run) { run.Requests[30].OutputTokenIDs[2] = 9999 }, lengthened},
		"answers are worse": {"natural natural_quality", "unsupported", "correctness: 144 of 144 in eager and 138 of 144 in compiled are right", func(run *record.Run) {
			wrong := false
			each(run, "compiled", "natural", func(r *record.Request) {
				if r.Ordinal == 5 {
					r.Correct = &wrong
				}
			})
		}, lengthened},
		"wrong answers are required to be right": {"natural natural_quality", "unsupported", "correctness: ordinal 5 of lifecycle", func(run *record.Run) {
			wrong := false
			each(run, "compiled", "natural", func(r *record.Request) {
				if r.Ordinal == 5 {
					r.Correct = &wrong
				}
			})
		}, append([]string{"claims:", "gates: {correctness: require}\nclaims:"}, lengthened...)},
		"the candidate is ready first": {"fixed equal_token_count", "not_applicable", "no debt: over 6 pairs compiled is ready", func(run *record.Run) {
			for i := range run.Lifecycles {
				l := &run.Lifecycles[i]
				for j, m := range l.Moments {
					if m.Phase == "ready" && l.Arm == "compiled" {
						at := *m.At - 2_000_000_000
						l.Moments[j].At = &at
					}
				}
			}
		}, lengthened},
		"one pair has no debt, and is ahead all along": {"fixed equal_token_count", "supported", "without a debt to repay, and ahead at the end: pair 1", func(run *record.Run) {
			for i := range run.Lifecycles {
				l := &run.Lifecycles[i]
				for j, m := range l.Moments {
					if m.Phase == "ready" && l.Arm == "compiled" && l.Pair == 1 {
						at := *m.At - 2_000_000_000
						l.Moments[j].At = &at
					}
				}
			}
		}, lengthened},
		"the records are of another plan": {"fixed equal_token_count", "unsupported", "the run is invalid", func(run *record.Run) { run.Lifecycles[3].TimeScale = 2 }, lengthened},
	} {
		t.Run(name, func(t *testing.T) {
			got := judgePairs(t, c.change, c.edits...)[c.claim]
			g := NewWithT(t)
			g.Expect(string(got.Verdict)).To(Equal(c.verdict), "%v", got.Reasons)
			g.Expect(strings.Join(got.Reasons, "; ")).To(ContainSubstring(c.says))
			g.Expect(got.Observation).NotTo(BeEmpty())
		})
	}
}

func TestAClaimOfPairsIsOverItsOwnLane(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Pairs()
	g.Expect(p.ClaimsOf(plan.Fixed)).To(Equal([]plan.Claim{plan.ClaimOutputIdentical, plan.ClaimEqualTokenCount}))
	g.Expect(p.ClaimsOf(plan.Natural)).To(Equal([]plan.Claim{plan.ClaimOutputIdentical, plan.ClaimNaturalQuality}))
}
