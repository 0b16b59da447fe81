package load

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"assay/harness/client"
	"assay/harness/clock"
	"assay/harness/plan"
	"assay/harness/record"
)

// Item is one request of a wave, in the order of the ordinals.
type Item struct {
	PromptID string
	Request  client.Request
}

// Burst is one wave about to be released.
type Burst struct {
	Place    plan.Lifecycle
	Wave     plan.Wave
	Executed int // from 1: place among the waves that this lifecycle really ran
	Lane     plan.Lane
	Client   *client.Client
	Target   client.Target
	Items    []Item
	Connect  time.Duration // limit on opening the connections
	Timeout  time.Duration // limit on one attempt, from the release on
	Clock    clock.Clock
	Settle   record.Settle
	// OnRelease is called just after the release, OnOutcome as each attempt ends,
	// both on the clock: they must return at once. They may be nil. An open loop
	// has no one release, and calls the second alone.
	OnRelease func()
	OnOutcome func(record.Outcome)
}

// Release opens the wave's connections, releases all its requests together,
// waits until the last has ended, and returns what was seen: the wave's record
// and one record for each request, always as many as there are items. A
// cancelled ctx ends the attempts that are under way as cancelled.
func (b Burst) Release(ctx context.Context) (record.Wave, []record.Request) {
	runtime.GC() // the last wave's garbage is not to be collected inside this one
	before := b.Clock.Read()
	conns := b.dial(ctx)
	raws := make([]*client.Raw, len(b.Items))
	release := make(chan struct{})
	var ready, ended sync.WaitGroup
	var releasedAt int64
	for i := range b.Items {
		ready.Add(1)
		ended.Go(func() {
			ready.Done()
			<-release
			raws[i] = conns[i].Do(ctx, b.Clock, releasedAt, b.Timeout, b.Items[i].Request)
			if b.OnOutcome != nil {
				b.OnOutcome(raws[i].Outcome())
			}
		})
	}
	ready.Wait()
	load := watchLoad(hold())
	releasedAt = b.Clock.Now()
	close(release)
	b.released()
	ended.Wait()
	facts := load.facts()
	conversion := clock.Conversion{First: before, Last: b.Clock.Read()}
	requests := b.decode(raws, func(int) *clock.Conversion { return &conversion })
	return b.wave(ctx, releasedAt, conversion, facts, requests), requests
}

func (b Burst) released() {
	if b.OnRelease != nil {
		b.OnRelease()
	}
}

// dial opens all connections, a few at a time so that a listener's queue is
// not what refuses them.
func (b Burst) dial(ctx context.Context) []*client.Conn {
	ctx, cancel := context.WithTimeout(ctx, b.Connect)
	defer cancel()
	conns := make([]*client.Conn, len(b.Items))
	slots := make(chan struct{}, 16)
	var all sync.WaitGroup
	for i := range conns {
		slots <- struct{}{}
		all.Go(func() {
			conns[i] = b.Client.Dial(ctx, b.Target)
			<-slots
		})
	}
	all.Wait()
	return conns
}

// decode makes the records, each with its own conversion. Everything here
// happens off the clock.
func (b Burst) decode(raws []*client.Raw, conversion func(i int) *clock.Conversion) []record.Request {
	requests := make([]record.Request, len(raws))
	for i, raw := range raws {
		requests[i] = record.Request{
			Lifecycle: b.Place.Number, Pair: b.Place.Pair, Position: b.Place.Position, Arm: b.Place.Arm, Lane: string(b.Lane),
			Wave: b.Wave.Number, Tier: b.Wave.Tier, Repeat: b.Wave.Repeat, Warmup: b.Wave.Warmup,
			Ordinal: i + 1, PromptID: b.Items[i].PromptID,
		}
		raw.Decode(&requests[i], conversion(i))
	}
	return requests
}

