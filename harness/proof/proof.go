package proof

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"assay/harness/client"
	"assay/harness/clock"
	"assay/harness/load"
	"assay/harness/metric"
	"assay/harness/null"
	"assay/harness/plan"
	"assay/harness/record"
)

// The load: a hundred tokens to a stream, as fast as a server with many clients
// gives them, over two seconds.
const (
	tokens = 100
	first  = 50 * time.Millisecond
	gap    = 20 * time.Millisecond
	limit  = 30 * time.Second
	// stampSize is the length of a wall-clock time in ns, until the year 2286.
	stampSize = 19
)

// Run has the client serve a burst of streams against a null server on the
// loopback interface. It is an error if not every stream came whole: then
// nothing that this client says of a server is to be believed.
func Run(ctx context.Context, streams int) (record.ClientProof, error) {
	pace := null.Pace{Tokens: tokens, First: first, Gap: gap, Stamped: true}
	listener, err := null.New(pace).Listen("127.0.0.1:0")
	if err != nil {
		return record.ClientProof{}, fmt.Errorf("the client can't be proved: no server can listen on the loopback interface: %w", err)
	}
	defer listener.Close()
	request, err := client.NewChatRequest(client.Params{
		Model: "null", Messages: []client.Message{{Role: "user", Content: "Hi"}}, MaxTokens: tokens, TopP: 1, TokenIDs: true,
	})
	if err != nil {
		return record.ClientProof{}, err
	}
	burst := load.Burst{
		Place: plan.Lifecycle{Number: 1}, Wave: plan.Wave{Number: 1, Tier: streams, Repeat: 1}, Executed: 1, Client: client.New(),
		Target: client.Target{BaseURL: "http://" + listener.Addr().String(), Path: pace.Path()}, Connect: limit, Timeout: limit,
		Clock: clock.Start(), Settle: record.Settle{Idle: true},
	}
	for range streams {
		burst.Items = append(burst.Items, load.Item{PromptID: "null", Request: request})
	}
	wave, requests := burst.Release(ctx)
	return of(wave, requests)
}

// of reads a proof from what was seen.
func of(wave record.Wave, requests []record.Request) (record.ClientProof, error) {
	p := record.ClientProof{Streams: len(requests), Busiest: wave.Client.Busiest}
	conversion := clock.Conversion{First: clock.Reading(wave.ClockReadings.Before), Last: clock.Reading(wave.ClockReadings.After)}
	var errs, lags []float64
	failed := map[string]int{}
	for _, r := range requests {
		if r.Outcome != record.OK || len(r.OutputText) != stampSize*len(r.Events) || len(r.Events) != tokens {
			failed[why(r)]++
			continue
		}
		p.Clock = r.Clock.Provenance
		for i, e := range r.Events {
			wall, err := strconv.ParseInt(r.OutputText[i*stampSize:][:stampSize], 10, 64)
			if err != nil {
				return p, fmt.Errorf("the null server's time is none: %w", err)
			}
			errs = append(errs, float64(e.Arrival-conversion.Monotonic(wall)))
		}
		for _, lag := range metric.KnownLag(r) {
			lags = append(lags, float64(lag))
		}
	}
	var faults []error
	for reason, n := range failed {
		faults = append(faults, fmt.Errorf("%d of %d streams from a server that computes nothing did not come whole: %s", n, len(requests), reason))
	}
	p.Events = len(errs)
	if len(errs) > 0 && !conversion.Stepped() {
		p50, p99 := int64(metric.Percentile(errs, 50)), int64(metric.Percentile(errs, 99))
		p.ArrivalErrorP50, p.ArrivalErrorP99 = &p50, &p99
	}
	if len(lags) > 0 {
		p.ClientLagP99 = int64(metric.Percentile(lags, 99))
	}
	return p, errors.Join(faults...)
}

func why(r record.Request) string {
	if r.Error != nil {
		return *r.Error
	}
	return fmt.Sprintf("%d events where %d belong", len(r.Events), tokens)
}

// Enough says what speaks against measuring with this client on this machine:
// times that are further off than the plan's client_lag allows a reader to be
// late, or no processor to spare. It is nil where nothing does.
func Enough(p record.ClientProof, clientLag time.Duration) error {
	var errs []error
	if p.ArrivalErrorP99 != nil && time.Duration(*p.ArrivalErrorP99) > clientLag {
		errs = append(errs, fmt.Errorf("client_saturated: with %d streams from a server that computes nothing, the p99 of the arrivals' error is %s, and gates.client_lag allows %s: run it with nothing else on this machine, or with fewer clients", p.Streams, time.Duration(*p.ArrivalErrorP99), clientLag))
	}
	if p.Busiest != nil && *p.Busiest >= metric.Saturated {
		errs = append(errs, fmt.Errorf("client_saturated: %d streams from a server that computes nothing took %.0f %% of the processors that the client may use: give it more, or run fewer clients", p.Streams, *p.Busiest*100))
	}
	return errors.Join(errs...)
}
