package suite

import (
	"context"

	"github.com/onsi/ginkgo/v2"

	"assay/claim"
	"assay/harness/arrival"
	"assay/harness/load"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
)

// open is an open loop about to be released.
func (r *Run) open(b load.Burst, arrivals arrival.Schedule) load.Open {
	a := r.Plan.Arrivals
	return load.Open{
		Burst: b, Schedule: arrivals, DialAhead: a.DialAhead.D(), Limit: a.InFlight, Drop: a.Beyond == plan.Drop,
	}
}

// Search looks for the highest rate at which the plan's SLO holds on the server
// of a place, probe by probe, until its rule says that it is over or the run is
// stopped. The probes come back as they were judged; an error means that one
// could not be made, or not be kept.
func (r *Run) Search(ctx context.Context, place plan.Lifecycle) ([]metric.Probe, error) {
	search := r.Plan.Capacity(place.Pair)
	for n := 1; ; n++ {
		probes, err := metric.Probes(r.Plan, r.kept, place)
		if err != nil {
			return probes, err
		}
		rate, seed, over := search.Next(metric.Probed(probes))
		if over || r.stopped != "" {
			return probes, nil
		}
		wave, err := r.Plan.Probe(place, n, rate, seed)
		if err != nil {
			return probes, err
		}
		if _, err := r.Wave(ctx, place, wave); err != nil {
			return probes, err
		}
	}
}

// Rate is one rate of an arrival plan's curve.
type Rate struct{ RPS float64 }

// String names the rate as a sentence does.
func (r Rate) String() string { return record.Rate(r.RPS) }

// Labels are the rate's Ginkgo labels: "tier:8rps".
func (r Rate) Labels() ginkgo.Labels { return ginkgo.Label(plan.RateLabel(r.RPS)) }

// Rates are an arrival plan's, in its own order.
func (e *Experiment) Rates() []Rate {
	if e.Plan.Arrivals == nil {
		return nil
	}
	var out []Rate
	for _, r := range e.Plan.Arrivals.Levels() {
		out = append(out, Rate{RPS: float64(r)})
	}
	return out
}

// Searches says whether the plan looks for a capacity.
func (e *Experiment) Searches() bool { return e.Plan.Search != nil }

// SearchLabels are those of what the search needs.
func (e *Experiment) SearchLabels() ginkgo.Labels { return ginkgo.Label(plan.SearchLabel) }

// SearchTimeout is the time limit on the spec that searches.
func (e *Experiment) SearchTimeout() ginkgo.NodeTimeout {
	return ginkgo.NodeTimeout(e.Plan.Scaled(e.Plan.SearchTime()) + overhead)
}

// Search runs a place's search and returns its probes. It fails only if they
// could not be made or kept: matchers judge.
func (e *Experiment) Search(ctx context.Context, place plan.Lifecycle) []metric.Probe {
	ginkgo.GinkgoHelper()
	probes, err := e.Run.Search(ctx, place)
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	return probes
}

// AtRate is what the evidence has at a rate.
func (e *Experiment) AtRate(r Rate) metric.Rate {
	ginkgo.GinkgoHelper()
	for _, one := range e.Evidence().Summary.Rates {
		if one.Rate == r.RPS {
			return one
		}
	}
	ginkgo.Fail("the summary has nothing at " + r.String())
	return metric.Rate{}
}

// RateVerdicts are [Experiment.Verdicts] at a rate.
func (e *Experiment) RateVerdicts(r Rate) []string {
	return e.verdicts(func(c claim.Claim) bool { return c.Claim != plan.ClaimSLORate && c.Rate == r.RPS })
}

// SearchVerdicts are those of what the searches found.
func (e *Experiment) SearchVerdicts() []string {
	return e.verdicts(func(c claim.Claim) bool { return c.Claim == plan.ClaimSLORate })
}
