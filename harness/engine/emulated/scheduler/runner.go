package scheduler

import (
	"sync"
	"sync/atomic"
	"time"

	"assay/harness/engine/emulated/alarm"
)

// Runner drives a scheduler on the process's clock, scaled: the thin layer
// between the model and a server. A step ends its own time after the last one's
// planned end, and a job's time is that of its Submit, whenever the runner gets
// to see either: so what an alarm is late, or a busy machine, is never added
// up, and the tokens come when Simulate says. Its methods but Run are safe for
// several goroutines.
type Runner struct {
	scale float64
	alarm alarm.Alarm
	epoch time.Time // 0 on the server's own clock
	wake  chan struct{}
	quit  chan struct{}
	once  sync.Once

	mu      sync.Mutex
	s       *Scheduler
	last    int
	reached time.Duration // when the last request did: the scheduler takes them in their order
	tickets map[int]*Ticket
}

// Ticket is one request's place in a runner.
type Ticket struct {
	id      int
	arrived time.Duration
	tokens  chan struct{}
	given   atomic.Int64
	first   atomic.Int64 // ns since it arrived
	newest  atomic.Int64
}

// NewRunner makes a runner of a scheduler that it owns from then on. scale is
// emulated seconds per second of the alarm's clock. Run has to be called.
func NewRunner(s *Scheduler, scale float64, a alarm.Alarm) *Runner {
	return &Runner{
		scale: scale, alarm: a, epoch: time.Now(), s: s, wake: make(chan struct{}, 1), quit: make(chan struct{}), tickets: map[int]*Ticket{},
	}
}

// Submit queues a request that reached the server at this moment; its ID is the
// runner's.
func (r *Runner) Submit(j Job) *Ticket { return r.SubmitAt(j, time.Now()) }

// SubmitAt is Submit for a request that reached the server a little earlier,
// so that what was done with it since then is part of its time and not added to
// it. No request is earlier than one that was submitted before it.
func (r *Runner) SubmitAt(j Job, reached time.Time) *Ticket {
	t := &Ticket{tokens: make(chan struct{}, 1)}
	r.mu.Lock()
	r.last++
	r.reached = max(r.reached, time.Duration(float64(reached.Sub(r.epoch))*r.scale))
	t.id, t.arrived = r.last, r.reached
	r.tickets[t.id] = t
	j.ID = t.id
	r.s.Add(j, t.arrived)
	r.mu.Unlock()
	signal(r.wake)
	return t
}

// Abandon says that nobody reads a request's tokens any more. The server
// forgets the request, or goes on with it if finish is set. It does nothing to
// one that has all its tokens.
func (r *Runner) Abandon(t *Ticket, finish bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !finish && r.tickets[t.id] != nil {
		delete(r.tickets, t.id)
		r.s.Cancel(t.id)
	}
}

// Given is how many tokens the request has so far.
func (t *Ticket) Given() int { return int(t.given.Load()) }

// Tokens takes a signal when there are tokens that Given did not count when it
// was last called.
func (t *Ticket) Tokens() <-chan struct{} { return t.tokens }

// First is the emulated time from the request's submission to its first token;
// 0 before there is one.
func (t *Ticket) First() time.Duration { return time.Duration(t.first.Load()) }

// Newest is the emulated time from the request's submission to its newest
// token; 0 before there is one.
func (t *Ticket) Newest() time.Duration { return time.Duration(t.newest.Load()) }

// Load reads the gauges and counters.
func (r *Runner) Load() Load {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.s.Load()
}

// Close ends Run; requests get no more tokens.
func (r *Runner) Close() {
	r.once.Do(func() {
		close(r.quit)
		r.alarm.Close()
	})
}

// Run takes steps until Close.
func (r *Runner) Run() {
	now := time.Duration(0) // on the server's own clock; it stands still while the server is idle
	for {
		r.mu.Lock()
		takes, busy := r.s.Begin(now)
		r.mu.Unlock()
		if !busy {
			select {
			case <-r.wake:
				continue
			case <-r.quit:
				return
			}
		}
		now += takes
		if !r.alarm.Wait(r.epoch.Add(time.Duration(float64(now) / r.scale))) {
			return
		}
		r.end(now)
	}
}

func (r *Runner) end(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, token := range r.s.End() {
		t := r.tickets[token.ID]
		if t.given.Load() == 0 {
			t.first.Store(int64(now - t.arrived))
		}
		t.newest.Store(int64(now - t.arrived))
		t.given.Add(1)
		signal(t.tokens)
		if token.Last {
			delete(r.tickets, token.ID)
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
