package workloads_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"assay/workloads"
)

func evaluate(evaluator, answer, output string) (bool, string) {
	return workloads.Task{ID: "t/1/1", Evaluator: evaluator, Answer: answer}.Evaluate(output)
}

func TestEvaluators(t *testing.T) {
	for _, c := range []struct {
		evaluator, answer, output string
		why                       string // a part of it; empty where the output is right
	}{
		{"exact", "red kettle", "red kettle", ""},
		{"exact", "red kettle", "\n red kettle \n", ""},
		{"exact", "red kettle", "Red kettle", `differs from character 1: want "red kettle", got "Red kettle"`},
		{"exact", "red kettle", "red  kettle", `differs from character 5: want "kettle", got " kettle"`},
		{"exact", "red kettle", "red kettle.", `goes on with "."`},
		{"exact", "red kettle", "red", `ends before " kettle"`},
		{"exact", "red kettle", " \n", "the output is empty"},
		{"exact", "Café", "Café", ""},
		{"exact", "Café", "Cafe", `from character 4: want "é", got "e"`},
		{"exact", "a", strings.Repeat("b", 100), `got "` + strings.Repeat("b", 40) + `…"`},

		{"contains", "7413", "7413", ""},
		{"contains", "7413", "The code of the harbour office is 7413.", ""},
		{"contains", "7413", "**7413**", ""},
		{"contains", "7413", "code: 7413, I think", ""},
		{"contains", "7413", `{"code":"7413"}`, ""},
		{"contains", "7413", "74134 7413", ""},
		{"contains", "7413", "17413", `"7413" stands there only as a part of "17413"`},
		{"contains", "17", "It is 170.", `"17" stands there only as a part of "170."`},
		{"contains", "17", "17.5", "only as a part"},
		{"contains", "17", "3.17", "only as a part"},
		{"contains", "17", "1,017", "only as a part"},
		{"contains", "17", "17,000", "only as a part"},
		{"contains", "17", "-17", "only as a part"},
		{"contains", "17", "= −17", "only as a part"},
		{"contains", "17", "A17", "only as a part"},
		{"contains", "17", "17th", "only as a part"},
		{"contains", "17", "x_17", "only as a part"},
		{"contains", "17", "16-17", ""},
		{"contains", "17", "16 - 17", ""},
		{"contains", "17", "16, 17, 18", ""},
		{"contains", "17", "16,17", "only as a part"},
		{"contains", "17", "It is 17.", ""},
		{"contains", "-17", "It is -17.", ""},
		{"contains", "-17", "It is 17.", `"-17" is not in the output, which begins "It is 17."`},
		{"contains", "Oslo", "in Oslo!", ""},
		{"contains", "Oslo", "in oslo!", "is not in the output"},
		{"contains", "Oslo", "Oslos", "only as a part"},
		{"contains", "caf", "café", "only as a part"},
		{"contains", "aa", "aaa aa", ""},
		{"contains", "C++", "I like C++.", ""},
		{"contains", "17", "", "the output is empty"},

		{"regex", `^\d{4}$`, "7413", ""},
		{"regex", `^\d{4}$`, "7413.", `matches nothing in the output, which begins "7413."`},
		{"regex", `(?i)yes`, "Yes, it is", ""},
		{"regex", strings.Repeat("a", 1000) + "(", "a", "…"},
		{"regex", `a(`, "a", "the task's pattern is none: error parsing regexp"},
		{"regex", `a`, "", "the output is empty"},
		{"regex", `^$`, "", ""},

		{"json_equal", `{"name": "Priya", "age": 34}`, `{"age": 34, "name": "Priya"}`, ""},
		{"json_equal", `{"age": 34}`, `{"age": 34.0}`, ""},
		{"json_equal", `{"age": 34}`, `{"age": 3.4e1}`, ""},
		{"json_equal", `{"age": 34}`, `{"age": 340e-1}`, ""},
		{"json_equal", `{"age": 34}`, `{"age": "34"}`, `/age is "34", want 34`},
		{"json_equal", `{"age": 34}`, `{"age": 35}`, `/age is 35, want 34`},
		{"json_equal", `{"age": 34}`, `{"Age": 34}`, `/age is missing`},
		{"json_equal", `{"age": 34}`, `{"age": 34, "b/c": 1}`, `/b~1c was not asked for`},
		{"json_equal", `{"age": 34}`, `{"age": 34, "age": 34}`, `the output is not one JSON value`},
		{"json_equal", `{"age": 34}`, `{"age": null}`, `/age is null, want 34`},
		{"json_equal", `{"age": 34}`, `[34]`, `the value is an array, want an object`},
		{"json_equal", `{"a": {"b": [1, {"c": true}]}}`, `{"a": {"b": [1, {"c": false}]}}`, `/a/b/1/c is false, want true`},
		{"json_equal", `{"a": {"b": [1, {"c": true}]}}`, `{"a": {"b": [1.00, {"c": true}]}}`, ""},
		{"json_equal", `[1, 2]`, `[2, 1]`, `/0 is 2, want 1`},
		{"json_equal", `[1, 2]`, `[1, 2, 3]`, `the value has 3 items, want 2`},
		{"json_equal", `{"a": [1]}`, `{"a": []}`, `/a has 0 items, want 1`},
		{"json_equal", `null`, `null`, ""},
		{"json_equal", `null`, `false`, `the value is false, want null`},
		{"json_equal", `true`, `"true"`, `the value is "true", want true`},
		{"json_equal", `0`, `-0.0`, ""},
		{"json_equal", `0.1`, `0.10000000000000001`, "the value is 0.1"},
		{"json_equal", `100000000000000000000001`, `100000000000000000000000`, "the value is 1000"},
		{"json_equal", `1e300`, `10e299`, ""},
		{"json_equal", `1e99999`, `1e99998`, "want 1e99999"},
		{"json_equal", `1`, `1e99999999999`, `is out of range`},
		{"json_equal", `"a\u00e9"`, `"aé"`, ""},
		{"json_equal", `{"a": 1}`, "```json\n{\"a\": 1}\n```", ""},
		{"json_equal", `{"a": 1}`, "Here it is:\n\n```\n{\"a\": 1}\n```\nThat is all.", ""},
		{"json_equal", `{"a": 1}`, "~~~~ JSON\r\n{\"a\": 1}\r\n~~~~\r\n", ""},
		{"json_equal", `{"a": 1}`, "```json\n{\"a\": 1}", ""},
		{"json_equal", `{"a": 1}`, "```\n{\"a\": 1}\n~~~\n```", "the first fence is not one JSON value"},
		{"json_equal", `{"a": 1}`, "```\n{\"a\": 2}\n```\n```\n{\"a\": 1}\n```", "/a is 2, want 1"},
		{"json_equal", `{"a": 1}`, "````\n```\n{\"a\": 1}\n````", "the first fence is not one JSON value"},
		{"json_equal", `{"a": 1}`, "````\n{\"a\": 1}\n```\n````", "the first fence is not one JSON value"},
		{"json_equal", `{"a": 1}`, "    ```\n{\"a\": 1}\n    ```", "the output is not one JSON value"},
		{"json_equal", `{"a": 1}`, "   ```\n{\"a\": 1}\n   ```", ""},
		{"json_equal", `{"a": 1}`, "```\n```", "the first fence is not one JSON value: it is empty"},
		{"json_equal", `{"a": 1}`, "``` `{\"a\": 1}` ```", "the output is not one JSON value"},
		{"json_equal", `{"a": 1}`, "Sure: {\"a\": 1}", "the output is not one JSON value"},
		{"json_equal", `{"a": 1}`, "{\"a\": 1} There.", `after it stands "There."`},
		{"json_equal", `{"a": 1}`, "{\"a\": 1} {\"a\": 1}", `after it stands "{\"a\": 1}"`},
		{"json_equal", `{"a": 1}`, `{"a": 1`, "the output is not one JSON value"},
		{"json_equal", `{"a": 1}`, `{'a': 1}`, "the output is not one JSON value"},
		{"json_equal", `{"a": 1}`, `{"a": 1,}`, "the output is not one JSON value"},
		{"json_equal", `{"a": 1}`, `{"a": 01}`, "the output is not one JSON value"},
		{"json_equal", `{"a": 1}`, `{"a": NaN}`, "the output is not one JSON value"},
		{"json_equal", `{"a": 1}`, "  ", "the output is empty"},
		{"json_equal", `{"a": 1`, `{"a": 1`, "the task's answer is no JSON value"},

		{"numeric", "19", "19", ""},
		{"numeric", "19", "7 + 12 = 19", ""},
		{"numeric", "19", "7 + 12 = 19.", ""},
		{"numeric", "19", "**19**", ""},
		{"numeric", "19", `\boxed{19}`, ""},
		{"numeric", "19", "19.0", ""},
		{"numeric", "19", "+19", ""},
		{"numeric", "19", "019", ""},
		{"numeric", "19", "1.9e1", ""},
		{"numeric", "19", "19 = 7 + 12", `the last number is "12", want "19"`},
		{"numeric", "19", "-19", `the last number is "-19"`},
		{"numeric", "-19", "−19", ""},
		{"numeric", "-19", "19", `the last number is "19", want "-19"`},
		{"numeric", "19", "190", `the last number is "190"`},
		{"numeric", "19", "nineteen", `there is no number in the output, which begins "nineteen"`},
		{"numeric", "19", "", "the output is empty"},
		{"numeric", "1234", "1,234", ""},
		{"numeric", "1234567.5", "about 1,234,567.50 in all", ""},
		{"numeric", "1234", "1\u202f234", ""},
		{"numeric", "1,234", "1234", ""},
		{"numeric", "34", "12,34", `"12,34", is written in no clear way`},
		{"numeric", "3", "1,2,3", "in no clear way"},
		{"numeric", "3", "1, 2, 3", ""},
		{"numeric", "123", "0,123", "in no clear way"},
		{"numeric", "2", "1.5.2", "in no clear way"},
		{"numeric", "0.5", "It is .5", ""},
		{"numeric", "-0.5", "-.5", ""},
		{"numeric", "19", "It is...19", ""},
		{"numeric", "17", "16-17", ""},
		{"numeric", "17", "COVID-17", ""},
		{"numeric", "17", "--17", ""},
		{"numeric", "17", "−−17", ""},
		{"numeric", "-17", "16 = -17", ""},
		{"numeric", "4", "(3)-4", ""},
		{"numeric", "19", "19 with 7B and H2O, x2", ""},
		{"numeric", "19", "19 %", ""},
		{"numeric", "19", "10²", "there is no number"},
		{"numeric", "0", "-0.00", ""},
		{"numeric", "0.1", "0.1000000000000000055", "the last number is"},
		{"numeric", "1e400", "1" + strings.Repeat("0", 400), ""},
		{"numeric", "5", "5e99999999999", "in no clear way"},
		{"numeric", "five", "5", `the task's answer "five" is no number`},

		{"levenshtein", "a", "a", `there is no evaluator "levenshtein": there are exact, contains, regex, json_equal, numeric`},
		{"contains", " ", "a b", "the task has no answer to look for"},
		{"", "a", "a", `there is no evaluator ""`},
	} {
		t.Run(fmt.Sprintf("%s %.30s in %.40q", c.evaluator, c.answer, c.output), func(t *testing.T) {
			g := NewWithT(t)
			correct, why := evaluate(c.evaluator, c.answer, c.output)
			if c.why == "" {
				g.Expect(why).To(BeEmpty())
			}
			g.Expect(why).To(ContainSubstring(c.why))
			g.Expect(correct).To(Equal(c.why == ""))
			g.Expect(utf8.RuneCountInString(why)).To(BeNumerically("<=", 201), "short")
		})
	}
	NewWithT(t).Expect(workloads.Evaluators()).To(Equal([]string{"exact", "contains", "regex", "json_equal", "numeric"}))
}

