package recordtest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"assay/harness/plan"
	"assay/harness/record"
)

// PlanText is a small concurrency plan: two tiers, two repeats, emulated. A
// test may change it before it is parsed.
const PlanText = `
schema: assay.plan/v1
name: fixture
experiment: concurrency
labels: [emulated]
seed: 7
model: {name: fixture, revision: none, served_as: fixture}
arms:
  - name: naive
    role: baseline
    on_disconnect: cancel
    engine: {emulated: {parameters: t4-naive}}
  - name: vllm
    role: candidate
    on_disconnect: cancel
    engine: {emulated: {parameters: t4-vllm}}
workload: {prompts: eight, max_tokens: 4, temperature: 0, lane: natural}
schedule: {tiers: [1, 4], repeats: 2, lifecycles: 1, settle: {idle: 1m}}
timeouts: {ready: 1m, request: 10s, stop: 10s}
claims: [goodput, failures, ttft]
`

// Plan parses PlanText after replacing each old text, which must be there, by
// the new one that follows it.
func Plan(oldnew ...string) *plan.Plan { return parse("fixture.yaml", PlanText, oldnew) }

func parse(name, text string, oldnew []string) *plan.Plan {
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(text, oldnew[i]) {
			panic(fmt.Sprintf("the fixture has no %q", oldnew[i]))
		}
		text = strings.Replace(text, oldnew[i], oldnew[i+1], 1)
	}
	p, err := plan.Parse(name, []byte(text))
	if err != nil {
		panic(err)
	}
	return p
}

// Options are the knobs of a run.
type Options struct {
	// Fails says which attempts time out; nil: none.
	Fails func(r record.Request) bool
	// Partial is how many tokens an attempt that times out got before it, fewer
	// than it asked for; nil: none.
	Partial func(r record.Request) int
	// Stopped says inside which wave the run was stopped, the first for which it
	// holds: its attempts are cancelled, and nothing ran after it. nil: none.
	Stopped func(lifecycle, wave int) bool
	// Selected says which tiers were run; nil: all.
	Selected func(tier int) bool
	// Speed is how many times faster than the baseline the candidate is; 0: 10.
	Speed float64
}

const (
	ms     = int64(time.Millisecond)
	second = int64(time.Second)
)

// Run makes the records of an honest run. They are not chained: [Write] does
// that.
func Run(p *plan.Plan, o Options) record.Run {
	if o.Speed == 0 {
		o.Speed = 10
	}
	run := record.Run{Environment: environment("fixture-20260101T000000Z")}
	stopped := false
	for _, place := range p.Schedule().Lifecycles {
		if stopped {
			waves, l := absent(p, place)
			run.Waves = append(run.Waves, waves...)
			run.Lifecycles = append(run.Lifecycles, l)
			continue
		}
		b := builder{plan: p, options: o, place: place, now: 2 * second}
		waves, requests := b.waves()
		run.Waves = append(run.Waves, waves...)
		run.Requests = append(run.Requests, requests...)
		run.Lifecycles = append(run.Lifecycles, b.lifecycle(waves, requests))
		stopped = b.stopped
	}
	return run
}

func environment(run string) record.Environment {
	fact := func(v any) record.Fact { return record.Fact{Value: v, Provenance: record.ClientObserved} }
	return record.Environment{
		Run: run, StartedAt: "2026-01-01T00:00:00Z", Substitutions: map[string]string{},
		Facts: map[string]record.Fact{
			"cpu_model": fact("a processor"), "cpu_count": fact(2), "kernel": fact("6.1"), "clock_source": fact("tsc"),
			"go_version": fact("go1.26"), "revision": {Reason: "no checkout"},
		},
	}
}

const stoppedText = "the run was stopped inside the wave: interrupted by the user"

func absentWave(w *record.Wave, status, reason string) {
	w.Status, w.Reason, w.Nulls = status, reason, map[string]string{}
	for _, f := range []string{"settle", "carry_over", "released_at_ns", "release_lag_ns", "clock_readings", "client"} {
		w.Nulls[f] = reason
	}
}

