package emulated

import (
	"hash/fnv"
	"math/rand/v2"
	"strings"
)

// The emulated model's vocabulary: made of syllables, so that a text looks like
// one, and each word is one token. Ids of other words lie above it.
const vocabulary = 4096

var onsets = strings.Fields("b d f g h k l m n p r s t v z br dr fl gr kl pl sk sl sp st tr")
var vowels = strings.Fields("a e i o u ai au ea ei ou")

// word is the text of a token.
func word(id int) string {
	n, v := len(onsets), len(vowels)
	text := onsets[id%n] + vowels[id/n%v]
	if rest := id / (n * v); rest > 0 {
		text += onsets[rest%n] + vowels[rest/n%v]
	}
	return text
}

var ids = func() map[string]int {
	m := make(map[string]int, vocabulary)
	for id := range vocabulary {
		m[word(id)] = id
	}
	return m
}()

// tokenize gives each word of a text its id.
func tokenize(text string) []int {
	words := strings.Fields(text)
	out := make([]int, len(words))
	for i, w := range words {
		id, ok := ids[w]
		if !ok {
			h := fnv.New32a()
			h.Write([]byte(w))
			id = vocabulary + int(h.Sum32()%100_000)
		}
		out[i] = id
	}
	return out
}

// answer is what the model says to a prompt: always the same n tokens, for
// every server, whatever its mode.
func answer(prompt string, n int) []int {
	h := fnv.New64a()
	h.Write([]byte(prompt))
	random := rand.New(rand.NewPCG(h.Sum64(), 7))
	out := make([]int, n)
	for i := range out {
		out[i] = random.IntN(vocabulary)
	}
	return out
}

// natural is how long the model's answer to a prompt is when it stops by
// itself: as declared for the prompts of a set, and one of those lengths for
// any other.
func (c Config) natural(prompt string) int {
	lengths := c.Parameters.OutputTokens
	if len(lengths) == 0 {
		return 64
	}
	for i, known := range c.Prompts {
		if known == prompt {
			return lengths[i%len(lengths)]
		}
	}
	h := fnv.New32a()
	h.Write([]byte(prompt))
	return lengths[int(h.Sum32())%len(lengths)]
}
