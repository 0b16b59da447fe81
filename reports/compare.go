package reports

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"assay/comparison"
	"assay/harness/record"
)

// Compare verifies two bundles' directories and compares the newer one with the
// older one, by the metrics that are named or all of them. What makes them not
// comparable is in the comparison; the error is of what could not be read, in
// either, or of options that can't be meant.
func Compare(old, later string, metrics []string, o comparison.Options) (comparison.Comparison, error) {
	before, oldErr := verified(old)
	after, newErr := verified(later)
	if err := errors.Join(o.Check(), comparison.CheckMetrics(metrics), oldErr, newErr); err != nil {
		return comparison.Comparison{}, err
	}
	return comparison.Runs(before, after, metrics, o)
}

func verified(dir string) (comparison.Run, error) {
	r, err := comparison.Open(dir)
	if err != nil {
		return r, err
	}
	v, err := Verify(dir)
	r.Against = v.Reasons
	return r, err
}

// most rows and differences that a comment on a pull request shows.
const (
	mostRows        = 30
	mostDifferences = 8
)

// comparisonGrid is the table of a comparison.
func comparisonGrid(c comparison.Comparison, rows []comparison.Row) grid {
	g := grid{
		title: fmt.Sprintf("%s against %s", orUnnamed(c.New.Run), orUnnamed(c.Old.Run)), footer: c.Rule(),
		head: []string{"clients", "arm", "metric", "old", "new", "change", "interval", "verdict"},
	}
	n, m := 0, 0 // a run has a number of all of its lifecycles or of none
	for _, r := range c.Rows {
		n, m = max(n, r.NewN), max(m, r.OldN)
	}
	g.title += fmt.Sprintf(", %d against %d lifecycles an arm", n, m)
	for _, r := range rows {
		verdict := string(r.Verdict)
		if r.Verdict == comparison.Worse {
			verdict = "WORSE"
		}
		tier, _, _ := strings.Cut(r.Where, " ")
		g.rows = append(g.rows, []string{tier, r.Arm, r.Metric, r.Number(r.Old), r.Number(r.New), r.Changed(), r.Range(), verdict})
	}
	return g
}

func orUnnamed(run string) string {
	if run == "" {
		return "a run without a name"
	}
	return run
}

// verdictLine is a comparison's first line.
func verdictLine(c comparison.Comparison) string {
	return fmt.Sprintf("%s: %s.", strings.ToUpper(string(c.Verdict)), c.Reason)
}

// reasonsOf are the reasons that rows give for their verdicts, each once, with
// how many rows it is said of where they are several.
func reasonsOf(c comparison.Comparison) []string {
	rows := map[string][]comparison.Row{}
	var order []string
	for _, r := range c.Rows {
		key := string(r.Verdict) + ": " + r.Reason
		if r.Reason == "" {
			continue
		}
		if rows[key] == nil {
			order = append(order, key)
		}
		rows[key] = append(rows[key], r)
	}
	var out []string
	for _, key := range order {
		first := rows[key][0]
		where := fmt.Sprintf("%s, %s, %s", first.Where, first.Arm, first.Metric)
		if n := len(rows[key]) - 1; n > 0 {
			where += fmt.Sprintf(" and %d more", n)
		}
		out = append(out, where+": "+key)
	}
	return out
}

func comparisonWords(c comparison.Comparison) []section {
	return []section{
		{"Not comparable", c.Against},
		{"What else differs", c.Differences},
		{"Reasons", reasonsOf(c)},
	}
}

// ComparisonTerminal is a comparison as a terminal shows it.
func ComparisonTerminal(c comparison.Comparison) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%s\n", wrap(verdictLine(c), width, ""))
	if len(c.Rows) > 0 {
		g := comparisonGrid(c, c.Rows)
		fmt.Fprintf(&out, "\n%s\n%s\n%s\n", wrap(g.title, width, ""), g.terminal(), wrap(g.footer, width, ""))
	}
	listed(&out, comparisonWords(c))
	return record.Visible(out.String()) // the cells of the table too
}

// ComparisonMarkdown is a comparison in less than 60 lines, for a comment on a
// pull request: what came out as different first, and the rest as far as there
// is room.
func ComparisonMarkdown(c comparison.Comparison) string {
	var out strings.Builder
	fmt.Fprintf(&out, "**%s**\n", inMarkdown(verdictLine(c)))
	rank := []comparison.Verdict{comparison.Worse, comparison.NotComparable, comparison.Better, comparison.TooFew, comparison.NoDifference}
	rows := slices.Clone(c.Rows)
	slices.SortStableFunc(rows, func(a, b comparison.Row) int {
		return slices.Index(rank, a.Verdict) - slices.Index(rank, b.Verdict)
	})
	if len(rows) > 0 {
		shown := rows[:min(len(rows), mostRows)]
		g := comparisonGrid(c, shown)
		if more := len(rows) - len(shown); more > 0 {
			g.footer = fmt.Sprintf("%d more rows are in the JSON. %s", more, g.footer)
		}
		out.WriteString("\n" + g.markdown())
	}
	room := map[string]int{"Not comparable": 20, "What else differs": mostDifferences, "Reasons": 4}
	for _, s := range comparisonWords(c) {
		if len(s.lines) == 0 {
			continue
		}
		fmt.Fprintf(&out, "\n%s:\n", s.title)
		for _, line := range s.lines[:min(len(s.lines), room[s.title])] {
			fmt.Fprintf(&out, "- %s\n", inItem(line))
		}
		if more := len(s.lines) - room[s.title]; more > 0 {
			fmt.Fprintf(&out, "- and %d more\n", more)
		}
	}
	return out.String()
}

// ComparisonJSON is a comparison as JSON, by its published schema.
func ComparisonJSON(c comparison.Comparison) ([]byte, error) {
	data, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return nil, fmt.Errorf("the comparison is no JSON: %w", err)
	}
	return append(data, '\n'), nil
}
