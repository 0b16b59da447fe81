package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"assay/claim"
	"assay/harness/plan"
	"assay/harness/record"
)

func checkCommand() *cobra.Command {
	var from string
	c := &cobra.Command{
		Use:   "check PLAN",
		Short: "validate a plan and print its schedule: lifecycles, waves, requests, worst-case time",
		Long: "Exit codes: 0 it can be run, 1 it can't (each mistake on a line, with its place), 2 it could not be read.\n" +
			"With --from, an earlier bundle of the same kind says how long a crossover will take and what it could show.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := plan.Load(args[0])
			var mistakes *plan.Mistakes
			if errors.As(err, &mistakes) {
				fmt.Fprintln(cmd.OutOrStdout(), mistakes)
				fmt.Fprintf(cmd.OutOrStdout(), "%s: it can't be run\n", count(len(mistakes.List), "mistake"))
				return doesNotHold
			}
			if err != nil {
				return err
			}
			frozen, err := plan.Freeze(p)
			if err != nil {
				return err
			}
			earlier, err := readEarlier(p, from)
			if err != nil {
				return err
			}
			printSchedule(cmd.OutOrStdout(), p, frozen)
			if p.Pairing != nil {
				return printOutlook(cmd.OutOrStdout(), p, earlier)
			}
			return nil
		},
	}
	c.Flags().StringVar(&from, "from", "", "an earlier bundle of a crossover, to estimate from")
	return c
}

func printSchedule(out io.Writer, p *plan.Plan, frozen plan.Frozen) {
	s := p.Schedule()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	article := "a"
	if p.Arrivals != nil {
		article = "an"
	}
	fmt.Fprintf(w, "%s: %s %s plan\n\n", p.Name, article, p.Experiment)
	for _, role := range []plan.Role{plan.Baseline, plan.Candidate} {
		a := p.WithRole(role)
		row(string(role), "%s, %s", a.Name, engineOf(a))
	}
	row("model", "%s at %s, served as %s", p.Model.Name, p.Model.Revision, p.Model.ServedAs)
	if p.Pairing == nil {
		row("workload", "%s, temperature %g", workload(p.Workload), p.Workload.Temperature)
	} else {
		for _, lane := range p.Pairing.Lanes.Each() {
			q := p.Pairing.Lanes.Sequence(lane)
			row(string(lane)+" lane", "%s of %s in cycles of %d, %s, temperature %g",
				count(q.Requests, "request"), q.Tasks, q.Cycle, length(plan.Workload{Lane: lane, MaxTokens: q.Tokens()}), p.Temperature())
		}
	}
	row("plan", "%s", frozen.SHA256)
	row("schedule", "%s", s.SHA256())

	fmt.Fprintf(w, "\nlifecycles, each a fresh server\n")
	for i := 0; i+1 < len(s.Lifecycles); i += 2 {
		first, second := s.Lifecycles[i], s.Lifecycles[i+1]
		lane := ""
		if first.Lane != "" {
			lane = string(first.Lane) + " lane, "
		}
		row(fmt.Sprintf("pair %d", first.Pair), "%s%d of %d: %s, then %d of %d: %s",
			lane, first.Number, len(s.Lifecycles), first.Arm, second.Number, len(s.Lifecycles), second.Arm)
	}
	if p.Pairing == nil {
		fmt.Fprintf(w, "\nwaves of each lifecycle\n")
	}
	if n := p.Sweep.Warmup; n > 0 {
		row("warm-up", "%s, in no result", count(n, "request"))
	}
	arrivalRows(row, p, s)
	for _, t := range p.Sweep.Tiers {
		row(record.Clients(t), "× %s", count(p.Sweep.Repeats, "wave"))
	}
	fmt.Fprintf(w, "\nin all\n")
	kind := "wave"
	if p.Pairing != nil {
		kind = "sequence"
	}
	row("it runs", "%s, %s, %s; one attempt each", count(len(s.Lifecycles), "lifecycle"), count(s.Waves(), kind), count(s.Requests(), "request"))
	worst(row, p, s)
	switch {
	case p.Arrivals != nil:
		delay := p.Gates.ScheduleDelay.String()
		if p.Arrivals.Beyond == plan.Hold {
			delay = "not checked, since what is held back is in it"
		}
		row("gates", "client lag p99 %s, coalesced %s, schedule delay p99 %s, carry-over %s", p.Gates.ClientLag, p.Gates.Coalesced, delay, p.Gates.CarryOver)
	case p.Pairing != nil:
		row("gates", "client lag p99 %s, coalesced %s, identity %s, correctness %s; a pair with a failure: %s",
			p.Gates.ClientLag, p.Gates.Coalesced, p.Gates.Identity, p.Gates.Correctness, p.Pairing.Failure)
	default:
		row("gates", "client lag p99 %s, coalesced %s, release lag %s, carry-over %s, identity %s, correctness %s",
			p.Gates.ClientLag, p.Gates.Coalesced, p.Gates.ReleaseLag, p.Gates.CarryOver, p.Gates.Identity, p.Gates.Correctness)
	}
	row("claims", "%s", claims(p))
	if notes := notes(p); len(notes) > 0 {
		fmt.Fprintf(w, "\nnotes\n")
		for _, n := range notes {
			fmt.Fprintf(w, "  - %s\n", n)
		}
	}
	_ = w.Flush()
}

