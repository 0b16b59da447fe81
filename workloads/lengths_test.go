package workloads_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"assay/workloads"
)

func lengths(t *testing.T, of string, s workloads.LengthSpec) *workloads.Lengths {
	t.Helper()
	l, err := workloads.NewLengths(of, s)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return l
}

// testdata/lengths.py worked the moments and quantiles out with SciPy.
func TestLengthsHaveTheMomentsAndQuantilesOfTheirDistribution(t *testing.T) {
	g := NewWithT(t)
	data, err := os.ReadFile("testdata/lengths.json")
	g.Expect(err).NotTo(HaveOccurred())
	var reference struct {
		Cases []struct {
			Kind                             string
			Median, Sigma, Outside, Mean, SD float64
			Min, Max                         int
			Deciles                          []int
		}
	}
	g.Expect(json.Unmarshal(data, &reference)).To(Succeed())
	g.Expect(reference.Cases).To(HaveLen(4))
	const n = 100_000
	for _, c := range reference.Cases {
		l := lengths(t, "input", workloads.LengthSpec{Kind: c.Kind, Median: c.Median, Sigma: c.Sigma, Min: c.Min, Max: c.Max})
		g.Expect(l.Mean()).To(BeNumerically("~", c.Mean, 1e-6*c.Mean))
		g.Expect(l.Outside()).To(BeNumerically("~", c.Outside, 1e-9))
		drawn := l.Draw(n, 7)
		sum, squares := 0.0, 0.0
		for _, v := range drawn {
			g.Expect(v >= c.Min && v <= c.Max).To(BeTrue())
			sum += float64(v)
			squares += (float64(v) - c.Mean) * (float64(v) - c.Mean)
		}
		g.Expect(sum/n).To(BeNumerically("~", c.Mean, 4*c.SD/math.Sqrt(n)), l.String())
		g.Expect(math.Sqrt(squares/n)).To(BeNumerically("~", c.SD, 0.02*c.SD), l.String())
		slices.Sort(drawn)
		for i, want := range c.Deciles {
			// The share at or below a decile is no less than it, the share
			// below it no more, within what n draws scatter.
			p := float64(i+1) / 10
			below, _ := slices.BinarySearch(drawn, want)
			upTo, _ := slices.BinarySearch(drawn, want+1)
			g.Expect(float64(below)/n).To(BeNumerically("<", p+0.007), "%s: decile %d", l, i+1)
			g.Expect(float64(upTo)/n).To(BeNumerically(">", p-0.007), "%s: decile %d", l, i+1)
		}
	}
}

func TestALongerDrawBeginsWithAShorterOne(t *testing.T) {
	g := NewWithT(t)
	s := workloads.LengthSpec{Kind: "lognormal", Median: 300, Sigma: 1, Min: 10, Max: 2000}
	l := lengths(t, "input", s)
	g.Expect(l.Draw(100, 1)[:10]).To(Equal(l.Draw(10, 1)))
	g.Expect(l.Draw(10, 2)).NotTo(Equal(l.Draw(10, 1)))
	g.Expect(lengths(t, "output", s).Draw(10, 1)).NotTo(Equal(l.Draw(10, 1)), "independent of another's")
	g.Expect(l.Draw(-1, 1)).To(BeEmpty())
	g.Expect(lengths(t, "a", workloads.LengthSpec{Kind: "fixed", Tokens: 9}).Draw(2, 1)).To(Equal([]int{9, 9}))
}

func TestAnEmpiricalDistributionDrawsWhatWasSeen(t *testing.T) {
	g := NewWithT(t)
	l := lengths(t, "input", workloads.LengthSpec{Kind: "empirical", Values: []int{5, 10, 30, 900}, Min: 1, Max: 100})
	g.Expect(l.Mean()).To(Equal(15.0))
	g.Expect(l.Outside()).To(Equal(0.25))
	counts := map[int]int{}
	for _, v := range l.Draw(3000, 1) {
		counts[v]++
	}
	g.Expect(counts).To(HaveLen(3))
	for _, v := range []int{5, 10, 30} {
		g.Expect(counts[v]).To(BeNumerically("~", 1000, 110))
	}
}

