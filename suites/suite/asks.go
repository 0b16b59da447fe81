package suite

import (
	"assay/harness/plan"
	"assay/harness/record"
	"assay/reports"
	"assay/workloads"
)

// asks is what a run asks its servers: a set of prompts, or the tasks of each
// lane.
type asks struct {
	prompts []workloads.Prompt
	tasks   map[plan.Lane][]workloads.Task
	fitted  bool     // every task has the length that the plan wants
	entries *entries // of a source; nil: the plan has none
}

// fit puts texts of an exact length in the place of those that were drawn.
func (a *asks) fit(texts map[string]string) {
	for _, cycle := range a.tasks {
		for i := range cycle {
			if text, ok := texts[cycle[i].ID]; ok {
				cycle[i].Text = text
			}
		}
	}
	a.fitted = true
}

func newAsks(p *plan.Plan) (asks, error) {
	var a asks
	var err error
	if p.Workload.Source != nil {
		return a, nil // they are loaded where the plan's files are
	}
	if p.Pairing == nil {
		a.prompts, err = workloads.Set(p.Workload.Prompts)
	} else {
		a.tasks, err = reports.Tasks(p)
	}
	return a, err
}

// at is the id and the text of what an ordinal asks.
func (a asks) at(lane plan.Lane, ordinal int) (id, text string) {
	if cycle := a.tasks[lane]; cycle != nil {
		task := workloads.Of(cycle, ordinal)
		return task.ID, task.Text
	}
	if a.entries != nil {
		e := a.entries.at(ordinal)
		return e.ID, e.text
	}
	prompt := workloads.For(a.prompts, ordinal)
	return prompt.ID, prompt.Text
}

// texts are what a lane's lifecycle is asked before it is asked the same again.
func (a asks) texts(lane plan.Lane) []string {
	var out []string
	for _, p := range a.prompts {
		out = append(out, p.Text)
	}
	for _, t := range a.tasks[lane] {
		out = append(out, t.Text)
	}
	if a.entries != nil {
		out = a.entries.texts()
	}
	return out
}

// answers are what the evaluators of a lane's tasks look for.
func (a asks) answers(lane plan.Lane) []string {
	var out []string
	for _, t := range a.tasks[lane] {
		out = append(out, t.Answer)
	}
	return out
}

// evaluate says of each answer whether it is right, where the plan has that
// evaluated.
func (a asks) evaluate(p *plan.Plan, requests []record.Request) {
	if a.tasks == nil {
		return // prompts have no right answer
	}
	for i := range requests {
		r := &requests[i]
		correct, reason := reports.Evaluate(p, a.tasks, *r)
		if r.Correct = correct; correct != nil {
			delete(r.Nulls, "correct")
		} else {
			r.Nulls["correct"] = reason
		}
	}
}
