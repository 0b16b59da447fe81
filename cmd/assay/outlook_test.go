package main

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

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
	golden(t, "crossover-check.txt", out)
	code, _, errs = call(t, "check", "testdata/crossover.yaml", "--from", bundle(t, recordtest.Options{}))
	g.Expect(code).To(Equal(2))
	g.Expect(errs).To(ContainSubstring("a crossover's is needed"))
	code, _, _ = call(t, "check", "testdata/crossover.yaml", "--from", "nothing")
	g.Expect(code).To(Equal(2))
}