// absent is a lifecycle that the run was stopped before.
func absent(p *plan.Plan, place plan.Lifecycle) ([]record.Wave, record.Lifecycle) {
	const reason = "the run was stopped before it"
	var waves []record.Wave
	for _, w := range place.Waves {
		out := record.Wave{Lifecycle: place.Number, Arm: place.Arm, Number: w.Number, Tier: w.Tier, Repeat: w.Repeat, Warmup: w.Warmup}
		absentWave(&out, "not_run", reason)
		waves = append(waves, out)
	}
	return waves, record.Lifecycle{
		Number: place.Number, Pair: place.Pair, Position: place.Position, Arm: place.Arm, Engine: p.Arm(place.Arm).Engine.Kind(),
		Status: "not_run", Error: reason, TimeScale: p.TimeScale, Moments: []record.Moment{}, Identity: map[string]record.Fact{}, Caches: map[string]record.Fact{},
		Waves: len(waves), Nulls: map[string]string{"exit": reason, "log": reason},
	}
}

type builder struct {
	plan     *plan.Plan
	options  Options
	place    plan.Lifecycle
	now      int64
	executed int
	left     int // attempts of the last wave that this side abandoned
	stopped  bool
}

func (b *builder) waves() ([]record.Wave, []record.Request) {
	var waves []record.Wave
	var all []record.Request
	for _, w := range b.place.Waves {
		out := record.Wave{
			Lifecycle: b.place.Number, Arm: b.place.Arm, Number: w.Number, Tier: w.Tier, Repeat: w.Repeat, Warmup: w.Warmup,
			Status: "ran", Nulls: map[string]string{},
		}
		if b.options.Selected != nil && !b.options.Selected(w.Tier) {
			absentWave(&out, "not_selected", "the label filter did not select it")
			waves = append(waves, out)
			continue
		}
		if b.stopped {
			absentWave(&out, "not_run", stoppedText)
			waves = append(waves, out)
			continue
		}
		b.executed++
		if b.options.Stopped != nil && b.options.Stopped(b.place.Number, w.Number) {
			b.stopped, out.Status, out.Reason = true, "interrupted", stoppedText
		}
		release, zero, idle := b.now, 0, false
		requests, end := b.requests(w, release)
		lag := int64(w.Tier-1) * 1000
		wall := int64(1_767_225_600) * second
		out.Executed, out.Attempts, out.ReleasedAt, out.ReleaseLag, out.CarryOver = b.executed, w.Tier, &release, &lag, &idle
		out.Settle = &record.Settle{Rule: "idle", Method: "metrics", From: release - 2*ms, Until: release - ms, Idle: true, Running: &zero, Waiting: &zero, Generated: &zero, Abandoned: b.left}
		out.ClockReadings = &record.ClockReadings{
			Before: record.ClockReading{Before: release - 60, Wall: wall + release - 30, After: release},
			After:  record.ClockReading{Before: end, Wall: wall + end + 30, After: end + 60},
		}
		out.Client = &record.ClientLoad{CPU: ms, Goroutines: 2 + w.Tier}
		waves = append(waves, out)
		all = append(all, requests...)
		b.now, b.left = end+10*ms, 0
		for _, r := range requests {
			if r.Outcome != record.OK {
				b.left++
			}
		}
	}
	return waves, all
}

