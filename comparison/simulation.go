package comparison

import (
	"math"
	"math/rand/v2"
)

// Scenario is a pair of runs that is simulated many times. Half of the rows are
// of an arm that did not change, and half of one that became slower.
type Scenario struct {
	Lifecycles  int     // of each arm, in each run
	Rows        int     // numbers that are compared, in turn a goodput and a time
	Deviation   float64 // between lifecycles, of a number's logarithm
	SlowDown    float64 // of the second arm in the newer run, as a share of its speed; 0: none
	Minimum     float64
	Experiments int
	Seed        uint64
}

// Rates are shares of a scenario's experiments.
type Rates struct {
	Worse   float64 // the verdict is worse
	Changed float64 // a row of any arm is called better or worse
	// Wrong is where a row of the arm that did not change is, or one is called
	// better.
	Wrong float64
}

// Simulate finds how often verdicts come out at 95 %. A lifecycle's numbers
// share half of the variance: a slow start of a machine is seen in all of them.
func Simulate(s Scenario) Rates {
	random := rand.New(rand.NewPCG(s.Seed, 6))
	worse, changed, wrong := 0, 0, 0
	for range s.Experiments {
		series := make([]Series, s.Rows)
		for i := range series {
			series[i] = Series{Metric: "goodput", Unit: "tok/s"}
			if i%2 == 1 {
				series[i] = Series{Metric: "p50 TTFT", Unit: "s"}
			}
			series[i].Arm = []string{"same", "slower"}[i/2%2]
		}
		for later := range 2 {
			for range s.Lifecycles {
				shared := map[string]float64{"same": random.NormFloat64(), "slower": random.NormFloat64()}
				for i := range series {
					noise := float64((shared[series[i].Arm]+random.NormFloat64())/math.Sqrt2) * s.Deviation
					if later == 1 && series[i].Arm == "slower" {
						noise -= math.Log(1 - s.SlowDown)
					}
					if series[i].Unit == "tok/s" {
						noise = -noise
					}
					of := []*Sample{&series[i].Old, &series[i].New}[later]
					of.Values = append(of.Values, math.Exp(noise))
				}
			}
		}
		c := judged(series, Options{Minimum: s.Minimum, Level: DefaultLevel}, false)
		anything, mistaken := false, false
		for _, r := range c.Rows {
			called := r.Verdict == Better || r.Verdict == Worse
			anything = anything || called
			mistaken = mistaken || called && (r.Arm == "same" || r.Verdict == Better)
		}
		worse += count(c.Verdict == Worse)
		changed += count(anything)
		wrong += count(mistaken)
	}
	of := func(n int) float64 { return float64(n) / float64(s.Experiments) }
	return Rates{Worse: of(worse), Changed: of(changed), Wrong: of(wrong)}
}

func count(holds bool) int {
	if holds {
		return 1
	}
	return 0
}
