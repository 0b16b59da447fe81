package suite

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"

	"assay/harness/client"
	"assay/harness/engine"
	"assay/harness/environment"
	"assay/harness/lifecycle"
	"assay/harness/load"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/harness/telemetry"
	"assay/reports"
	"assay/workloads"
)

// Experiment is one plan as a suite runs it. A suite's file asks it for the
// places of the schedule, starts them, releases their waves and, at the end,
// asks for the run.
type Experiment struct {
	Plan     *plan.Plan // as frozen
	Schedule plan.Schedule
	Tiers    []Tier

	frozen   plan.Frozen
	filter   string
	progress *progress

	mu          sync.Mutex
	begun       bool
	beginErr    error
	expanded    *plan.Plan // with every ${VAR} expanded
	root        string     // the project's folder
	run         string
	dir         string
	store       *record.Store
	redact      *lifecycle.Redactor
	prompts     []workloads.Prompt
	executed    int
	current     *running
	kept        record.Run     // what the store holds
	unstarted   map[int]string // why a lifecycle's engine was not launched
	stopped     string         // why the suite as a whole was stopped
	interrupted bool           // a wave was cut short by the run's being stopped
	finished    bool
	bundle      reports.Bundle
	finishErr   error
}

// running is the lifecycle whose server is up.
type running struct {
	place     plan.Lifecycle
	arm       plan.Arm
	lifecycle *lifecycle.Lifecycle
	client    *client.Client
	target    client.Target
	executed  int // waves so far
	abandoned int // attempts of the last wave that this side left
}

// Tier is one level of the swept variable.
type Tier struct {
	Clients int
}

// String names the tier as a sentence does.
func (t Tier) String() string { return record.Clients(t.Clients) }

// Labels are the tier's Ginkgo labels: "tier:64".
func (t Tier) Labels() ginkgo.Labels { return ginkgo.Label(fmt.Sprintf("tier:%d", t.Clients)) }

// newExperiment freezes a plan's file and draws its schedule. Nothing is run
// and nothing is written yet: Ginkgo builds every tree before it filters.
func newExperiment(file string) (*Experiment, error) {
	p, err := plan.Load(file)
	if err != nil {
		return nil, err
	}
	frozen, err := plan.Freeze(p)
	if err != nil {
		return nil, err
	}
	e := &Experiment{Plan: p, Schedule: p.Schedule(), frozen: frozen, unstarted: map[int]string{}}
	for _, t := range p.Sweep.Tiers {
		e.Tiers = append(e.Tiers, Tier{Clients: t})
	}
	return e, nil
}

// Place names a lifecycle by its number in the schedule, so that Ginkgo, which
// sorts sibling containers made on one line by their text, keeps the order.
func (e *Experiment) Place(l plan.Lifecycle) string {
	width := len(fmt.Sprint(len(e.Schedule.Lifecycles)))
	return fmt.Sprintf("%0*d of %d: %s", width, l.Number, len(e.Schedule.Lifecycles), l.Arm)
}

// Labels are the plan's own: "cpu", "gpu", "emulated".
func (e *Experiment) Labels() ginkgo.Labels { return ginkgo.Label(e.Plan.Labels...) }

// AnyTier are the labels of all tiers, for a spec that judges whatever ran.
func (e *Experiment) AnyTier() ginkgo.Labels {
	var all ginkgo.Labels
	for _, t := range e.Tiers {
		all = append(all, t.Labels()...)
	}
	return all
}

// overhead is what a node's own deadline allows beyond what the plan declares,
// so that the plan's deadlines are the ones that are met.
const overhead = 30 * time.Second

// StartTimeout is the time limit on the node that starts a server. It stands
// on that node alone, since a first spec's own limit would include it.
func (e *Experiment) StartTimeout() ginkgo.NodeTimeout {
	return ginkgo.NodeTimeout(e.Plan.Scaled(e.Plan.Timeouts.Image) + e.Plan.Scaled(e.Plan.Timeouts.Ready) + e.Plan.Scaled(e.Plan.Timeouts.Stop) + overhead)
}

