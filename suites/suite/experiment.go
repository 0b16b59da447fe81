package suite

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"time"

	"github.com/onsi/ginkgo/v2"

	"assay/harness/engine"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/reports"
)

// Experiment is one plan as a suite runs it: a [Run] whose errors fail specs. A
// suite's file asks it for the places of the schedule, starts them, releases
// their waves and, at the end, asks for the evidence.
type Experiment struct {
	*Run
	Tiers []Tier

	file     string // of its plan
	begun    bool
	beginErr error
}

// Tier is one level of the swept variable.
type Tier struct {
	Clients int
	label   string
}

// String names the tier as a sentence does.
func (t Tier) String() string { return record.Clients(t.Clients) }

// Labels are the tier's Ginkgo labels: "tier:64".
func (t Tier) Labels() ginkgo.Labels { return ginkgo.Label(t.label) }

// newExperiment freezes a plan's file and draws its schedule. Nothing is run
// and nothing is written yet: Ginkgo builds every tree before it filters.
func newExperiment(file, filter string) (*Experiment, error) {
	p, err := plan.Load(file)
	if err != nil {
		return nil, err
	}
	run, err := NewRun(p, filter)
	if err != nil {
		return nil, err
	}
	if *resumeFlag != "" {
		dir, err := atRoot(*resumeFlag)
		if err != nil {
			return nil, err
		}
		if err := run.Resume(dir, *causeFlag); err != nil {
			return nil, err
		}
	}
	if file, err = filepath.Abs(file); err != nil { // Ginkgo stands in the suite's folder
		return nil, err
	}
	run.ProveClient()
	e := &Experiment{Run: run, file: file}
	for _, t := range p.Sweep.Tiers {
		e.Tiers = append(e.Tiers, Tier{Clients: t, label: p.TierLabel(t)})
	}
	return e, nil
}

// Labels are the plan's own: "cpu", "gpu", "emulated".
func (e *Experiment) Labels() ginkgo.Labels { return ginkgo.Label(e.Plan.Labels...) }

// AnyTier are the labels of all tiers, lanes or rates, and of the search, for a spec that judges whatever
// ran.
func (e *Experiment) AnyTier() ginkgo.Labels {
	var all ginkgo.Labels
	for _, t := range e.Tiers {
		all = append(all, t.Labels()...)
	}
	for _, lane := range e.Lanes() {
		all = append(all, LaneLabels(lane)...)
	}
	for _, r := range e.Rates() {
		all = append(all, r.Labels()...)
	}
	if e.Searches() {
		all = append(all, e.SearchLabels()...)
	}
	return all
}

// Lanes are a crossover's.
func (e *Experiment) Lanes() []plan.Lane {
	if e.Plan.Pairing == nil {
		return nil
	}
	return e.Plan.Pairing.Lanes.Each()
}

// LaneLabels are a lane's Ginkgo labels: "lane:fixed".
func LaneLabels(lane plan.Lane) ginkgo.Labels { return ginkgo.Label(plan.LaneLabel(lane)) }

// overhead is what a node's own deadline allows beyond what the plan declares,
// so that the plan's deadlines are the ones that are met.
const overhead = 30 * time.Second

// StartTimeout is the time limit on the node that starts a server. It stands
// on that node alone, since a first spec's own limit would include it.
func (e *Experiment) StartTimeout() ginkgo.NodeTimeout {
	t := e.timeouts()
	once := t.Image.D() + t.Ready.D() + t.Stop.D() + overhead
	if e.Plan.Pairing != nil && e.Plan.Pairing.Fitted() {
		once *= 2 // the server that counts the prompts comes first
	}
	if s := e.Plan.Workload.Source; s != nil && s.Segments() {
		once *= 3 // one that counts the texts' tokens, and where it can't the other arm's
	}
	return ginkgo.NodeTimeout(once)
}

// begin makes the bundle's place at the first start.
func (e *Experiment) begin(ctx context.Context) error {
	if e.begun {
		return e.beginErr
	}
	e.begun = true
	dir := ""
	if *outFlag != "" {
		if dir, e.beginErr = atRoot(filepath.Join(*outFlag, e.Plan.Name)); e.beginErr != nil {
			return e.beginErr
		}
	}
	e.beginErr = e.Begin(ctx, dir)
	return e.beginErr
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
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) {
		if err := e.Stop(ctx); err != nil {
			ginkgo.Fail(err.Error())
		}
	}, ginkgo.NodeTimeout(e.timeouts().Stop.D()+overhead))
	err := e.Run.Start(ctx, place)
	if errors.Is(err, engine.ErrUnavailable) {
		e.unavailable(err)
	}
	if err != nil {
		ginkgo.Fail(err.Error())
	}
}

func (e *Experiment) unavailable(err error) {
	ginkgo.GinkgoHelper()
	report := ginkgo.CurrentSpecReport()
	wanted, filterErr := asked(e.selection, report.Labels(), e.Plan.Labels)
	if filterErr != nil {
		ginkgo.Fail(filterErr.Error())
	}
	if wanted {
		ginkgo.Fail("the label filter asks for this, and it can't run here: " + err.Error())
	}
	ginkgo.Skip(err.Error())
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
func (w Wave) String() string { return w.experiment.describe(w.wave) }

// Labels are its tier's; a warm-up belongs to every tier, since a tier that is
// run alone must find the server as the whole run does.
func (w Wave) Labels() ginkgo.Labels {
	switch {
	case w.wave.Warmup:
		return w.experiment.AnyTier()
	case w.wave.Requests > 0:
		return LaneLabels(w.place.Lane)
	case w.wave.Open():
		return Rate{w.wave.Rate}.Labels()
	}
	return ginkgo.Label(w.experiment.Plan.TierLabel(w.wave.Tier))
}

// Timeout is the time limit on the wave's spec.
func (w Wave) Timeout() ginkgo.NodeTimeout {
	if w.wave.Open() {
		p := w.experiment.Plan
		return ginkgo.NodeTimeout(p.Scaled(p.OpenTime(w.wave.Rate)) + overhead)
	}
	return w.experiment.WaveTimeout(max(1, w.wave.Requests))
}

// WaveTimeout is the time limit on a spec that settles the server and then
// releases requests, so many of which follow one another.
func (e *Experiment) WaveTimeout(requests int) ginkgo.NodeTimeout {
	t := e.timeouts()
	return ginkgo.NodeTimeout(e.settleLimit() + time.Duration(requests)*(t.Connect.D()+t.Request.D()) + overhead)
}

// Run settles the server, releases the wave, and returns its attempts once
// they are on disk. It fails only if they could not be kept: matchers judge.
func (w Wave) Run(ctx context.Context) record.Population {
	ginkgo.GinkgoHelper()
	attempts, err := w.experiment.Wave(ctx, w.place, w.wave)
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	return attempts
}

// Evidence is the run's evidence with everything that is derived from it. The
// first call closes the records: what has not run by then is written down as
// such.
func (e *Experiment) Evidence() reports.Bundle {
	ginkgo.GinkgoHelper()
	if e.store == nil || e.started == 0 {
		ginkgo.Skip("no lifecycle was started, so there is nothing to judge")
	}
	bundle, err := e.Finish()
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	return bundle
}
