package workloads

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The evaluators. Each is strict: what it does not name as allowed is wrong.
const (
	// The output is the answer, white space around either aside.
	evaluateExact = "exact"
	// The answer stands in the output as a whole word or number, in its case:
	// 17 is not in 170, 17.5, 1,017 or -17.
	evaluateContains = "contains"
	// The answer is a pattern in RE2's syntax that matches somewhere in the
	// output; its own anchors tie it down.
	evaluateRegex = "regex"
	// The output is one JSON value, or has one in its first Markdown fence,
	// that equals the answer by value, see jsonEqual.
	evaluateJSONEqual = "json_equal"
	// The output's last number equals the answer by value, see lastNumber.
	evaluateNumeric = "numeric"
)

// Evaluators are the names that a task's evaluator may have.
func Evaluators() []string {
	return []string{evaluateExact, evaluateContains, evaluateRegex, evaluateJSONEqual, evaluateNumeric}
}

// Evaluate says whether an output answers the task, and if not why, in few
// words. It depends on nothing but the two. A task that can't be evaluated
// (no such evaluator, no answer, a pattern that is none) is answered by no
// output, and why says so.
func (t Task) Evaluate(output string) (correct bool, why string) {
	if strings.TrimSpace(t.Answer) == "" {
		return false, "the task has no answer to look for"
	}
	switch t.Evaluator {
	case evaluateExact:
		why = exact(t.Answer, output)
	case evaluateContains:
		why = contains(t.Answer, output)
	case evaluateRegex:
		why = matches(t.Answer, output)
	case evaluateJSONEqual:
		why = jsonEqual(t.Answer, output)
	case evaluateNumeric:
		why = numeric(t.Answer, output)
	default:
		why = fmt.Sprintf("there is no evaluator %q: there are %s", t.Evaluator, strings.Join(Evaluators(), ", "))
	}
	return why == "", cut(why, 200) // parsers' errors may quote all they read
}

// short is a text for a reason, quoted and cut.
func short(text string) string { return fmt.Sprintf("%q", cut(text, 40)) }

func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}

// nothing is the reason of an output without text; empty if it has some.
func nothing(output string) string {
	if strings.TrimSpace(output) == "" {
		return "the output is empty"
	}
	return ""
}

func exact(answer, output string) string {
	want, got := strings.TrimSpace(answer), strings.TrimSpace(output)
	if want == got {
		return ""
	}
	if why := nothing(output); why != "" {
		return why
	}
	w, g := []rune(want), []rune(got)
	same := 0
	for same < len(w) && same < len(g) && w[same] == g[same] {
		same++
	}
	switch {
	case same == len(w):
		return fmt.Sprintf("after the answer the output goes on with %s", short(string(g[same:])))
	case same == len(g):
		return fmt.Sprintf("the output ends before %s", short(string(w[same:])))
	}
	return fmt.Sprintf("differs from character %d: want %s, got %s", same+1, short(string(w[same:])), short(string(g[same:])))
}

func contains(answer, output string) string {
	if why := nothing(output); why != "" {
		return why
	}
	answer = strings.TrimSpace(answer)
	inside := ""
	for from := 0; ; {
		at := strings.Index(output[from:], answer)
		if at < 0 {
			break
		}
		start := from + at
		end := start + len(answer)
		if !joined(answer, output[:start], output[end:]) {
			return ""
		}
		if inside == "" {
			left := strings.LastIndexFunc(output[:start], unicode.IsSpace) + 1
			inside, _, _ = strings.Cut(strings.TrimSpace(output[left:])+" ", " ")
		}
		_, size := utf8.DecodeRuneInString(output[start:])
		from = start + size
	}
	if inside != "" {
		return fmt.Sprintf("%s stands there only as a part of %s", short(answer), short(inside))
	}
	return fmt.Sprintf("%s is not in the output, which begins %s", short(answer), short(strings.TrimSpace(output)))
}

// joined says whether a text is a part of a longer word or number, given what
// stands before it and after it.
func joined(text, head, tail string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	last, _ := utf8.DecodeLastRuneInString(text)
	before, size := utf8.DecodeLastRuneInString(head)
	beyond, _ := utf8.DecodeLastRuneInString(head[:len(head)-size])
	after, size := utf8.DecodeRuneInString(tail)
	next, _ := utf8.DecodeRuneInString(tail[size:])
	switch {
	case wordRune(first) && wordRune(before), wordRune(last) && wordRune(after):
		return true
	case digit(first) && (before == '.' || before == ',') && digit(beyond), digit(last) && (after == '.' || after == ',') && digit(next):
		return true
	}
	return digit(first) && minus(before) && !wordRune(beyond) // a sign; else a hyphen
}

// wordRune says whether a character is a part of words and numbers, accents
// included. The error rune, of an empty or a broken text, is none.
func wordRune(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)
}

func digit(r rune) bool { return '0' <= r && r <= '9' }

// minus is a hyphen or the minus sign.
func minus(r rune) bool { return r == '-' || r == '\u2212' }

func matches(pattern, output string) string {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return fmt.Sprintf("the task's pattern is none: %s", err)
	}
	if re.MatchString(output) {
		return ""
	}
	if why := nothing(output); why != "" {
		return why
	}
	return fmt.Sprintf("the pattern %s matches nothing in the output, which begins %s", short(pattern), short(strings.TrimSpace(output)))
}
