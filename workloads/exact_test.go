package workloads_test

import (
	"context"
	"errors"
	"fmt"
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
	word func(string) int
	seen []int // what it counted, in turn
}

func (c *counter) count(_ context.Context, text string) (int, error) {
	tokens := template
	for word := range strings.FieldsSeq(text) {
		tokens += c.word(word)
	}
	c.seen = append(c.seen, tokens)
	return tokens, nil
}

func words(string) int        { return 1 }
func bytes(w string) int      { return len(w) + 1 }
func pieces(w string) int     { return (len(w) + 2) / 3 }
func threes(string) int       { return 3 }
func digitwise(w string) int  { return 1 + strings.Count(w, "0") + strings.Count(w, "7") }
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
						g.Expect(len(c.seen)).To(BeNumerically("<=", 25))
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
	g.Expect(c.seen).To(HaveLen(2), "one of them above")
}

// Who writes a task of their own gets filler before it, even if it looks like
// one of a family.
func TestExactPadsATaskOfOnesOwn(t *testing.T) {
	for _, text := range []string{
		"Say hello.", "Read these notes.\n\nThere are none.", "Read these notes.\n\nNone.\n\nWhat is the code of the door?",
	} {
		g := NewWithT(t)
		c := &counter{word: words}
		task := workloads.Task{ID: "mine", Family: "retrieval", Text: text, Answer: "hello", Evaluator: "contains"}
		exact, err := workloads.Exact(t.Context(), task, 100, c.count)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(exact.ID).To(Equal("retrieval/100/mine"))
		g.Expect(exact.Text).To(HaveSuffix(" day.\n\n" + text))
		g.Expect(c.count(t.Context(), exact.Text)).To(Equal(100))
	}
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
		word         func(string) int
		tokens       int
		below, above int // the nearest
	}{
		"three tokens a word, one too few":  {threes, template + 3*500 - 1, template + 3*499, template + 3*500},
		"three tokens a word, one too many": {threes, template + 3*500 + 1, template + 3*500, template + 3*501},
		"two tokens a word":                 {fixed(2), 2048, 2047, 2049},
		"less than the shortest sentence":   {words, alone + 1, alone, alone + 5},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := workloads.Exact(t.Context(), task, c.tokens, (&counter{word: c.word}).count)
			NewWithT(t).Expect(err).To(MatchError(fmt.Sprintf("%s can't be made %d tokens long: no filler gives just that many: the nearest numbers reached are %d and %d",
				task.ID, c.tokens, c.below, c.above)))
		})
	}
	_, err := workloads.Exact(t.Context(), task, template+3*500, (&counter{word: threes}).count)
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), "just that many")
}

// The nearest numbers are the nearest of all that were counted, in whatever
// order.
func TestExactRemembersTheNearest(t *testing.T) {
	g := NewWithT(t)
	dear := func(w string) int { // the words that could fill a gap
		if slices.Contains([]string{"calm", "dry", "quiet"}, w) {
			return 1000
		}
		return 1
	}
	failed := 0
	for tokens := 1024; tokens < 1064; tokens++ {
		count := &counter{word: dear}
		_, err := workloads.Exact(t.Context(), cycle(t, "retrieval", 4, 1)[1], tokens, count.count)
		if slices.Contains(count.seen, tokens) {
			g.Expect(err).NotTo(HaveOccurred())
			continue
		}
		failed++
		slices.Sort(count.seen)
		at, _ := slices.BinarySearch(count.seen, tokens)
		g.Expect(err).To(MatchError(HaveSuffix("reached are %d and %d", count.seen[at-1], count.seen[at])))
	}
	g.Expect(failed).To(BeNumerically(">", 5))
}

// A tokenizer may join words that stand beside their like.
func TestExactPaysForWordsThatCostOtherThanAlone(t *testing.T) {
	task := cycle(t, "retrieval", 4, 1)[1]
	joining := func(_ context.Context, text string) (int, error) {
		tokens, run, last := template, 0, ""
		for word := range strings.FieldsSeq(text) {
			if run++; word != last {
				run = 1
			}
			if last = word; run%3 != 0 {
				tokens++
			}
		}
		return tokens, nil
	}
	for tokens := 1024; tokens < 1040; tokens++ {
		_, err := workloads.Exact(t.Context(), task, tokens, joining)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}
}

func TestExactGivesUpWhereFillerDoesNotHelp(t *testing.T) {
	task := cycle(t, "retrieval", 4, 1)[1]
	alone := template + len(strings.Fields(task.Text))
	cutAt := func(most int) func(context.Context, string) (int, error) {
		return func(_ context.Context, text string) (int, error) {
			return min(most, template+len(strings.Fields(text))), nil
		}
	}
	for name, c := range map[string]struct {
		count  func(context.Context, string) (int, error)
		tokens int
		err    string
	}{
		"too few":              {(&counter{word: words}).count, alone - 1, fmt.Sprintf("it has %d without any filler: ask for more", alone)},
		"none":                 {(&counter{word: words}).count, 0, "ask for 1 to 2097152"},
		"far too many":         {(&counter{word: words}).count, 1 << 22, "ask for 1 to 2097152"},
		"a template only":      {(&counter{word: func(string) int { return 0 }}).count, 2048, "more filler adds no tokens: the nearest number reached is 17"},
		"a count that is cut":  {cutAt(1000), 2048, "more filler adds no tokens: the nearest number reached is 1000"},
		"a count cut by one":   {cutAt(2047), 2048, "more filler adds no tokens: the nearest number reached is 2047"},
		"a count of no tokens": {func(context.Context, string) (int, error) { return 0, nil }, 2048, "the tokenizer counted 0 tokens in a text of"},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			_, err := workloads.Exact(t.Context(), task, c.tokens, func(ctx context.Context, text string) (int, error) {
				calls++
				return c.count(ctx, text)
			})
			NewWithT(t).Expect(calls).To(BeNumerically("<", 30))
			NewWithT(t).Expect(err).To(MatchError(And(HavePrefix("%s can't be made %d tokens long: ", task.ID, c.tokens), ContainSubstring(c.err))))
		})
	}
}

// Counts that don't grow evenly must not be followed one sentence at a time.
func TestExactIsQuickWhereCountsGrowUnevenly(t *testing.T) {
	g := NewWithT(t)
	calls := 0
	_, err := workloads.Exact(t.Context(), cycle(t, "retrieval", 1, 1)[0], 1<<16, func(_ context.Context, text string) (int, error) {
		calls++
		words := len(strings.Fields(text))
		return template + words*words*words/1000, nil
	})
	g.Expect(err).To(MatchError(ContainSubstring("the nearest numbers reached are")))
	g.Expect(calls).To(BeNumerically("<", 50))
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
}

// A count that makes no sense ends with an error, and soon.
func FuzzExact(f *testing.F) {
	f.Add(uint64(1), 2048, []byte{1})
	f.Add(uint64(2), 2049, []byte{2, 0, 5})
	f.Add(uint64(3), 100, []byte{0})
	f.Add(uint64(4), 1<<16, []byte{255, 1, 7})
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
		if calls > 120 {
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