func TestADistributionIsRefusedWithAllItsFaults(t *testing.T) {
	_, err := workloads.NewLengths("input", workloads.LengthSpec{Kind: "lognormal", Tokens: 3, Sigma: math.NaN(), Min: 5, Max: 2})
	for _, want := range []string{"take no tokens", "the bounds are 5 to 2", "the median is 0", "sigma is NaN"} {
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
	}
	_, err = workloads.NewLengths("input", workloads.LengthSpec{Kind: "lognormal", Median: 10, Sigma: 0.1, Min: 50, Max: 60})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("widen them")))
	_, err = workloads.NewLengths("input", workloads.LengthSpec{Kind: "normal"})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("fixed, uniform, lognormal, empirical")))
}

func fixed(n int) workloads.LengthSpec { return workloads.LengthSpec{Kind: "fixed", Tokens: n} }

// The expectation is worked out; the draws are counted.
func TestTheShareThatFamiliesHaveInCommonIsKnown(t *testing.T) {
	g := NewWithT(t)
	p, err := workloads.NewPrefixFamilies(workloads.PrefixSpec{Families: 8, Prefix: 300, Suffix: fixed(100), Output: fixed(5)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Share()).To(Equal(0.75))
	g.Expect(p.ShareOf(1)).To(BeNumerically("~", 0, 1e-12))
	sum, rounds := 0.0, 2000
	for seed := range rounds {
		shared, total := workloads.Shared(p.Draw(20, uint64(seed)))
		sum += float64(shared) / float64(total)
	}
	g.Expect(sum / float64(rounds)).To(BeNumerically("~", p.ShareOf(20), 0.003))
	_, err = workloads.NewPrefixFamilies(workloads.PrefixSpec{})
	for _, want := range []string{"families is 0", "prefix is 0", "suffix: ", "output: "} {
		g.Expect(err).To(MatchError(ContainSubstring(want)))
	}
}

func TestATurnBeginsWithAllThatWasSaidBeforeIt(t *testing.T) {
	g := NewWithT(t)
	c, err := workloads.NewConversations(workloads.ConversationSpec{Turns: 3, User: fixed(20), Output: fixed(30)})
	g.Expect(err).NotTo(HaveOccurred())
	drawn := c.Draw(8, 1)
	g.Expect(drawn[:4]).To(Equal(c.Draw(4, 1)))
	var ids []string
	var inputs []int
	for _, e := range drawn {
		ids, inputs = append(ids, e.ID), append(inputs, e.Input())
		g.Expect(e.Output).To(Equal(30))
	}
	g.Expect(ids[1:5]).To(Equal([]string{"conversation/1/2", "conversation/1/3", "conversation/2/1", "conversation/2/2"}))
	g.Expect(inputs).To(Equal([]int{20, 70, 120, 20, 70, 120, 20, 70}))
	g.Expect(drawn[2].Segments[:3]).To(Equal(drawn[1].Segments))
	g.Expect(drawn[2].Segments[3]).To(Equal(workloads.Segment{Key: "conversation/1/2/answer", Tokens: 30}))
	shared, total := workloads.Shared(drawn)
	g.Expect([]int{shared, total}).To(Equal([]int{20 + 70 + 20 + 70 + 20, 510}))
	_, err = workloads.NewConversations(workloads.ConversationSpec{})
	for _, want := range []string{"turns is 0", "user: ", "output: "} {
		g.Expect(err).To(MatchError(ContainSubstring(want)))
	}
}

func TestIndependentRequestsHaveNothingInCommon(t *testing.T) {
	g := NewWithT(t)
	i, err := workloads.NewIndependent(workloads.IndependentSpec{Input: fixed(64), Output: fixed(8)})
	g.Expect(err).NotTo(HaveOccurred())
	shared, total := workloads.Shared(i.Draw(10, 1))
	g.Expect([]int{shared, total}).To(Equal([]int{0, 640}))
}
