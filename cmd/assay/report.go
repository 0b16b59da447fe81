package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"assay/reports"
)

func reportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "report DIR|FILE.tar.zst",
		Short: "print a bundle's tables, computed anew from its records",
		Long: "Prints a bundle's tables and the words under them, computed anew from its plan and records: what its report.md\n" +
			"says is not read. It checks nothing: see assay verify.\n\n" +
			"Exit codes: 0 printed, 1 printed without what could not be read, 2 there was nothing to print.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, done, err := opened(args[0])
			if err != nil {
				return err
			}
			defer done()
			b, err := reports.Read(dir)
			if b.Plan == nil {
				return fmt.Errorf("%s can't be read: %w", args[0], err)
			}
			fmt.Fprint(cmd.OutOrStdout(), reports.Terminal(b))
			if err != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s is not whole, and this report is without what could not be read: go tool assay verify %s\n%s\n", args[0], args[0], err)
				return doesNotHold
			}
			return nil
		},
	}
}
