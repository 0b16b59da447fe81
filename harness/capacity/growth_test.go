package capacity_test

import (
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/capacity"
)

// backlogs are those of a single server with Poisson arrivals at the start of a
// measurement and at the ends of ten parts of it, in mean service times.
func backlogs(random *rand.Rand, rate float64, service func() float64, warmup, measure float64) []int {
	const parts = 10
	counts := make([]int, parts+1)
	// in counts a request at the moments between its arrival and its end.
	in := func(from, to float64) {
		for i := range counts {
			if moment := warmup + measure*float64(i)/parts; from <= moment && moment < to {
				counts[i]++
			}
		}
	}
	at, free := 0.0, 0.0
	for {
		if at += random.ExpFloat64() / rate; at > warmup+measure {
			return counts
		}
		free = max(at, free) + service()
		if free > warmup {
			in(at, free)
		}
	}
}

// unstable is the share of runs of 500 mean service times after a warm-up that
// are called unstable at 95 %.
func unstable(rate, warmup float64, exponential bool) float64 {
	const runs = 400
	n := 0
	for seed := range uint64(runs) {
		random := rand.New(rand.NewPCG(seed, 5))
		service := random.ExpFloat64
		if !exponential {
			service = func() float64 { return 1 }
		}
		if capacity.Grows(backlogs(random, rate, service, warmup, 500), 0.95).Unstable {
			n++
		}
	}
	return float64(n) / runs
}

func TestAStableServerIsSeldomCalledUnstable(t *testing.T) {
	for _, exponential := range []bool{true, false} {
		for _, rate := range []float64{0.5, 0.8, 0.95} {
			g := NewWithT(t)
			alarms := unstable(rate, 4000, exponential)
			t.Logf("at %v of the capacity, exponential service %v: %.3f called unstable", rate, exponential, alarms)
			// 5 %, and three standard errors of 400 runs.
			g.Expect(alarms).To(BeNumerically("<=", 0.083))
		}
	}
}

func TestAnOverloadedServerIsCalledUnstable(t *testing.T) {
	for _, exponential := range []bool{true, false} {
		for rate, least := range map[float64]float64{1.1: 0.35, 1.3: 0.95} {
			g := NewWithT(t)
			found := unstable(rate, 100, exponential)
			t.Logf("at %v of the capacity, exponential service %v: %.3f called unstable", rate, exponential, found)
			g.Expect(found).To(BeNumerically(">=", least))
		}
	}
}

// That the warm-up has to fill the queue is needed, not only advised.
func TestAQueueThatFillsIsCalledUnstableTooOften(t *testing.T) {
	g := NewWithT(t)
	alarms := unstable(0.99, 0, false)
	t.Logf("at 0.99 of the capacity, from an empty server on: %.3f called unstable", alarms)
	g.Expect(alarms).To(BeNumerically(">", 0.083))
}

func TestGrowthIsTheExactShareOfSignPatterns(t *testing.T) {
	for _, test := range []struct {
		backlog []int
		perPart float64
	}{
		{[]int{0, 1, 2, 3, 4, 5}, 1},
		{[]int{0, 3, 2, 5, 8, 11}, 2.2},
		{[]int{7, 7, 7, 7, 7, 7}, 0},
		{[]int{5, 4, 3, 2, 1, 0}, -1},
		{[]int{0, 10, 11, 12, 13, 13, 13}, 13. / 6},
	} {
		g := NewWithT(t)
		got := capacity.Grows(test.backlog, 0.95)
		g.Expect(got.Reason).To(BeEmpty())
		g.Expect(*got.PerPart).To(BeNumerically("~", test.perPart, 1e-12))
		// Each pattern by itself.
		parts := len(test.backlog) - 1
		as := 0
		for pattern := range 1 << parts {
			sum := 0
			for i := range parts {
				by := test.backlog[i+1] - test.backlog[i]
				if pattern>>i&1 == 1 {
					by = -by
				}
				sum += by
			}
			if sum >= test.backlog[parts]-test.backlog[0] {
				as++
			}
		}
		g.Expect(*got.P).To(Equal(float64(as) / float64(int(1)<<parts)))
		g.Expect(got.Unstable).To(Equal(*got.P <= 0.05))
	}
}

func TestGrowthSaysWhyNothingCanBeShown(t *testing.T) {
	g := NewWithT(t)
	none := capacity.Grows([]int{4}, 0.95)
	g.Expect(none.Reason).To(ContainSubstring("1 backlogs have no part"))
	g.Expect([]any{none.PerPart, none.P}).To(HaveEach(BeNil()))
	few := capacity.Grows([]int{0, 5, 10, 15, 20}, 0.95)
	g.Expect(few.Reason).To(ContainSubstring("4 parts can't be tested at a confidence of 0.95: give 5 to 50"))
	g.Expect(*few.PerPart).To(Equal(5.0))
	g.Expect(few.P).To(BeNil())
	g.Expect(few.Unstable).To(BeFalse())
	g.Expect(capacity.Grows(make([]int, 52), 0.95).Reason).To(ContainSubstring("51 parts"))
	g.Expect(capacity.Grows(make([]int, 11), 1).Reason).To(ContainSubstring("confidence is 1"))
}
