package reports

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// How much of a report its short form has at most: rows of the table, claims,
// other items of a list, and characters of an item. It is under 60 lines then; a
// comment on GitHub holds 65,536 characters.
const (
	mostShortRows   = 18
	mostShortClaims = 12
	mostShortItems  = 4
	longestItem     = 360
)

// Short is a report in fewer than 60 lines of Markdown, for a step's summary or a
// comment: whether the protocol was kept, what was seen, the one table, and what
// each claim came to. What it leaves out it counts.
func Short(b Bundle) string {
	var out strings.Builder
	fmt.Fprintf(&out, "### %s\n\n", inMarkdown(heading(b)))
	fmt.Fprintf(&out, "**%s**\n\n", inMarkdown(cut(shortValidity(b))))
	if v := b.Summary.Validity; len(v.Reasons) > 1 {
		items(&out, grouped(v.Reasons), mostShortItems)
	}
	found := finding(b)
	if !b.Summary.Validity.Valid {
		found = found[1:] // that it is invalid was said
	}
	items(&out, found, mostShortItems)
	g := grids(b)[0] // the one table
	if more := len(g.rows) - mostShortRows; more > 0 {
		g.rows = g.rows[:mostShortRows]
		g.footer = fmt.Sprintf("And %d more rows, which report.md has. %s", more, g.footer)
	}
	out.WriteString("#" + g.markdown())
	fmt.Fprintf(&out, "\n**Claims.** %s\n\n", inMarkdown(claimVerdict(b.Claims.Claims)))
	items(&out, claimGroups(b), mostShortClaims)
	fmt.Fprintf(&out, "Plan `%.12s`, %d attempts, %s. What the numbers are over, and what the run does not show: report.md. Verify: `go tool assay verify`.\n",
		b.Summary.PlanSHA256, len(b.Run.Requests), inMarkdown("revision "+shortRevision(b)))
	return out.String()
}

// shortValidity says it first, and whether a run is a part of one.
func shortValidity(b Bundle) string {
	if b.Summary.Validity.Valid {
		return validity(b)
	}
	text := "INVALID: what was recorded shows nothing of either server."
	if b.Summary.Status != "complete" {
		text += fmt.Sprintf(" The run is %s.", b.Summary.Status)
	}
	if len(b.Summary.Validity.Reasons) == 1 {
		text += " " + b.Summary.Validity.Reasons[0]
	}
	return text
}

func shortRevision(b Bundle) string {
	const digits = 12
	hash, dirty, _ := strings.Cut(fact(b, "revision"), "+")
	if len(hash) == 40 {
		hash = hash[:digits]
	}
	if dirty != "" {
		hash += "+" + dirty
	}
	return hash
}

// items writes a list, and how much of it is left out.
func items(out *strings.Builder, lines []string, most int) {
	if len(lines) == 0 {
		return
	}
	more := len(lines) - most
	for _, text := range lines[:min(most, len(lines))] {
		fmt.Fprintf(out, "- %s\n", inItem(cut(text)))
	}
	if more > 0 {
		fmt.Fprintf(out, "- and %d more, which report.md has\n", more)
	}
	out.WriteByte('\n')
}

// cut shortens a text between two of its words.
func cut(text string) string {
	if utf8.RuneCountInString(text) <= longestItem {
		return text
	}
	short := string([]rune(text)[:longestItem])
	if at := strings.LastIndexByte(short, ' '); at > 0 {
		short = short[:at]
	}
	return short + " …"
}