func (b Burst) wave(ctx context.Context, releasedAt int64, conversion clock.Conversion, load record.ClientLoad, requests []record.Request) record.Wave {
	w := record.Wave{
		Lifecycle: b.Place.Number, Arm: b.Place.Arm, Number: b.Wave.Number, Executed: b.Executed,
		Tier: b.Wave.Tier, Repeat: b.Wave.Repeat, Warmup: b.Wave.Warmup, Lane: string(b.Place.Lane), Requests: b.Wave.Requests, Status: "ran",
		Rate: b.Wave.Rate, Seed: b.Wave.Seed, Arrivals: b.Wave.Arrivals, ArrivalsSHA256: b.Wave.ArrivalsSHA256, Probe: b.Wave.Probe,
		Settle: &b.Settle, ReleasedAt: &releasedAt, Attempts: len(requests), Client: &load,
		ClockReadings: &record.ClockReadings{
			Before: record.ClockReading(conversion.First), After: record.ClockReading(conversion.Last), Stepped: conversion.Stepped(),
		},
		Nulls: map[string]string{},
	}
	switch {
	case b.Settle.Idle:
		carried := false
		w.CarryOver = &carried
	case b.Settle.Running != nil && b.Settle.Waiting != nil:
		carried := *b.Settle.Running+*b.Settle.Waiting > 0
		w.CarryOver = &carried
	default:
		w.Nulls["carry_over"] = "it was not seen whether the server was idle: " + b.Settle.Detail
	}
	lag, sent := ReleaseLag(requests)
	switch {
	case b.Wave.Open():
		w.Nulls["release_lag_ns"] = "the requests of an open loop are released each at its own moment"
	case b.Wave.Requests > 0:
		w.Nulls["release_lag_ns"] = "the requests of a sequence are not released together"
	case sent:
		w.ReleaseLag = &lag
	default:
		w.Nulls["release_lag_ns"] = "no request was sent"
	}
	if err := context.Cause(ctx); err != nil {
		w.Status, w.Reason = "interrupted", "the run was stopped inside the wave: "+err.Error()
	}
	return w
}

// AbsentNulls are the nulls of a wave that was not released.
func AbsentNulls(reason string) map[string]string {
	nulls := map[string]string{}
	for _, field := range []string{"settle", "carry_over", "released_at_ns", "release_lag_ns", "clock_readings", "client"} {
		nulls[field] = reason
	}
	return nulls
}

// ReleaseLag is the time from the first sent_at to the last, in ns; false if
// nothing was sent.
func ReleaseLag(requests []record.Request) (int64, bool) {
	var first, last *int64
	for i := range requests {
		sent := requests[i].SentAt
		if sent == nil {
			continue
		}
		if first == nil || *sent < *first {
			first = sent
		}
		if last == nil || *sent > *last {
			last = sent
		}
	}
	if first == nil {
		return 0, false
	}
	return *last - *first, true
}

// Span is from the first byte sent to the last terminal moment, in ns on the
// lifecycle's clock; false if nothing was sent.
func Span(requests []record.Request) (first, last int64, ok bool) {
	for _, r := range requests {
		if r.SentAt == nil {
			continue
		}
		if !ok || *r.SentAt < first {
			first = *r.SentAt
		}
		last, ok = max(last, r.EndedAt), true
	}
	return first, last, ok
}

// Abandoned counts the attempts that this side left while the server may have
// been at them.
func Abandoned(requests []record.Request) int {
	n := 0
	for _, r := range requests {
		if r.SentAt != nil && (r.Outcome == record.Timeout || r.Outcome == record.Cancelled) {
			n++
		}
	}
	return n
}

// Probe sends a request, the shortest there is, and returns when it has been
// answered.
func Probe(ctx context.Context, c *client.Client, target client.Target, request client.Request, clk clock.Clock, timeout time.Duration) error {
	var r record.Request
	c.Dial(ctx, target).Do(ctx, clk, clk.Now(), timeout, request).Decode(&r, nil)
	if r.Outcome != record.OK {
		return errors.New(string(r.Outcome) + ": " + *r.Error)
	}
	return nil
}
