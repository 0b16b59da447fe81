package telemetry

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"assay/harness/clock"
	"assay/harness/record"
)

// Config is what a watch looks at.
type Config struct {
	Clock clock.Clock
	Salt  string // of the GPUs' commitments
	// GPUs is how far apart two looks at a GPU are; 0: none is made.
	GPUs    time.Duration
	Prober  Prober
	Devices []Device
	// Engine is how far apart two looks at the engine's page are; 0: none.
	Engine time.Duration
}

// Watch looks at a lifecycle's GPUs from its beginning on, and at its engine's
// page from [Watch.Follow] on, each on a goroutine of its own, until Close. What
// was seen is handed out stretch by stretch.
type Watch struct {
	config  Config
	stop    context.CancelFunc
	ctx     context.Context
	running sync.WaitGroup
	release func()

	mu      sync.Mutex
	gpus    []*gpuSeries
	engine  *engineSeries
	scraper *Scraper
	owns    func(pid int) (owns, ok bool) // nil: there is no server yet
}

type gpuSeries struct {
	device     Device
	at, took   []int64
	failed     []record.FailedLook
	values     map[record.Reading][]*int64
	missing    map[string]string
	commitment string
	looked     [Bus + 1]int64 // when there was last a look so deep
	due        atomic.Bool    // a wave was released: the next look is a full one
	bound      chan struct{}  // a wave begins or ends: look now, at the counter too
}

// How far apart two looks of a depth are at most, however often there are
// looks: the dearer, the rarer, so that ten looks a second cost less than 1 % of
// a core. BenchmarkLook has what they cost.
const (
	fullEvery = time.Second
	busEvery  = 2 * time.Second
)

type engineSeries struct {
	at, took []int64
	failed   []record.FailedLook
	values   map[string][]*float64
}

// Begin starts looking at the GPUs.
func Begin(c Config) *Watch {
	w := &Watch{config: c, release: func() {}}
	w.ctx, w.stop = context.WithCancel(context.Background())
	if c.GPUs <= 0 || c.Prober == nil {
		return w
	}
	if holder, ok := c.Prober.(Holder); ok {
		if release, err := holder.Hold(); err == nil {
			w.release = release
		} // else each look says why
	}
	for _, d := range c.Devices {
		s := &gpuSeries{device: d, commitment: d.Commitment(c.Salt), bound: make(chan struct{}, 1)}
		s.reset()
		w.gpus = append(w.gpus, s)
		w.running.Go(func() { w.every(c.GPUs, s.bound, func(asked bool) { w.lookAtGPU(s, asked) }) })
	}
	return w
}

// Serving says that there is a server now, and which of this machine's
// processes are its own; ok is false where that can't be told.
func (w *Watch) Serving(owns func(pid int) (owns, ok bool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owns = owns
}

// Follow starts looking at an engine's page, the first time one interval from
// now: nothing is asked of a server between its readiness and its first
// request. The watch closes the scraper.
func (w *Watch) Follow(s *Scraper) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.config.Engine <= 0 || w.scraper != nil {
		return
	}
	w.scraper, w.engine = s, &engineSeries{values: map[string][]*float64{}}
	w.running.Go(func() { w.every(w.config.Engine, nil, func(bool) { w.lookAtEngine() }) })
}

// every calls look once each interval, and whenever it is asked to, until the
// watch is closed. A look that takes longer than the interval delays the next
// one: none is made up for.
func (w *Watch) every(interval time.Duration, ask <-chan struct{}, look func(asked bool)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-ask:
			look(true)
		case <-tick.C:
			look(false)
		}
	}
}

// Released says that a wave was released just now: the next look at each GPU is
// a full one, so that a wave in which there is any look has one of those. It
// returns at once, and may be called from anywhere.
func (w *Watch) Released() {
	for _, s := range w.gpus {
		s.due.Store(true)
	}
}

// Bound says that a wave is about to be released, or has just ended: each GPU is
// looked at now, with its energy counter, whose growth between the two is the
// wave's. It returns at once, and may be called from anywhere.
func (w *Watch) Bound() {
	for _, s := range w.gpus {
		select {
		case s.bound <- struct{}{}:
		default: // it was asked for just before, and has not begun
		}
	}
}

