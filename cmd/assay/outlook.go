package main

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/montanaflynn/stats"

	"assay/harness/crossing"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/reports"
)

// readEarlier reads the bundle that an estimate is to come from; nil: none is
// named. Before anything is printed: a report with an error below it reads as
// if the plan were at fault.
func readEarlier(p *plan.Plan, from string) (*reports.Bundle, error) {
	switch {
	case from == "":
		return nil, nil
	case p.Pairing == nil:
		return nil, fmt.Errorf("--from %s: %s is a %s plan, and estimates are of crossovers: leave it out", from, p.Name, p.Experiment)
	}
	dir, done, err := opened(from)
	if err != nil {
		return nil, err
	}
	defer done()
	b, err := reports.Read(dir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("no bundle can be read at %s: %w; name a bundle's directory, such as out/…, or its packed file", from, err)
	case b.Plan.Pairing == nil:
		return nil, fmt.Errorf("%s is a bundle of a %s experiment, and the estimate needs one of a crossover: name another", from, b.Plan.Experiment)
	}
	return &b, nil
}

// printOutlook says what a crossover will take and what it could show, as far
// as an earlier bundle tells; without one, where to get it.
func printOutlook(out io.Writer, p *plan.Plan, b *reports.Bundle) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(w, "\nwhat it could show\n")
	if b == nil {
		row("estimate", "none: name an earlier bundle with --from, such as one of fewer pairs")
		if c := p.Pairing.Cost; c != nil {
			row("list cost", "at worst %.2f %s at %g an hour (%s), if every deadline is met by a hair", float64(p.WorstCaseEmulated().D().Hours()*c.ListRatePerHour), c.Currency, c.ListRatePerHour, c.Source)
		}
		return nil
	}
	row("estimate", "from %s", b.Run.Environment.Run)
	if unlike := differences(p, b.Plan); len(unlike) > 0 {
		row("", "which tells as much about this plan as the two are alike, and they are not:")
		for _, d := range unlike {
			row("", "- %s", d)
		}
	}
	total := 0.0
	for _, lane := range p.Pairing.Lanes.Each() {
		hours, err := laneOutlook(row, p, *b, lane)
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

// differences are what an earlier plan has otherwise that decides its times.
func differences(p, earlier *plan.Plan) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if p.Emulated() != earlier.Emulated() {
		say("it is %s, and this plan is %s", nature(earlier), nature(p))
	}
	if p.Model != earlier.Model {
		say("its model is %s at %s", earlier.Model.Name, earlier.Model.Revision)
	}
	for _, role := range []plan.Role{plan.Baseline, plan.Candidate} {
		here, there := p.WithRole(role), earlier.WithRole(role)
		switch {
		case here.Name != there.Name:
			say("its %s is %s, and here it is %s", role, there.Name, here.Name)
		case !reflect.DeepEqual(here.Engine, there.Engine):
			say("its %s was another %s, or the same with other settings", there.Name, there.Engine.Kind())
		}
	}
	for _, lane := range p.Pairing.Lanes.Each() {
		here, there := p.Pairing.Lanes.Sequence(lane), earlier.Pairing.Lanes.Sequence(lane)
		if there != nil && (here.Tasks != there.Tasks || here.Tokens() != there.Tokens() || !slices.Equal(here.InputTokens, there.InputTokens)) {
			say("its %s lane had %s of at most %d tokens", lane, there.Tasks, there.Tokens())
		}
	}
	if p.Pairing.Caches != earlier.Pairing.Caches {
		say("its caches were others")
	}
	return out
}

func nature(p *plan.Plan) string {
	if p.Emulated() {
		return "emulated"
	}
	return "of real servers"
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
	result := earlier.Every.Result
	if result.Debt.Mean == nil || result.End.Mean == nil {
		return 0, fmt.Errorf("the earlier bundle has no mean of the %s lane: %s", lane, result.End.Reason)
	}
	// Means over pairs, which are what is inferred; and the gain of a request
	// grows with its tokens, as far as they are known.
	debt := *result.Debt.Mean
	gain := float64((debt - *result.End.Mean) / float64(before.Requests) * float64(sequence.Tokens()) / float64(before.Tokens()))
	switch {
	case debt <= 0:
		row(string(lane)+" lane", "no debt was seen: there would be nothing to repay")
	case gain <= 0:
		row(string(lane)+" lane", "nothing was repaid in the earlier bundle: no length would be enough")
	default:
		lengthOutlook(row, p, lane, earlier, debt, gain)
	}
	return float64(p.Pairing.Pairs) * pair / 3600, nil
}

// lengthOutlook says how long a sequence has to be: for the mean to cross and
// stay there over the dwell, and for that to be shown at the spread that was
// seen.
func lengthOutlook(row func(string, string, ...any), p *plan.Plan, lane plan.Lane, earlier *metric.Lane, debt, gain float64) {
	requests := p.Pairing.Lanes.Sequence(lane).Requests
	crosses := int(debt/gain) + 1
	needed := crosses + p.Pairing.Crossing.Dwell
	row(string(lane)+" lane", "a mean debt of %.1f s and %.3f s won back by each request: the mean crosses near request %d, and has stayed there for the dwell at %d", debt, gain, crosses, needed)
	if d, k := deviation(earlier); k > 1 {
		least, ok := crossing.SmallestEffect(d, p.Pairing.Pairs)
		switch {
		case p.Pairing.Inference.Level.Value != 95:
			row("", "what %d pairs show was simulated at 95%%, and this plan asks for %s", p.Pairing.Pairs, p.Pairing.Inference.Level)
		case !ok:
			row("", "what %d pairs show was not simulated, or is nothing: docs/statistics.md has the numbers of pairs that were", p.Pairing.Pairs)
		default:
			shown := int((debt+least)/gain) + 1
			needed = max(needed, shown)
			row("", "at the spread of %d earlier pairs (standard deviation of D(N) %.2f s), %d pairs show a mean D(N) of -%.2f s in 4 of 5 runs, which is reached near request %d", k, d, p.Pairing.Pairs, least, shown)
		}
	}
	if needed > requests {
		row("", "%d requests are too short: write %d or more", requests, needed)
	} else {
		row("", "%d requests are enough", requests)
	}
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
