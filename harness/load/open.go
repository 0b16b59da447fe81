package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"assay/harness/arrival"
	"assay/harness/client"
	"assay/harness/clock"
	"assay/harness/record"
)

// Open is an open loop: each request is released at its own moment, whatever
// became of those before it. A closed loop waits for a slow server and so does
// not ask it while it is slow; its percentiles leave out the very requests that
// would have waited (coordinated omission; Schroeder, Wierman and
// Harchol-Balter, Open Versus Closed: A Cautionary Tale, NSDI 2006).
//
// Every scheduled arrival becomes exactly one record. Its scheduled_at is the
// moment that was drawn and its sent_at the first byte that was written, so
// that schedule_delay shows whatever this side added: a late timer, a
// connection that was not open in time, the limit on what is in flight.
// Latencies that a user sees count from scheduled_at.
type Open struct {
	Burst                     // Items are in the order of the arrivals, one for each
	Schedule arrival.Schedule // its warm-up decides which records are warm-up

	// DialAhead is how long before its moment a request's connection is opened;
	// 0: it is opened at its moment, and the opening is in schedule_delay, and
	// in dial_ns by itself. Against a server on the same host at 200 requests a
	// second, opening at the moment made schedule_delay 0.38 ms in the median
	// and 2.1 ms at p99, and opening 50 ms ahead 0.14 ms and 0.92 ms; over a network it is a round trip that is
	// saved, and two more under TLS. A server that limits its connections, or
	// that closes those on which nothing comes, sees the difference.
	DialAhead time.Duration
	// Limit is the most requests in flight, 0: none. What arrives beyond it is
	// held back and sent in its order as others end, on a connection that is
	// opened then; its timeout counts from its own moment still.
	Limit int
	// Drop gives an arrival that finds Limit in flight up instead, at once.
	Drop bool
}

// Why an attempt was given up by this side; they begin its record's error,
// see [record.Request.Dropped] and [record.Request.Drained].
var (
	ErrDropped = errors.New(record.DroppedError + "as many requests as the limit allows were in flight at its moment")
	ErrDrained = errors.New(record.DrainedError + "it had not ended when the drain's limit was reached")
	errHeld    = errors.New("held back by the limit on requests in flight until its timeout had passed")
	errStopped = errors.New("the run was stopped before its moment")
	errBroken  = errors.New("not asked: the turn before it was not answered")
	errLate    = errors.New("not asked: its moment came after the end of the measurement")
)

// Check says everything that can't be released.
func (o Open) Check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("open loop: "+format, args...)) }
	if len(o.Items) != len(o.Schedule.Offsets) {
		fault("there are %d requests for %d arrivals: give one for each", len(o.Items), len(o.Schedule.Offsets))
	}
	if o.DialAhead < 0 {
		fault("connections are to be opened %s ahead: write 0 or more", o.DialAhead)
	}
	if o.Limit < 0 {
		fault("the limit on requests in flight is %d: write 1 or more, or 0 for none", o.Limit)
	}
	if o.Drop && o.Limit == 0 {
		fault("arrivals are to be dropped at a limit, and there is none: set it")
	}
	return errors.Join(faults...)
}

