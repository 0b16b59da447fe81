package workloads_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"assay/workloads"
)

// template is what a chat template adds, in tokens.
const template = 17

// counter counts the tokens of a word by a rule, as a tokenizer that never
// joins two words would.
type counter struct {
	word  func(string) int
	calls int
}

func (c *counter) count(_ context.Context, text string) (int, error) {
	c.calls++
	tokens := template
	for word := range strings.FieldsSeq(text) {
		tokens += c.word(word)
	}
	return tokens, nil
}

func words(string) int        { return 1 }
func bytes(w string) int      { return len(w) + 1 }
func pieces(w string) int     { return (len(w) + 2) / 3 }
func threes(string) int       { return 3 }
func digitwise(w string) int  { return 1 + len(regexp.MustCompile(`\d`).FindAllString(w, -1)) }
func characters(w string) int { return utf8.RuneCountInString(w) }

func TestExactEndsAtTheCount(t *testing.T) {
	for name, rule := range map[string]func(string) int{"words": words, "bytes": bytes, "pieces": pieces, "digits": digitwise, "characters": characters} {
		for _, family := range workloads.Families()[:4] {
			for _, task := range cycle(t, family, 4, 11) {
				for _, tokens := range []int{2048, 2049, 16384} {
					if tokens > 8192 && task.Difficulty > 4 {
						continue // only takes longer
					}
					t.Run(fmt.Sprintf("%s %s %d", name, task.ID, tokens), func(t *testing.T) {
						g := NewWithT(t)
						c := &counter{word: rule}
						exact, err := workloads.Exact(t.Context(), task, tokens, c.count)
						g.Expect(err).NotTo(HaveOccurred())
						g.Expect(c.calls).To(BeNumerically("<=", 25))
						got, _ := c.count(t.Context(), exact.Text)
						g.Expect(got).To(Equal(tokens))

						number := task.ID[strings.LastIndex(task.ID, "/")+1:]
						g.Expect(exact.ID).To(Equal(fmt.Sprintf("%s/%d/%s", family, tokens, number)))
						want := task
						want.ID, want.Text = exact.ID, exact.Text
						g.Expect(exact).To(Equal(want), "nothing else changes")
						g.Expect(strings.Count(exact.Text, task.Answer)).To(Equal(strings.Count(task.Text, task.Answer)))
						g.Expect(digits.FindAllString(exact.Text, -1)).To(Equal(digits.FindAllString(task.Text, -1)), "the filler has no number")
						g.Expect(strings.Count(exact.Text, "code")).To(Equal(strings.Count(task.Text, "code")), "and says nothing about codes")
					})
				}
			}
		}
	}
}

// The filler of the next larger and smaller sizes is another, and that of an
// equal size is the same: it depends on the task alone, not on how it came to
// be.
func TestExactTrimsWhatItPadded(t *testing.T) {
	for _, family := range workloads.Families()[:4] {
		g := NewWithT(t)
		c := &counter{word: words}
		task := cycle(t, family, 4, 1)[3]
		short, err := workloads.Exact(t.Context(), task, 400, c.count)
		g.Expect(err).NotTo(HaveOccurred())
		long, err := workloads.Exact(t.Context(), short, 1000, c.count)
		g.Expect(err).NotTo(HaveOccurred())
		again, err := workloads.Exact(t.Context(), long, 400, c.count)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again).To(Equal(short))
		g.Expect(len(long.Text)).To(BeNumerically(">", 2*len(short.Text)))
	}
}

func TestExactLeavesATaskThatFits(t *testing.T) {
	g := NewWithT(t)
	c := &counter{word: words}
	task := cycle(t, "retrieval", 4, 1)[3]
	tokens, _ := c.count(t.Context(), task.Text)
	same, err := workloads.Exact(t.Context(), task, tokens, c.count)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(same.Text).To(Equal(task.Text))
	g.Expect(c.calls).To(Equal(2))
}

// The codes keep their order, and stand apart: a model that reads only the end
// or the beginning doesn't find all of them.
func TestCodesStandAllOverALongContext(t *testing.T) {
	g := NewWithT(t)
	c := &counter{word: words}
	for _, task := range cycle(t, "retrieval", 4, 1) {
		exact, err := workloads.Exact(t.Context(), task, 8192, c.count)
		g.Expect(err).NotTo(HaveOccurred())
		before := 0
		for i, at := range digits.FindAllStringIndex(exact.Text, -1) {
			part := float64(at[0]-before) / float64(len(exact.Text))
			g.Expect(part).To(BeNumerically("~", 1/float64(task.Difficulty+1), 0.02), "%s, code %d", task.ID, i)
			before = at[0]
		}
	}
}

func TestTasksDifferInTheirFiller(t *testing.T) {
	g := NewWithT(t)
	c := &counter{word: words}
	sentences := map[string]int{}
	for _, task := range cycle(t, "retrieval", 4, 1) {
		exact, err := workloads.Exact(t.Context(), task, 2048, c.count)
		g.Expect(err).NotTo(HaveOccurred())
		for _, s := range strings.SplitAfter(exact.Text, ". ") {
			sentences[s]++
		}
	}
	g.Expect(len(sentences)).To(BeNumerically(">", 700), "of about 800")
}

