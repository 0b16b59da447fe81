package clock

import "time"

// Clock reads nanoseconds since its start, monotonic for as long as the
// process lives. The zero value is not ready: use [Start].
type Clock struct {
	anchor time.Time // carries Go's monotonic reading beside the wall time
}

// Start returns a clock that reads zero now.
func Start() Clock { return Clock{anchor: time.Now()} }

// Now is the time since the start, in nanoseconds.
func (c Clock) Now() int64 { return int64(time.Since(c.anchor)) }

// At is t's place on this clock in nanoseconds; t must carry a monotonic
// reading (it came from time.Now in this process), or the wall clock decides.
func (c Clock) At(t time.Time) int64 { return int64(t.Sub(c.anchor)) }

// Anchor is the wall-clock time at which the clock read zero.
func (c Clock) Anchor() time.Time { return c.anchor.Round(0) }

// Time is the moment at which the clock reads ns.
func (c Clock) Time(ns int64) time.Time { return c.anchor.Add(time.Duration(ns)) }

// Reading is one bracketed reading of both clocks: the wall clock was read
// between Before and After on the monotonic one.
type Reading struct {
	Before int64 `json:"before_ns"` // monotonic, ns since the clock's start
	Wall   int64 `json:"wall_ns"`   // CLOCK_REALTIME, ns since the Unix epoch
	After  int64 `json:"after_ns"`  // monotonic, ns since the clock's start
}

// Read brackets the wall clock between two monotonic readings. It tries
// several times and keeps the narrowest bracket, since a preemption between
// the readings only ever widens one.
func (c Clock) Read() Reading {
	best := Reading{}
	for i := range 16 {
		before := c.Now()
		wall := time.Now().UnixNano()
		after := c.Now()
		if i == 0 || after-before < best.After-best.Before {
			best = Reading{Before: before, Wall: wall, After: after}
		}
	}
	return best
}

// Offset is monotonic minus wall time by the middle of the bracket, in ns.
func (r Reading) Offset() int64 { return r.Before + (r.After-r.Before)/2 - r.Wall }

// Bound is half the bracket: how far Offset can be from the truth, in ns.
func (r Reading) Bound() int64 { return (r.After - r.Before + 1) / 2 }

// Conversion brings wall-clock times to the monotonic clock for one wave,
// from a reading before it and one after it.
type Conversion struct {
	First Reading `json:"first"`
	Last  Reading `json:"last"`
}

// MaxDrift is the most by which NTP may slew the wall clock against the
// monotonic one (500 parts per million, adjtimex(2)); what differs by more
// between two readings, beyond their own bounds, is a step.
const MaxDrift = 500e-6

// Stepped says whether the wall clock was stepped between the two readings:
// the offsets differ by more than slewing and the bounds allow. Wall-clock
// times of such a wave can't be brought to the monotonic clock.
func (v Conversion) Stepped() bool {
	drift := v.Last.Offset() - v.First.Offset()
	if drift < 0 {
		drift = -drift
	}
	span := float64(v.Last.After - v.First.Before)
	return drift > int64(span*MaxDrift)+v.First.Bound()+v.Last.Bound()
}

// Monotonic is the place of a wall-clock time (ns since the Unix epoch) on the
// lifecycle's clock: the offset is interpolated between the two readings.
func (v Conversion) Monotonic(wall int64) int64 {
	first, last := v.First.Offset(), v.Last.Offset()
	span := v.Last.Wall - v.First.Wall
	if span <= 0 {
		return wall + first
	}
	share := float64(wall-v.First.Wall) / float64(span)
	share = min(max(share, 0), 1)
	return wall + first + int64(float64(float64(last-first)*share))
}

// Bound is how far Monotonic can be from the truth, in ns: the wider of the
// brackets, and the drift seen between them.
func (v Conversion) Bound() int64 {
	drift := v.Last.Offset() - v.First.Offset()
	if drift < 0 {
		drift = -drift
	}
	return max(v.First.Bound(), v.Last.Bound()) + drift
}
