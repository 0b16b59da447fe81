package reports

import (
	"fmt"
	"math"
	"strings"

	"assay/harness/metric"
)

// grid is a table as people read it: what a cell says is decided here, how it
// is drawn elsewhere.
type grid struct {
	title  string
	head   []string
	rows   [][]string
	footer string
}

// emulatedHeading marks every heading of a run whose numbers are emulated.
func emulatedHeading(s metric.Summary) string {
	if s.Provenance != "emulated" {
		return ""
	}
	return fmt.Sprintf(" (emulated; emulated time, %g× faster than real)", s.TimeScale)
}

// results is the one table: a row per tier.
func results(b Bundle) grid {
	base, cand := names(b)
	g := grid{
		title: "Results" + emulatedHeading(b.Summary),
		head: []string{"clients", base + " goodput, tok/s", cand + " goodput, tok/s", "speed-up",
			base + " p95 TTFT", cand + " p95 TTFT", base + " failures", cand + " failures"},
		footer: "Goodput: median [min–max] over waves. TTFT: over ok attempts, which failures make look better than it was; see the next table.",
	}
	for _, t := range b.Summary.Tiers {
		if t.Status == "not_selected" {
			continue
		}
		g.rows = append(g.rows, []string{
			fmt.Sprint(t.Tier), spread(t.Baseline.Goodput), spread(t.Candidate.Goodput), times(t.SpeedUp),
			seconds(t.Baseline.TTFT95), seconds(t.Candidate.TTFT95), failures(t.Baseline), failures(t.Candidate),
		})
	}
	return g
}

// allAttempts is the second table: TTFT with the failures in it.
func allAttempts(b Bundle) grid {
	base, cand := names(b)
	g := grid{
		title:  "TTFT over all attempts, failures right-censored" + emulatedHeading(b.Summary),
		head:   []string{"clients", base + " p50", base + " p95", cand + " p50", cand + " p95", base + " n", cand + " n"},
		footer: "≥: a lower bound. An attempt that failed before its first token would have waited at least until it ended.",
	}
	for _, t := range b.Summary.Tiers {
		if t.Status == "not_selected" {
			continue
		}
		g.rows = append(g.rows, []string{
			fmt.Sprint(t.Tier), seconds(t.Baseline.TTFTAll50), seconds(t.Baseline.TTFTAll95), seconds(t.Candidate.TTFTAll50), seconds(t.Candidate.TTFTAll95),
			fmt.Sprint(t.Baseline.TTFTAll95.N), fmt.Sprint(t.Candidate.TTFTAll95.N),
		})
	}
	return g
}

func names(b Bundle) (baseline, candidate string) {
	return b.Plan.WithRole("baseline").Name, b.Plan.WithRole("candidate").Name
}

func spread(s metric.Spread) string {
	if s.Median.Value == nil || s.Min == nil || s.Max == nil {
		return "null"
	}
	return fmt.Sprintf("%.1f [%.1f–%.1f]", *s.Median.Value, *s.Min, *s.Max)
}

func times(v metric.Value) string {
	if v.Value == nil {
		return "null"
	}
	return fmt.Sprintf("%.1f×", *v.Value)
}

// seconds shows three digits after the point, as the published tables do; of a
// lower bound one, rounded down so that it stays one.
func seconds(v metric.Value) string {
	switch {
	case v.Value == nil:
		return "null"
	case v.AtLeast:
		return fmt.Sprintf("≥ %.1f s", math.Floor(float64(*v.Value*10))/10)
	default:
		return fmt.Sprintf("%.3f s", *v.Value)
	}
}

func failures(a metric.Arm) string {
	if a.Counts.Attempted == 0 {
		return "null"
	}
	return fmt.Sprintf("%d/%d (%.0f %%)", a.Counts.Failed, a.Counts.Attempted, 100*float64(a.Counts.Failed)/float64(a.Counts.Attempted))
}

// nullsOf lists the cells of a table's numbers that are null, with the reasons.
func nullsOf(s metric.Summary) []string {
	var out []string
	for _, t := range s.Tiers {
		if t.Status == "not_selected" {
			continue
		}
		for _, v := range []metric.Value{
			t.Baseline.Goodput.Median, t.Candidate.Goodput.Median, t.SpeedUp, t.Baseline.TTFT95, t.Candidate.TTFT95,
			t.Baseline.TTFTAll95, t.Candidate.TTFTAll95,
		} {
			if v.Value == nil {
				out = append(out, fmt.Sprintf("%s (%s): %s", v.Population, v.Unit, v.Reason))
			}
		}
	}
	return out
}

// markdown draws a grid as a Markdown table.
func (g grid) markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, "## %s\n\n| %s |\n|%s\n", g.title, strings.Join(g.head, " | "), strings.Repeat("---:|", len(g.head)))
	for _, row := range g.rows {
		fmt.Fprintf(&out, "| %s |\n", strings.Join(row, " | "))
	}
	if len(g.rows) == 0 {
		fmt.Fprintf(&out, "| nothing was run |%s\n", strings.Repeat(" |", len(g.head)-1))
	}
	fmt.Fprintf(&out, "\n%s\n", g.footer)
	return out.String()
}
