package claim

import (
	"fmt"
	"slices"
	"strings"

	"assay/harness/crossing"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
)

// judgeLanes gives every claim of a crossover plan its verdict in each lane
// that it is over.
func judgeLanes(p *plan.Plan, s metric.Summary) []Claim {
	var out []Claim
	for _, name := range p.Claims {
		for _, lane := range s.Lanes {
			if analysis, is := lane.Eligible[name]; is {
				out = append(out, judgeLane(p, s, lane, analysis, name))
			}
		}
	}
	return out
}

// conditions is what each claim holds fixed between the arms.
func condition(p *plan.Plan, lane metric.Lane, name plan.Claim) string {
	switch name {
	case plan.ClaimOutputIdentical:
		return "with the same output tokens in both arms at every ordinal"
	case plan.ClaimEqualTokenCount:
		return fmt.Sprintf("with exactly %d output tokens in both arms at every ordinal", p.Pairing.Lanes.Fixed.Tokens())
	default:
		return fmt.Sprintf("with answers and success no worse by more than %s", p.Pairing.Inference.Margin)
	}
}

func judgeLane(p *plan.Plan, s metric.Summary, lane metric.Lane, a metric.Analysis, name plan.Claim) Claim {
	as := ", as configured,"
	if s.Provenance == record.Emulated {
		as = ", as configured and emulated,"
	}
	c := Claim{
		Claim: name, Lane: lane.Lane, Verdict: Unsupported, Reasons: []string{}, Provenance: s.Provenance, Records: lanePointers(s, lane, a),
		Sentence: fmt.Sprintf("In the %s lane, %s, %s%s repays its longer initialization within %d requests and stays ahead of %s%s counted from the start of each initialization.",
			lane.Lane, condition(p, lane, name), lane.Candidate.Arm, as, lane.Requests, lane.Baseline.Arm, as),
		Observation: observed(s, lane, a),
	}
	if lane.Status == "not_selected" {
		c.Verdict, c.Reasons = NotApplicable, append(c.Reasons, LaneNotRun)
		return c
	}
	if !s.Validity.Valid {
		c.Reasons = append(c.Reasons, fmt.Sprintf("the run is invalid, for %d reason(s) in its validity", len(s.Validity.Reasons)))
	}
	if lane.Status != "complete" {
		c.Reasons = append(c.Reasons, "the lane is "+lane.Status)
	}
	if n := len(a.Out); n > 0 {
		c.Reasons = append(c.Reasons, fmt.Sprintf("%d of %d pairs are not in it; pair %d: %s", n, len(lane.Scheduled), a.Out[0].Pair, a.Out[0].Reason))
	}
	for n, i := range s.Invocations {
		c.Reasons = append(c.Reasons, fmt.Sprintf("invocation %d went on after lifecycle %d, cause %s%s", n+2, i.After, i.Cause, pairsOf(i)))
	}
	blocked := !s.Validity.Valid || lane.Status != "complete"
	block := func(format string, args ...any) {
		c.Reasons, blocked = append(c.Reasons, fmt.Sprintf(format, args...)), true
	}
	if a.Result == nil {
		block("%s", a.Reason)
		return c
	}
	if fewest := plan.FewestPairs(p.Pairing.Inference.Level.Share()); a.Result.K < fewest {
		block("descriptive: over %d pairs no two-sided sign-flip test can reach %s, it takes %d", a.Result.K, p.Pairing.Inference.Level, fewest)
	}
	if debt := a.Result.Debt.Mean; debt != nil && *debt <= 0 && !blocked {
		c.Verdict = NotApplicable
		block("no debt: over %d pairs %s is ready %.3f s sooner than %s in the mean, so there is nothing to repay", a.Result.K, lane.Candidate.Arm, -*debt, lane.Baseline.Arm)
		return c
	}
	c.equalService(lane, name, block)
	if every := lane.Every.Result; every != nil && every.End.Mean != nil && a.Result.End.Mean != nil && *every.End.Mean >= 0 && *a.Result.End.Mean < 0 {
		block("with every pair in, the mean of D(%d) is %.3f s: it points the other way", lane.Requests, *every.End.Mean)
	}
	end := a.Result.End
	c.PValue = end.PValue
	switch {
	case end.Mean == nil || end.PValue == nil:
		block("%s", end.Reason)
	case *end.Mean >= 0:
		block("the mean of D(%d) over pairs is %.3f s: not repaid, p = %.4f", lane.Requests, *end.Mean, *end.PValue)
	case *end.PValue > 1-p.Pairing.Inference.Level.Share():
		block("the mean of D(%d) over pairs is %.3f s with p = %.4f: not shown at %s", lane.Requests, *end.Mean, *end.PValue, p.Pairing.Inference.Level)
	default:
		c.Reasons = append(c.Reasons, fmt.Sprintf("the mean of D(%d) over %d pairs is %.3f s, p = %.4f, two-sided %s", lane.Requests, end.K, *end.Mean, *end.PValue, end.PValueMethod))
	}
	c.sustained(lane, *a.Result, block)
	if !blocked {
		c.Verdict = Supported
	}
	return c
}

