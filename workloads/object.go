package workloads

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// field is a member that an object may have: its value as JSON, and in words.
type field struct {
	name string
	draw func(*rand.Rand) (value, words string)
}

// fields are of all the types that a flat object can show; text, numbers and
// truth values, so that "34" for 34 is seen.
var fields = []field{
	{"name", text(people)},
	{"city", text(cities)},
	{"item", text(things)},
	{"age", integer(18, 80)},
	{"count", integer(1, 500)},
	{"price", tenths(1, 100)},
	{"is_active", truth},
	{"is_member", truth},
}

var (
	people = []string{"Priya Shah", "Mara Lind", "Tom Okafor", "Ana Duarte", "Kenji Mori", "Lena Vogel", "Omar Haddad", "Ines Costa"}
	cities = []string{"Lisbon", "Oslo", "Quito", "Hanoi", "Turin", "Ghent", "Accra", "Perth"}
)

// drawJSON asks for an object of given fields.
func drawJSON(seed uint64, difficulty, number int) (prompt, answer string) {
	r := stream(seed, fmt.Sprintf("json/%d/%d", difficulty, number))
	var ask, object strings.Builder
	ask.WriteString("Write one JSON object with exactly these fields, and nothing else.\n")
	for i, f := range draw(r, difficulty, fields) {
		value, words := f.draw(r)
		fmt.Fprintf(&ask, "\n%s: %s", f.name, words)
		if i > 0 {
			object.WriteString(", ")
		}
		fmt.Fprintf(&object, "%q: %s", f.name, value)
	}
	return ask.String(), "{" + object.String() + "}"
}

func text(of []string) func(*rand.Rand) (string, string) {
	return func(r *rand.Rand) (string, string) {
		words := pick(r, of)
		value, _ := jsontext.AppendQuote(nil, words) // fails on invalid UTF-8, which none of them is
		return string(value), "the text " + words
	}
}

func integer(least, below int) func(*rand.Rand) (string, string) {
	return func(r *rand.Rand) (string, string) {
		value := strconv.Itoa(least + r.IntN(below-least))
		return value, "the number " + value
	}
}

func tenths(least, below int) func(*rand.Rand) (string, string) {
	return func(r *rand.Rand) (string, string) {
		value := fmt.Sprintf("%d.%d", least+r.IntN(below-least), 1+r.IntN(9))
		return value, "the number " + value
	}
}

func truth(r *rand.Rand) (string, string) {
	value := strconv.FormatBool(r.IntN(2) == 1)
	return value, value
}
