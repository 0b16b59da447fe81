package suite

import (
	"github.com/onsi/ginkgo/v2"

	"assay/harness/crossing"
	"assay/harness/engine/emulated/scheduler"
	"assay/harness/metric"
	"assay/harness/plan"
)

// Model is the request from which on the models of two emulated arms stay
// crossed, served without noise on a virtual clock; false: an arm is no
// emulated one, or they don't cross within the lane's sequence. A run of the
// same arms adds the client's own time between requests, times the time scale.
func (e *Experiment) Model(lane plan.Lane) (int, bool) {
	sequence := e.Plan.Pairing.Lanes.Sequence(lane)
	pair := crossing.Pair{Number: 1}
	for _, role := range []plan.Role{plan.Baseline, plan.Candidate} {
		arm := e.Plan.WithRole(role).Engine.Emulated
		if arm == nil {
			return 0, false
		}
		side := serve(*arm, lane, sequence)
		if role == plan.Baseline {
			pair.Baseline = side
		} else {
			pair.Candidate = side
		}
	}
	i := e.Plan.Pairing.Inference
	a, err := crossing.Analyze([]crossing.Pair{pair}, crossing.Options{
		Requests: sequence.Requests, Dwell: e.Plan.Pairing.Crossing.Dwell, Level: i.Level.Share(), Resamples: i.Resamples, Seed: e.Plan.Seed,
	})
	if err != nil || a.Pairs[0].Sustained == nil {
		return 0, false
	}
	return *a.Pairs[0].Sustained, true
}

// serve is a lifecycle of an emulated arm on a virtual clock.
func serve(arm plan.Emulated, lane plan.Lane, sequence *plan.Sequence) crossing.Side {
	p := scheduler.Sets()[arm.Parameters]
	p.Noise = 0
	s := scheduler.New(p, 1)
	at := arm.Startup.D()
	side := crossing.Side{Initialization: int64(at)}
	for i := range sequence.Requests {
		tokens := sequence.Tokens()
		sample := i % sequence.Cycle
		if n := len(p.Answers); n > 0 && lane == plan.Natural {
			tokens = min(tokens, p.Answers[sample%n].Tokens)
		}
		served := scheduler.Simulate(s, []scheduler.Arrival{{Job: scheduler.Job{ID: i, PromptTokens: 1, OutputTokens: tokens, Sample: sample}}}, true)
		at += served[0].Ended
		side.Terminals = append(side.Terminals, int64(at))
	}
	return side
}

// Lane is a lane's numbers, as the run's evidence gives them.
func (e *Experiment) Lane(lane plan.Lane) metric.Lane {
	ginkgo.GinkgoHelper()
	for _, l := range e.Evidence().Summary.Lanes {
		if l.Lane == lane {
			return l
		}
	}
	ginkgo.Fail("the plan has no " + string(lane) + " lane")
	return metric.Lane{}
}
