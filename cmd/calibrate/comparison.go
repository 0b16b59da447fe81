package main

import (
	"fmt"
	"strings"

	"assay/comparison"
)

func comparisons() error { return put("comparison", comparisonTable()) }

func comparisonTable() string {
	var out strings.Builder
	out.WriteString("| lifecycles an arm | deviation between lifecycles | nothing changed: a number called better or worse, no minimum | likewise, minimum 5 % | one arm 10 % slower: worse | a number called so that is not |\n|---:|---:|---:|---:|---:|---:|\n")
	for _, n := range []int{3, 6, 10} {
		for _, deviation := range []float64{0.01, 0.02, 0.05} {
			s := comparison.Scenario{Lifecycles: n, Rows: 16, Deviation: deviation, Experiments: 2000, Seed: 1}
			if n == 10 {
				s.Experiments = 500 // of 184,756 splits a row
			}
			free := comparison.Simulate(s)
			s.Minimum = comparison.DefaultMinimum
			usual := comparison.Simulate(s)
			s.SlowDown = 0.10
			slow := comparison.Simulate(s)
			fmt.Fprintf(&out, "| %d | %.0f %% | %.1f %% | %.1f %% | %.1f %% | %.1f %% |\n", n, deviation*100, free.Changed*100, usual.Changed*100, slow.Worse*100, slow.Wrong*100)
		}
	}
	return out.String()
}
