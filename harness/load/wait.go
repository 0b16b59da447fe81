package load

import (
	"context"
	"time"

	"assay/harness/clock"
)

// nearby is how long before a moment the precise wait begins: the runtime's own
// timers are late by up to a millisecond, since its poller counts in them.
const nearby = 2 * time.Millisecond

// waitUntil returns at a moment of the clock, or earlier once ctx has ended; it
// says whether it waited to the moment.
func waitUntil(ctx context.Context, c clock.Clock, at int64) bool {
	if left := time.Duration(at - c.Now()); left > nearby {
		timer := time.NewTimer(left - nearby)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
	for {
		left := time.Duration(at - c.Now())
		if left <= 0 {
			return true
		}
		preciseSleep(left) // a signal may cut it short
	}
}
