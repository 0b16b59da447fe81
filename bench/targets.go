//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"syscall"
)

// row is a line of the table of targets.
type row struct{ what, ours, beside, target, met string }

func (r row) print(to io.Writer) {
	fmt.Fprintf(to, "| %s | %s | %s | %s | %s |\n", r.what, r.ours, r.beside, r.target, r.met)
}

func met(ok bool) string {
	if ok {
		return "met"
	}
	return "not met"
}

// targets are those that the cells show.
func (m *matrix) targets() []row {
	var out []row
	for _, c := range cells {
		ours, one := m.whole(c.name, oursName)
		plain, two := m.whole(c.name, plainName)
		if !one || !two {
			continue
		}
		a, b := of(ours, events), of(plain, events)
		ratio := a.over(b)
		out = append(out, row{"processor time an event, " + c.name, a.String() + " µs", "plain net/http: " + b.String() + " µs", "no more", met(ratio.median() <= 1) + ": " + ratio.String() + "×"})
		if c.name == spread.name {
			error99 := func(runs []measurement) figures {
				return of(runs, func(r measurement) float64 { return math.Abs(errorOf(*r.said.TTFT, r.truth.ttft).P99) })
			}
			e := error99(ours)
			out = append(out, row{"error of the reported p99 TTFT, 512 streams, spread arrivals", e.String() + " ms", "plain net/http: " + error99(plain).String() + " ms", "under 1 ms", met(e.median() < 1)})
		}
		if c.pace.Gap == 0 {
			a, b := of(ours, rate), of(plain, rate)
			out = append(out, row{"events a second at " + c.name, a.String(), "plain net/http: " + b.String(), "at least as many", met(a.over(b).median() >= 1)})
		}
	}
	return out
}

// spareFiles is what a process has open besides its streams.
const spareFiles = 64

// manyStreams measures this client with many slow streams at once.
func manyStreams(ctx context.Context) row {
	r := row{what: fmt.Sprintf("%d streams of an event a second, client and server on a core each: most memory of the client", many.job.Clients), target: "under 1 GiB"}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		r.ours = "not measured: " + err.Error()
		return r
	}
	if need := uint64(many.job.Clients + spareFiles); uint64(limit.Max) < need {
		r.ours = fmt.Sprintf("not measured: a process may open %d files here and needs %d; raise the hard limit (ulimit -Hn)", limit.Max, need)
		return r
	}
	var runs []measurement
	for range rounds {
		m := run(ctx, inThisProgram(oursName, "ours"), many.job, many.paced())
		if m.err != nil {
			r.ours = "not measured: " + m.err.Error()
			return r
		}
		runs = append(runs, m)
	}
	memory := of(runs, mib)
	r.ours = memory.String() + " MiB"
	r.beside = fmt.Sprintf("%s in flight, %s events a second, arrival error p50 / p99 %s ms, %.2f %% of events in one read with others; the server: %s MiB",
		of(runs, func(m measurement) float64 { return m.truth.inFlight }).format("%.0f"), of(runs, rate).format("%.0f"),
		both(runs, func(m measurement) times { return *m.said.Arrival }), of(runs, func(m measurement) float64 { return 100 * m.said.Coalesced }).median(),
		of(runs, func(m measurement) float64 { return float64(m.server) / (1 << 20) }).format("%.0f"))
	r.met = met(memory.median() < 1024)
	return r
}
