package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"assay/harness/clock"
	"assay/harness/engine"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/harness/telemetry"
)

// Config is what one lifecycle is made of.
type Config struct {
	Run      string         // the run's name, see [engine.Launch]
	Place    plan.Lifecycle // its place in the schedule
	Executed int            // from 1: place among the lifecycles that really ran
	Arm      plan.Arm       // with every ${VAR} expanded
	Engine   engine.Engine
	Timeouts plan.Timeouts // already in this machine's time
	Scale    float64       // the plan's time_scale
	LogDir   string        // where the server's log goes
	Redact   *Redactor
	// Undisturbed asks the server who it is when its work is done, just before
	// it is stopped, and not between its readiness and its first request: in a
	// crossover that time counts.
	Undisturbed bool
	// Caches are the states that the plan declares; nil: none.
	Caches *plan.Caches
	// Telemetry is what is looked at beside the load; nil: nothing.
	Telemetry *plan.Telemetry
}

// Lifecycle is a server between its invocation and its removal. Start makes
// one; Stop ends it and completes its record.
type Lifecycle struct {
	config Config
	clock  clock.Clock
	log    *Log
	server engine.Server
	watch  *telemetry.Watch
	gpus   map[string]record.Fact // the driver and the GPUs, or why they are not known

	mu       sync.Mutex
	moments  map[engine.Phase]engine.Moment
	identity engine.Identity
	caches   map[string]record.Fact
	err      error
	stopped  bool
	record   record.Lifecycle
}

// Start launches the server and waits until it is healthy. The lifecycle is
// returned with the error too: it must be stopped, and its record says how
// far it came. What the server printed last is in the error.
func Start(ctx context.Context, c Config) (*Lifecycle, error) {
	l := &Lifecycle{config: c, clock: clock.Start(), moments: map[engine.Phase]engine.Moment{}}
	l.mark(engine.Moment{Phase: engine.Invoked, At: l.clock.Time(0), Provenance: string(record.ClientObserved)})
	l.look()
	name := fmt.Sprintf("%02d-%s", c.Place.Number, c.Arm.Name)
	log, err := OpenLog(c.LogDir, name+".log", c.Redact)
	if err != nil {
		return l, l.fail(err)
	}
	l.log = log
	launching, cancel := context.WithTimeout(ctx, c.Timeouts.Image.D()+c.Timeouts.Ready.D())
	defer cancel()
	server, err := c.Engine.Launch(launching, engine.Launch{
		Run: c.Run, Name: name, Logs: log, Mark: l.mark, Stop: c.Timeouts.Stop.D(),
	})
	if err != nil {
		return l, l.fail(fmt.Errorf("%s did not start: %w", c.Arm.Name, err))
	}
	l.server = server
	l.watch.Serving(l.owns)
	left := c.Timeouts.Ready.D()
	if m, ok := l.moment(engine.Started); ok {
		left -= time.Since(m.At)
	}
	waiting, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	if err := engine.AwaitReady(waiting, server, engine.ReadyOptions{
		Path: c.Arm.Engine.Health, Poll: c.Timeouts.Poll.D(), Mark: l.mark,
	}); err != nil {
		return l, l.fail(fmt.Errorf("%s did not get ready within %s: %w%s", c.Arm.Name, c.Timeouts.Ready, err, l.lastLines(err)))
	}
	if !c.Undisturbed {
		l.ask(ctx)
	}
	if path := *c.Arm.Engine.Metrics; path != "" {
		l.watch.Follow(telemetry.NewScraper(server.URL()+path, engine.Authorizer(server)))
	}
	return l, nil
}

// look starts looking at the GPUs that the plan gives the server, before there
// is one: what they held before it belongs to the record too.
func (l *Lifecycle) look() {
	c := telemetry.Config{Clock: l.clock, Salt: l.config.Run}
	if t := l.config.Telemetry; t != nil {
		c.GPUs, c.Engine = t.GPU.D(), t.Engine.D()
	}
	if computer, ok := l.config.Engine.(engine.Computer); ok {
		gpus, devices, err := computer.Devices()
		switch {
		case err != nil:
			l.gpus = map[string]record.Fact{"gpu_driver": {Reason: err.Error()}}
		case len(devices) > 0:
			l.gpus = gpus.Facts(c.Salt, devices)
			c.Prober, c.Devices = telemetry.NVML{}, devices
		}
	}
	l.watch = telemetry.Begin(c)
}

// owns says whether a process on a GPU is the server's.
func (l *Lifecycle) owns(pid int) (owns, ok bool) {
	if holder, is := l.server.(engine.Holder); is {
		return holder.Owns(pid)
	}
	return false, false
}