func TestExactSaysHowNearItCame(t *testing.T) {
	task := cycle(t, "retrieval", 4, 1)[1]
	fixed := func(tokens int) func(string) int { return func(string) int { return tokens } }
	alone := template + len(strings.Fields(task.Text))
	for name, c := range map[string]struct {
		word   func(string) int
		tokens int
		err    string
	}{
		"three tokens a word, one too few":  {threes, template + 3*500 - 1, fmt.Sprintf("the nearest numbers reached are %d and %d", template+3*499, template+3*500)},
		"three tokens a word, one too many": {threes, template + 3*500 + 1, fmt.Sprintf("the nearest numbers reached are %d and %d", template+3*500, template+3*501)},
		"two tokens a word":                 {fixed(2), 2048, "the nearest numbers reached are 2047 and 2049"},
		"too few":                           {words, alone - 1, fmt.Sprintf("it has %d without any filler: ask for more", alone)},
		"less than the shortest sentence":   {words, alone + 1, fmt.Sprintf("the nearest numbers reached are %d and %d", alone, alone+5)},
		"none":                              {words, 0, "ask for 1 or more"},
		"a template only":                   {fixed(0), 2048, "filler adds no tokens: the nearest number reached is 17"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := workloads.Exact(t.Context(), task, c.tokens, (&counter{word: c.word}).count)
			g.Expect(err).To(MatchError(And(
				HavePrefix("%s can't be made %d tokens long: ", task.ID, c.tokens),
				ContainSubstring(c.err),
			)))
			g.Expect(got).To(BeZero())
		})
	}
	t.Run("three tokens a word, and just that many", func(t *testing.T) {
		_, err := workloads.Exact(t.Context(), task, template+3*500, (&counter{word: threes}).count)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
}

func TestExactStopsWhenCountingFails(t *testing.T) {
	g := NewWithT(t)
	task := cycle(t, "json", 1, 1)[0]
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	_, err := workloads.Exact(ctx, task, 2048, func(ctx context.Context, text string) (int, error) {
		if calls++; calls == 3 {
			cancel()
		}
		return len(text), ctx.Err()
	})
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(err).To(MatchError(ContainSubstring("json/2/1 can't be made 2048 tokens long: counting its tokens")))
	g.Expect(calls).To(Equal(3))

	down := errors.New("connection refused")
	_, err = workloads.Exact(t.Context(), task, 2048, func(context.Context, string) (int, error) { return 0, down })
	g.Expect(err).To(MatchError(down))
	_, err = workloads.Exact(t.Context(), task, 2048, func(context.Context, string) (int, error) { return 0, nil })
	g.Expect(err).To(MatchError(ContainSubstring("counted 0 tokens in a text of")))
}

// A count that makes no sense ends with an error, and soon.
func FuzzExact(f *testing.F) {
	f.Add(uint64(1), 2048, []byte{1})
	f.Add(uint64(2), 2049, []byte{2, 0, 5})
	f.Add(uint64(3), 100, []byte{0})
	f.Add(uint64(4), 1<<20, []byte{255, 1, 7})
	f.Fuzz(func(t *testing.T, seed uint64, tokens int, costs []byte) {
		if tokens > 1<<16 || len(costs) == 0 {
			t.Skip("only takes longer")
		}
		task := cycle(t, "mixed", 4, seed)[seed%4]
		calls := 0
		count := func(_ context.Context, text string) (int, error) {
			calls++
			total := 1
			for word := range strings.FieldsSeq(text) {
				total += int(costs[len(word)%len(costs)])
			}
			return total, nil
		}
		exact, err := workloads.Exact(t.Context(), task, tokens, count)
		if calls > 100 {
			t.Errorf("%d calls", calls)
		}
		if err != nil {
			return
		}
		if got, _ := count(t.Context(), exact.Text); got != tokens {
			t.Errorf("%d tokens, want %d", got, tokens)
		}
		if right, why := exact.Evaluate(task.Answer); !right || strings.Count(exact.Text, task.Answer) != strings.Count(task.Text, task.Answer) {
			t.Errorf("another task: %s", why)
		}
	})
}

func ExampleExact() {
	tasks, err := workloads.Cycle("retrieval", 12, 1)
	if err != nil {
		panic(err)
	}
	// An engine's own count comes from its /tokenize.
	count := func(_ context.Context, text string) (int, error) { return len(strings.Fields(text)), nil }
	task, err := workloads.Exact(context.Background(), tasks[6], 2048, count)
	if err != nil {
		panic(err)
	}
	fmt.Println(task.ID, "has", len(strings.Fields(task.Text)), "tokens and", task.Difficulty, "codes")
	fmt.Println(slices.Contains(strings.Fields(task.Text), task.Answer+"."))
	// Output:
	// retrieval/2048/7 has 2048 tokens and 8 codes
	// true
}