func engineOf(a *plan.Arm) string {
	switch e := a.Engine; {
	case e.Container != nil:
		return "a container of " + e.Container.Image
	case e.Process != nil:
		return "the process " + e.Process.Command[0]
	case e.Endpoint != nil:
		return "the endpoint " + e.Endpoint.URL
	default:
		return "emulated by " + e.Emulated.Parameters
	}
}

// workload is what is asked, and how long answers are.
func workload(w plan.Workload) string {
	switch {
	case w.Source == nil:
		return w.Prompts + ", " + length(w)
	case w.MaxTokens > 0:
		return w.Source.String() + "; " + length(w) + " where an entry doesn't say"
	case w.Lane == plan.Fixed:
		return w.Source.String() + "; exactly so many tokens"
	}
	return w.Source.String() + "; at most so many tokens"
}

func length(w plan.Workload) string {
	if w.Lane == plan.Fixed {
		return "exactly " + count(w.MaxTokens, "token")
	}
	return "at most " + count(w.MaxTokens, "token")
}

// worst says how long the run takes at worst, and of what that is made.
func worst(row func(string, string, ...any), p *plan.Plan, s plan.Schedule) {
	t := p.Timeouts
	total := p.WorstCase().Round(time.Second).String()
	if p.TimeScale != 1 {
		total += fmt.Sprintf(" here, %s emulated (time passes %g times faster)", p.WorstCaseEmulated(), p.TimeScale)
	}
	row("at worst", "%s, with every deadline met by a hair:", total)
	row("", "%s × (ready %s + stop %s)", count(len(s.Lifecycles), "lifecycle"), t.Ready, t.Stop)
	if p.Pairing != nil {
		row("", "%s × (connect %s + request %s)", count(s.Requests(), "request"), t.Connect, t.Request)
	} else if p.Arrivals == nil {
		row("", "%s × (settle %s + connect %s + request %s)", count(s.Waves(), "wave"), settle(p), t.Connect, t.Request)
	}
	arrivalWorst(row, p)
	if n := p.Images(); n > 0 {
		row("", "%s × %s, where it has to be pulled or built", count(n, "image"), t.Image)
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func settle(p *plan.Plan) string {
	if p.Sweep.Settle.None {
		return "none"
	}
	return p.Sweep.Settle.Idle.String()
}

func claims(p *plan.Plan) string {
	if len(p.Claims) == 0 {
		return "none"
	}
	names := make([]string, len(p.Claims))
	for i, c := range p.Claims {
		names[i] = string(c)
	}
	return strings.Join(names, ", ")
}

// ginkgoLimit is how long Ginkgo lets all suites run unless it is told.
const ginkgoLimit = time.Hour

// notes are what a plan's author should know before the money is spent.
func notes(p *plan.Plan) []string {
	var out []string
	note := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch n := p.Sweep.Lifecycles; {
	case p.Pairing != nil:
	case n < 2:
		note("one lifecycle an arm: what is seen will be an observation, and no claim can be supported")
	case n < claim.FewestPairs:
		note("%d pairs are descriptive: a two-sided sign-flip test can't go below 2/2^%d = %.3f; it takes %d to show anything at %.0f %%",
			n, n, 2/float64(int(1)<<n), claim.FewestPairs, claim.Level*100)
	}
	if c := p.Pairing; c != nil {
		if fewest := plan.FewestPairs(c.Inference.Level.Share()); c.Pairs < fewest {
			note("%d pairs are descriptive: it takes %d to show anything at %s", c.Pairs, fewest, c.Inference.Level)
		}
		if c.Inference.Margin.Value == 0 && slices.Contains(p.Claims, plan.ClaimNaturalQuality) {
			note("a margin of 0%%: answers that are as good in both arms show no superiority, so natural_quality holds only if nothing is wrong, or if the candidate is better")
		}
		for _, lane := range c.Lanes.Each() {
			if q := c.Lanes.Sequence(lane); q.Requests%q.Cycle != 0 {
				note("the %s lane ends inside a cycle: %d requests are no multiple of %d", lane, q.Requests, q.Cycle)
			}
		}
	}
	if t := p.Temperature(); t > 0 {
		note("temperature %g: outputs are drawn at random, and equal ones would be a coincidence", t)
	}
	if p.Sweep.Settle.None && p.Pairing == nil {
		note("settle none: waves are released onto what the last one left; carry_over says what such a wave is worth: %s", p.Gates.CarryOver)
	}
	for _, a := range p.Arms {
		if a.OnDisconnect == plan.Unknown {
			note("%s: what it does with a request whose client left is not known, and can't be checked", a.Name)
		}
		if *a.Engine.Metrics == "" && !p.Sweep.Settle.None {
			note("%s has no metrics page: that it is idle again is found by a probe, which says less of a server that batches", a.Name)
		}
	}
	if names := p.Variables(); len(names) > 0 {
		note("set where it runs: %s", strings.Join(names, ", "))
	}
	if p.WorstCase() > ginkgoLimit {
		note("at worst longer than Ginkgo's limit of %s: give it --timeout, or use assay run, which does", ginkgoLimit)
	}
	if p.Emulated() {
		note("emulated: no number of this plan says anything about a real server")
	}
	return out
}
