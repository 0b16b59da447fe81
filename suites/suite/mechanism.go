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

// PeakRunning is the most requests that a place's engine was seen to run at
// once; see [Run.Mechanism].
func (e *Experiment) PeakRunning(ctx context.Context, place plan.Lifecycle, tier Tier) int {
	ginkgo.GinkgoHelper()
	seen, err := e.Mechanism(ctx, place, tier.Clients)
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	ginkgo.AddReportEntry("requests that the engine ran at once", seen.String())
	return seen.Running
}

// Peak is what an engine's own gauge showed while clients were served at once.
type Peak struct {
	Running int // the most requests that a look saw it run
	Clients int
	Looks   int           // that were answered
	Longest time.Duration // that a look took
}

// String is a sentence for the report.
func (p Peak) String() string {
	return fmt.Sprintf("%d of %d, by its own gauge, in %d looks of up to %s", p.Running, p.Clients, p.Looks, p.Longest.Round(time.Millisecond))
}

const (
	// gaugePoll lies between two looks at the gauge at least; one is made as
	// soon as the last has been answered.
	gaugePoll = 5 * time.Millisecond
	// mechanismTokens are what each of the wave's requests gets, if the plan's
	// own are no more. A server that is busy with as many requests answers a
	// look late, as late as the whole wave lasts where its answers are short:
	// these last for many looks, and one after the other they would last longer
	// than any wave.
	mechanismTokens = 1024
)

// Mechanism releases one more wave, which is in no record and no result, each of
// its requests for as many tokens as make them overlap for long, and looks at
// the engine's own gauge until it has seen all of them being worked on, which
// ends the wave, or the wave has ended. It returns the most that it saw. The
// error says that it could not be seen: that there is no server, or that it
// refused requests, such as for being longer than it holds.
func (r *Run) Mechanism(ctx context.Context, place plan.Lifecycle, clients int) (Peak, error) {
	peak := Peak{Clients: clients}
	c, err := r.serving(place)
	if err != nil {
		return peak, err
	}
	asked := plan.Asked{Lane: plan.Fixed, Tokens: max(mechanismTokens, r.Plan.Asked(place).Tokens)}
	burst, err := r.burst(c, plan.Wave{Tier: clients, Repeat: 1}, asked)
	if err != nil {
		return peak, err
	}
	idleness := r.idleness(c)
	burst.Settle = load.Settle(ctx, burst.Clock, idleness)
	r.progress.wave(r.Place(place)+": the mechanism, "+record.Clients(clients), len(burst.Items))
	wave, leave := context.WithCancel(ctx)
	defer leave()
	ended := make(chan []record.Request)
	go func() {
		_, requests := burst.Release(wave)
		ended <- requests
	}()
	tick := time.NewTicker(gaugePoll)
	defer tick.Stop()
	for {
		select {
		case requests := <-ended:
			c.abandoned = load.Abandoned(requests)
			if peak.Running < clients {
				err = refused(requests, asked.Tokens)
			}
			return peak, err
		case <-tick.C:
			if peak.Running == clients {
				continue // it was seen, and the wave is on its way out
			}
			from := time.Now()
			gauges, err := idleness.Gauges(ctx)
			if err != nil {
				continue // the wave's end says what came of it
			}
			peak.Looks, peak.Longest = peak.Looks+1, max(peak.Longest, time.Since(from))
			if peak.Running = max(peak.Running, *gauges.Running); peak.Running == clients {
				leave()
			}
		}
	}
}

// refused says how many requests were not served at all, and why the first of
// them was not; nil: all were.
func refused(requests []record.Request, tokens int) error {
	n, first := 0, ""
	for _, q := range requests {
		if q.Outcome == record.HTTPError {
			if n++; n == 1 && q.Error != nil {
				first = *q.Error
			}
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d of the %d requests for %d tokens each, which would show how many are run at once, were refused, the first since %q: let the engine hold a prompt and as many tokens, or leave telemetry.mechanism out", n, len(requests), tokens, first)
}
