package claim

import (
	"fmt"

	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
)

// judgeArrivals gives every claim of an arrival plan its verdict: one that is
// over rates at each of them, the search's once.
func judgeArrivals(p *plan.Plan, s metric.Summary) []Claim {
	var out []Claim
	for _, name := range p.Claims {
		if name == plan.ClaimSLORate {
			out = append(out, judgeSearch(p, s))
			continue
		}
		for _, r := range s.Rates {
			out = append(out, judgeRate(p, s, r, name))
		}
	}
	return out
}

func judgeRate(p *plan.Plan, s metric.Summary, r metric.Rate, name plan.Claim) Claim {
	c := Claim{Claim: name, Rate: r.Rate, Verdict: Unsupported, Reasons: []string{}, Provenance: s.Provenance,
		Records: loops(s, func(w metric.Wave) bool { return w.Probe == 0 && w.Rate == r.Rate })}
	at, as := "at "+record.Rate(r.Rate), configured(s)
	b, k := r.Baseline, r.Candidate
	pairs, of := r.TTFTPairs, logRatio
	switch name {
	case plan.ClaimFailures:
		c.Sentence = fmt.Sprintf("%s%s fails less often than %s%s %s.", k.Arm.Arm, as, b.Arm.Arm, as, at)
		c.Observation = fmt.Sprintf("failures: %s %d of %d, %s %d of %d", b.Arm.Arm, b.Counts.Failed, b.Counts.Attempted, k.Arm.Arm, k.Counts.Failed, k.Counts.Attempted)
		pairs, of = r.FailurePairs, difference
	case plan.ClaimTTFT:
		c.Sentence = fmt.Sprintf("%s%s has a lower p95 TTFT from the scheduled moment, over all attempts, than %s%s %s.", k.Arm.Arm, as, b.Arm.Arm, as, at)
		c.Observation = fmt.Sprintf("p95 TTFT from the scheduled moment: %s %s, %s %s", b.Arm.Arm, show(b.EffectiveTTFT95), k.Arm.Arm, show(k.EffectiveTTFT95))
	}
	c.emulated(s)
	if r.Status == "not_selected" {
		c.Verdict, c.Reasons = NotApplicable, append(c.Reasons, NotRun)
		return c
	}
	c.replicates(p, s, "the rate", r.Status)
	if p.Gates.Identity == "require" && (!r.Outputs.Compared || r.Outputs.Equal != r.Outputs.Of) {
		c.Reasons = append(c.Reasons, fmt.Sprintf("the plan requires equal outputs, and %d of %d were", r.Outputs.Equal, r.Outputs.Of))
	}
	if name == plan.ClaimFailures && b.Counts.Failed == 0 && k.Counts.Failed == 0 {
		c.Verdict = NotApplicable
		c.Reasons = append(c.Reasons, "nothing failed in either arm: there is no difference to show")
		return c
	}
	if len(c.Reasons) == 0 {
		c.infer(pairs, false, of)
	}
	return c
}

func judgeSearch(p *plan.Plan, s metric.Summary) Claim {
	base, cand, as := p.WithRole(plan.Baseline).Name, p.WithRole(plan.Candidate).Name, configured(s)
	c := Claim{
		Claim: plan.ClaimSLORate, Verdict: Unsupported, Reasons: []string{}, Provenance: s.Provenance,
		Sentence: fmt.Sprintf("%s%s keeps the SLO up to a higher rate than %s%s", cand, as, base, as),
		Records:  loops(s, func(w metric.Wave) bool { return w.Probe > 0 }),
	}
	c.Sentence = c.Sentence[:len(c.Sentence)-1] + "."
	r := s.SLORate
	c.Observation = fmt.Sprintf("highest rates shown to hold, medians over lifecycles: %s %s, %s %s; ratio %s", base, show(r.Baseline.Median), cand, show(r.Candidate.Median), show(r.Ratio))
	c.emulated(s)
	ran := false
	for _, f := range s.Searches {
		ran = ran || f.Status != "not_run"
		if f.Status == "interrupted" || !f.Validity.Valid {
			c.Reasons = append(c.Reasons, fmt.Sprintf("the search of lifecycle %d (%s) is interrupted or invalid", f.Lifecycle, f.Arm))
		}
	}
	if !ran {
		c.Verdict, c.Reasons = NotApplicable, append(c.Reasons, NotRun)
		return c
	}
	c.replicates(p, s, "the search", "complete") // which lifecycles' were not was said
	if r.Ratio.Value == nil {
		c.Reasons = append(c.Reasons, r.Ratio.Reason)
	}
	if len(c.Reasons) == 0 {
		c.infer(r.Pairs, true, logRatio)
	}
	return c
}

// configured is what every sentence says of an arm.
func configured(s metric.Summary) string {
	if s.Provenance == record.Emulated {
		return ", as configured and emulated,"
	}
	return ", as configured,"
}

func (c *Claim) emulated(s metric.Summary) {
	if s.Provenance == record.Emulated {
		c.Observation = "emulated: " + c.Observation
	}
}

// loops leads to the open loops behind a claim.
func loops(s metric.Summary, is func(metric.Wave) bool) []Pointer {
	return pointersTo(s, func(w metric.Wave) bool { return w.Open && is(w) })
}
