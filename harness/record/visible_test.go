package record_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"assay/harness/record"
)

func TestWhatATextHidesIsMadeVisible(t *testing.T) {
	g := NewWithT(t)
	for text, want := range map[string]string{
		"plain, ä 你好 👩‍👩‍👧\n\ttoo": "plain, ä 你好 👩‍👩‍👧\n\ttoo",
		"\x1b[31mred\x1b[0m":       "␛[31mred␛[0m",
		"a\x00b\rc\x7f\u0085":      "a␀b␍c␡⟨U+0085⟩",
		"\u202egnp.exe\u202c":      "⟨U+202E⟩gnp.exe⟨U+202C⟩",
		"zero\u200bwidth\ufeff":    "zero⟨U+200B⟩width⟨U+FEFF⟩",
		"a\u2028b\U000e0041":       "a⟨U+2028⟩b⟨U+E0041⟩",
		"\xff\xfe no UTF-8":        "\ufffd\ufffd no UTF-8",
		"<b>& escaped elsewhere":   "<b>& escaped elsewhere",
	} {
		g.Expect(record.Visible(text)).To(Equal(want))
	}
}

func FuzzVisible(f *testing.F) {
	for _, seed := range []string{"", "plain", "\x1b[2J", "\u202e", "\xff", "a\u200bb", "\n\t\r"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out := record.Visible(text)
		if !utf8.ValidString(out) {
			t.Fatalf("%q became %q, which is no UTF-8", text, out)
		}
		if i := strings.IndexFunc(out, func(r rune) bool {
			return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
		}); i >= 0 {
			t.Fatalf("%q became %q, which hides something at %d", text, out, i)
		}
		if record.Visible(out) != out {
			t.Fatalf("%q is changed a second time", text)
		}
	})
}
