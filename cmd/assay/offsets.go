package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"assay/workloads"
)

// offsetsCommand writes the moments of a trace's requests as an arrival plan has
// them, so that they are in the plan's hash and need no file later.
func offsetsCommand() *cobra.Command {
	source := workloads.Source{License: "unknown"}
	c := &cobra.Command{
		Use: "offsets FILE", Short: "write when a trace's requests came, as an arrival plan has it",
		Long: "Writes `{process: trace, offsets: [...]}` from an Azure or a Mooncake trace, for the arrivals of a plan. What is taken by --from, --to, --sample and --seed is what a workload's source takes with the same window, sample and seed.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			entries, set, err := workloads.Load(args[0], source)
			if err != nil {
				return err
			}
			offsets := make([]string, 0, len(entries))
			for _, e := range entries {
				offsets = append(offsets, e.Offset.String())
			}
			if len(offsets) == 0 {
				return fmt.Errorf("%s: nothing was taken of %d entries: widen the window", args[0], set.Entries)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "# %s\narrivals:\n  process: trace\n  offsets: [%s]\n", set, strings.Join(offsets, ", "))
			return err
		},
	}
	c.Flags().StringVar(&source.Kind, "kind", "azure", "what the file is: azure or mooncake")
	c.Flags().DurationVar(&source.Window.From, "from", 0, "where to begin, in the trace's own time")
	c.Flags().DurationVar(&source.Window.To, "to", 0, "where to end; 0: at its end")
	c.Flags().IntVar(&source.Sample, "sample", 0, "how many requests are drawn; 0: all")
	c.Flags().Uint64Var(&source.Seed, "seed", 0, "of the sample: the plan's")
	return c
}