// Watch is what is looked at beside the load. It is never nil, and ends with
// the lifecycle.
func (l *Lifecycle) Watch() *telemetry.Watch { return l.watch }

// ask keeps what the server says of itself.
func (l *Lifecycle) ask(ctx context.Context) {
	l.identity = l.server.Identity(ctx)
	l.caches = caches(l.config)
	path := *l.config.Arm.Engine.Metrics
	if path == "" || l.config.Arm.Engine.Emulated != nil {
		return
	}
	if on, ok := telemetry.PrefixCaching(ctx, l.server.URL()+path, engine.Authorizer(l.server)); ok {
		value := "off"
		if on {
			value = "on"
		}
		l.caches["prefix"] = record.Fact{Value: value, Provenance: record.EngineReported}
	}
}

// lastLines is what the server printed last, unless the error has it already.
func (l *Lifecycle) lastLines(err error) string {
	tail := l.log.Tail()
	if len(tail) == 0 || strings.Contains(err.Error(), record.Visible(tail[len(tail)-1])) {
		return ""
	}
	text := "\nits last lines:"
	for _, line := range tail[max(0, len(tail)-20):] {
		text += "\n  " + record.Visible(line)
	}
	return text
}

// Clock is the lifecycle's clock; it read zero at the invocation.
func (l *Lifecycle) Clock() clock.Clock { return l.clock }

// Server is the running server, nil if it never started.
func (l *Lifecycle) Server() engine.Server { return l.server }

// Died says whether the server has left without being asked, and how.
func (l *Lifecycle) Died() error {
	if l.server == nil {
		return nil
	}
	select {
	case <-l.server.Done():
		exit := l.server.Exit()
		if exit.Asked {
			return nil
		}
		return fmt.Errorf("%w: %s: %s%s", engine.ErrExited, l.config.Arm.Name, describe(exit), l.lastLines(engine.ErrExited))
	default:
		return nil
	}
}

func describe(e engine.Exit) string {
	switch {
	case e.OOMKilled:
		return "killed for memory"
	case e.Signal != "":
		return "ended by " + e.Signal
	case e.Code != nil:
		return fmt.Sprintf("exit code %d", *e.Code)
	case e.Reason != "":
		return e.Reason
	default:
		return "no exit code known"
	}
}

// Served notes a wave's span: the first request's first byte, and the last
// terminal moment, in ns on the lifecycle's clock.
func (l *Lifecycle) Served(firstSent, lastTerminal int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.moments[engine.FirstSent]; !ok {
		l.moments[engine.FirstSent] = engine.Moment{Phase: engine.FirstSent, At: l.clock.Time(firstSent), Provenance: string(record.ClientObserved)}
	}
	l.moments[engine.LastTerminal] = engine.Moment{Phase: engine.LastTerminal, At: l.clock.Time(lastTerminal), Provenance: string(record.ClientObserved)}
}

// Fail notes why the lifecycle is not a whole one; the first cause is kept.
func (l *Lifecycle) Fail(err error) { _ = l.fail(err) }

func (l *Lifecycle) fail(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	return err
}

func (l *Lifecycle) mark(m engine.Moment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.moments[m.Phase]; !ok {
		l.moments[m.Phase] = m
	}
}

func (l *Lifecycle) moment(p engine.Phase) (engine.Moment, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, ok := l.moments[p]
	return m, ok
}

// Stop stops and removes the server and returns the lifecycle's record, for
// the store to chain. ctx bounds the stop itself; it may be called again, and
// returns the same.
func (l *Lifecycle) Stop(ctx context.Context) (record.Lifecycle, error) {
	if l.stopped {
		return l.record, nil
	}
	l.stopped = true
	defer l.watch.Close()
	died := l.Died()
	if died != nil {
		_ = l.fail(died)
	} else if l.config.Undisturbed && l.server != nil {
		l.ask(ctx)
	}
	l.mark(engine.Moment{Phase: engine.StopRequested, At: time.Now(), Provenance: string(record.ClientObserved)})
	var stopErr error
	if l.log != nil {
		l.log.Stopping()
	}
	if l.server != nil {
		if stopErr = l.server.Stop(ctx); stopErr != nil {
			_ = l.fail(fmt.Errorf("%s was not stopped cleanly: %w", l.config.Arm.Name, stopErr))
		}
	}
	var logFacts *record.Log
	if l.log != nil {
		facts, err := l.log.Close()
		if err != nil {
			stopErr = errors.Join(stopErr, fmt.Errorf("the log of %s is not whole: %w", l.config.Arm.Name, err))
		}
		logFacts = &facts
	}
	l.record = l.toRecord(logFacts)
	return l.record, stopErr
}