// requests serves a wave: the baseline one request after the other, the
// candidate all at once.
func (b *builder) requests(w plan.Wave, release int64) ([]record.Request, int64) {
	speed := 1.0
	serial := true
	if b.plan.Arm(b.place.Arm).Role == plan.Candidate {
		speed, serial = b.options.Speed, false
	}
	step := int64(float64(20*ms) / speed)
	end := release
	free := release
	var out []record.Request
	for ordinal := 1; ordinal <= w.Tier; ordinal++ {
		r := record.Request{
			Lifecycle: b.place.Number, Pair: b.place.Pair, Position: b.place.Position, Arm: b.place.Arm, Lane: string(b.plan.Workload.Lane),
			Wave: w.Number, Tier: w.Tier, Repeat: w.Repeat, Warmup: w.Warmup, Ordinal: ordinal,
			PromptID: fmt.Sprintf("eight/%d", (ordinal-1)%8+1), InputSHA256: strings.Repeat(fmt.Sprintf("%x", ordinal%16), 64),
			ScheduledAt: release, Clock: record.TimeSource{Provenance: record.KernelObserved, BoundNS: 30},
			Events: []record.Event{}, ClientLag: []int64{}, OutputTokenIDs: []int{}, Nulls: map[string]string{},
		}
		sent, dial := release+int64(ordinal-1)*1000, 50_000*int64(1)
		r.SentAt, r.Dial = &sent, &dial
		switch start := max(free, sent); {
		case b.stopped:
			fail(&r, record.Cancelled, "interrupted by the user", release+5*ms)
		case b.options.Fails != nil && b.options.Fails(r):
			if b.options.Partial != nil {
				b.tokens(&r, b.options.Partial(r), start, step)
			}
			fail(&r, record.Timeout, "i/o timeout", release+int64(b.plan.Scaled(b.plan.Timeouts.Request))+ms)
		default:
			b.answer(&r, start, step)
			if serial {
				free = r.EndedAt
			}
		}
		explain(&r)
		end = max(end, r.EndedAt)
		out = append(out, r)
	}
	return out, end
}

func fail(r *record.Request, outcome record.Outcome, text string, at int64) {
	status := 200
	r.Outcome, r.Error, r.HTTPStatus, r.EndedAt = outcome, &text, &status, at
}

// tokens lets an attempt see its first n tokens, with their ids.
func (b *builder) tokens(r *record.Request, n int, start, step int64) {
	source, input := record.SourceTokenIDs, 12
	for i := range n {
		one := 1
		at := start + int64(i+1)*step
		r.Events = append(r.Events, record.Event{Earliest: at, Arrival: at, Tokens: &one})
		r.ClientLag = append(r.ClientLag, 20_000)
		r.OutputTokenIDs = append(r.OutputTokenIDs, 100*((r.Ordinal-1)%8)+i)
	}
	if n > 0 {
		first, last := r.Events[0].Arrival, r.Events[n-1].Arrival
		r.FirstTokenAt, r.LastTokenAt = &first, &last
		r.OutputTokens, r.OutputTokensSource = &n, &source
		r.InputTokens, r.InputTokensSource = &input, &source
		r.OutputText, r.ReceivedBytes = fmt.Sprintf("answer %d", r.Ordinal), 2000
	}
}

func (b *builder) answer(r *record.Request, start, step int64) {
	n, status, reason := b.plan.Asked(b.place).Tokens, 200, "length"
	b.tokens(r, n, start, step)
	r.Outcome, r.HTTPStatus, r.FinishReason, r.UsageOutputTokens = record.OK, &status, &reason, &n
	r.EndedAt = *r.LastTokenAt + 1000
}

// explain gives every null of a request a reason.
func explain(r *record.Request) {
	for name, null := range map[string]bool{
		"error": r.Error == nil, "http_status": r.HTTPStatus == nil, "finish_reason": r.FinishReason == nil, "sent_at_ns": r.SentAt == nil,
		"first_token_at_ns": r.FirstTokenAt == nil, "last_token_at_ns": r.LastTokenAt == nil, "dial_ns": r.Dial == nil, "tls_ns": r.TLS == nil,
		"input_tokens": r.InputTokens == nil, "input_tokens_source": r.InputTokensSource == nil, "output_tokens": r.OutputTokens == nil,
		"output_tokens_source": r.OutputTokensSource == nil, "usage_output_tokens": r.UsageOutputTokens == nil, "correct": r.Correct == nil,
	} {
		if null {
			r.Nulls[name] = "not in this fixture"
		}
	}
}

