package comparison_test

import (
	"math"
	"testing"

	. "github.com/onsi/gomega"

	"assay/comparison"
)

var options = comparison.Options{Minimum: 0.05, Level: 0.95}

// around are n values near a center, each another by a thousandth of it.
func around(center float64, n int) comparison.Sample {
	var s comparison.Sample
	for i := range n {
		s.Values = append(s.Values, center*(1+0.001*float64(i-n/2)))
	}
	return s
}

func series(unit string, old, later comparison.Sample) comparison.Series {
	return comparison.Series{Where: "8 clients", Arm: "vllm", Metric: "a metric", Unit: unit, Old: old, New: later}
}

func one(t *testing.T, s comparison.Series) (comparison.Row, comparison.Comparison) {
	t.Helper()
	c, err := comparison.Of([]comparison.Series{s}, options)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c.Rows[0], c
}

func TestVerdictsKnowWhichWayIsBetter(t *testing.T) {
	for name, test := range map[string]struct {
		unit       string
		old, later float64
		want       comparison.Verdict
		change     float64
	}{
		"less goodput":     {"tok/s", 100, 90, comparison.Worse, -0.10},
		"more goodput":     {"tok/s", 100, 110, comparison.Better, 0.10},
		"a longer wait":    {"s", 1, 1.2, comparison.Worse, 0.20},
		"a shorter wait":   {"s", 1, 0.8, comparison.Better, -0.20},
		"more failures":    {"ratio", 0.1, 0.2, comparison.Worse, 0.10},
		"fewer failures":   {"ratio", 0.2, 0.1, comparison.Better, -0.10},
		"under the least":  {"tok/s", 100, 97, comparison.NoDifference, -0.03},
		"points, not a 5%": {"ratio", 0.10, 0.12, comparison.NoDifference, 0.02},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, c := one(t, series(test.unit, around(test.old, 6), around(test.later, 6)))
			g.Expect(r.Verdict).To(Equal(test.want), r.Reason)
			g.Expect(c.Verdict).To(Equal(test.want))
			g.Expect(*r.Change).To(BeNumerically("~", test.change, 1e-3))
			g.Expect(*r.Interval.Low).To(BeNumerically("<", *r.Change))
			g.Expect(*r.Interval.High).To(BeNumerically(">", *r.Change))
			g.Expect(*r.PValue).To(Equal(2.0 / 924))
		})
	}
}

func TestWhatIsMissingIsNoSuccess(t *testing.T) {
	g := NewWithT(t)
	gone := comparison.Sample{Reason: "cut short"}
	r, c := one(t, series("s", around(1, 6), gone))
	g.Expect(r.Verdict).To(Equal(comparison.NotComparable))
	g.Expect(r.Reason).To(Equal("new: cut short"))
	g.Expect(r.Lost).To(BeTrue())
	g.Expect(c.Verdict).To(Equal(comparison.NotComparable))
	g.Expect(*r.Old).To(BeNumerically("~", 1, 0.01), "what is there is shown")
	r, _ = one(t, series("s", gone, around(1, 6)))
	g.Expect(r.Lost).To(BeFalse(), "there was nothing to lose")
	r, _ = one(t, series("s", gone, gone))
	g.Expect(r.Reason).To(Equal("old and new: cut short"))
	r, _ = one(t, series("tok/s", around(1, 6), comparison.Sample{Values: []float64{0, 0, 0, 0, 0, 0}}))
	g.Expect(r.Reason).To(ContainSubstring("no ratio"))
	r, _ = one(t, series("tok/s", around(1, 6), comparison.Sample{Values: []float64{math.NaN()}}))
	g.Expect(r.Reason).To(ContainSubstring("no number"))
	r, _ = one(t, series("°C", around(1, 6), around(1, 6)))
	g.Expect(r.Reason).To(ContainSubstring("not known"))
	_, c = one(t, series("s", around(1, 6), comparison.Sample{}))
	g.Expect(c.Verdict).To(Equal(comparison.NotComparable))
	// What was compared does not hide what was lost.
	all, err := comparison.Of([]comparison.Series{series("s", around(1, 6), around(1, 6)), series("s", around(1, 6), gone)}, options)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all.Verdict).To(Equal(comparison.NotComparable))
	none, err := comparison.Of(nil, options)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(none.Verdict).To(Equal(comparison.NotComparable))
}

func TestTooFewSaysHowManyItTakes(t *testing.T) {
	g := NewWithT(t)
	r, c := one(t, series("s", around(1, 3), around(2, 3)))
	g.Expect(r.Verdict).To(Equal(comparison.TooFew))
	g.Expect(c.Verdict).To(Equal(comparison.TooFew))
	g.Expect(r.Reason).To(ContainSubstring("run 4 of each arm"))
	g.Expect(*r.Interval).To(Equal(comparison.Interval{}))
	// 6 against 6 can show one of 23, and none of 24.
	for n, want := range map[int]comparison.Verdict{23: comparison.Worse, 24: comparison.TooFew} {
		many := []comparison.Series{series("s", around(1, 6), around(2, 6))}
		for len(many) < n {
			many = append(many, series("s", around(1, 6), around(1, 6)))
		}
		c, err := comparison.Of(many, options)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Rows[0].Verdict).To(Equal(want), "among %d", n)
		g.Expect(c.Compared).To(Equal(n))
	}
	g.Expect(comparison.FewestLifecycles(23, 0.95)).To(Equal(6))
	g.Expect(comparison.FewestLifecycles(24, 0.95)).To(Equal(7))
	g.Expect(comparison.FewestLifecycles(85, 0.95)).To(Equal(7))
}

func TestWhatNeverVariesCostsTheOthersNothing(t *testing.T) {
	g := NewWithT(t)
	many := []comparison.Series{series("s", around(1, 6), around(2, 6))}
	zeros := comparison.Sample{Values: make([]float64, 6)}
	for len(many) < 60 {
		many = append(many, series("ratio", zeros, zeros))
	}
	c, err := comparison.Of(many, options)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Compared).To(Equal(1))
	g.Expect(c.Rows[0].Verdict).To(Equal(comparison.Worse))
	g.Expect(c.Rows[1].Verdict).To(Equal(comparison.NoDifference))
}

func TestHolmsAreThose(t *testing.T) {
	// The example by hand: 0.01·4, 0.03·3, 0.03·3 from the one before it, 0.04·1
	// likewise.
	got := comparison.Holm([]float64{0.04, 0.01, 0.03, 0.035})
	for i, want := range []float64{0.09, 0.04, 0.09, 0.09} {
		NewWithT(t).Expect(got[i]).To(BeNumerically("~", want, 1e-12))
	}
	NewWithT(t).Expect(comparison.Holm([]float64{0.9, 0.8})).To(Equal([]float64{1, 1}))
	NewWithT(t).Expect(comparison.Holm(nil)).To(BeEmpty())
}

func TestOptionsAreRefusedTogether(t *testing.T) {
	_, err := comparison.Of(nil, comparison.Options{Minimum: -1, Level: 95})
	NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("minimum change of -100 %"), ContainSubstring("level of 9500 %"))))
}
