package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"assay/comparison"
	"assay/harness/plan"
	"assay/reports"
)

func compareCommand() *cobra.Command {
	format := "table"
	minimum, level := inPercent(comparison.DefaultMinimum), inPercent(comparison.DefaultLevel)
	sums := ""
	var metrics []string
	c := &cobra.Command{
		Use:   "compare OLD NEW",
		Short: "say what changed between two bundles, with an interval and a verdict for each number",
		Long: "Verifies two bundles (directories, or files that assay bundle pack made) and compares the newer run with the\n" +
			"older one, tier by tier and arm by arm. The lifecycle is what is replicated: each has one number, and the question\n" +
			"is whether it matters which run a lifecycle was in. A number is better or worse if that is shown with all numbers\n" +
			"taken together, and if it changed by --minimum at least. What else differs (plan, image, GPU, driver, revision) is\n" +
			"listed; runs that were asked other things, are invalid, partial or interrupted are not comparable. Concurrency\n" +
			"bundles alone are compared yet. How it is decided, and how often it is wrong: docs/statistics.md.\n\n" +
			"Verdicts: better, worse, no difference shown (which is not: the same), too few to show (with how many lifecycles\n" +
			"it takes), not comparable (with why).\n\n" +
			"Exit codes: 0 nothing is worse; 1 something is worse; 2 not comparable, too few lifecycles to show anything, a\n" +
			"number that OLD has is missing in NEW, or something could not be read.",
		Example: "  assay compare out/baseline out/tonight\n" +
			"  assay compare --metrics goodput,ttft_p95 --minimum 3% baseline.tar.zst out/tonight\n" +
			"  assay compare --format md out/baseline out/tonight >> \"$GITHUB_STEP_SUMMARY\"",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			show, formatErr := comparisonFormat(format)
			least, minimumErr := share("--minimum", minimum)
			sure, levelErr := share("--level", level)
			o := comparison.Options{Minimum: least, Level: sure}
			if levelErr == nil {
				levelErr = o.Check()
			}
			old, doneOld, oldErr := opened(args[0])
			defer doneOld()
			later, doneNew, newErr := opened(args[1])
			defer doneNew()
			if err := errors.Join(formatErr, minimumErr, levelErr, comparison.CheckMetrics(metrics), oldErr, newErr); err != nil {
				return err
			}
			c, err := reports.Compare(old, later, metrics, o)
			if err != nil {
				return err
			}
			c.Old.Bundle, c.New.Bundle = args[0], args[1]
			if sums != "" && c.Old.SumsSHA256 != sums {
				return fmt.Errorf("%s is another bundle than the one that was accepted: the SHA-256 of its SHA256SUMS is %q, and --old-sums says %q", args[0], c.Old.SumsSHA256, sums)
			}
			text, err := show(c)
			if err != nil {
				return err
			}
			fmt.Fprint(cmd.OutOrStdout(), text)
			return comparisonExit(c)
		},
	}
	c.Flags().StringVar(&format, "format", format, "table, md (under 60 lines, for a pull request) or json")
	c.Flags().StringVar(&minimum, "minimum", minimum, "the smallest `change` that is called better or worse; of a failure rate, points")
	c.Flags().StringVar(&level, "level", level, "the `confidence`, for all numbers together")
	c.Flags().StringSliceVar(&metrics, "metrics", nil, "compare only these `names`, which takes fewer lifecycles: "+strings.Join(comparison.Metrics, ", "))
	c.Flags().StringVar(&sums, "old-sums", "", "refuse an OLD whose SHA256SUMS has another `SHA-256`")
	return c
}

// inPercent writes a share as plans do.
func inPercent(share float64) string { return plan.Percent{Value: share * 100}.String() }

// share is a share that a flag gives as plans write it.
func share(flag, text string) (float64, error) {
	var p plan.Percent
	if err := p.UnmarshalText([]byte(text)); err != nil {
		return 0, fmt.Errorf("%s: %w", flag, err)
	}
	return p.Share(), nil
}

func comparisonFormat(name string) (func(comparison.Comparison) (string, error), error) {
	switch name {
	case "table":
		return func(c comparison.Comparison) (string, error) { return reports.ComparisonTerminal(c), nil }, nil
	case "md":
		return func(c comparison.Comparison) (string, error) { return reports.ComparisonMarkdown(c), nil }, nil
	case "json":
		return func(c comparison.Comparison) (string, error) {
			data, err := reports.ComparisonJSON(c)
			return string(data), err
		}, nil
	default:
		return nil, fmt.Errorf("--format: there is no %q: write table, md or json", name)
	}
}

func comparisonExit(c comparison.Comparison) error {
	switch c.Verdict {
	case comparison.Worse:
		return doesNotHold
	case comparison.NotComparable, comparison.TooFew:
		return unreadable
	default:
		return nil
	}
}