func (b *builder) lifecycle(waves []record.Wave, requests []record.Request) record.Lifecycle {
	code := 0
	l := record.Lifecycle{
		Number: b.place.Number, Executed: b.place.Number, Pair: b.place.Pair, Position: b.place.Position, Arm: b.place.Arm,
		Engine: b.plan.Arm(b.place.Arm).Engine.Kind(), Status: "ran", Anchor: "2026-01-01T00:00:00Z", TimeScale: b.plan.TimeScale,
		Identity: map[string]record.Fact{"engine": {Value: "emulated", Provenance: record.Emulated}}, Caches: map[string]record.Fact{},
		Exit: &record.Exit{Code: &code, Asked: true}, Waves: len(waves), Requests: len(requests), Nulls: map[string]string{},
	}
	log := logText(l)
	sum := sha256.Sum256([]byte(log))
	l.Log = &record.Log{File: logFile(l), Lines: strings.Count(log, "\n"), SHA256: hex.EncodeToString(sum[:]), KeptSHA256: hex.EncodeToString(sum[:])}
	if b.stopped {
		l.Status, l.Error = "interrupted", stoppedText
	}
	moment := func(phase string, at int64) {
		l.Moments = append(l.Moments, record.Moment{Phase: phase, At: &at, Provenance: record.ClientObserved})
	}
	for i, phase := range []string{"invoked", "started", "first_listening", "ready"} {
		moment(phase, int64(i)*100*ms)
	}
	for _, phase := range []string{"first_sent", "last_terminal"} {
		if len(requests) == 0 {
			l.Moments = append(l.Moments, record.Moment{Phase: phase, Reason: "no request was sent"})
		}
	}
	if len(requests) > 0 {
		last := int64(0)
		for _, r := range requests {
			last = max(last, r.EndedAt)
		}
		moment("first_sent", *requests[0].SentAt)
		moment("last_terminal", last)
	}
	for i, phase := range []string{"stop_requested", "exited", "removed"} {
		moment(phase, b.now+int64(i)*100*ms)
	}
	return l
}

func logFile(l record.Lifecycle) string { return fmt.Sprintf("%02d-%s.log", l.Number, l.Arm) }

func logText(l record.Lifecycle) string { return fmt.Sprintf("%s is ready\n%s leaves\n", l.Arm, l.Arm) }

// Write writes a run's records into dir as a run would have, chained.
func Write(dir string, p *plan.Plan, run record.Run) (record.Run, error) {
	frozen, err := plan.Freeze(p)
	if err != nil {
		return run, err
	}
	store, err := record.Create(dir, frozen.SHA256, p.Schedule().SHA256())
	if err != nil {
		return run, err
	}
	var out record.Run
	out.Environment, err = store.WriteEnvironment(run.Environment)
	errs := []error{err, os.WriteFile(filepath.Join(dir, "plan.yaml"), frozen.Bytes, 0o644)}
	for _, l := range run.Lifecycles {
		for _, w := range run.Waves {
			if w.Lifecycle != l.Number {
				continue
			}
			kept, requests, err := store.AppendWave(w, run.Of(w).Attempts)
			out.Waves = append(out.Waves, kept)
			out.Requests = append(out.Requests, requests...)
			errs = append(errs, err)
			gpus, engine, err := store.AppendTelemetry(lookedAt(run, w))
			out.Telemetry = append(out.Telemetry, gpus...)
			if engine != nil {
				out.EngineMetrics = append(out.EngineMetrics, *engine)
			}
			errs = append(errs, err)
		}
		if l.Log != nil {
			errs = append(errs, os.WriteFile(filepath.Join(dir, record.LogsDir, l.Log.File), []byte(logText(l)), 0o644))
		}
		kept, err := store.AppendLifecycle(l)
		out.Lifecycles = append(out.Lifecycles, kept)
		errs = append(errs, err)
	}
	return out, errors.Join(append(errs, store.Close())...)
}

// lookedAt is what a run has of what was seen beside a wave.
func lookedAt(run record.Run, w record.Wave) ([]record.Telemetry, *record.EngineMetrics) {
	var gpus []record.Telemetry
	for _, t := range run.Telemetry {
		if t.Lifecycle == w.Lifecycle && t.Wave == w.Number {
			gpus = append(gpus, t)
		}
	}
	for _, m := range run.EngineMetrics {
		if m.Lifecycle == w.Lifecycle && m.Wave == w.Number {
			return gpus, &m
		}
	}
	return gpus, nil
}
