package comparison_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	. "github.com/onsi/gomega"

	"assay/comparison"
)

func TestPermutationsAreSciPys(t *testing.T) {
	g := NewWithT(t)
	data, err := os.ReadFile("testdata/permutation.json")
	g.Expect(err).NotTo(HaveOccurred())
	var table struct {
		Cases []struct {
			Old, New []float64
			Want     float64
			Interval *[2]float64
		}
	}
	g.Expect(json.Unmarshal(data, &table)).To(Succeed())
	g.Expect(len(table.Cases)).To(BeNumerically(">=", 10))
	intervals := 0
	for _, c := range table.Cases {
		p, exact := comparison.Permutation(c.Old, c.New, 0)
		g.Expect(p).To(BeNumerically("~", c.Want, 1e-12), "%v against %v", c.Old, c.New)
		g.Expect(exact).To(BeTrue())
		if c.Interval == nil {
			continue
		}
		intervals++
		i := comparison.Invert(c.Old, c.New, 0.95, 0)
		g.Expect(*i.Low).To(BeNumerically("~", c.Interval[0], 1e-6), "%v against %v", c.Old, c.New)
		g.Expect(*i.High).To(BeNumerically("~", c.Interval[1], 1e-6), "%v against %v", c.Old, c.New)
	}
	g.Expect(intervals).To(BeNumerically(">=", 4))
}

func TestFewLifecyclesBoundNothing(t *testing.T) {
	g := NewWithT(t)
	p, _ := comparison.Permutation(nil, []float64{1}, 0)
	g.Expect(math.IsNaN(p)).To(BeTrue())
	g.Expect(comparison.Invert([]float64{1, 2, 3}, []float64{4, 5, 6}, 0.95, 0)).To(Equal(comparison.Interval{}), "2/20 is above 5 %")
	g.Expect(comparison.Invert(nil, []float64{4, 5, 6}, 0.95, 0)).To(Equal(comparison.Interval{}))
	g.Expect(comparison.SmallestP(6, 6)).To(Equal(2.0 / 924))
	g.Expect(comparison.SmallestP(1, 3)).To(Equal(0.5))
}

func TestManyLifecyclesAreSampledAlwaysTheSame(t *testing.T) {
	g := NewWithT(t)
	var old, later []float64
	for i := range 11 {
		old, later = append(old, math.Sin(float64(i))), append(later, math.Sin(float64(3*i))+0.6)
	}
	p, exact := comparison.Permutation(old, later, 4)
	again, _ := comparison.Permutation(old, later, 4)
	g.Expect(exact).To(BeFalse())
	g.Expect(again).To(Equal(p))
	// Ten of each are tried in all ways, and say nearly the same of such numbers.
	other, _ := comparison.Permutation(old, later, 5)
	g.Expect(other).To(BeNumerically("~", p, 0.005))
	i := comparison.Invert(old, later, 1-p-0.01, 4)
	g.Expect(*i.Low**i.High).To(BeNumerically(">", 0), "an interval at less than 1 − p excludes no change")
	i = comparison.Invert(old, later, 1-p+0.01, 4)
	g.Expect(*i.Low**i.High).To(BeNumerically("<", 0), "one at more holds it")
	far := make([]float64, 11)
	for i := range far {
		far[i] = 100 + float64(i)
	}
	p, _ = comparison.Permutation(old, far, 4)
	g.Expect(p).To(And(BeNumerically(">", 0), BeNumerically("<", 1e-4)), "the split that was seen is one of them")
}
