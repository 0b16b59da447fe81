package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"

	"assay/harness/engine"
	"assay/harness/lifecycle"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/reports"
	"assay/workloads"
)

// prepare makes the prompts that the plan wants at an exact length, by the
// count of a server of the baseline arm that is started for nothing else,
// before the first lifecycle: no lifecycle of the schedule pays for it. It does
// nothing where no prompt has to be fitted, or the bundle has the texts from an
// earlier invocation.
func (r *Run) prepare(ctx context.Context) error {
	if r.Plan.Workload.Source != nil {
		return r.prepareEntries(ctx)
	}
	if r.Plan.Pairing == nil || !r.Plan.Pairing.Fitted() || r.asks.fitted {
		return nil
	}
	if texts, err := reports.ReadTasks(r.dir); err == nil {
		r.asks.fit(texts)
		return nil
	}
	return r.counting(ctx, plan.Baseline, r.fit)
}

// counting starts a server of an arm for nothing but counting tokens.
func (r *Run) counting(ctx context.Context, role plan.Role, count func(context.Context, engine.Server) error) error {
	arm := *r.expanded.Arm(r.Plan.WithRole(role).Name)
	made, err := lifecycle.NewEngine(r.expanded, arm, plan.Lifecycle{}, nil, r.root)
	if err == nil {
		err = made.Check(ctx)
	}
	if err != nil {
		return err
	}
	r.progress.lifecycle("preparing: " + arm.Name + " counts the prompts' tokens")
	l, err := lifecycle.Start(ctx, lifecycle.Config{
		Run: r.name, Place: plan.Lifecycle{Arm: arm.Name}, Arm: arm, Engine: made, Timeouts: r.timeouts(), Scale: r.Plan.TimeScale,
		LogDir: filepath.Join(r.dir, record.LogsDir), Redact: r.redact,
	})
	if err == nil {
		err = count(ctx, l.Server())
	}
	_, stopErr := l.Stop(context.WithoutCancel(ctx))
	return errors.Join(err, stopErr)
}

// fit makes every task its length, and keeps the texts.
func (r *Run) fit(ctx context.Context, server engine.Server) error {
	texts := map[string]string{}
	for lane, cycle := range r.asks.tasks {
		sequence := r.Plan.Pairing.Lanes.Sequence(lane)
		for i, task := range cycle {
			n := sequence.InputLength(i)
			if n == 0 {
				continue
			}
			fitted, err := workloads.Exact(ctx, task, n, r.countWith(server))
			if errors.Is(err, errCanNotCount) {
				err = fmt.Errorf("%w: leave input_tokens out", err)
			}
			if err != nil {
				return err
			}
			texts[fitted.ID] = fitted.Text
		}
	}
	if err := reports.WriteTasks(r.dir, texts); err != nil {
		return err
	}
	r.asks.fit(texts)
	return nil
}

// errCanNotCount is of an engine that has no such interface.
var errCanNotCount = errors.New("this engine can't count prompts")

// unknownHere are what servers answer that have no /tokenize, or one that takes
// another request.
var unknownHere = []int{
	http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnprocessableEntity, http.StatusNotImplemented,
}

// countWith counts the tokens of a prompt of just a text by a server, as the
// plan's API asks it: in a chat its template is included.
func (r *Run) countWith(server engine.Server) func(ctx context.Context, text string) (int, error) {
	return func(ctx context.Context, text string) (int, error) {
		body := map[string]any{"model": r.Plan.Model.ServedAs}
		if r.Plan.Workload.API == plan.Completions {
			body["prompt"] = text
		} else {
			body["messages"], body["add_generation_prompt"] = []map[string]string{{"role": "user", "content": text}}, true
		}
		return countTokens(ctx, server, body)
	}
}

// countTokens asks a server how many tokens a prompt has.
func countTokens(ctx context.Context, server engine.Server, prompt map[string]any) (int, error) {
	body, err := json.Marshal(prompt)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL()+"/tokenize", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	engine.Authorizer(server)(request)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("/tokenize did not answer: %w", err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
	var said struct {
		Count *int `json:"count"`
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("/tokenize did not answer whole: %w", err)
	case slices.Contains(unknownHere, response.StatusCode):
		return 0, fmt.Errorf("/tokenize answered %s: %w", response.Status, errCanNotCount)
	case response.StatusCode != http.StatusOK:
		return 0, fmt.Errorf("/tokenize answered %s", response.Status)
	case json.Unmarshal(data, &said) != nil || said.Count == nil:
		return 0, fmt.Errorf("/tokenize answered without a count: %w", errCanNotCount)
	}
	return *said.Count, nil
}
