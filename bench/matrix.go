//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// rounds is how often each measurement is made; the median is shown.
const rounds = 3

// matrix is what each contender did in each cell, by their names, in the order
// of the rounds.
type matrix struct {
	contenders []contender
	runs       map[string]map[string][]measurement
	progress   io.Writer
}

// measure runs a cell: in each round every contender once, so that what else
// the machine does meets all of them.
func (m *matrix) measure(ctx context.Context, c cell) {
	runs := map[string][]measurement{}
	for round := range rounds {
		for _, who := range m.contenders {
			if who.missing != "" || c.ownOnly && who.version != "" || failed(runs[who.name]) != nil {
				continue
			}
			if ctx.Err() != nil {
				return
			}
			r := run(ctx, who, c.job, c.paced())
			fmt.Fprintf(m.progress, "%s, round %d: %s, %.1f s\n", c.name, round+1, who.name, r.wall.Seconds())
			runs[who.name] = append(runs[who.name], r)
		}
	}
	m.runs[c.name] = runs
}

// failed is why a contender has no figures in a cell; it is not run again.
func failed(runs []measurement) error {
	for _, r := range runs {
		if r.err != nil {
			return r.err
		}
	}
	return nil
}

// whole is a contender's runs in a cell, if every round has one.
func (m *matrix) whole(cell, who string) ([]measurement, bool) {
	runs := m.runs[cell][who]
	return runs, len(runs) == rounds && failed(runs) == nil
}

func of(runs []measurement, quantity func(measurement) float64) figures {
	out := make(figures, len(runs))
	for i, r := range runs {
		out[i] = quantity(r)
	}
	return out
}

func wall(m measurement) float64 { return m.wall.Seconds() }
func cpu(m measurement) float64  { return m.cpu.Seconds() }
func mib(m measurement) float64  { return float64(m.peak) / (1 << 20) }

// events is processor seconds per million events.
func events(m measurement) float64 { return m.perMillion(0) }

// marginal is the same without what this contender's run of one request costs.
func (m *matrix) marginal(who string) func(measurement) float64 {
	start, _ := m.whole(startUp.name, who)
	idle := time.Duration(0)
	if len(start) > 0 {
		idle = time.Duration(of(start, cpu).median() * float64(time.Second))
	}
	return func(r measurement) float64 { return r.perMillion(idle) }
}

// beside is a quantity as a multiple of the plain client's in the same round;
// for the plain client itself, as it is.
func (m *matrix) beside(cell, who string, quantity func(m measurement) float64, plain func(measurement) float64, unit string) string {
	runs, _ := m.whole(cell, who)
	base, ok := m.whole(cell, plainName)
	switch {
	case who == plainName || !ok:
		return strings.TrimSpace(of(runs, quantity).String() + " " + unit)
	default:
		return of(runs, quantity).over(of(base, plain)).String() + "×"
	}
}

// printStart prints what a run of one request costs.
func (m *matrix) printStart(to io.Writer) {
	heading(to, "One request of 16 tokens: what starting costs (the server takes 0.2 s)", "client", "wall", "processor time", "peak memory", "processes")
	m.each(to, startUp, func(who string, runs []measurement) []string {
		wallOf := of(runs, wall).String() + " s"
		if who != plainName {
			wallOf += " (" + m.beside(startUp.name, who, wall, wall, "s") + ")"
		}
		return []string{wallOf, of(runs, cpu).String() + " s", m.beside(startUp.name, who, mib, mib, "MiB"), fmt.Sprint(runs[0].processes)}
	})
}

// print prints a cell's table.
func (m *matrix) print(to io.Writer, c cell) {
	p := c.paced()
	gap := "a token every " + p.Gap.String()
	if p.Gap == 0 {
		gap = "at full speed"
	}
	if p.Spread > 0 {
		gap += fmt.Sprintf(" × %g–%g, a factor a request", 1-p.Spread, 1+p.Spread)
	}
	heading(to, fmt.Sprintf("%s: %d clients, %d requests × %d tokens, first after %s, %s", strings.ToUpper(c.name[:1])+c.name[1:], c.job.Clients, c.job.Requests, p.Tokens, p.First, gap),
		"client", "processor s per million events", "without starting", "peak memory", "events a second", "in flight", "TTFT error p50 / p99, ms", "TPOT error p50 / p99, ms")
	m.each(to, c, func(who string, runs []measurement) []string {
		return []string{
			m.beside(c.name, who, events, events, "s"),
			m.beside(c.name, who, m.marginal(who), m.marginal(plainName), "s"),
			m.beside(c.name, who, mib, mib, "MiB"),
			m.beside(c.name, who, rate, rate, ""),
			of(runs, func(r measurement) float64 { return r.truth.inFlight }).format("%.0f"),
			errors2(runs, func(r measurement) *times { return r.said.TTFT }, func(r measurement) times { return r.truth.ttft }),
			errors2(runs, func(r measurement) *times { return r.said.TPOT }, func(r measurement) times { return r.truth.tpot }),
		}
	})
	plain, ok := m.whole(c.name, plainName)
	if ok {
		fmt.Fprintf(to, "\nServer's own TTFT %s, TPOT %s ms (p50 / p99, beside the plain client).\n", both(plain, func(r measurement) times { return r.truth.ttft }), both(plain, func(r measurement) times { return r.truth.tpot }))
	}
}

func rate(m measurement) float64 { return float64(m.truth.events) / m.truth.seconds }

// both are two percentiles over the rounds.
func both(runs []measurement, quantity func(measurement) times) string {
	return of(runs, func(r measurement) float64 { return quantity(r).P50 }).format("%.2f") + " / " +
		of(runs, func(r measurement) float64 { return quantity(r).P99 }).format("%.2f")
}

// errors2 are the errors of two reported percentiles.
func errors2(runs []measurement, said func(measurement) *times, truth func(measurement) times) string {
	if slices.ContainsFunc(runs, func(r measurement) bool { return said(r) == nil }) {
		return "not found in what it wrote"
	}
	return both(runs, func(r measurement) times { return errorOf(*said(r), truth(r)) })
}

func errorOf(said, truth times) times { return times{said.P50 - truth.P50, said.P99 - truth.P99} }

// each prints a line for every contender: figures, or why there are none.
func (m *matrix) each(to io.Writer, c cell, columns func(who string, runs []measurement) []string) {
	for _, who := range m.contenders {
		if c.ownOnly && who.version != "" {
			continue
		}
		runs, ok := m.whole(c.name, who.name)
		switch {
		case who.missing != "":
			fmt.Fprintf(to, "| %s | %s |\n", who.name, who.missing)
		case ok:
			fmt.Fprintf(to, "| %s | %s |\n", strings.TrimSpace(who.name+" "+who.version), strings.Join(columns(who.name, runs), " | "))
		default:
			why := failed(m.runs[c.name][who.name])
			fmt.Fprintf(to, "| %s | not measured: %v |\n", who.name, why)
		}
	}
}

func heading(to io.Writer, title string, columns ...string) {
	fmt.Fprintf(to, "\n### %s\n\nLoad average %s.\n\n| %s |\n| --- |%s\n", title, loadAverage(), strings.Join(columns, " | "), strings.Repeat(" ---: |", len(columns)-1))
}
