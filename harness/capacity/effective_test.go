package capacity_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/capacity"
)

// effective is how many independent attempts a search for a share of 95 % takes
// these for.
func effective(g Gomega, within []bool, values ...[]float64) float64 {
	return effectiveAt(g, 0.95, within, values...)
}

func effectiveAt(g Gomega, share float64, within []bool, values ...[]float64) float64 {
	search := one
	search.Objectives = []capacity.Objective{{Name: "latency", Share: share}}
	p, err := search.Judge(1, 0, capacity.Outcome{within}, values...)
	g.Expect(err).NotTo(HaveOccurred())
	return p.Objectives[0].Effective
}

func TestEffectiveNumbersAreNumPys(t *testing.T) {
	g := NewWithT(t)
	data, err := os.ReadFile("testdata/effective.json")
	g.Expect(err).NotTo(HaveOccurred())
	var table struct {
		Cases []struct {
			Share             float64
			Within            string
			Values            []float64
			Alone, WithValues float64
		}
	}
	g.Expect(json.Unmarshal(data, &table)).To(Succeed())
	g.Expect(len(table.Cases)).To(BeNumerically(">=", 10))
	for i, c := range table.Cases {
		var within []bool
		for _, w := range c.Within {
			within = append(within, w == '1')
		}
		g.Expect(effectiveAt(g, c.Share, within)).To(BeNumerically("~", c.Alone, 1e-9*c.Alone), "case %d", i)
		g.Expect(effectiveAt(g, c.Share, within, c.Values)).To(BeNumerically("~", c.WithValues, 1e-9*c.WithValues), "case %d", i)
	}
}

// A chain of two states whose correlation falls by the factor r a step has a
// design effect of (1+r)/(1−r).
func TestTheDesignEffectOfAChainIsTheTextbooks(t *testing.T) {
	for _, r := range []float64{0, 0.5, 0.9} {
		g := NewWithT(t)
		random := rand.New(rand.NewPCG(1, math.Float64bits(r)))
		sum := 0.0
		const n, runs = 20_000, 20
		for range runs {
			within, now := make([]bool, n), true
			for i := range within {
				if random.Float64() > r {
					now = random.Float64() < 0.8
				}
				within[i] = now
			}
			sum += n / effective(g, within) / runs
		}
		g.Expect(sum).To(BeNumerically("~", (1+r)/(1-r), 0.1*(1+r)/(1-r)), "correlation %v", r)
	}
}

func TestAttemptsAreNeverWorthMoreThanTheyAre(t *testing.T) {
	g := NewWithT(t)
	for n := 1; n < 200; n++ {
		g.Expect(effective(g, of(n, n))).To(Equal(float64(n)), "no variance is seen")
		g.Expect(effective(g, of(n/2, n))).To(BeNumerically("<=", n), "one after the other is steadier than chance")
	}
}

func TestValuesHaveToBeThoseOfTheAttempts(t *testing.T) {
	g := NewWithT(t)
	o := capacity.Outcome{{true, false}}
	for says, values := range map[string][][]float64{
		"the values of 2 objectives, and 1 are sought": {{1, 2}, {1, 2}},
		`2 attempts and 1 values of "ttft_p95"`:        {{1}},
		`no number as value 2 of "ttft_p95"`:           {{1, math.NaN()}},
	} {
		_, err := one.Judge(1, 0, o, values...)
		g.Expect(err).To(MatchError(ContainSubstring(says)))
	}
	for _, values := range [][]float64{{1, math.Inf(1)}, nil} {
		_, err := one.Judge(1, 0, o, values)
		g.Expect(err).NotTo(HaveOccurred())
	}
}
