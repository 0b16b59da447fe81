package reports

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"assay/harness/record"
)

// width is the most columns that a line on a terminal has.
const width = 118

// A line of a heading holds words of leastWord to widestWord columns together;
// one word may have longestWord before it is broken.
const (
	leastWord   = 7
	widestWord  = 12
	longestWord = 14
)

// Terminal is the report as a terminal shows it: the verdict on validity, the
// tables, the words that belong under them, and the claims, in at most 120
// columns.
func Terminal(b Bundle) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%s\n%s\n", wrap(record.Line(heading(b)), width, ""), wrap(record.Line(validity(b)), width, ""))
	for _, g := range grids(b) {
		fmt.Fprintf(&out, "\n%s\n%s\n%s\n", wrap(g.title, width, ""), g.terminal(), wrap(g.footer, width, ""))
	}
	listed(&out, append(words(b), section{"Claims", claimGroups(b)}))
	return record.Visible(out.String()) // the cells of the tables too
}

// listed writes the sections that have any lines, each line an item.
func listed(out *strings.Builder, of []section) {
	for _, s := range of {
		if len(s.lines) == 0 {
			continue
		}
		fmt.Fprintf(out, "\n%s\n", s.title)
		for _, said := range s.lines {
			fmt.Fprintf(out, "  - %s\n", wrap(record.Line(said), width-4, "    "))
		}
	}
}

// terminal draws a grid in aligned columns; its headings break between words, so
// that the columns are no wider than their cells. What is too wide all the same
// has its spreads under its medians.
func (g grid) terminal() string {
	text := g.draw(func(cell string) string { return cell })
	if widest(text) > width {
		text = g.draw(strings.NewReplacer(" [", "\n[", "; ", "\n").Replace)
	}
	return text
}

func widest(drawn string) int {
	most := 0
	for _, line := range strings.Split(drawn, "\n") {
		most = max(most, text.StringWidthWithoutEscSequences(line))
	}
	return most
}

func (g grid) draw(cell func(string) string) string {
	w := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	w.SetStyle(style)
	head := make(table.Row, len(g.head))
	columns := make([]table.ColumnConfig, len(g.head))
	for i, h := range g.head {
		heading := strings.NewReplacer(" goodput", "\ngoodput", " median", "\nmedian", " [", "\n[", " tok/s", "\ntok/s", " p", "\np", " failures", "\nfailures", " censored", "\ncensored").Replace(h)
		words := strings.Split(heading, "\n")
		for j := range words {
			words[j] = breakWords(words[j], g.widestCell(i, cell))
		}
		head[i] = strings.Join(words, "\n")
		columns[i] = table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight}
	}
	w.AppendHeader(head)
	w.SetColumnConfigs(columns)
	for _, row := range g.rows {
		cells := make(table.Row, len(row))
		for i, c := range row {
			cells[i] = cell(c)
		}
		cells[0] = strings.ReplaceAll(row[0], " ", "\n") // a tier with a mark on it
		w.AppendRow(cells)
	}
	return w.Render()
}

// widestCell is the widest line of a column's cells, in columns of the terminal.
func (g grid) widestCell(i int, cell func(string) string) int {
	most := 0
	for _, row := range g.rows {
		for _, line := range strings.Split(cell(row[i]), "\n") {
			most = max(most, text.StringWidthWithoutEscSequences(line))
		}
	}
	return most
}

// breakWords breaks a heading between its words where it is wider than the
// cells under it, and inside of a word that is longer than any of ours: arms may
// have long names.
func breakWords(heading string, cells int) string {
	room := min(max(cells, leastWord), widestWord)
	var lines []string
	for _, word := range strings.Fields(heading) {
		if n := len(lines); n > 0 && len([]rune(lines[n-1]+" "+word)) <= room {
			lines[n-1] += " " + word
			continue
		}
		lines = append(lines, text.WrapHard(word, longestWord))
	}
	return strings.Join(lines, "\n")
}

// wrap breaks a line between words; the lines after the first are indented.
func wrap(line string, width int, indent string) string {
	lines := strings.Split(text.WrapSoft(line, width), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n"+indent)
}
