package recorded_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"assay/suites/recorded"
)

// FuzzParse holds that what any of the parsers accepts can be computed with.
func FuzzParse(f *testing.F) {
	read := func(file string) []byte {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		return data
	}
	// The run's first two ordinals: short enough to be changed quickly.
	run, err := recorded.ParseRun(read("testdata/rtx4090-eager-compiled.json"))
	if err != nil {
		f.Fatal(err)
	}
	run.Requests = slices.DeleteFunc(run.Requests, func(q recorded.Request) bool { return q.Ordinal > 2 })
	short, err := json.Marshal(run)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(short)
	f.Add(read("testdata/declared.json"))
	f.Add(read("testdata/t4-concurrency.json"))
	f.Fuzz(func(t *testing.T, data []byte) {
		g := NewWithT(t)
		if run, err := recorded.ParseRun(data); err == nil {
			_, err := run.Evidence(recorded.Cost{}).Statements()
			g.Expect(err).NotTo(HaveOccurred())
		}
		if cost, err := recorded.ParseCost(data); err == nil {
			g.Expect(math.IsNaN(cost.Seconds())).To(BeFalse())
		}
		if table, err := recorded.ParseTable(data); err == nil {
			for _, tier := range table.Tiers {
				low, ratio, high := tier.Ratio()
				g.Expect(low <= ratio && ratio <= high).To(BeTrue(), "%g %g %g", low, ratio, high)
				g.Expect(tier.Naive.FailedTenths()).To(And(BeNumerically(">=", 0), BeNumerically("<=", 1000)))
			}
		}
	})
}
