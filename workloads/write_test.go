package workloads_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"assay/workloads"
)

// twice counts a word whose first letter is in the alphabet's first half as two
// tokens, so that no sum comes out by itself.
func twice(w string) int {
	if w[0] < 'm' {
		return 2
	}
	return 1
}

func families(t *testing.T, n int) []workloads.Entry {
	t.Helper()
	p, err := workloads.NewPrefixFamilies(workloads.PrefixSpec{
		Families: 3, Prefix: 100, Suffix: workloads.LengthSpec{Kind: "uniform", Min: 3, Max: 90}, Output: workloads.LengthSpec{Kind: "fixed", Tokens: 8},
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return p.Draw(n, 5)
}

func TestEverySegmentEndsAtTheCount(t *testing.T) {
	for name, rule := range map[string]func(string) int{"words": words, "bytes": bytes, "pieces": pieces, "twice": twice, "characters": characters} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := &counter{word: rule}
			entries := families(t, 20)
			if name == "bytes" || name == "characters" {
				for i := range entries {
					entries[i].Segments[1].Tokens += 20 // room for a word
				}
			}
			w := workloads.NewWriter(7, c.count)
			for _, e := range entries {
				before := len(c.seen)
				text, ends, err := w.Write(t.Context(), e)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(len(c.seen)-before).To(BeNumerically("<=", 60), "counted so often for %v", e.Segments)
				g.Expect(ends).To(HaveLen(2))
				g.Expect(ends[1]).To(Equal(len(text)))
				tokens := 0
				for i, end := range ends {
					tokens += e.Segments[i].Tokens
					got, _ := c.count(t.Context(), text[:end])
					g.Expect(got).To(Equal(tokens))
				}
			}
		})
	}
}

func TestEqualSegmentsAreEqualTextAndOthersDifferFromTheirFirstWords(t *testing.T) {
	g := NewWithT(t)
	c := &counter{word: words}
	w := workloads.NewWriter(7, c.count)
	beginnings, own := map[string]string{}, map[string]bool{}
	for _, e := range families(t, 40) {
		text, ends, err := w.Write(t.Context(), e)
		g.Expect(err).NotTo(HaveOccurred())
		key := e.Segments[0].Key
		if first, ok := beginnings[key]; ok {
			g.Expect(text[:ends[0]]).To(Equal(first))
		}
		beginnings[key] = text[:ends[0]]
		g.Expect(own).NotTo(HaveKey(text[ends[0]:]))
		own[text[ends[0]:]] = true
	}
	g.Expect(beginnings).To(HaveLen(3))
	firsts := map[string]bool{}
	for _, b := range beginnings {
		firsts[strings.Join(strings.Fields(b)[:3], " ")] = true
	}
	g.Expect(firsts).To(HaveLen(3))

	text := func(seed uint64) string {
		text, _, err := workloads.NewWriter(seed, c.count).Write(t.Context(), families(t, 1)[0])
		g.Expect(err).NotTo(HaveOccurred())
		return text
	}
	g.Expect(text(7)).To(Equal(text(7)))
	g.Expect(text(7)).NotTo(Equal(text(8)), "another run must not find this one's prefixes in a cache")
}

func TestATextThatCanNotBeThatShortSaysSo(t *testing.T) {
	g := NewWithT(t)
	c := &counter{word: words}
	_, _, err := workloads.NewWriter(7, c.count).Write(t.Context(), workloads.Entry{ID: "independent/1", Segments: []workloads.Segment{{Key: "a", Tokens: template}}})
	g.Expect(err).To(MatchError(ContainSubstring(fmt.Sprintf("independent/1 can't be made %d tokens long: it has %d without any filler: ask for more", template, template+1))))

	gone, asked := errors.New("the engine is gone"), 0
	_, _, err = workloads.NewWriter(7, func(context.Context, string) (int, error) { asked++; return 0, gone }).Write(t.Context(), families(t, 1)[0])
	g.Expect(err).To(MatchError(gone))
	g.Expect(asked).To(Equal(1), "an engine that is gone is not asked again")
}

func TestAnEstimateCountsWordsAndFullStops(t *testing.T) {
	g := NewWithT(t)
	g.Expect(workloads.EstimateTokens("The baker moved a table. There was a lamp")).To(Equal(10))
	g.Expect(workloads.EstimateTokens("")).To(BeZero())
}