// begin makes the bundle's place at the first start.
func (e *Experiment) begin(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.begun {
		return e.beginErr
	}
	e.begun = true
	e.beginErr = e.prepare(ctx)
	return e.beginErr
}

func (e *Experiment) prepare(ctx context.Context) error {
	expanded, substitutions, err := e.Plan.Expand(os.LookupEnv)
	if err != nil {
		return err
	}
	e.expanded = expanded
	if e.prompts, err = workloads.Set(e.Plan.Workload.Prompts); err != nil {
		return err
	}
	if e.root, err = moduleRoot(); err != nil {
		return err
	}
	now := time.Now().UTC()
	e.run = e.Plan.Name + "-" + now.Format("20060102T150405Z")
	e.dir = filepath.Join(e.root, "out", e.run)
	if *outFlag != "" {
		if e.dir, err = atRoot(filepath.Join(*outFlag, e.Plan.Name)); err != nil {
			return err
		}
	}
	if e.store, err = record.Create(e.dir, e.frozen.SHA256, e.Schedule.SHA256()); err != nil {
		return err
	}
	var secrets []string
	for _, a := range expanded.Arms {
		if a.Engine.Endpoint != nil && a.Engine.Endpoint.APIKeyEnv != "" {
			secrets = append(secrets, os.Getenv(a.Engine.Endpoint.APIKeyEnv))
		}
	}
	e.redact = lifecycle.NewRedactor(secrets...)
	e.kept.Environment, err = e.store.WriteEnvironment(record.Environment{
		Run: e.run, StartedAt: now.Format(time.RFC3339Nano), Selection: e.filter,
		Substitutions: substitutions, Facts: environment.Facts(ctx, e.root),
	})
	if err != nil {
		return err
	}
	return record.WriteFile(filepath.Join(e.dir, reports.PlanFile), e.frozen.Bytes)
}

// Start brings a lifecycle's server up and has it stopped and removed again
// when its container ends, whatever happens. An engine that is not to be had
// on this machine fails the spec if the label filter asked for it by name, and
// skips it otherwise; it says what is missing either way.
func (e *Experiment) Start(ctx ginkgo.SpecContext, place plan.Lifecycle) {
	ginkgo.GinkgoHelper()
	if err := e.begin(ctx); err != nil {
		ginkgo.Fail(err.Error())
	}
	arm := *e.expanded.Arm(place.Arm)
	made, err := lifecycle.NewEngine(e.expanded, arm, place, texts(e.prompts), e.root)
	if err == nil {
		err = made.Check(ctx)
	}
	if err != nil {
		e.unstarted[place.Number] = e.redact.Redact(err.Error())
	}
	if errors.Is(err, engine.ErrUnavailable) {
		e.unavailable(err)
	}
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	if err := environment.Enough(e.largestWave()); err != nil {
		ginkgo.Fail(err.Error())
	}
	e.executed++
	e.progress.lifecycle(e.Place(place) + ": starting")
	l, err := lifecycle.Start(ctx, lifecycle.Config{
		Run: e.run, Place: place, Executed: e.executed, Arm: arm, Engine: made, Timeouts: e.timeouts(), Scale: e.Plan.TimeScale,
		LogDir: filepath.Join(e.dir, record.LogsDir), Redact: e.redact,
	})
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { e.stop(ctx, place, l) }, ginkgo.NodeTimeout(e.Plan.Scaled(e.Plan.Timeouts.Stop)+overhead))
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	r := &running{place: place, arm: arm, lifecycle: l, client: client.New(), target: client.Target{BaseURL: l.Server().URL()}}
	if arm.Engine.Endpoint != nil {
		r.target.APIKeyEnv = arm.Engine.Endpoint.APIKeyEnv
	}
	e.current = r
}

func (e *Experiment) unavailable(err error) {
	ginkgo.GinkgoHelper()
	report := ginkgo.CurrentSpecReport()
	wanted, filterErr := asked(e.filter, report.Labels(), e.Plan.Labels)
	if filterErr != nil {
		ginkgo.Fail(filterErr.Error())
	}
	if wanted {
		ginkgo.Fail("the label filter asks for this, and it can't run here: " + err.Error())
	}
	ginkgo.Skip(err.Error())
}

