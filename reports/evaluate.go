package reports

import (
	"assay/harness/plan"
	"assay/harness/record"
	"assay/workloads"
)

// Tasks are the cycles of a crossover plan's lanes, drawn from the plan alone;
// a concurrency plan has none.
func Tasks(p *plan.Plan) (map[plan.Lane][]workloads.Task, error) {
	if p.Pairing == nil {
		return nil, nil
	}
	tasks := map[plan.Lane][]workloads.Task{}
	for _, lane := range p.Pairing.Lanes.Each() {
		s := p.Pairing.Lanes.Sequence(lane)
		cycle, err := workloads.Cycle(s.Tasks, s.Cycle, p.Seed)
		if err != nil {
			return nil, err
		}
		tasks[lane] = cycle
	}
	return tasks, nil
}

// Evaluate says whether the answer of a crossover's attempt is right, or why
// that is null. It is the same while a run lasts and when its bundle is
// verified.
func Evaluate(p *plan.Plan, tasks map[plan.Lane][]workloads.Task, r record.Request) (*bool, string) {
	lane := plan.Lane(r.Lane)
	switch {
	case tasks[lane] == nil:
		return nil, "the plan has no such lane"
	case p.Gates.Correctness == "none":
		return nil, "the plan's gates.correctness is none"
	case lane == plan.Fixed:
		return nil, "the fixed lane forces tokens past the answer's end"
	case r.Outcome != record.OK:
		return nil, "the attempt failed, so there is no whole answer"
	}
	correct, _ := workloads.Of(tasks[lane], r.Ordinal).Evaluate(r.OutputText)
	return &correct, ""
}
