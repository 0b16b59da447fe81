package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/montanaflynn/stats"

	"assay/harness/crossing"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/reports"
)

// printOutlook says what a crossover will take and what it could show, as far
// as an earlier bundle of the same kind tells; without one, where to get it.
func printOutlook(out io.Writer, p *plan.Plan, from string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(w, "\nwhat it could show\n")
	if from == "" {
		row("estimate", "none: name an earlier bundle with --from, such as one of fewer pairs")
		if c := p.Pairing.Cost; c != nil {
			row("list cost", "at worst %.2f %s at %g an hour (%s), if every deadline is met by a hair", float64(p.WorstCaseEmulated().D().Hours()*c.ListRatePerHour), c.Currency, c.ListRatePerHour, c.Source)
		}
		return nil
	}
	b, err := reports.Read(from)
	if err != nil {
		return err
	}
	if b.Plan.Pairing == nil {
		return fmt.Errorf("%s is the bundle of a %s: a crossover's is needed", from, b.Plan.Experiment)
	}
	total := 0.0
	for _, lane := range p.Pairing.Lanes.Each() {
		hours, err := laneOutlook(row, p, b, lane)
		if err != nil {
			return err
		}
		total += hours
	}
	here := ""
	if p.TimeScale != 1 {
		here = fmt.Sprintf(" of emulated time, which passes %g times faster", p.TimeScale)
	}
	row("it takes", "about %s%s, as %s did", time.Duration(total*float64(time.Hour)).Round(time.Minute), here, b.Run.Environment.Run)
	if c := p.Pairing.Cost; c != nil {
		row("list cost", "at least %.2f %s at %g an hour (%s)", float64(total*c.ListRatePerHour), c.Currency, c.ListRatePerHour, c.Source)
	}
	return nil
}

// laneOutlook is what an earlier bundle says of a lane: the hours that it
// takes, whether the sequence is long enough, and the smallest effect.
func laneOutlook(row func(string, string, ...any), p *plan.Plan, b reports.Bundle, lane plan.Lane) (hours float64, err error) {
	var earlier *metric.Lane
	for i := range b.Summary.Lanes {
		if b.Summary.Lanes[i].Lane == lane {
			earlier = &b.Summary.Lanes[i]
		}
	}
	if earlier == nil || earlier.Every.Result == nil {
		return 0, fmt.Errorf("the earlier bundle has no pair of the %s lane", lane)
	}
	sequence := p.Pairing.Lanes.Sequence(lane)
	before := b.Plan.Pairing.Lanes.Sequence(lane)
	serve := func(a metric.LaneArm) (initialization, each float64, err error) {
		if a.Initialization.Median.Value == nil || a.RequestPhase.Median.Value == nil {
			return 0, 0, errors.New("the earlier bundle has no durations of " + a.Arm)
		}
		each = *a.RequestPhase.Median.Value / float64(before.Requests)
		// The time of a request grows with its tokens, as far as they are known.
		return *a.Initialization.Median.Value, each * float64(sequence.Tokens()) / float64(before.Tokens()), nil
	}
	baseStart, baseEach, err := serve(earlier.Baseline)
	if err != nil {
		return 0, err
	}
	candStart, candEach, err := serve(earlier.Candidate)
	if err != nil {
		return 0, err
	}
	pair := baseStart + candStart + float64(float64(sequence.Requests)*(baseEach+candEach))
	switch debt, gain := candStart-baseStart, baseEach-candEach; {
	case debt <= 0:
		row(string(lane)+" lane", "no debt was seen: there would be nothing to repay")
	case gain <= 0:
		row(string(lane)+" lane", "nothing was repaid in the earlier bundle: no length would be enough")
	default:
		needed := int(debt/gain) + 1
		enough := "enough"
		if needed+p.Pairing.Crossing.Dwell > sequence.Requests {
			enough = fmt.Sprintf("too short: write %d or more", needed+p.Pairing.Crossing.Dwell)
		}
		row(string(lane)+" lane", "a debt of %.1f s and %.3f s won back by each request: crossing near request %d, and %d with the dwell; %d requests are %s",
			debt, gain, needed, needed+p.Pairing.Crossing.Dwell, sequence.Requests, enough)
	}
	if d, k := deviation(earlier); k > 1 {
		if least, ok := crossing.SmallestEffect(d, p.Pairing.Pairs); ok {
			row("", "at the spread of %d earlier pairs (standard deviation %.2f s), %d pairs show a mean D(N) of %.2f s or more in 4 of 5 runs", k, d, p.Pairing.Pairs, least)
		} else {
			row("", "%d pairs were not simulated, or can show nothing: docs/statistics.md has the numbers that can", p.Pairing.Pairs)
		}
	}
	return float64(p.Pairing.Pairs) * pair / 3600, nil
}

// deviation is the standard deviation of D(N) between an earlier lane's pairs.
func deviation(l *metric.Lane) (d float64, k int) {
	var ends []float64
	for _, p := range l.Every.Result.Pairs {
		if p.End != nil {
			ends = append(ends, *p.End)
		}
	}
	if len(ends) < 2 {
		return 0, len(ends)
	}
	d, err := stats.StandardDeviationSample(ends)
	if err != nil {
		return 0, 0
	}
	return d, len(ends)
}
