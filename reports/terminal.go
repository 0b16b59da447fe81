package reports

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Terminal is the report as a terminal shows it: the verdict on validity, the
// tables, and the claims, in at most 120 columns.
func Terminal(b Bundle) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%s\n%s\n", heading(b), validity(b))
	for _, g := range []grid{results(b), allAttempts(b)} {
		fmt.Fprintf(&out, "\n%s\n%s\n%s\n", g.title, g.terminal(), wrap(g.footer, 118, ""))
	}
	fmt.Fprintf(&out, "\nClaims\n")
	for _, line := range claimGroups(b) {
		fmt.Fprintf(&out, "  %s\n", wrap(line, 114, "    "))
	}
	return out.String()
}

// terminal draws a grid in aligned columns; a heading breaks before its last
// words, so that the columns stay narrow.
func (g grid) terminal() string {
	w := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	w.SetStyle(style)
	head := make(table.Row, len(g.head))
	columns := make([]table.ColumnConfig, len(g.head))
	for i, h := range g.head {
		head[i] = strings.Replace(strings.Replace(h, ", tok/s", "\ntok/s", 1), " ", "\n", 1)
		columns[i] = table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight}
	}
	w.AppendHeader(head)
	w.SetColumnConfigs(columns)
	for _, row := range g.rows {
		cells := make(table.Row, len(row))
		for i, c := range row {
			cells[i] = c
		}
		w.AppendRow(cells)
	}
	return w.Render()
}

// wrap breaks a line between words; the lines after the first are indented.
func wrap(line string, width int, indent string) string {
	lines := strings.Split(text.WrapSoft(line, width), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n"+indent)
}
