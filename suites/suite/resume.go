package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"assay/harness/engine"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/reports"
)

// resumption is what a run goes on from.
type resumption struct {
	dir        string
	invocation record.Invocation
	last       int // number of the last lifecycle that was started
	killed     *plan.Lifecycle
}

// Resume lets the run go on in the directory of an earlier one that was
// interrupted, after its last complete lifecycle. Nothing is written yet. The
// cause is the operator's word, one that the plan lists. A lifecycle that was
// interrupted stays what it is; its pair is abandoned, and one like it is added
// at the end. A server that died by itself is an outcome: it is not replaced.
func (r *Run) Resume(dir, cause string) error {
	if r.Plan.Pairing == nil || r.Plan.Pairing.Resume == nil {
		return fmt.Errorf("%s lets nothing go on after an interruption: it has no resume", r.Plan.Name)
	}
	allowed := r.Plan.Pairing.Resume
	if !slices.Contains(allowed.Causes, cause) {
		return fmt.Errorf("the cause %q is none of the plan's: write one of %s", cause, strings.Join(allowed.Causes, ", "))
	}
	run, err := record.Read(dir)
	if len(run.Lifecycles) == 0 && len(run.Requests) == 0 && err != nil {
		return fmt.Errorf("nothing can go on from %s: %w", dir, err)
	}
	if run.Environment.PlanSHA256 != r.frozen.SHA256 {
		return fmt.Errorf("%s is of another plan, %.12s…, and %s is %.12s…: name the plan that it began with", dir, run.Environment.PlanSHA256, r.Plan.Name, r.frozen.SHA256)
	}
	schedule := metric.Schedule(r.Plan, run)
	next := &resumption{dir: dir}
	broken := 0
	for _, l := range run.Lifecycles {
		if l.Executed > 0 {
			next.last = max(next.last, l.Number)
			if l.Status == "interrupted" && !abandonedBefore(run, l.Pair) {
				broken = l.Pair
			}
		}
	}
	// A killed process leaves no record of the lifecycle that it was in, but
	// that lifecycle's log.
	if following := next.last + 1; broken == 0 && following <= len(schedule.Lifecycles) {
		place := schedule.Lifecycles[following-1]
		if _, err := os.Stat(filepath.Join(dir, record.LogsDir, logName(place))); err == nil {
			next.killed, next.last, broken = &place, following, place.Pair
		}
	}
	added := 0
	for _, i := range run.Environment.Invocations {
		if i.Added > 0 {
			added++
		}
	}
	next.invocation = record.Invocation{Cause: cause, After: next.last, Abandoned: broken}
	if broken > 0 {
		if added == allowed.AtMost {
			return fmt.Errorf("%d pairs were added already, which is all that the plan allows: what is there can be judged with go tool assay report %s", added, dir)
		}
		schedule = schedule.WithPair(broken)
		next.invocation.Added = schedule.Lifecycles[len(schedule.Lifecycles)-1].Pair
	}
	if next.last >= len(schedule.Lifecycles) {
		return fmt.Errorf("%s is complete: there is nothing to go on with", dir)
	}
	r.Schedule, r.resumed = schedule, next
	return nil
}

func abandonedBefore(run record.Run, pair int) bool {
	return slices.ContainsFunc(run.Environment.Invocations, func(i record.Invocation) bool { return i.Abandoned == pair })
}

func logName(l plan.Lifecycle) string { return fmt.Sprintf("%02d-%s.log", l.Number, l.Arm) }

// Remaining are the places of the schedule that this run starts: all of them,
// or those after what it goes on from, without the rest of a pair that was cut.
func (r *Run) Remaining() []plan.Lifecycle {
	if r.resumed == nil {
		return r.Schedule.Lifecycles
	}
	var out []plan.Lifecycle
	for _, l := range r.Schedule.Lifecycles {
		if l.Number > r.resumed.last && l.Pair != r.resumed.invocation.Abandoned {
			out = append(out, l)
		}
	}
	return out
}

// reopen is what Begin does for a run that goes on.
func (r *Run) reopen(ctx context.Context) error {
	next := r.resumed
	facts, err := r.facts(ctx)
	if err != nil {
		return err // before anything is touched: the next start may go on
	}
	r.dir = next.dir
	if r.store, r.kept, err = record.Reopen(r.dir, r.frozen.SHA256, r.Plan.Schedule().SHA256()); err != nil {
		return err
	}
	if err := r.keepJUnit(); err != nil {
		return err
	}
	if err := r.keepPlan(); err != nil {
		return err
	}
	r.name = r.kept.Environment.Run
	for _, l := range r.kept.Lifecycles {
		r.started = max(r.started, l.Executed)
	}
	next.invocation.StartedAt = time.Now().UTC().Format(time.RFC3339Nano)
	next.invocation.Facts = facts
	r.kept.Environment.Invocations = append(r.kept.Environment.Invocations, next.invocation)
	if r.kept.Environment, err = r.store.WriteEnvironment(r.kept.Environment); err != nil {
		return err
	}
	reason := "the process that ran it was killed: " + next.invocation.Cause
	if place := next.killed; place != nil {
		r.started++
		lifecycle := r.absentLifecycle(*place, "interrupted", reason, r.started)
		lifecycle.Moments = served(r.kept.Requests, place.Number)
		err = errors.Join(r.keepAbsent(*place, "not_run", reason), r.keep(lifecycle))
	}
	for _, place := range r.Schedule.Lifecycles {
		if place.Pair == next.invocation.Abandoned && place.Number > next.last {
			reason := fmt.Sprintf("its pair was abandoned: %s", next.invocation.Cause)
			err = errors.Join(err, r.keepAbsent(place, "not_run", reason), r.keep(r.absentLifecycle(place, "not_run", reason, 0)))
		}
	}
	return err
}

// served are the moments of a lifecycle that its attempts tell, where nothing
// else does any more.
func served(requests []record.Request, lifecycle int) []record.Moment {
	var first, last *int64
	for _, q := range requests {
		if q.Lifecycle != lifecycle || q.SentAt == nil {
			continue
		}
		if first == nil || *q.SentAt < *first {
			first = q.SentAt
		}
		if last == nil || q.EndedAt > *last {
			last = &q.EndedAt
		}
	}
	if first == nil {
		return []record.Moment{}
	}
	return []record.Moment{
		{Phase: string(engine.FirstSent), At: first, Provenance: record.ClientObserved},
		{Phase: string(engine.LastTerminal), At: last, Provenance: record.ClientObserved},
	}
}

// keepPlan writes the frozen plan where the process was killed before it came to
// that. One that is there stays as it is: verification judges it.
func (r *Run) keepPlan() error {
	path := filepath.Join(r.dir, reports.PlanFile)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return record.WriteFile(path, r.frozen.Bytes)
}

// keepJUnit sets the earlier invocation's JUnit report aside and takes away
// what is derived, which holds no longer.
func (r *Run) keepJUnit() error {
	report := filepath.Join(r.dir, reports.JUnitFile)
	if _, err := os.Stat(report); err == nil {
		n := len(r.resumedFrom()) + 1
		if err := os.Rename(report, filepath.Join(r.dir, reports.EarlierJUnit(n))); err != nil {
			return err
		}
	}
	for _, name := range []string{reports.SumsFile, reports.SignatureFile, reports.SummaryFile, reports.ClaimsFile, reports.ReportFile} {
		if err := os.Remove(filepath.Join(r.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// resumedFrom are the invocations before this one, as far as they can be read.
func (r *Run) resumedFrom() []record.Invocation {
	run, _ := record.Read(r.dir) // Reopen says what is wrong with it
	return run.Environment.Invocations
}
