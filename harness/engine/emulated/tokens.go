package emulated

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
)

// The emulated model's vocabulary is made of syllables, so that a text looks
// like one, and each word is one token. The ids of other words lie above it,
// and those of the chat template's marks above these.
const (
	vocabulary  = 4096
	otherWords  = 100_000
	firstMarkID = vocabulary + otherWords
)

var words = func() []string {
	onsets := strings.Fields("b d f g h k l m n p r s t v z br dr fl gr kl pl sk sl sp st tr")
	vowels := strings.Fields("a e i o u ai au ea ei ou")
	var syllables []string
	for _, v := range vowels {
		for _, o := range onsets {
			syllables = append(syllables, o+v)
		}
	}
	all := slices.Clone(syllables)
	for _, second := range syllables {
		for _, first := range syllables {
			if len(all) == vocabulary {
				return all
			}
			all = append(all, first+second)
		}
	}
	return all
}()

var ids = func() map[string]int {
	m := make(map[string]int, vocabulary)
	for id, w := range words {
		m[w] = id
	}
	return m
}()

// tokenize gives each word of a text its id.
func tokenize(text string) []int {
	fields := strings.Fields(text)
	out := make([]int, len(fields))
	for i, w := range fields {
		id, known := ids[w]
		if !known {
			h := fnv.New32a()
			h.Write([]byte(w))
			id = vocabulary + int(h.Sum32()%otherWords)
		}
		out[i] = id
	}
	return out
}

// word is the text of a token. A token that stands for a word outside the
// vocabulary has lost it.
func word(id int) string {
	if id < 0 || id >= vocabulary {
		return "?"
	}
	return words[id]
}

// text is what tokens say.
func text(tokens []int) string { return Config{}.text(tokens) }

// firstRightID is the id of the first right answer: beyond any template's marks.
const firstRightID = firstMarkID + 1_000_000

// rightID is the token that says the right answer to a prompt; false: none is
// known. Prompts with the same answer share it.
func (c Config) rightID(prompt string) (int, bool) {
	i := slices.IndexFunc(c.Prompts, func(known string) bool { return strings.TrimSpace(known) == prompt })
	if i < 0 || i >= len(c.Answers) || c.Answers[i] == "" {
		return 0, false
	}
	return firstRightID + slices.Index(c.Answers, c.Answers[i]), true
}

// text is what tokens say, right answers among them.
func (c Config) text(tokens []int) string {
	parts := make([]string, len(tokens))
	for i, id := range tokens {
		parts[i] = c.word(id)
	}
	return strings.Join(parts, " ")
}

func (c Config) word(id int) string {
	if i := id - firstRightID; i >= 0 && i < len(c.Answers) {
		return c.Answers[i]
	}
	return word(id)
}

// escaped is a token's text inside a JSON string. Words of the vocabulary are
// letters alone.
func (c Config) escaped(id int) string {
	if id < firstRightID {
		return word(id)
	}
	quoted := must(c.word(id))
	return string(quoted[1 : len(quoted)-1])
}

// sample is which of n samples a prompt is: its place in its set, and for any
// other always the same one.
func (c Config) sample(prompt string, n int) int {
	if n == 0 {
		return 0
	}
	for i, known := range c.Prompts {
		if strings.TrimSpace(known) == prompt {
			return i % n
		}
	}
	h := fnv.New32a()
	h.Write([]byte(prompt))
	return int(h.Sum32() % uint32(n))
}

// template puts the marks of a chat template around what was said.
func template(said []int, marks int) []int {
	out := make([]int, 0, len(said)+marks)
	for i := range marks {
		if i == marks/2 {
			out = append(out, said...)
		}
		out = append(out, firstMarkID+i)
	}
	if marks == 0 {
		out = append(out, said...)
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
	if answers := c.Parameters.Answers; len(answers) > 0 {
		return answers[c.sample(prompt, len(answers))].Tokens
	}
	lengths := c.Parameters.OutputTokens
	if len(lengths) == 0 {
		return 64
	}
	return lengths[c.sample(prompt, len(lengths))]
}