func texts(prompts []workloads.Prompt) []string {
	out := make([]string, len(prompts))
	for i, p := range prompts {
		out[i] = p.Text
	}
	return out
}

func (e *Experiment) largestWave() int {
	n := 0
	for _, t := range e.Tiers {
		n = max(n, t.Clients)
	}
	return n
}

func (e *Experiment) timeouts() plan.Timeouts {
	t := e.Plan.Timeouts
	for _, d := range []*plan.Duration{&t.Image, &t.Ready, &t.Connect, &t.Request, &t.Stop} {
		*d = plan.Duration(e.Plan.Scaled(*d))
	}
	return t
}

// stop ends a lifecycle and keeps its record, with what was not run of it.
func (e *Experiment) stop(ctx context.Context, place plan.Lifecycle, l *lifecycle.Lifecycle) {
	e.progress.lifecycle(e.Place(place) + ": stopping")
	r, err := l.Stop(ctx)
	e.current = nil
	status, reason := "not_selected", fmt.Sprintf("the label filter %q did not select it", e.filter)
	if r.Status == "ran" && e.interrupted {
		status, reason = "not_run", "the run was stopped before it"
		r.Status, r.Error = "interrupted", "the run was stopped inside this lifecycle"
	} else if r.Status != "ran" {
		status, reason = "not_run", "the lifecycle "+r.Status+": "+firstLine(r.Error)
	}
	err = errors.Join(err, e.keepAbsent(place, status, reason))
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range e.kept.Waves {
		if w.Lifecycle == place.Number {
			r.Waves++
		}
	}
	for _, q := range e.kept.Requests {
		if q.Lifecycle == place.Number {
			r.Requests++
		}
	}
	r, storeErr := e.store.AppendLifecycle(r)
	e.kept.Lifecycles = append(e.kept.Lifecycles, r)
	if err = errors.Join(err, storeErr); err != nil {
		ginkgo.Fail(err.Error())
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// keepAbsent writes a line for each wave of a place that has none yet.
func (e *Experiment) keepAbsent(place plan.Lifecycle, status, reason string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	have := map[int]bool{}
	for _, w := range e.kept.Waves {
		if w.Lifecycle == place.Number {
			have[w.Number] = true
		}
	}
	var err error
	for _, w := range place.Waves {
		if have[w.Number] {
			continue
		}
		absent := record.Wave{
			Lifecycle: place.Number, Arm: place.Arm, Number: w.Number, Tier: w.Tier, Repeat: w.Repeat, Warmup: w.Warmup,
			Status: status, Reason: reason, Nulls: load.AbsentNulls(reason),
		}
		kept, _, appendErr := e.store.AppendWave(absent, nil)
		e.kept.Waves = append(e.kept.Waves, kept)
		err = errors.Join(err, appendErr)
	}
	return err
}

// Wave is one spec's worth of work: a burst in its place.
type Wave struct {
	experiment *Experiment
	place      plan.Lifecycle
	wave       plan.Wave
}

// Waves are a lifecycle's, in the schedule's order.
func (e *Experiment) Waves(place plan.Lifecycle) iter.Seq[Wave] {
	return func(yield func(Wave) bool) {
		for _, w := range place.Waves {
			if !yield(Wave{experiment: e, place: place, wave: w}) {
				return
			}
		}
	}
}

// String names the wave: "64 clients, repeat 2 of 3".
func (w Wave) String() string {
	if w.wave.Warmup {
		return fmt.Sprintf("a warm-up request, number %d", w.wave.Number)
	}
	return fmt.Sprintf("%s, repeat %d of %d", Tier{Clients: w.wave.Tier}, w.wave.Repeat, w.experiment.Plan.Sweep.Repeats)
}

// Labels are its tier's; a warm-up belongs to every tier, since a tier that is
// run alone must find the server as the whole run does.
func (w Wave) Labels() ginkgo.Labels {
	if w.wave.Warmup {
		return w.experiment.AnyTier()
	}
	return Tier{Clients: w.wave.Tier}.Labels()
}

// Timeout is the time limit on the wave's spec.
func (w Wave) Timeout() ginkgo.NodeTimeout {
	e := w.experiment
	return ginkgo.NodeTimeout(e.settleLimit() + e.Plan.Scaled(e.Plan.Timeouts.Connect) + e.Plan.Scaled(e.Plan.Timeouts.Request) + overhead)
}

func (e *Experiment) settleLimit() time.Duration {
	if e.Plan.Sweep.Settle.None {
		return 0
	}
	return e.Plan.Scaled(e.Plan.Sweep.Settle.Idle)
}

// Run settles the server, releases the wave, and returns its attempts once
// they are on disk. It fails nothing by itself: matchers judge.
func (w Wave) Run(ctx context.Context) record.Population {
	ginkgo.GinkgoHelper()
	e, r := w.experiment, w.experiment.current
	if r == nil || r.place.Number != w.place.Number {
		ginkgo.Fail("the wave's server was not started: BeforeAll must start its lifecycle")
	}
	items, err := e.items(w, r.arm)
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	r.executed++
	e.progress.wave(e.Place(w.place)+": "+w.String(), len(items))
	settled := load.Settle(ctx, r.lifecycle.Clock(), e.idleness(r))
	wave, requests := load.Burst{
		Place: w.place, Wave: w.wave, Executed: r.executed, Lane: e.Plan.Workload.Lane,
		Client: r.client, Target: r.target, Items: items,
		Connect: e.Plan.Scaled(e.Plan.Timeouts.Connect), Timeout: e.Plan.Scaled(e.Plan.Timeouts.Request),
		Clock: r.lifecycle.Clock(), Settle: settled, OnOutcome: e.progress.ended,
	}.Release(ctx)
	r.abandoned = load.Abandoned(requests)
	e.interrupted = e.interrupted || wave.Status == "interrupted"
	if first, last, ok := load.Span(requests); ok {
		r.lifecycle.Served(first, last)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	wave, requests, err = e.store.AppendWave(wave, requests)
	e.kept.Waves = append(e.kept.Waves, wave)
	e.kept.Requests = append(e.kept.Requests, requests...)
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	return record.Run{Requests: requests}.Of(wave)
}

func (e *Experiment) idleness(r *running) load.Idleness {
	i := load.Idleness{Limit: e.settleLimit(), Poll: e.Plan.Timeouts.Poll.D(), Gone: r.lifecycle.Server().Done(), Abandoned: r.abandoned}
	if path := *r.arm.Engine.Metrics; path != "" {
		url := r.target.BaseURL + path
		i.Gauges = func(ctx context.Context) (telemetry.Gauges, error) { return telemetry.ReadGauges(ctx, url) }
	} else {
		i.Probe = func(ctx context.Context) error {
			return load.Probe(ctx, r.client, r.target, e.Plan.Model.ServedAs, r.lifecycle.Clock(), e.settleLimit())
		}
	}
	return i
}

// items are a wave's requests: prompt (ordinal−1) mod the set's size, the same
// in every wave and in both arms.
func (e *Experiment) items(w Wave, arm plan.Arm) ([]load.Item, error) {
	var items []load.Item
	for ordinal := 1; ordinal <= w.wave.Tier; ordinal++ {
		prompt := workloads.For(e.prompts, ordinal)
		request, err := client.NewChatRequest(client.ChatParams{
			Model: e.Plan.Model.ServedAs, Messages: []client.Message{{Role: "user", Content: prompt.Text}},
			MaxTokens: e.Plan.Workload.MaxTokens, Temperature: e.Plan.Workload.Temperature, Seed: e.Plan.Seed,
			TopP: e.Plan.Sampling.TopP, RepetitionPenalty: e.Plan.Sampling.RepetitionPenalty,
			Exact: e.Plan.Workload.Lane == plan.Fixed, TokenIDs: *arm.TokenIDs,
		})
		if err != nil {
			return nil, err
		}
		items = append(items, load.Item{PromptID: prompt.ID, Request: request})
	}
	return items, nil
}