// unseen says why a phase that never came is null.
var unseen = map[engine.Phase]string{
	engine.ImageReady:     "this engine has no image, or never came so far",
	engine.Created:        "this engine has no creation apart from its start, or never came so far",
	engine.Started:        "not started by this harness, or it never came so far",
	engine.EngineStarted:  "this engine does not report its own start",
	engine.FirstListening: "no HTTP answer was seen",
	engine.Ready:          "no healthy answer was seen",
	engine.FirstSent:      "no request was sent",
	engine.LastTerminal:   "no request was sent",
	engine.StopRequested:  "not stopped",
	engine.Exited:         "no exit was seen: this harness does not run the server, or it never ran",
	engine.Removed:        "nothing to remove, or the removal was not seen",
}

var order = []engine.Phase{
	engine.Invoked, engine.ImageReady, engine.Created, engine.Started, engine.EngineStarted, engine.FirstListening,
	engine.Ready, engine.FirstSent, engine.LastTerminal, engine.StopRequested, engine.Exited, engine.Removed,
}

func (l *Lifecycle) toRecord(log *record.Log) record.Lifecycle {
	c := l.config
	r := record.Lifecycle{
		Number: c.Place.Number, Executed: c.Executed, Pair: c.Place.Pair, Position: c.Place.Position,
		Arm: c.Arm.Name, Engine: c.Arm.Engine.Kind(), Status: "ran",
		Anchor: l.clock.Anchor().UTC().Format(time.RFC3339Nano), TimeScale: c.Scale,
		Lane: string(c.Place.Lane), Identity: map[string]record.Fact{}, Caches: l.caches, Log: log, Nulls: map[string]string{},
	}
	if r.Caches == nil {
		r.Caches = caches(c) // the server was never asked
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range order {
		m, ok := l.moments[p]
		if !ok {
			r.Moments = append(r.Moments, record.Moment{Phase: string(p), Reason: unseen[p]})
			continue
		}
		at := l.clock.At(m.At)
		r.Moments = append(r.Moments, record.Moment{Phase: string(p), At: &at, Provenance: record.Provenance(m.Provenance)})
	}
	for name, f := range l.identity {
		r.Identity[name] = record.Fact{Value: f.Value, Provenance: record.Provenance(f.Provenance), Reason: f.Reason}
	}
	for name, f := range l.gpus {
		r.Identity[name] = f
	}
	if len(l.identity) == 0 {
		r.Nulls["identity"] = "the server never got ready, so it was not asked"
	}
	if l.err != nil {
		r.Status, r.Error = "failed", c.Redact.Redact(l.err.Error())
		if errors.Is(l.err, context.Canceled) {
			r.Status = "interrupted"
		}
	}
	if l.server == nil {
		r.Nulls["exit"] = "no server was started"
	} else {
		e := l.server.Exit()
		r.Exit = &record.Exit{Code: e.Code, OOMKilled: e.OOMKilled, Signal: e.Signal, Asked: e.Asked, Reason: e.Reason}
		if !e.Asked {
			for _, line := range e.LastLines {
				r.Exit.LastLines = append(r.Exit.LastLines, c.Redact.Redact(line))
			}
		}
	}
	if log == nil {
		r.Nulls["log"] = "no log was begun"
	}
	return r
}

// compileCache is fresh where it lies in a container, which is new. A mount that
// the server may write to outlives it, and may hold what earlier ones compiled.
func compileCache(c *plan.Container) record.Fact {
	if target := c.Writable(); target != "" {
		return record.Fact{Reason: "not known: what is mounted at " + target + " outlives the container, and may hold what earlier ones compiled"}
	}
	return record.Fact{Value: "fresh: inside the container, which is new", Provenance: record.Declared}
}

// caches is what a lifecycle's start found warm or cold: what the engine is by
// itself, what the plan declares, and null with the reason where neither says
// it.
func caches(c Config) map[string]record.Fact {
	unknown := record.Fact{Reason: "not checked: no stable interface says it"}
	out := map[string]record.Fact{"page": unknown, "prefix": unknown}
	switch c.Arm.Engine.Kind() {
	case "container":
		out["compile"] = compileCache(c.Arm.Engine.Container)
		out["image"] = record.Fact{Value: "present before the start", Provenance: record.ClientObserved}
	case "emulated":
		for _, name := range []string{"page", "prefix", "compile"} {
			out[name] = record.Fact{Value: "none: emulated", Provenance: record.Emulated}
		}
		return out
	default:
		out["compile"] = unknown
	}
	if d := c.Caches; d != nil {
		for name, value := range map[string]string{"page": d.Page, "prefix": d.Prefix, "compile": d.Compile} {
			if value != "unknown" {
				out[name] = record.Fact{Value: value, Provenance: record.Declared}
			}
		}
	}
	return out
}
