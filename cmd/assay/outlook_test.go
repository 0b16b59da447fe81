package main

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"assay/golden"
	"assay/harness/record"
	"assay/harness/record/recordtest"
)

// earlier writes the records of a crossover, for a plan to be estimated from.
func earlier(t *testing.T) string {
	t.Helper()
	p := recordtest.Pairs()
	dir := filepath.Join(t.TempDir(), "bundle")
	_, err := recordtest.Write(dir, p, recordtest.Sequences(p, recordtest.Options{}, func(record.Request) recordtest.Answered {
		return recordtest.Answered{PromptID: "x", Reason: "not in this fixture"}
	}))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return dir
}

func TestCheckSaysWhatACrossoverCouldShow(t *testing.T) {
	g := NewWithT(t)
	code, out, _ := call(t, "check", "testdata/crossover.yaml")
	g.Expect(code).To(Equal(0), out)
	g.Expect(out).To(And(ContainSubstring("name an earlier bundle with --from"), ContainSubstring("at worst 1.69 USD at 0.39 an hour")))
	code, out, errs := call(t, "check", "testdata/crossover.yaml", "--from", earlier(t))
	g.Expect(code).To(Equal(0), errs)
	golden.Hold(t, "crossover-check.txt", out)
	code, _, errs = call(t, "check", "testdata/crossover.yaml", "--from", bundle(t, recordtest.Options{}))
	g.Expect(code).To(Equal(2))
	g.Expect(errs).To(ContainSubstring("is a bundle of a concurrency experiment, and the estimate needs one of a crossover"))
	code, out, errs = call(t, "check", "testdata/crossover.yaml", "--from", "nothing")
	g.Expect(code).To(Equal(2))
	g.Expect(out).To(BeEmpty(), "a report above it would put the plan at fault")
	g.Expect(errs).To(ContainSubstring("no bundle can be read at nothing"))
	code, _, errs = call(t, "check", "../../suites/concurrency/plans/cpu.yaml", "--from", earlier(t))
	g.Expect(code).To(Equal(2))
	g.Expect(errs).To(ContainSubstring("estimates are of crossovers"))
}

func TestAnEstimateSaysHowItsBundleDiffers(t *testing.T) {
	g := NewWithT(t)
	code, out, errs := call(t, "check", "../../suites/crossover/plans/emulated.yaml", "--from", earlier(t))
	g.Expect(code).To(Equal(0), errs)
	g.Expect(out).To(And(
		ContainSubstring("- it is of real servers, and this plan is emulated"), ContainSubstring("- its model is fixture at none"),
		ContainSubstring("- its eager was another container"), ContainSubstring("- its fixed lane had mixed of at most 8 tokens"),
	))
	// Its own bundle: the mean crosses near 90, and more is needed to show it.
	code, out, errs = call(t, "check", "../../suites/crossover/plans/cpu.yaml", "--from", "../../docs/results/crossover-cpu.tar.zst")
	g.Expect(code).To(Equal(0), errs)
	g.Expect(out).NotTo(ContainSubstring("they are not"))
	g.Expect(out).To(And(ContainSubstring("the mean crosses near request 89"), ContainSubstring("6 pairs show a mean D(N) of -31.83 s in 4 of 5 runs")))
	g.Expect(out).To(ContainSubstring("96 requests are too short: write 154 or more"))
}
