package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"assay/reports"
)

func reportCommand() *cobra.Command {
	page, picture, format := "", "", ""
	c := &cobra.Command{
		Use:   "report DIR|FILE.tar.zst",
		Short: "print a bundle's tables, computed anew from its records",
		Long: "Prints a bundle's tables and the words under them, computed anew from its plan and records: what its report.md\n" +
			"says is not read. It checks nothing: see assay verify. With --format summary it is short, in Markdown, for a step's\n" +
			"summary or a pull request's comment; with --format markdown it is report.md. With --html it writes the same, with the figures, as a page\n" +
			"of one file, with --png the main figure alone, and prints nothing.\n\n" +
			"Exit codes: 0 printed, 1 printed without what could not be read, 2 there was nothing to print.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, known := formats[format]
			if !known {
				return fmt.Errorf("--format %s is none: there are terminal, markdown and summary", format)
			}
			dir, done, err := opened(args[0])
			if err != nil {
				return err
			}
			defer done()
			b, err := reports.ReadCondensed(dir)
			if b.Plan == nil {
				return fmt.Errorf("%s can't be read: %w", args[0], err)
			}
			if page == "" && picture == "" {
				fmt.Fprint(cmd.OutOrStdout(), text(b))
			}
			for _, f := range []struct {
				name string
				make func(reports.Bundle) ([]byte, error)
			}{{page, reports.HTML}, {picture, reports.Picture}} {
				if err := writeReport(b, f.name, f.make); err != nil {
					return err
				}
			}
			if err != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s is not whole, and this report is without what could not be read: go tool assay verify %s\n%s\n", args[0], args[0], err)
				return doesNotHold
			}
			return nil
		},
	}
	c.Flags().StringVar(&format, "format", "terminal", "print it as terminal, markdown or summary")
	c.Flags().StringVar(&page, "html", "", "write the page to this `file`, over what is there")
	c.Flags().StringVar(&picture, "png", "", "write the main figure to this `file`, over what is there")
	return c
}

// formats are what a report can be printed as.
var formats = map[string]func(reports.Bundle) string{"terminal": reports.Terminal, "markdown": reports.Markdown, "summary": reports.Short}

// writeReport writes what is made of a bundle to a file, unless none is named.
func writeReport(b reports.Bundle, name string, make func(reports.Bundle) ([]byte, error)) error {
	if name == "" {
		return nil
	}
	data, err := make(b)
	if err != nil {
		return err
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		return fmt.Errorf("the report can't be written: %w; name another file", err)
	}
	return nil
}
