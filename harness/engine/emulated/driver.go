package emulated

import (
	"sync"
	"time"

	"assay/harness/engine/emulated/scheduler"
)

// driver runs a scheduler in real time. Deadlines are absolute: the next step
// ends a step's time after the last one's planned end, so that what a timer
// overshoots is never added up.
type driver struct {
	config Config

	mu      sync.Mutex
	s       *scheduler.Scheduler
	load    scheduler.Load
	next    int
	tickets map[int]*ticket
	wake    chan struct{}
	quit    chan struct{}
}

// ticket is one request's place in the scheduler; its counts are the driver's,
// under its lock.
type ticket struct {
	id     int
	given  int
	signal chan struct{} // a token was given since the last look
}

func newDriver(c Config) *driver {
	return &driver{
		config: c, s: scheduler.New(c.Parameters, c.Seed), tickets: map[int]*ticket{},
		wake: make(chan struct{}, 1), quit: make(chan struct{}),
	}
}

// submit queues a request.
func (d *driver) submit(promptTokens, outputTokens int) *ticket {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next++
	t := &ticket{id: d.next, signal: make(chan struct{}, 1)}
	d.tickets[t.id] = t
	d.s.Add(scheduler.Job{ID: t.id, PromptTokens: promptTokens, OutputTokens: outputTokens})
	d.load = d.s.Load()
	select {
	case d.wake <- struct{}{}:
	default:
	}
	return t
}

// abandon says that nobody reads a request's tokens any more; the scheduler
// forgets it too, unless the server finishes what it has begun.
func (d *driver) abandon(t *ticket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.tickets, t.id)
	if !d.config.Finish {
		d.s.Cancel(t.id)
		d.load = d.s.Load()
	}
}

// given is how many tokens the request has so far.
func (d *driver) given(t *ticket) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return t.given
}

func (d *driver) gauges() scheduler.Load {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.load
}

func (d *driver) stop() { close(d.quit) }

// run takes steps until stop.
func (d *driver) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	at := time.Now()
	for {
		d.mu.Lock()
		step, busy := d.s.Next()
		d.mu.Unlock()
		if !busy {
			select {
			case <-d.wake:
				at = time.Now()
				continue
			case <-d.quit:
				return
			}
		}
		at = at.Add(d.config.real(step.Takes))
		timer.Reset(time.Until(at))
		select {
		case <-timer.C:
		case <-d.quit:
			return
		}
		d.give(step)
	}
}

func (d *driver) give(step scheduler.Step) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range step.Gives {
		t := d.tickets[id]
		if t == nil {
			continue // its client has left
		}
		t.given++
		select {
		case t.signal <- struct{}{}:
		default:
		}
	}
	for _, id := range step.Done {
		delete(d.tickets, id)
	}
	d.load = d.s.Load()
}
