package workloads

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decimal is a decimal number in the one form that equal numbers share, so that
// numbers of any length compare exactly and in the time it takes to read them:
// 0.digits × 10^exponent, the digits without zeros at either end; 0 has none.
type decimal struct {
	negative bool
	digits   string
	exponent int64
}

// written is how a number may be written: digits, or groups of three behind a
// first group, with commas or spaces that don't break a line between them; a
// fraction; an exponent.
var written = regexp.MustCompile(`^([+\x{2212}-]?)(\d+|[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d{0,2}(?:[\x{00A0}\x{2009}\x{202F}]\d{3})+|)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$`)

// parseDecimal reads a number, and says whether it is one.
func parseDecimal(text string) (decimal, bool) {
	m := written.FindStringSubmatch(text)
	if m == nil || m[2]+m[3] == "" {
		return decimal{}, false
	}
	var exponent int64
	if m[4] != "" {
		var err error
		if exponent, err = strconv.ParseInt(m[4], 10, 32); err != nil {
			return decimal{}, false // beyond what any task asks for
		}
	}
	whole := strings.Map(func(r rune) rune {
		if digit(r) {
			return r
		}
		return -1
	}, m[2])
	digits := strings.TrimLeft(whole+m[3], "0")
	exponent += int64(len(digits) - len(m[3]))
	digits = strings.TrimRight(digits, "0")
	if digits == "" {
		return decimal{}, true // 0 has neither sign nor exponent
	}
	return decimal{negative: m[1] != "" && m[1] != "+", digits: digits, exponent: exponent}, true
}

// numberLike finds what could be a number: digits and what stands between
// digits, a sign or a point before them, an exponent after them.
var numberLike = regexp.MustCompile(`[+\x{2212}-]?\.?\d(?:[\d.,\x{00A0}\x{2009}\x{202F}]*\d)?(?:[eE][+-]?\d+)?`)

// lastNumber is the last number of a text as it is written there; empty if there
// is none. A number that is joined to letters (H2O, 7B) is a part of a word, and
// a sign or a point that is joined to something before it (16-17, so.5, ...5) is
// a mark between the two. Units, % among them, are not looked at.
func lastNumber(text string) string {
	last := ""
	for _, at := range numberLike.FindAllStringIndex(text, -1) {
		number := text[at[0]:at[1]]
		before, _ := utf8.DecodeLastRuneInString(text[:at[0]])
		after, _ := utf8.DecodeRuneInString(text[at[1]:])
		for !digit(rune(number[0])) && (wordRune(before) || strings.ContainsRune(").-\u2212", before)) {
			_, size := utf8.DecodeRuneInString(number)
			before, number = '.', number[size:] // no sign and no point, but a mark between
		}
		if wordRune(before) || wordRune(after) {
			continue
		}
		last = number
	}
	return last
}

func numeric(answer, output string) string {
	want, ok := parseDecimal(strings.TrimSpace(answer))
	if !ok {
		return fmt.Sprintf("the task's answer %s is no number", short(answer))
	}
	if why := nothing(output); why != "" {
		return why
	}
	last := lastNumber(output)
	if last == "" {
		return fmt.Sprintf("there is no number in the output, which begins %s", short(strings.TrimSpace(output)))
	}
	got, ok := parseDecimal(last)
	switch {
	case !ok:
		return fmt.Sprintf("the last number, %s, is written in no clear way", short(last))
	case got != want:
		return fmt.Sprintf("the last number is %s, want %s", short(last), short(strings.TrimSpace(answer)))
	}
	return ""
}
