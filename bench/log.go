package main

import (
	"assay/harness/metric"
	"assay/harness/null"
)

// times are two percentiles in ms.
type times struct{ P50, P99 float64 }

func timesOf(ms []float64) times {
	return times{metric.Percentile(ms, 50), metric.Percentile(ms, 99)}
}

// truth is a log's summary.
type truth struct {
	ttft, tpot times
	requests   int
	events     int
	seconds    float64 // from the first request to the last token
	inFlight   float64 // requests, on average over that time
}

func truthOf(log []null.Served) truth {
	t := truth{requests: len(log)}
	if t.requests == 0 {
		return t
	}
	var ttft, tpot []float64
	from, to, busy := log[0].Received, log[0].Last, int64(0)
	for _, s := range log {
		ttft = append(ttft, float64(s.First-s.Received)/1e6)
		if s.Tokens > 1 {
			tpot = append(tpot, float64(s.Last-s.First)/1e6/float64(s.Tokens-1))
		}
		from, to = min(from, s.Received), max(to, s.Last)
		busy += s.Last - s.Received
		t.events += s.Tokens
	}
	t.ttft, t.tpot = timesOf(ttft), timesOf(tpot)
	t.seconds = float64(to-from) / 1e9
	t.inFlight = float64(busy) / float64(to-from)
	return t
}
