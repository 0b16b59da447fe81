package comparison_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"assay/comparison"
)

// The rates are those that docs/statistics.md promises, within what 1,000
// experiments differ by.
func TestVerdictsComeOutAtTheRatesThatArePromised(t *testing.T) {
	usual := comparison.Scenario{Lifecycles: 6, Rows: 16, Deviation: 0.02, Experiments: 1000, Seed: 2}
	t.Run("nothing changed", func(t *testing.T) {
		g := NewWithT(t)
		s := usual
		r := comparison.Simulate(s)
		g.Expect(r.Changed).To(BeNumerically("<=", 0.05+0.02), "without a minimum")
		s.Minimum = 0.05
		g.Expect(comparison.Simulate(s).Changed).To(BeNumerically("<=", 0.01))
	})
	t.Run("10 % slower", func(t *testing.T) {
		g := NewWithT(t)
		s := usual
		s.SlowDown, s.Minimum = 0.10, 0.05
		r := comparison.Simulate(s)
		g.Expect(r.Worse).To(BeNumerically(">=", 0.97))
		g.Expect(r.Wrong).To(BeNumerically("<=", 0.05))
		s.Lifecycles = 3
		g.Expect(comparison.Simulate(s).Worse).To(BeZero(), "three lifecycles can show nothing")
	})
}
