package workloads

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// field is a member that an object may have. Its value is drawn as JSON.
type field struct {
	name string
	draw func(*rand.Rand) string
}

// identity is in every object, and tells it from others.
var identity = field{"id", integer(1000, 10000)}

// fields are text, numbers and truth values, so that "34" for 34 is seen.
var fields = []field{
	{"name", text("Priya Shah", "Mara Lind", "Tom Okafor", "Ana Duarte", "Kenji Mori", "Lena Vogel", "Omar Haddad", "Ines Costa")},
	{"city", text("Lisbon", "Oslo", "Quito", "Hanoi", "Turin", "Ghent", "Accra", "Perth")},
	{"item", text(things...)},
	{"age", integer(18, 80)},
	{"count", integer(1, 500)},
	{"price", func(r *rand.Rand) string { return fmt.Sprintf("%d.%d", 1+r.IntN(99), 1+r.IntN(9)) }},
	{"is_active", truth},
	{"is_member", truth},
}

// drawJSON asks for an object of given fields.
func drawJSON(seed uint64, difficulty, number int) (text, answer string) {
	r := stream(seed, fmt.Sprintf("json/%d/%d", difficulty, number))
	members := append(draw(r, difficulty-1, fields), identity)
	r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	var words, object []string
	for _, f := range members {
		value := f.draw(r)
		words = append(words, f.name+" is "+value)
		object = append(object, `"`+f.name+`": `+value)
	}
	return "Write a JSON object with these fields: " + strings.Join(words, ", ") + ". Answer with the JSON only.",
		"{" + strings.Join(object, ", ") + "}"
}

// text draws one of several texts, none of which needs an escape.
func text(of ...string) func(*rand.Rand) string {
	return func(r *rand.Rand) string { return `"` + pick(r, of) + `"` }
}

func integer(least, below int) func(*rand.Rand) string {
	return func(r *rand.Rand) string { return strconv.Itoa(least + r.IntN(below-least)) }
}

func truth(r *rand.Rand) string { return strconv.FormatBool(r.IntN(2) == 1) }