// Release runs the schedule, waits for what is under way up to the drain's
// limit, and returns what was seen: the record of the whole and one for each
// arrival, in their order. It panics on what [Open.Check] refuses. A cancelled
// ctx ends all that is left as cancelled; what had not come to its moment by
// then is recorded as ended at it.
//
// Nothing is decoded before the last attempt has ended. Until then the bytes of
// all responses are held, about 9 KiB for each attempt and what it received
// beyond that; each is let go once it is decoded.
func (o Open) Release(ctx context.Context) (record.Wave, []record.Request) {
	if err := o.Check(); err != nil {
		panic(err)
	}
	runtime.GC() // what was there before is not to be collected in the run
	keeper := keepTime(o.Clock)
	load := watchLoad(nil)
	// The first connections are opened before the schedule starts.
	r := &openRun{Open: o, start: o.Clock.Now() + int64(o.DialAhead), moments: make([]int64, len(o.Items)), raws: make([]*client.Raw, len(o.Items)), ends: make([]int64, len(o.Items)), whys: make([]error, len(o.Items)), gate: gate{limit: o.Limit, drop: o.Drop}}
	for i, offset := range o.Schedule.Offsets {
		r.moments[i] = r.start + offset
	}
	attempts, drained := context.WithCancelCause(ctx)
	limit := time.AfterFunc(time.Duration(r.start+o.Schedule.End+o.Schedule.Drain-o.Clock.Now()), func() {
		drained(fmt.Errorf("%w, %s after the end of the measurement", ErrDrained, time.Duration(o.Schedule.Drain)))
	})
	var dispatched sync.WaitGroup
	dispatched.Go(func() { r.dispatch(attempts) })
	dispatched.Wait()
	r.ended.Wait()
	limit.Stop()
	drained(nil)
	facts := load.facts()
	readings := keeper.stop()
	return r.records(ctx, readings, facts)
}

// openRun is one release under way.
type openRun struct {
	Open
	start   int64   // of the schedule, ns on the clock
	moments []int64 // ns on the clock; of what follows another, once that has ended
	raws    []*client.Raw
	ends    []int64 // ns on the clock, when each had returned
	whys    []error // why this side gave each up; nil: it did not
	gate    gate
	ended   sync.WaitGroup
}

func (r *openRun) moment(i int) int64 { return r.moments[i] }

// ahead is when the attempt of an index begins.
func (r *openRun) ahead(i int) int64 { return r.moment(i) - int64(r.DialAhead) }

// dispatch walks through the schedule: it begins each attempt ahead of its
// moment, and lets it go at it. It has a thread of its own, which can sleep
// precisely without keeping a processor busy.
func (r *openRun) dispatch(ctx context.Context) {
	runtime.LockOSThread() // for good: its timers were made precise, and it ends with this goroutine
	preciseTimers()
	var own []int // those that come by themselves
	for i := range r.raws {
		if !r.Schedule.Follows(i) {
			own = append(own, i)
		}
	}
	places := make([]*place, len(own))
	begun := 0
	for n, i := range own {
		for begun < len(own) && r.ahead(own[begun]) <= r.moment(i) {
			waitUntil(ctx, r.Clock, r.ahead(own[begun]))
			p := newPlace()
			places[begun] = p
			at := own[begun]
			r.ended.Go(func() { r.attempt(ctx, at, p) })
			begun++
		}
		waitUntil(ctx, r.Clock, r.moment(i))
		r.gate.arrive(places[n])
	}
}

// follow has the attempt of an index come once the one before it has ended and
// its user has thought. It is not asked if that one was not answered, or if its
// moment lies behind the measurement, in which nothing is released.
func (r *openRun) follow(ctx context.Context, i int) {
	r.moments[i] = r.ends[i-1] + r.Schedule.Thinks[i]
	var never error
	switch {
	case r.moment(i) >= r.start+r.Schedule.End:
		never = errLate
	case !r.answered(i - 1):
		never = errBroken
	}
	p := newPlace()
	if never != nil {
		p.verdict <- never
		r.ended.Go(func() { r.attempt(ctx, i, p) })
		return
	}
	r.ended.Go(func() {
		waitUntil(ctx, r.Clock, r.ahead(i))
		r.attempt(ctx, i, p)
	})
	r.ended.Go(func() {
		waitUntil(ctx, r.Clock, r.moment(i))
		r.gate.arrive(p)
	})
}

// answered says whether an attempt was answered whole, which only the events of
// its response say: one that was read to its end may hold an error.
func (r *openRun) answered(i int) bool {
	var seen record.Request
	r.raws[i].Decode(&seen, nil)
	return seen.Outcome == record.OK
}

