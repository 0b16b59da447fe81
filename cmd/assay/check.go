package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"assay/claim"
	"assay/harness/plan"
	"assay/harness/record"
)

func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check PLAN",
		Short: "validate a plan and print its schedule: lifecycles, waves, requests, worst-case time",
		Long:  "Exit codes: 0 it can be run, 1 it can't (each mistake on a line, with its place), 2 it could not be read.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := plan.Load(args[0])
			var mistakes *plan.Mistakes
			if errors.As(err, &mistakes) {
				fmt.Fprintln(cmd.OutOrStdout(), mistakes)
				fmt.Fprintf(cmd.OutOrStdout(), "%d mistake(s)\n", len(mistakes.List))
				return doesNotHold
			}
			if err != nil {
				return err
			}
			frozen, err := plan.Freeze(p)
			if err != nil {
				return err
			}
			printSchedule(cmd.OutOrStdout(), p, frozen)
			return nil
		},
	}
}

func printSchedule(out io.Writer, p *plan.Plan, frozen plan.Frozen) {
	s := p.Schedule()
	fmt.Fprintf(out, "%s: %s, %d arms\n", p.Name, p.Experiment, len(p.Arms))
	fmt.Fprintf(out, "  plan      %s\n  schedule  %s\n\n", frozen.SHA256, s.SHA256())
	for _, l := range s.Lifecycles {
		fmt.Fprintf(out, "  lifecycle %d of %d: %s (%s), pair %d\n", l.Number, len(s.Lifecycles), l.Arm, p.Arm(l.Arm).Engine.Kind(), l.Pair)
		for _, line := range waveLines(l.Waves) {
			fmt.Fprintf(out, "    %s\n", line)
		}
	}
	t := p.Timeouts
	fmt.Fprintf(out, "\n  %d lifecycles, %d waves, %d requests; one attempt each\n", len(s.Lifecycles), s.Waves(), s.Requests())
	fmt.Fprintf(out, "  at worst %s: every deadline met by a hair (image %s once; ready %s, stop %s a lifecycle; settle %s, connect %s, request %s a wave)\n",
		p.WorstCase().Round(time.Second), t.Image, t.Ready, t.Stop, settle(p), t.Connect, t.Request)
	if p.TimeScale != 1 {
		fmt.Fprintf(out, "  emulated time passes %g times faster: the plan's times are emulated, the worst case is real\n", p.TimeScale)
	}
	fmt.Fprintf(out, "  gates: client lag p99 %s, coalesced %s, release lag %s, carry-over %s, identity %s, correctness %s\n",
		p.Gates.ClientLag, p.Gates.Coalesced, p.Gates.ReleaseLag, p.Gates.CarryOver, p.Gates.Identity, p.Gates.Correctness)
	names := make([]string, len(p.Claims))
	for i, c := range p.Claims {
		names[i] = string(c)
	}
	fmt.Fprintf(out, "  claims: %s\n", strings.Join(names, ", "))
	for _, w := range warnings(p) {
		fmt.Fprintf(out, "  note: %s\n", w)
	}
}

// waveLines folds repeats of a tier into one line.
func waveLines(waves []plan.Wave) []string {
	var lines []string
	for i := 0; i < len(waves); {
		j := i
		for j < len(waves) && waves[j].Tier == waves[i].Tier && waves[j].Warmup == waves[i].Warmup {
			j++
		}
		kind := fmt.Sprintf("%s × %d waves", record.Clients(waves[i].Tier), j-i)
		if waves[i].Warmup {
			kind = fmt.Sprintf("warm-up: %d request(s), in no result", j-i)
		}
		lines = append(lines, kind)
		i = j
	}
	return lines
}

func settle(p *plan.Plan) string {
	if p.Sweep.Settle.None {
		return "none"
	}
	return p.Sweep.Settle.Idle.String()
}

// warnings are what a plan's author should know before the money is spent.
func warnings(p *plan.Plan) []string {
	var out []string
	switch n := p.Sweep.Lifecycles; {
	case n < 2:
		out = append(out, "one lifecycle an arm: what is seen will be an observation, and no claim can be supported")
	case n < claim.FewestPairs:
		out = append(out, fmt.Sprintf("%d pairs are descriptive: a two-sided sign-flip test can't go below 2/2^%d = %.3f; it takes %d to show anything at %.0f %%", n, n, 2/float64(int(1)<<n), claim.FewestPairs, claim.Level*100))
	}
	if p.Workload.Temperature > 0 {
		out = append(out, fmt.Sprintf("temperature %g: outputs are drawn at random, and equal ones would be a coincidence", p.Workload.Temperature))
	}
	if p.Emulated() {
		out = append(out, "emulated: no number of this plan says anything about a real server")
	}
	return out
}
