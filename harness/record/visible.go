package record

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible makes what a text hides visible, for where a record's text is shown:
// control characters, such as those of a terminal's escapes, become the pictures
// of them, and characters that turn the direction of the text around or take no
// room are written out. What is no UTF-8 becomes U+FFFD. Line feeds and tabs stay.
// Escaping for a format is apart from this: that keeps a text from being run, and
// this from being read as another.
func Visible(text string) string {
	if plain(text) {
		return text
	}
	var out strings.Builder
	out.Grow(len(text))
	for _, r := range text { // a byte that is no UTF-8 is read as U+FFFD
		switch {
		case r == '\n' || r == '\t':
			out.WriteRune(r)
		case r < 0x20:
			out.WriteRune('␀' + r)
		case r == 0x7f:
			out.WriteRune('␡')
		case unicode.IsControl(r), hides(r):
			fmt.Fprintf(&out, "⟨U+%04X⟩", r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// Line is a text as one line in which nothing is hidden: what a server said can
// neither begin a line of its own nor speak to a terminal.
func Line(text string) string {
	return Visible(strings.NewReplacer("\r\n", " / ", "\n", " / ", "\t", " ").Replace(text))
}

// plain is whether nothing in a text has to be looked at.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= utf8.RuneSelf || c < 0x20 && c != '\n' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// hides is whether a character changes how others are shown and is not itself:
// Unicode's Bidi_Control, separators of lines, and what is zero columns wide but
// the joiners, which scripts and emoji need.
func hides(r rune) bool {
	switch {
	case unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029':
		return true
	case r == '\u200b', r == '\u2060', r == '\ufeff', r == '\u00ad':
		return true
	case r >= 0xe0000 && r <= 0xe007f: // tags
		return true
	}
	return false
}