// sustained blocks a claim unless the candidate is ahead to the end in every
// pair. One without a debt has no crossing, and none is missing: it only has to
// be ahead at the end like the others.
func (c *Claim) sustained(lane metric.Lane, r crossing.Analysis, block func(string, ...any)) {
	var free []string
	for _, p := range r.Pairs {
		if !p.Applicable && p.End != nil && *p.End <= 0 {
			free = append(free, fmt.Sprint(p.Pair))
		}
	}
	if len(free) > 0 {
		c.Reasons = append(c.Reasons, fmt.Sprintf("without a debt to repay, and ahead at the end: pair %s", strings.Join(free, ", ")))
	}
	if n := r.Sustained.By; n+len(free) < r.K {
		block("the crossing is sustained over a dwell of %d in %d of %d pairs", lane.Dwell, n, r.K)
	}
}

// equalService adds what stands against comparing times at all: one arm that
// failed more, or answered worse.
func (c *Claim) equalService(lane metric.Lane, name plan.Claim, block func(string, ...any)) {
	if n := lane.Success; !n.Shown && !n.Degenerate {
		block("success: it is not shown that %s fails no more than %s: %s", lane.Candidate.Arm, lane.Baseline.Arm, why(n))
	}
	switch {
	case name != plan.ClaimNaturalQuality:
	case lane.Correctness == nil:
		block("correctness: no answer was evaluated")
	case !lane.Correctness.Shown && !lane.Correctness.Degenerate:
		block("correctness: %d of %d in %s and %d of %d in %s are right: not shown to be no worse: %s",
			lane.Baseline.Correct, lane.Baseline.Evaluated, lane.Baseline.Arm, lane.Candidate.Correct, lane.Candidate.Evaluated, lane.Candidate.Arm, why(*lane.Correctness))
	case lane.Correctness.Degenerate:
		c.Reasons = append(c.Reasons, "correctness is not what was tested: "+lane.Correctness.Reason)
	}
}

// why is a comparison's reason with its p-value, where it has one.
func why(n crossing.NonInferiority) string {
	if n.PValue == nil {
		return n.Reason
	}
	return fmt.Sprintf("one-sided p = %.4f, %s", *n.PValue, n.Reason)
}

func pairsOf(i record.Invocation) string {
	text := ""
	if i.Abandoned > 0 {
		text += fmt.Sprintf(": pair %d was abandoned", i.Abandoned)
	}
	if i.Added > 0 {
		text += fmt.Sprintf(" and pair %d added in its place", i.Added)
	}
	return text
}

// LaneNotRun is the reason of a claim over a lane that no filter selected.
const LaneNotRun = "the lane was not run"

// observed is what was seen, whatever the verdict.
func observed(s metric.Summary, lane metric.Lane, a metric.Analysis) string {
	var parts []string
	if r := a.Result; r != nil {
		if r.Debt.Mean != nil {
			parts = append(parts, fmt.Sprintf("mean debt %.3f s", *r.Debt.Mean))
		}
		if r.End.Mean != nil {
			parts = append(parts, fmt.Sprintf("mean D(%d) %.3f s over %d pairs", lane.Requests, *r.End.Mean, r.End.K))
		}
		parts = append(parts, fmt.Sprintf("crossed by %d in %d of %d pairs, sustained in %d", lane.Requests, r.Crossed.By, r.K, r.Sustained.By))
	}
	if lane.Identity.Compared {
		parts = append(parts, fmt.Sprintf("%d of %d outputs equal by token ids", lane.Identity.Equal, lane.Identity.Of))
	}
	parts = append(parts, fmt.Sprintf("failures: %s %d of %d, %s %d of %d", lane.Baseline.Arm, lane.Baseline.Counts.Failed, lane.Baseline.Counts.Attempted,
		lane.Candidate.Arm, lane.Candidate.Counts.Failed, lane.Candidate.Counts.Attempted))
	text := strings.Join(parts, "; ")
	if s.Provenance == record.Emulated {
		text = "emulated: " + text
	}
	return text
}

func lanePointers(s metric.Summary, lane metric.Lane, a metric.Analysis) []Pointer {
	out := []Pointer{}
	for _, l := range s.Lifecycles {
		if l.Lane == lane.Lane && slices.Contains(a.Pairs, l.Pair) {
			out = append(out, Pointer{File: record.RequestsFile, Lifecycle: l.Number, Waves: []int{1}})
		}
	}
	return out
}

// InLane are the claims over a lane.
func (d Document) InLane(lane plan.Lane) []Claim {
	out := []Claim{}
	for _, c := range d.Claims {
		if c.Lane == lane {
			out = append(out, c)
		}
	}
	return out
}
