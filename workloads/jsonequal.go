package workloads

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonEqual holds the output's JSON value against the answer's. Objects are
// equal by key, whatever their order; arrays in order; numbers by value (1, 1.0
// and 1e0 are one number); a string is never a number, a truth value or null.
// An object that names a member twice is no value (RFC 8259 leaves open which
// counts).
func jsonEqual(answer, output string) string {
	want, err := parseJSON(answer)
	if err != nil {
		return fmt.Sprintf("the task's answer is no JSON value: %s", err)
	}
	if why := nothing(output); why != "" {
		return why
	}
	text, fenced := fence(output)
	where := "the output"
	if fenced {
		where = "the first fence"
	} else {
		text = output
	}
	got, err := parseJSON(text)
	if err != nil {
		return fmt.Sprintf("%s is not one JSON value: %s", where, err)
	}
	return difference("", want, got)
}

// fence is what stands in a text's first Markdown fence (CommonMark 0.31, fenced
// code blocks), whatever its info string. A fence that isn't closed ends with
// the text.
func fence(text string) (inside string, ok bool) {
	var lines []string
	opening := ""
	for line := range strings.Lines(text) {
		bar := strings.TrimRight(line, " \t\r\n")
		if strings.HasPrefix(bar, "    ") {
			bar = "" // indented code
		}
		bar = strings.TrimLeft(bar, " ")
		if opening == "" {
			opening = fenceBar(bar)
			continue
		}
		if closing := fenceBar(bar); closing == bar && closing != "" && closing[0] == opening[0] && len(closing) >= len(opening) {
			return strings.Join(lines, ""), true
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ""), opening != ""
}

// fenceBar is the backticks or tildes that a fence's line begins with; empty if
// it is none.
func fenceBar(line string) string {
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, mark)
		bar := line[:len(line)-len(rest)]
		if len(bar) >= 3 && (mark == "~" || !strings.Contains(rest, mark)) {
			return bar
		}
	}
	return ""
}

// object, array and number are JSON values beside string, bool and nil.
type (
	object map[string]any
	array  []any
	number struct {
		decimal
		text string
	}
)

// parseJSON reads a text that is one JSON value and nothing else.
func parseJSON(text string) (any, error) {
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("it is empty")
	}
	d := jsontext.NewDecoder(strings.NewReader(text))
	value, err := readJSON(d)
	if err != nil {
		return nil, err
	}
	end := d.InputOffset()
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, fmt.Errorf("after it stands %s", short(strings.TrimSpace(text[end:])))
	}
	return value, nil
}

func readJSON(d *jsontext.Decoder) (any, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return token.Bool(), nil
	case '"':
		return token.String(), nil
	case '0':
		text := token.String()
		value, ok := parseDecimal(text)
		if !ok {
			return nil, fmt.Errorf("the number %s is out of range", short(text))
		}
		return number{value, text}, nil
	case '[':
		list := array{}
		for d.PeekKind() != ']' {
			item, err := readJSON(d)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err = d.ReadToken()
		return list, err
	}
	members := object{}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String() // before the next token takes its place
		if members[key], err = readJSON(d); err != nil {
			return nil, err
		}
	}
	_, err = d.ReadToken()
	return members, err
}

// difference is the first difference of two JSON values, with its place as a
// JSON Pointer (RFC 6901); empty if they are equal.
func difference(at string, want, got any) string {
	place := func(at string) string {
		if at == "" {
			return "the value"
		}
		return at
	}
	switch w := want.(type) {
	case object:
		g, ok := got.(object)
		if !ok {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(w)) {
			path := at + "/" + pointer.Replace(name)
			value, ok := g[name]
			if !ok {
				return path + " is missing"
			}
			if why := difference(path, w[name], value); why != "" {
				return why
			}
		}
		for _, name := range slices.Sorted(maps.Keys(g)) {
			if _, ok := w[name]; !ok {
				return at + "/" + pointer.Replace(name) + " was not asked for"
			}
		}
		return ""
	case array:
		g, ok := got.(array)
		if !ok {
			break
		}
		for i := range min(len(w), len(g)) {
			if why := difference(at+"/"+strconv.Itoa(i), w[i], g[i]); why != "" {
				return why
			}
		}
		if len(w) != len(g) {
			return fmt.Sprintf("%s has %d items, want %d", place(at), len(g), len(w))
		}
		return ""
	case number:
		if g, ok := got.(number); ok && g.decimal == w.decimal {
			return ""
		}
	default: // text, a truth value or null
		if want == got {
			return ""
		}
	}
	return fmt.Sprintf("%s is %s, want %s", place(at), show(got), show(want))
}

// pointer escapes a name in a JSON Pointer.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// show is a JSON value for a reason.
func show(value any) string {
	switch v := value.(type) {
	case object:
		return "an object"
	case array:
		return "an array"
	case number:
		return v.text
	case string:
		return short(v)
	case nil:
		return "null"
	}
	return fmt.Sprint(value)
}
