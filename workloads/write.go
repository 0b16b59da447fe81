package workloads

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
)

// Writer writes the texts of entries that are segments of so many tokens. Two
// entries that begin with the same segments get texts that begin with the same
// bytes; what differs begins with a word of its own. Texts are the same for the
// same seed and tokenizer. It is not safe for several goroutines.
type Writer struct {
	seed  uint64
	count func(ctx context.Context, text string) (int, error)
	known map[stretch]int // into texts
	texts []string
}

// stretch is a segment behind a text that was written before.
type stretch struct {
	from int // into texts
	Segment
}

// NewWriter makes a writer. Count is the engine's count of a prompt of just this
// text, its chat template included where there is one, see [Exact];
// [EstimateTokens] stands in for an engine that can't count.
func NewWriter(seed uint64, count func(ctx context.Context, text string) (int, error)) *Writer {
	return &Writer{seed: seed, count: count, known: map[stretch]int{}, texts: []string{""}}
}

// Write is an entry's text, and where in it each of its segments ends, in
// bytes. Up to each of these the text has exactly the tokens that the segments
// before it have together. Count is called about five times for each segment
// that is not written yet.
func (w *Writer) Write(ctx context.Context, e Entry) (text string, ends []int, err error) {
	at, tokens := 0, 0
	for _, s := range e.Segments {
		tokens += s.Tokens
		next, ok := w.known[stretch{at, s}]
		if !ok {
			longer, err := w.add(ctx, w.texts[at], s.Key, tokens)
			if err != nil {
				return "", nil, fmt.Errorf("%s can't be made %d tokens long: %w", e.ID, e.Input(), err)
			}
			next = len(w.texts)
			w.texts, w.known[stretch{at, s}] = append(w.texts, longer), next
		}
		at = next
		ends = append(ends, len(w.texts[at]))
	}
	return w.texts[at], ends, nil
}

// drafts is how many beginnings are tried for a segment: one that is two tokens
// long leaves no room for a segment of one.
const drafts = 4

// add makes a text longer by a segment, so that it has so many tokens.
func (w *Writer) add(ctx context.Context, text, key string, tokens int) (string, error) {
	if tokens < 1 || tokens > mostTokens {
		return "", fmt.Errorf("%d tokens: ask for 1 to %d", tokens, mostTokens)
	}
	r := stream(w.seed, "segment/"+key)
	before := text
	if text != "" {
		before += " "
	}
	var err, broken error // no other beginning helps where the count is broken
	for range drafts {
		f := fitting{
			each: 1, units: units, closing: func(words []string) string { return strings.Join(words, " ") }, want: tokens,
			text:  notes(before+pick(r, openings), rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))),
			count: func(text string) (n int, err error) { n, broken = w.count(ctx, text); return n, broken },
		}
		if text, err = f.fit(); err == nil || broken != nil {
			break
		}
	}
	return text, err
}

// openings are the first words of segments.
var openings = slices.Concat(things, looks, folk)

// notes is a text of a beginning and words of sentences after it.
func notes(beginning string, r *rand.Rand) func(n int, last string) string {
	var words []string
	return func(n int, last string) string {
		for len(words) < n {
			words = append(words, strings.Fields(sentence(r))...)
		}
		text := strings.Join(append([]string{beginning}, words[:n]...), " ")
		if last != "" {
			text += " " + last
		}
		return text
	}
}

// EstimateTokens is about how many tokens a text of a [Writer] has: its words and
// its full stops, one each. It stands in for a tokenizer where there is none: a
// chat template is not in it, and what a real tokenizer counts differs by some
// percent.
func EstimateTokens(text string) int {
	n := len(strings.Fields(text))
	for _, c := range text {
		if unicode.IsPunct(c) {
			n++
		}
	}
	return n
}
