package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Mistake is one mistake in a plan, with its place and what would be right.
type Mistake struct {
	Line, Column int    // from 1
	Key          string // such as arms[1].engine.container.image; empty for the document
	Text         string // what is wrong, the value, what would be right
}

// Mistakes is every mistake of a plan, in the order of their places. It is the
// error that [Load] and [Parse] return for a plan that can be read but not run.
type Mistakes struct {
	File string
	List []Mistake
}

// Error writes a line for each mistake: file:line:column: key: text.
func (m *Mistakes) Error() string {
	lines := make([]string, len(m.List))
	for i, f := range m.List {
		lines[i] = fmt.Sprintf("%s:%d:%d: %s", m.File, f.Line, f.Column, f.Text)
		if f.Key != "" {
			lines[i] = fmt.Sprintf("%s:%d:%d: %s: %s", m.File, f.Line, f.Column, f.Key, f.Text)
		}
	}
	return strings.Join(lines, "\n")
}

func (m *Mistakes) sort() {
	slices.SortStableFunc(m.List, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Key, b.Key))
	})
	m.List = slices.CompactFunc(m.List, func(a, b Mistake) bool { return a == b })
}

// nearest is the known word that a mistyped one was probably meant to be, or
// empty if none is near.
func nearest(word string, known []string) string {
	best, at := "", max(1, len(word)/3)+1
	for _, k := range known {
		if d := distance(word, k); d < at {
			best, at = k, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours between two words (Damerau and Levenshtein's optimal string
// alignment).
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
