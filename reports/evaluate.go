package reports

import (
	"encoding/json"
	"os"
	"path/filepath"

	"assay/harness/plan"
	"assay/harness/record"
	"assay/workloads"
)

// Tasks are the cycles of a crossover plan's lanes, drawn from the plan alone;
// a concurrency plan has none. A task that the plan wants at an exact length has
// that length's id, and still the text that was drawn: the engine's count
// decides the other, which a bundle keeps in [TasksFile].
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
		for i := range cycle {
			if n := s.InputLength(i); n > 0 {
				cycle[i].ID = workloads.ExactID(cycle[i], n)
			}
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

// WriteTasks keeps the texts of prompts that were made an exact length, by id.
func WriteTasks(dir string, texts map[string]string) error {
	data, err := json.MarshalIndent(texts, "", " ")
	if err != nil {
		return err
	}
	return record.WriteFile(filepath.Join(dir, TasksFile), append(data, '\n'))
}

// ReadTasks reads them back.
func ReadTasks(dir string) (map[string]string, error) {
	data, err := os.ReadFile(filepath.Join(dir, TasksFile))
	if err != nil {
		return nil, err
	}
	var texts map[string]string
	return texts, json.Unmarshal(data, &texts)
}
