package lifecycle

import (
	"fmt"

	"assay/harness/engine"
	"assay/harness/engine/emulated"
	"assay/harness/engine/emulated/scheduler"
	"assay/harness/plan"
)

// Launcher is an engine that also says beforehand whether it can launch here.
type Launcher interface {
	engine.Engine
	engine.Checker
}

// NewEngine makes the engine that an arm of an expanded plan declares, for one
// place of the schedule. prompts are the workload's, in order: an emulated
// model has a declared length for each.
func NewEngine(p *plan.Plan, arm plan.Arm, place plan.Lifecycle, prompts []string) (Launcher, error) {
	switch e := arm.Engine; {
	case e.Emulated != nil:
		return newEmulated(p, arm, place, prompts)
	default:
		return nil, fmt.Errorf("%s has no engine", arm.Name)
	}
}

func newEmulated(p *plan.Plan, arm plan.Arm, place plan.Lifecycle, prompts []string) (Launcher, error) {
	parameters, ok := scheduler.Sets()[arm.Engine.Emulated.Parameters]
	if !ok {
		return nil, fmt.Errorf("there is no parameter set %q", arm.Engine.Emulated.Parameters)
	}
	c := emulated.Config{
		Parameters: parameters, Name: arm.Engine.Emulated.Parameters, Model: p.Model.ServedAs,
		Seed: p.Seed + uint64(place.Number), Scale: p.TimeScale, Startup: arm.Engine.Emulated.Startup.D(),
		Finish: arm.OnDisconnect == plan.Finish, Prompts: prompts,
	}
	for _, f := range arm.Engine.Emulated.Faults {
		c.Faults = append(c.Faults, emulated.Fault{Kind: f.Kind, Requests: f.Requests, After: f.After, For: f.For.D(), Status: f.Status})
	}
	return emulated.New(c), nil
}
