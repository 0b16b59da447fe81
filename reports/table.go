package reports

import (
	"fmt"
	"math"
	"strings"

	"assay/harness/metric"
	"assay/harness/record"
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
	switch {
	case s.Provenance != record.Emulated:
		return ""
	case s.TimeScale == 1:
		return " (emulated; in emulated time, which ran as fast as real time)"
	default:
		return fmt.Sprintf(" (emulated; in emulated time, which ran %g times as fast as real time)", s.TimeScale)
	}
}

// clients names a row by its tier, with what is to be known before any of its
// numbers is read.
func clients(t metric.Tier) string {
	text := fmt.Sprint(t.Tier)
	if !t.Validity.Valid {
		text += " INVALID"
	}
	if t.Status != "complete" {
		text += " " + t.Status
	}
	return text
}

// results is the one table: a row per tier.
func results(b Bundle) grid {
	base, cand := names(b)
	g := grid{
		title: "Results" + emulatedHeading(b.Summary),
		head: []string{"clients", base + " goodput median [min–max] tok/s", cand + " goodput median [min–max] tok/s", "speed-up",
			base + " p95 TTFT", cand + " p95 TTFT", base + " failures", cand + " failures"},
		footer: "Goodput: over waves. TTFT: over ok attempts, which failures make look better than it was; see the next table.",
	}
	for _, t := range b.Summary.Tiers {
		if t.Status == "not_selected" {
			continue
		}
		g.rows = append(g.rows, []string{
			clients(t), spread(t.Baseline.Goodput), spread(t.Candidate.Goodput), times(t.SpeedUp),
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
		head:   []string{"clients", base + " p50", base + " p95", cand + " p50", cand + " p95", base + " censored/n", cand + " censored/n"},
		footer: "≥: a lower bound. An attempt that failed before its first token is censored at its end: it would have waited at least so long.",
	}
	for _, t := range b.Summary.Tiers {
		if t.Status == "not_selected" {
			continue
		}
		g.rows = append(g.rows, []string{
			clients(t), seconds(t.Baseline.TTFTAll50), seconds(t.Baseline.TTFTAll95), seconds(t.Candidate.TTFTAll50), seconds(t.Candidate.TTFTAll95),
			censored(t.Baseline.TTFTAll95), censored(t.Candidate.TTFTAll95),
		})
	}
	return g
}

func censored(v metric.Value) string { return fmt.Sprintf("%d/%d", v.Censored, v.N) }

func names(b Bundle) (baseline, candidate string) {
	return b.Plan.WithRole("baseline").Name, b.Plan.WithRole("candidate").Name
}

func spread(s metric.Spread) string {
	if s.Median.Value == nil || s.Min == nil || s.Max == nil {
		return "null"
	}
	return fmt.Sprintf("%s [%s–%s]", rate(*s.Median.Value), rate(*s.Min), rate(*s.Max))
}

// rate shows tenths, as the published tables do, and of less than one two
// digits, so that little does not look like nothing.
func rate(v float64) string {
	if v > 0 && v < 1 {
		return fmt.Sprintf("%.2g", v)
	}
	return fmt.Sprintf("%.1f", v)
}

func times(v metric.Value) string {
	if v.Value == nil {
		return "null"
	}
	return fmt.Sprintf("%.1f×", *v.Value)
}

// seconds shows three digits after the point, as the published tables do. A
// lower bound is rounded down, so that it stays one: from ten seconds on to
// tenths.
func seconds(v metric.Value) string {
	switch {
	case v.Value == nil:
		return "null"
	case v.AtLeast && *v.Value >= 10:
		return fmt.Sprintf("≥ %.1f s", math.Floor(float64(*v.Value*10))/10)
	case v.AtLeast:
		return fmt.Sprintf("≥ %.3f s", math.Floor(float64(*v.Value*1000))/1000)
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

// nullsOf lists the numbers of the tables that are null, with the reasons.
func nullsOf(s metric.Summary) []string {
	var out []string
	for _, t := range s.Tiers {
		if t.Status == "not_selected" {
			out = append(out, fmt.Sprintf("%s: not selected, so the tables have no row for it", record.Clients(t.Tier)))
			continue
		}
		say := func(what string, v metric.Value) {
			if v.Value == nil {
				out = append(out, fmt.Sprintf("%s of %s: %s", what, v.Population, v.Reason))
			}
		}
		for _, a := range []metric.Arm{t.Baseline, t.Candidate} {
			if a.Waves == 0 && a.Counts.Attempted == 0 {
				out = append(out, fmt.Sprintf("every number of %s, %s: no wave of it was recorded", a.Arm, record.Clients(t.Tier)))
				continue
			}
			say("goodput", a.Goodput.Median)
			say("p95 TTFT", a.TTFT95)
			say("p50 and p95 TTFT", a.TTFTAll95)
			say("failure rate", a.FailureRate)
		}
		say("speed-up", t.SpeedUp)
	}
	return out
}

// markdown draws a grid as a Markdown table.
func (g grid) markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, "## %s\n\n| %s |\n|%s\n", inMarkdown(g.title), strings.Join(each(g.head, inCell), " | "), strings.Repeat("---:|", len(g.head)))
	for _, row := range g.rows {
		fmt.Fprintf(&out, "| %s |\n", strings.Join(each(row, inCell), " | "))
	}
	if len(g.rows) == 0 {
		fmt.Fprintf(&out, "| nothing was run |%s\n", strings.Repeat(" |", len(g.head)-1))
	}
	fmt.Fprintf(&out, "\n%s\n", inMarkdown(g.footer))
	return out.String()
}