// depth is how deep the look at a moment goes. due is from before the moment, so
// that the look which a release asks for does not begin before it. At a bound
// nothing is asked that takes long.
func (s *gpuSeries) depth(bound, due bool, at int64) Depth {
	ago := func(d Depth) time.Duration {
		if s.looked[d] == 0 {
			return math.MaxInt64
		}
		return time.Duration(at - s.looked[d])
	}
	depth := Quick
	switch {
	case bound:
		depth = Counter
	case ago(Bus) >= busEvery:
		depth = Bus
	case due || ago(Full) >= fullEvery:
		depth = Full
	}
	for d := range depth + 1 {
		s.looked[d] = at
	}
	return depth
}

func (w *Watch) lookAtGPU(s *gpuSeries, bound bool) {
	due := s.due.Swap(false)
	at := w.config.Clock.Now()
	depth := s.depth(bound, due, at)
	look, err := w.config.Prober.Look(s.device, depth)
	took := w.config.Clock.Now() - at
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		s.failed = fail(s.failed, at, err)
		if due {
			s.due.Store(true) // it is owed still
		}
		return
	}
	if depth >= Full {
		w.count(&look)
	}
	s.at, s.took = append(s.at, at), append(s.took, took)
	for _, r := range record.Readings {
		if v, ok := look.Values[r]; ok && depthOf(r) <= depth {
			s.values[r] = append(s.values[r], &v)
			continue
		}
		s.values[r] = append(s.values[r], nil)
		switch reason := look.Missing[r]; {
		case depthOf(r) > depth && s.missing[string(r)] == "": // what a deeper look said weighs more
			s.missing[string(r)] = record.NotLooked
		case depthOf(r) > depth:
		case reason != "":
			s.missing[string(r)] = reason
		default:
			s.missing[string(r)] = "the driver did not say"
		}
	}
}

// count tells a look's processes apart: the server's own, those of others, and
// those of which it can't be told, as all are while there is no server.
func (w *Watch) count(look *Look) {
	if look.Missing[record.OtherProcesses] != "" {
		return
	}
	var counts struct{ server, other, unknown, memory int64 }
	for _, p := range look.Processes {
		owns, ok := false, false
		if w.owns != nil {
			owns, ok = w.owns(p.PID)
		}
		switch {
		case !ok:
			counts.unknown++
		case owns:
			counts.server++
		default:
			counts.other++
			if p.MemoryBytes != nil {
				counts.memory += int64(*p.MemoryBytes)
			}
		}
	}
	look.Values[record.ServerProcesses], look.Values[record.OtherProcesses] = counts.server, counts.other
	look.Values[record.UnknownProcesses], look.Values[record.OtherProcessMemory] = counts.unknown, counts.memory
}

// fail adds a failed look to those before it.
func fail(before []record.FailedLook, at int64, err error) []record.FailedLook {
	if n := len(before); n > 0 && before[n-1].Reason == err.Error() {
		before[n-1].Times++
		return before
	}
	return append(before, record.FailedLook{At: at, Times: 1, Reason: err.Error()})
}

func (w *Watch) lookAtEngine() {
	at := w.config.Clock.Now()
	page, err := w.scraper.Page(w.ctx)
	if w.ctx.Err() != nil {
		return // it was closed meanwhile, which says nothing about the page
	}
	took := w.config.Clock.Now() - at
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.engine
	if err != nil {
		s.failed = fail(s.failed, at, err)
		return
	}
	for name, v := range page.Values {
		for len(s.values[name]) < len(s.at) {
			s.values[name] = append(s.values[name], nil) // it was not there before
		}
		s.values[name] = append(s.values[name], &v)
	}
	s.at, s.took = append(s.at, at), append(s.took, took)
	for name := range s.values {
		for len(s.values[name]) < len(s.at) {
			s.values[name] = append(s.values[name], nil)
		}
	}
}