// consistent is what holds for every verdict.
func consistent(t *testing.T, evaluator, answer, output string) bool {
	t.Helper()
	correct, why := evaluate(evaluator, answer, output)
	if correct != (why == "") {
		t.Errorf("%s: %v, because %q", evaluator, correct, why)
	}
	if utf8.RuneCountInString(why) > 201 {
		t.Errorf("%s: a reason of %d bytes", evaluator, len(why))
	}
	if again, _ := evaluate(evaluator, answer, output); again != correct {
		t.Errorf("%s: not the same twice", evaluator)
	}
	return correct
}

// sameJSON is the oracle: the standard library's decoder, and fractions.
func sameJSON(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, value := range a {
			if other, ok := b[name]; !ok || !sameJSON(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameJSON(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, _ := new(big.Rat).SetString(a.String())
		y, _ := new(big.Rat).SetString(b.String())
		return x != nil && y != nil && x.Cmp(y) == 0
	}
	return a == b
}

// plain matches a decimal that a fraction can be made of.
var plain = regexp.MustCompile(`^[+-]?\d{1,50}(\.\d{1,50})?$`)

// hugeExponent matches what a fraction would need gigabytes for.
var hugeExponent = regexp.MustCompile(`[eE][+-]?0*[1-9]\d{3,}`)

func FuzzJSONEqual(f *testing.F) {
	f.Add(`{"name": "Priya", "age": 34}`, "```json\n{\"age\": 3.40e1, \"name\": \"Priya\"}\n```")
	f.Add(`[1, [2, null], {"a": -0}]`, `[1e0, [2.0, null], {"a": 0}]`)
	f.Add(`0.1`, `1e-1`)
	f.Add(`{"a": 1}`, "~~~\n{\"a\":1")
	f.Add(`1e99999999999`, `"\ud800"`)
	f.Add(`"`+strings.Repeat("x", 100)+`"`, strings.Repeat("[", 20000))
	f.Fuzz(func(t *testing.T, answer, output string) {
		correct := consistent(t, "json_equal", answer, output)
		if hugeExponent.MatchString(answer + output) {
			return
		}
		decode := func(text string) (value any, err error) {
			d := json.NewDecoder(strings.NewReader(text))
			d.UseNumber()
			if err = d.Decode(&value); err == nil && strings.TrimLeft(text[d.InputOffset():], " \t\r\n") != "" {
				err = fmt.Errorf("more than a value")
			}
			return value, err
		}
		want, err := decode(answer)
		if err != nil {
			if correct {
				t.Errorf("right by an answer that is no JSON: %v", err)
			}
			return
		}
		// Without a fence the whole output is the value.
		if got, err := decode(output); correct && !strings.Contains(output, "```") && !strings.Contains(output, "~~~") && (err != nil || !sameJSON(want, got)) {
			t.Errorf("%q counts as %q (%v)", output, answer, err)
		}
		// Whatever the answer is, written anew it is right, if it is a value at
		// all: the standard decoder takes names that stand twice.
		if own, _ := evaluate("json_equal", answer, answer); own {
			anew, err := json.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			for _, output := range []string{string(anew), "Here:\n```json\n" + string(anew) + "\n```\nDone."} {
				if right, why := evaluate("json_equal", answer, output); !right {
					t.Errorf("%q is not %q: %s", output, answer, why)
				}
			}
		}
	})
}

func FuzzNumeric(f *testing.F) {
	f.Add("19", "7 + 12 = 19.", int64(19))
	f.Add("1,234.50", "about 1\u202f234.5", int64(-1234567))
	f.Add("-0", "−0.0e7", int64(0))
	f.Add("1e400", "5e99999999999", int64(1)<<62)
	f.Add(".5", "COVID-19, so.5...5 and 1,2,3", int64(-1))
	f.Fuzz(func(t *testing.T, answer, output string, value int64) {
		correct := consistent(t, "numeric", answer, output)
		if correct && !strings.ContainsAny(output, "0123456789") {
			t.Errorf("%q counts as %q", output, answer)
		}
		// Plain decimals compare as the fractions that they are.
		if plain.MatchString(answer) && plain.MatchString(output) {
			a, _ := new(big.Rat).SetString(answer)
			b, _ := new(big.Rat).SetString(output)
			if (a.Cmp(b) == 0) != correct {
				t.Errorf("%s and %s: %v", answer, output, correct)
			}
		}
		// A number is itself in each way that it may be written, after any text
		// that leaves it alone.
		text := strconv.FormatInt(value, 10)
		grouped := text
		for at := len(grouped) - 3; at > 0 && grouped[at-1] != '-'; at -= 3 {
			grouped = grouped[:at] + "," + grouped[at:]
		}
		for _, way := range []string{text, grouped, text + ".00", text + ".", strings.Replace(grouped, "-", "\u2212", 1), "**" + text + "**"} {
			if right, why := evaluate("numeric", text, output+"\nSo it is "+way); !right {
				t.Errorf("%q is not %s: %s", way, text, why)
			}
		}
	})
}

func FuzzRegex(f *testing.F) {
	f.Add(`^\d{4}$`, "7413")
	f.Add(`a(`, "a")
	f.Add(`(?i)(yes|no)+?`, "No")
	f.Add(`(((x{1000}){1000}`, "x")
	f.Add(`\pN`, "\xff")
	f.Fuzz(func(t *testing.T, pattern, output string) {
		correct := consistent(t, "regex", pattern, output)
		re, err := regexp.Compile(pattern)
		if want := err == nil && re.MatchString(output) && strings.TrimSpace(pattern) != ""; correct != want {
			t.Errorf("%q in %q: %v, want %v", pattern, output, correct, want)
		}
	})
}

func FuzzContains(f *testing.F) {
	f.Add("17", "It is 170, or 17.")
	f.Add("-17", "\u221217")
	f.Add("é", "e\u0301é")
	f.Add("\xff", "\xff\xfe")
	f.Fuzz(func(t *testing.T, answer, output string) {
		correct := consistent(t, "contains", answer, output)
		answer = strings.TrimSpace(answer)
		if correct && !strings.Contains(output, answer) {
			t.Errorf("%q is not in %q", answer, output)
		}
		if right, why := evaluate("contains", answer, output+" "+answer+" "); answer != "" && !right {
			t.Errorf("%q at the end: %s", answer, why)
		}
		if right, _ := evaluate("contains", answer, "x"+answer+"x"); right && answer != "" && regexp.MustCompile(`^\w+$`).MatchString(answer) {
			t.Errorf("%q as a part of a word", answer)
		}
	})
}