// attempt makes the attempt of an index, and has the one come that follows it.
func (r *openRun) attempt(ctx context.Context, i int, p *place) {
	attempts := ctx
	var conn *client.Conn
	// Where it would be held back anyway, a connection would only lie open.
	// One whose verdict is known already will never be sent.
	if r.DialAhead > 0 && len(p.verdict) == 0 && r.gate.free() {
		conn = r.open(ctx)
	}
	why := r.await(ctx, i, p)
	if why != nil {
		// What is not to be sent goes the way of what is cancelled.
		never, cancel := context.WithCancelCause(ctx)
		cancel(why)
		ctx = never
	}
	if conn == nil {
		conn = r.open(ctx)
	}
	r.raws[i] = conn.Do(ctx, r.Clock, r.moment(i), r.Timeout, r.Items[i].Request)
	r.ends[i] = r.Clock.Now()
	if why == nil && r.raws[i].Outcome() == record.Cancelled {
		why = context.Cause(ctx) // it may have been opening its connection, whose error says less
	}
	r.whys[i] = why
	_ = conn.Close() // what is not sent leaves its own open
	r.gate.leave(p)
	if r.OnOutcome != nil {
		r.OnOutcome(r.raws[i].Outcome())
	}
	r.ends[i] = max(r.ends[i], r.moment(i)) // what is never asked ends at its moment
	if next := i + 1; next < len(r.raws) && r.Schedule.Follows(next) {
		r.follow(attempts, next)
	}
}

func (r *openRun) open(ctx context.Context) *client.Conn {
	opening, cancel := context.WithTimeout(ctx, r.Connect)
	defer cancel()
	return r.Client.Dial(opening, r.Target)
}

// await returns when the attempt may be sent, or why it never will be.
func (r *openRun) await(ctx context.Context, i int, p *place) error {
	timeout := time.NewTimer(time.Duration(r.moment(i) + int64(r.Timeout) - r.Clock.Now()))
	defer timeout.Stop()
	select {
	case why := <-p.verdict:
		if why == nil && ctx.Err() != nil {
			why = context.Cause(ctx)
		}
		return why
	case <-timeout.C:
		return errHeld
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// records decodes what was seen.
func (r *openRun) records(ctx context.Context, readings []clock.Reading, facts record.ClientLoad) (record.Wave, []record.Request) {
	whole := clock.Conversion{First: readings[0], Last: readings[len(readings)-1]}
	requests := make([]record.Request, len(r.raws))
	for i, raw := range r.raws {
		one := &requests[i]
		*one = record.Request{
			Lifecycle: r.Place.Number, Pair: r.Place.Pair, Position: r.Place.Position, Arm: r.Place.Arm, Lane: string(r.Lane),
			Wave: r.Wave.Number, Rate: r.Wave.Rate, Repeat: r.Wave.Repeat, Warmup: !r.Schedule.Measured(r.moment(i) - r.start),
			Ordinal: i + 1, PromptID: r.Items[i].PromptID,
		}
		raw.Decode(one, around(readings, whole, r.moment(i), r.ends[i]))
		r.raws[i] = nil
		r.explain(one, r.whys[i])
	}
	return r.wave(ctx, r.start, whole, facts, requests), requests
}

// explain says of an attempt that was not sent why that was.
func (r *openRun) explain(one *record.Request, why error) {
	if why == nil || one.SentAt != nil || one.Outcome != record.Cancelled {
		return
	}
	text := why.Error()
	one.Error = &text
	if errors.Is(why, errHeld) {
		one.Outcome = record.Timeout
		one.Nulls["sent_at_ns"] = errHeld.Error()
		one.EndedAt = max(one.EndedAt, one.ScheduledAt+int64(r.Timeout)) // a timer may fire too early by what two readings differ
	}
	switch {
	case errors.Is(why, errBroken) || errors.Is(why, errLate):
		one.EndedAt = one.ScheduledAt
	case one.EndedAt < one.ScheduledAt:
		text = errStopped.Error() + ": " + text
		one.EndedAt = one.ScheduledAt
	}
}
