package reports

import (
	"regexp"
	"strings"

	"assay/harness/record"
)

// Where CommonMark and GitHub's extensions of it take a text for more than its
// letters: HTML, entities, code, links, images and what a link refers to.
var (
	entity  = regexp.MustCompile(`&(#?[A-Za-z0-9]+;)`)
	mention = regexp.MustCompile(`(^|[^A-Za-z0-9_` + "`" + `.+-])(@[A-Za-z0-9][A-Za-z0-9/-]*)`)
)

// inMarkdown is a text as it stands in Markdown: as it is, on one line, and as
// nothing but text. A name behind an @ is code, since nobody should be called by
// what a server said.
func inMarkdown(text string) string {
	text = record.Line(text)
	text = entity.ReplaceAllString(text, "&amp;$1")
	text = strings.NewReplacer("<", "&lt;", "\\", "\\\\", "`", "\\`", "](", "\\](", "][", "\\][", "![", "!\\[").Replace(text)
	return mention.ReplaceAllString(text, "$1`$2`")
}

// block is what makes more than a paragraph of a text that begins with it.
var block = regexp.MustCompile(`^\s*(?:[0-9]{1,9}([.)])(?:\s|$)|([#>+*~=_[:-]))`)

// inItem is the same at the beginning of a list's item.
func inItem(text string) string {
	text = inMarkdown(text)
	if at := block.FindStringSubmatchIndex(text); at != nil {
		mark := max(at[2], at[4]) // of the two one is there
		return text[:mark] + "\\" + text[mark:]
	}
	return text
}

// inCell is the same in a cell of a table.
func inCell(text string) string { return strings.ReplaceAll(inMarkdown(text), "|", "\\|") }

func each(texts []string, as func(string) string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = as(text)
	}
	return out
}