// calm is how long the engine gets to say that it is idle once a wave has
// ended: its counters follow its answers by some milliseconds.
const calm = time.Second

// Page reads the engine's page now. Where idle is set it is read until it says
// that nothing runs or waits, for a second at most; the page says whether it did.
// It is nil, with the reason, where there is none.
func (w *Watch) Page(ctx context.Context, idle bool) (*record.Page, string) {
	w.mu.Lock()
	scraper := w.scraper
	w.mu.Unlock()
	if scraper == nil {
		return nil, "the engine's page is not read"
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for until := time.Now().Add(calm); ; {
		at := w.config.Clock.Now()
		page, err := scraper.Page(ctx)
		if err != nil {
			return nil, err.Error()
		}
		page.At, page.Idle = at, idleBy(page)
		// A page that doesn't say is not read again: it never will.
		if !idle || page.Idle == nil || *page.Idle || time.Now().After(until) {
			return &page, ""
		}
		select {
		case <-ctx.Done():
			return &page, ""
		case <-time.After(20 * time.Millisecond): // between two looks at a server that is still at work
		}
	}
}

// idleBy is whether a page says that nothing runs or waits; nil: it does not.
func idleBy(page record.Page) *bool {
	running, ok := page.Values[record.Running]
	waiting, has := page.Values[record.Waiting]
	if !ok || !has {
		return nil
	}
	idle := running+waiting == 0
	return &idle
}

// Cut hands out what was seen since the last cut, one line for each GPU and, if
// the engine is followed, one for its page. The caller says of which wave it
// is, and adds the pages around that.
func (w *Watch) Cut() ([]record.Telemetry, *record.EngineMetrics) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var gpus []record.Telemetry
	for i, s := range w.gpus {
		t := record.Telemetry{
			Stretch: stretch(w.config.GPUs, s.at, s.took, s.failed), Device: i, Commitment: s.commitment,
			Series: map[string][]*int64{}, Nulls: s.missing,
		}
		for _, r := range record.Readings {
			if len(s.at) > 0 {
				t.Series[string(r)] = s.values[r]
			}
		}
		s.reset()
		gpus = append(gpus, t)
	}
	if w.engine == nil {
		return gpus, nil
	}
	s := w.engine
	engine := &record.EngineMetrics{
		Stretch: stretch(w.config.Engine, s.at, s.took, s.failed), Series: s.values, Nulls: map[string]string{},
	}
	for name, values := range s.values {
		if slices.Contains(values, nil) {
			engine.Nulls[name] = "it was not on the page at each look"
		}
	}
	w.engine = &engineSeries{values: map[string][]*float64{}}
	return gpus, engine
}

func (s *gpuSeries) reset() {
	s.at, s.took, s.failed, s.values, s.missing = nil, nil, nil, map[record.Reading][]*int64{}, map[string]string{}
}

func stretch(interval time.Duration, at, took []int64, failed []record.FailedLook) record.Stretch {
	return record.Stretch{
		Interval: interval.Nanoseconds(), At: append([]int64{}, at...), Took: append([]int64{}, took...), Failed: append([]record.FailedLook{}, failed...),
	}
}

// Close ends all looking. What was not cut yet still can be.
func (w *Watch) Close() {
	w.stop()
	w.running.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.scraper != nil {
		w.scraper.Close()
	}
	w.release()
	w.release = func() {}
}

// Facts are the GPUs as the record names them: by salted commitment, with what
// else does not tell one from another of its kind.
func (g GPUs) Facts(salt string, devices []Device) map[string]record.Fact {
	reported := func(v any) record.Fact { return record.Fact{Value: v, Provenance: record.DeviceReported} }
	out := map[string]record.Fact{"gpu_driver": reported(g.Driver), "gpu_cuda": reported(g.CUDA)}
	for i, d := range devices {
		out[fmt.Sprintf("gpu_%d", i)] = reported(map[string]any{
			"name": d.Name, "memory_bytes": d.MemoryBytes, "compute_capability": d.ComputeCapability,
			"mig": d.MIG > 0, "commitment": d.Commitment(salt),
		})
	}
	return out
}
