package matchers_test

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"assay/comparison"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record/recordtest"
	"assay/matchers"
)

// kept writes the plan and the records of a fixture run with so many lifecycles
// an arm.
func kept(t *testing.T, lifecycles string, speed float64) string {
	t.Helper()
	p := recordtest.Plan("lifecycles: 1", "lifecycles: "+lifecycles)
	dir := filepath.Join(t.TempDir(), "bundle")
	_, err := recordtest.Write(dir, p, recordtest.Run(p, recordtest.Options{Speed: speed}))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return dir
}

func TestARegressionFailsWithTheWorstNumber(t *testing.T) {
	g := NewWithT(t)
	old, slow := kept(t, "6", 10), kept(t, "6", 9)
	g.Expect(kept(t, "6", 10)).To(matchers.HaveNoRegressionAgainst(old))
	g.Expect(kept(t, "6", 12)).To(matchers.HaveNoRegressionAgainst(old), "better is no regression")
	m := matchers.HaveNoRegressionAgainst(old)
	ok, err := m.Match(slow)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ok).To(BeFalse())
	g.Expect(m.FailureMessage(slow)).To(And(ContainSubstring("the worst: 1 client, vllm, p50 TTFT: 0.002 s → 0.002222 s, +11.1 %, interval [+11.1, +11.1]"), ContainSubstring("over 6 against 6 lifecycles")))
	g.Expect(slow).NotTo(matchers.HaveNoRegressionAgainst(old, matchers.ByMetrics("goodput")))
	g.Expect(slow).To(matchers.HaveNoRegressionAgainst(old, matchers.ByMetrics("failure_rate")))
	g.Expect(slow).To(matchers.HaveNoRegressionAgainst(old, matchers.WithMinimum(0.2)))
	// A run that is not written yet is judged the same.
	p := recordtest.Plan("lifecycles: 1", "lifecycles: 6")
	run := recordtest.Run(p, recordtest.Options{Speed: 9})
	g.Expect(comparison.Run{Plan: p, Records: run, Summary: metric.Summarize(p, run)}).NotTo(matchers.HaveNoRegressionAgainst(old))
}

func TestWhatCanShowNothingIsNoSuccess(t *testing.T) {
	g := NewWithT(t)
	m := matchers.HaveNoRegressionAgainst(kept(t, "2", 10))
	ok, err := m.Match(kept(t, "2", 5))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ok).To(BeFalse())
	g.Expect(m.FailureMessage("")).To(And(ContainSubstring("too few to show"), ContainSubstring("run 6 of each arm")))
	other := recordtest.Pairs()
	m = matchers.HaveNoRegressionAgainst(kept(t, "2", 10))
	ok, err = m.Match(comparison.Run{Plan: other, Summary: metric.Summary{Status: "complete"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ok).To(BeFalse())
	g.Expect(m.FailureMessage("")).To(ContainSubstring("new: it is of a " + string(plan.Crossover) + " experiment"))
}

func TestARegressionsMisuseIsAnErrorWithEverything(t *testing.T) {
	_, err := matchers.HaveNoRegressionAgainst("nothing", matchers.ByMetrics("speed"), matchers.AtLevel(95), matchers.WithMinimum(-1)).Match(7)
	for _, text := range []string{"nothing is no bundle", `no metric "speed"`, "a level of 9500 %", "a minimum change of -100 %", "not int"} {
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(text)))
	}
	_, err = matchers.HaveNoRegressionAgainst("nothing", matchers.ByMetrics()).Match(comparison.Run{})
	NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("names no metric"), ContainSubstring("without a plan"))))
}
