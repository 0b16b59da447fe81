//go:build unix

package main

import (
	"context"
	"fmt"
	"time"

	"assay/harness/client"
	"assay/harness/clock"
	"assay/harness/metric"
	"assay/harness/record"
)

// patience is far more than any of these loads takes.
const patience = 5 * time.Minute

// chat is the request that both of this program's clients make.
func chat(tokens int) client.Request {
	request, err := client.NewChatRequest(client.Params{
		Model: "smollm2", Messages: []client.Message{{Role: "user", Content: "Hi"}}, MaxTokens: tokens, TopP: 1, TokenIDs: true,
	})
	check(err)
	return request
}

// runOurs makes a job with this project's client, as an experiment does: a
// connection an attempt, opened before it; every event kept; everything decoded
// once all attempts have ended.
func runOurs(j job) error {
	request, c, clk := chat(j.Tokens), client.New(), clock.Start()
	// The first attempts' connections are open before the first is made.
	ready := make([]*client.Conn, j.Clients)
	for slot := range min(j.Clients, j.Requests) {
		ready[slot] = c.Dial(context.Background(), client.Target{BaseURL: j.URLs[slot%len(j.URLs)]})
	}
	before := clk.Read()
	raws := make([]*client.Raw, j.Requests)
	j.slots(func(i int, url string) {
		var conn *client.Conn
		if i < j.Clients {
			conn, ready[i] = ready[i], nil
		} else {
			conn = c.Dial(context.Background(), client.Target{BaseURL: url})
		}
		raws[i] = conn.Do(context.Background(), clk, clk.Now(), patience, request)
	})
	conv := clock.Conversion{First: before, Last: clk.Read()}
	var ttft, tpot, arrival []float64
	out, coalesced, events := reported{}, int64(0), 0
	for i, raw := range raws {
		raws[i] = nil
		r := decoded(raw, &conv)
		if len(r.Events) != j.Tokens {
			return fmt.Errorf("attempt %d has %d events with a token of %d", i+1, len(r.Events), j.Tokens)
		}
		out.Completed++
		events += len(r.Events)
		coalesced += int64(r.Coalesced)
		if v, reason := metric.TTFT(r); reason == "" {
			ttft = append(ttft, float64(v)/1e6)
		}
		if v, reason := metric.TPOT(r); reason == "" {
			tpot = append(tpot, v/1e6)
		}
		if j.Stamped {
			arrival = append(arrival, arrivalErrors(r, conv)...)
		}
	}
	out.Coalesced = float64(coalesced) / float64(events)
	out.TTFT, out.TPOT = new(times), new(times)
	*out.TTFT, *out.TPOT = timesOf(ttft), timesOf(tpot)
	if j.Stamped {
		errors := timesOf(arrival)
		out.Arrival = &errors
	}
	return report(out)
}

// decoded is an attempt's record; one that is not ok would measure something
// else.
func decoded(raw *client.Raw, conv *clock.Conversion) record.Request {
	var r record.Request
	raw.Decode(&r, conv)
	if r.Outcome != record.OK {
		check(fmt.Errorf("an attempt against the null server is %s: %s", r.Outcome, *r.Error))
	}
	return r
}
