package load

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/harness/clock"
	"assay/harness/record"
	"assay/harness/telemetry"
)

// Idleness is how a server is found idle before a wave is released.
type Idleness struct {
	// Limit is how long to wait for it; zero looks once and does not wait.
	Limit time.Duration
	// Poll lies between two looks.
	Poll time.Duration
	// Gauges reads the engine's own account; nil where it has none.
	Gauges func(context.Context) (telemetry.Gauges, error)
	// Probe sends the shortest request there is and returns when it is
	// answered; used where there are no gauges. A server that takes requests
	// in turn has then finished those before it.
	Probe func(context.Context) error
	// Gone is closed when the server has exited: then nobody waits for it.
	Gone <-chan struct{}
	// Abandoned is how many attempts of the wave before were left by this side.
	Abandoned int
}

// looks is how many idle looks in a row are believed: a request that moves
// from one gauge to the other may be missed by a single one.
const looks = 2

// Settle waits until the server is idle and says how that was seen.
func Settle(ctx context.Context, clk clock.Clock, i Idleness) record.Settle {
	s := record.Settle{Rule: "idle", From: clk.Now(), Abandoned: i.Abandoned}
	if i.Limit <= 0 {
		s.Rule = "none"
	}
	limited, cancel := context.WithTimeout(ctx, max(i.Limit, time.Second))
	defer cancel()
	select {
	case <-i.Gone:
		s.Method, s.Detail = "none", "the server has exited"
	default:
		settle(limited, i, &s)
	}
	s.Until = clk.Now()
	return s
}

func settle(ctx context.Context, i Idleness, s *record.Settle) {
	if i.Gauges == nil {
		probe(ctx, i, s)
		return
	}
	s.Method = "metrics"
	var first *int
	idle := 0
	tick := time.NewTicker(max(i.Poll, time.Millisecond))
	defer tick.Stop()
	for {
		g, err := i.Gauges(ctx)
		switch {
		case err != nil && ctx.Err() != nil: // the look was cut off, and says nothing
		case err != nil:
			idle, s.Detail = 0, "the last look failed: "+err.Error()
		default:
			s.Detail, s.Running, s.Waiting = "", g.Running, g.Waiting
			if first == nil {
				first = g.Generated
			}
			if first != nil && g.Generated != nil {
				grown := *g.Generated - *first
				s.Generated = &grown
			}
			if g.Idle() {
				idle++
			} else {
				idle = 0
			}
		}
		if idle >= looks || (i.Limit <= 0 && idle > 0) {
			s.Idle = true
			return
		}
		if i.Limit <= 0 {
			return
		}
		select {
		case <-ctx.Done():
			s.Detail = strings.Join(slices.DeleteFunc([]string{
				fmt.Sprintf("not idle within %s: %s running, %s waiting", i.Limit, said(s.Running), said(s.Waiting)), s.Detail,
			}, func(s string) bool { return s == "" }), "; ")
			return
		case <-i.Gone:
			s.Detail = "the server has exited"
			return
		case <-tick.C:
		}
	}
}

func probe(ctx context.Context, i Idleness, s *record.Settle) {
	if i.Probe == nil || i.Limit <= 0 {
		s.Method, s.Detail = "none", "no gauges and no probe: idleness was not seen"
		return
	}
	s.Method = "probe"
	if err := i.Probe(ctx); err != nil {
		s.Detail = "the probe failed: " + err.Error()
		return
	}
	s.Idle = true
}

// said is a gauge as people read it.
func said(n *int) string {
	if n == nil {
		return "an unknown number"
	}
	return strconv.Itoa(*n)
}
