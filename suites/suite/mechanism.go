package suite

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"

	"assay/harness/load"
	"assay/harness/plan"
	"assay/harness/record"
)

// Mechanisms are the tiers whose mechanism is checked on a lifecycle, where the
// plan wants it: the largest, on the candidate. That a server batches is what
// explains its numbers, and its own gauge can show that it does.
func (e *Experiment) Mechanisms(place plan.Lifecycle) []Tier {
	t := e.Plan.Telemetry
	arm := e.Plan.Arm(place.Arm)
	if t == nil || !t.Mechanism || arm.Role != plan.Candidate || *arm.Engine.Metrics == "" || len(e.Tiers) == 0 {
		return nil
	}
	return e.Tiers[len(e.Tiers)-1:]
}

// PeakRunning releases one more wave of a tier, which is in no record and no
// result, and looks at the engine's own gauge again and again until it has seen
// the whole wave being worked on, or the wave has ended. It returns the most
// that it saw.
func (e *Experiment) PeakRunning(ctx context.Context, place plan.Lifecycle, tier Tier) int {
	ginkgo.GinkgoHelper()
	peak, err := e.peakRunning(ctx, place, tier.Clients)
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	ginkgo.AddReportEntry("requests that the engine ran at once", fmt.Sprintf("%d of %d, by its own gauge", peak, tier.Clients))
	return peak
}

// gaugePoll lies between two looks at the gauge.
const gaugePoll = 5 * time.Millisecond

func (r *Run) peakRunning(ctx context.Context, place plan.Lifecycle, clients int) (int, error) {
	c, err := r.serving(place)
	if err != nil {
		return 0, err
	}
	burst, err := r.burst(c, plan.Wave{Tier: clients, Repeat: 1})
	if err != nil {
		return 0, err
	}
	idleness := r.idleness(c)
	burst.Settle = load.Settle(ctx, burst.Clock, idleness)
	r.progress.wave(r.Place(place)+": the mechanism, "+record.Clients(clients), len(burst.Items))
	ended := make(chan int)
	go func() {
		_, requests := burst.Release(ctx)
		ended <- load.Abandoned(requests)
	}()
	tick := time.NewTicker(gaugePoll)
	defer tick.Stop()
	peak := 0
	for {
		select {
		case c.abandoned = <-ended:
			return peak, nil
		case <-tick.C:
			if peak == clients {
				continue // it was seen; the wave goes on to its end
			}
			if gauges, err := idleness.Gauges(ctx); err == nil {
				peak = max(peak, *gauges.Running)
			}
		}
	}
}
