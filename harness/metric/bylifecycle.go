package metric

import (
	"fmt"

	"assay/harness/plan"
	"assay/harness/record"
)

// AtTier is one lifecycle's numbers at a tier, over its recorded waves: what
// runs are compared by, since lifecycles are what is replicated.
type AtTier struct {
	Lifecycle int
	Arm       string
	Tier      int
	Goodput   Value // the median of its waves, each as [Goodput] has it
	// Over all attempts, failures right-censored.
	TTFT50 Value
	TTFT95 Value
	TPOT50 Value // over ok attempts
	// FailureRate is failed attempts over all attempts.
	FailureRate Value
}

// ByLifecycle computes the numbers of each lifecycle at each tier of a
// concurrency run, in the order of the tiers and then of the records. They are
// no part of the summary. What can't be computed is null with the reason.
func ByLifecycle(p *plan.Plan, run record.Run) []AtTier {
	s := &summarizer{plan: p, run: run.Indexed(), provenance: provenance(p)}
	var out []AtTier
	for _, tier := range p.Sweep.Tiers {
		for _, l := range run.Lifecycles {
			out = append(out, s.atTier(l, tier))
		}
	}
	return out
}

func (s *summarizer) atTier(l record.Lifecycle, tier int) AtTier {
	name := fmt.Sprintf("lifecycle %d (%s), %s", l.Number, l.Arm, record.Clients(tier))
	p := record.Population{Name: name}
	var goodputs []float64
	reason := "no wave of it was recorded"
	whole := true
	for _, w := range s.run.Waves {
		if w.Lifecycle != l.Number || w.Tier != tier || w.Warmup || w.Status == "not_selected" {
			continue
		}
		of := s.run.Of(w)
		p.Scheduled += of.Scheduled
		p.Attempts = append(p.Attempts, of.Attempts...)
		v, why := Goodput(w, of.Attempts)
		if why != "" {
			whole, reason = false, fmt.Sprintf("repeat %d has none: %s", w.Repeat, why)
			continue
		}
		goodputs = append(goodputs, v/s.plan.TimeScale)
	}
	out := AtTier{Lifecycle: l.Number, Arm: l.Arm, Tier: tier, Goodput: s.null("tok/s", name+", waves", reason)}
	if whole && len(goodputs) > 0 {
		out.Goodput = s.value(Median(goodputs), "tok/s", len(goodputs), name+", waves")
	}
	var arm Arm
	s.distributions(p, &arm)
	out.TTFT50, out.TTFT95, out.TPOT50 = arm.TTFTAll50, arm.TTFTAll95, arm.TPOT50
	out.FailureRate = s.failureRate(p, name+", all attempts")
	return out
}
