package workloads

import (
	"fmt"
	"slices"
	"strings"
)

// A retrieval task is a context between these two.
const (
	contextStart = "Read these notes.\n\n"
	contextEnd   = "\n\nWhat is the code of the "
)

// fact begins each sentence that holds a code, and no other.
const fact = "The code of the "

// Places have a code each. Within a context no two begin with the same word, so
// that their number is what makes it difficult. The filler has none of these
// words.
var (
	sites = []string{
		"harbour", "market", "river", "garden", "castle", "forest", "island", "mountain", "valley", "railway",
		"bridge", "canal", "desert", "meadow", "airport", "lighthouse", "museum", "theatre", "hospital", "university",
	}
	offices = []string{"office", "archive", "depot", "workshop", "library", "laboratory", "kitchen", "station"}
)

// drawRetrieval asks one of several codes. Codes have four digits, and all of a
// context differ, so that the answer stands in it exactly once.
func drawRetrieval(seed uint64, difficulty, number int) (text, answer string) {
	r := stream(seed, fmt.Sprintf("retrieval/%d/%d", difficulty, number))
	places := draw(r, difficulty, sites)
	for i := range places {
		places[i] += " " + pick(r, offices)
	}
	var codes []int
	for len(codes) < difficulty {
		if code := 1000 + r.IntN(9000); !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	facts := make([]string, difficulty)
	for i, place := range places {
		facts[i] = fmt.Sprintf("%s%s is %d.", fact, place, codes[i])
	}
	asked := r.IntN(difficulty)
	text = contextStart + strings.Join(facts, " ") + contextEnd + places[asked] + "? Answer with the code only."
	return text, fmt.Sprint(codes[asked])
}
