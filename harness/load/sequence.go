package load

import (
	"context"
	"runtime"

	"assay/harness/client"
	"assay/harness/clock"
	"assay/harness/record"
)

// Sequence is requests one after the other on one server: the next is released
// when the last has ended. Nothing is decoded, written or collected between
// two of them.
type Sequence struct{ Burst }

// Release makes the attempts in the order of the ordinals, each on a connection
// of its own that is opened after its release, and returns what was seen: the
// sequence's record and one record for each request, always as many as there
// are items. A failed attempt ends nothing but itself: the next is released all
// the same. A cancelled ctx ends all that is left as cancelled.
func (s Sequence) Release(ctx context.Context) (record.Wave, []record.Request) {
	runtime.GC() // what the start left is not to be collected in the sequence
	raws := make([]*client.Raw, len(s.Items))
	// A sequence lasts for minutes, in which the wall clock is slewed: each
	// attempt is converted by the readings around itself.
	readings := make([]clock.Reading, len(s.Items)+1)
	readings[0] = s.Clock.Read()
	load := watchLoad(nil)
	releasedAt := s.Clock.Now()
	s.released()
	scheduled := releasedAt
	for i, item := range s.Items {
		raws[i] = s.attempt(ctx, scheduled, item.Request)
		if s.OnOutcome != nil {
			s.OnOutcome(raws[i].Outcome())
		}
		scheduled = s.Clock.Now()
		readings[i+1] = s.Clock.Read()
	}
	facts := load.facts()
	whole := clock.Conversion{First: readings[0], Last: readings[len(s.Items)]}
	requests := s.decode(raws, func(i int) *clock.Conversion {
		if whole.Stepped() {
			return &whole // which no wall-clock time can be brought over
		}
		return &clock.Conversion{First: readings[i], Last: readings[i+1]}
	})
	return s.wave(ctx, releasedAt, whole, facts, requests), requests
}

func (s Sequence) attempt(ctx context.Context, scheduledAt int64, request client.Request) *client.Raw {
	opening, cancel := context.WithTimeout(ctx, s.Connect)
	defer cancel()
	return s.Client.Dial(opening, s.Target).Do(ctx, s.Clock, scheduledAt, s.Timeout, request)
}
