package protocol_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"assay/harness/plan"
	"assay/harness/record"
	. "assay/matchers"
	"assay/reports"
	"assay/suites/suite"
)

// killed is the directory of a run that served two lifecycles and was killed:
// after so many lines of the second's attempts, and with its wave's line or not.
func killed(ctx context.Context, attempts int, wave bool) string {
	GinkgoHelper()
	r, err := suite.NewRun(pairs(onlyFixed...), "")
	Expect(err).NotTo(HaveOccurred())
	dir := filepath.Join(GinkgoT().TempDir(), "bundle")
	Expect(r.Begin(ctx, dir)).To(Succeed())
	for _, place := range r.Schedule.Lifecycles[:2] {
		Expect(r.Start(ctx, place)).To(Succeed())
		_, err := r.Wave(ctx, place, place.Waves[0])
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Stop(ctx)).To(Succeed())
	}
	Expect(r.Seal()).To(Succeed()) // lets go of the directory
	Expect(os.Remove(filepath.Join(dir, reports.SumsFile))).To(Succeed())
	keep := func(name string, lines int) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		Expect(err).NotTo(HaveOccurred())
		all := bytes.SplitAfter(data, []byte("\n"))
		Expect(os.WriteFile(filepath.Join(dir, name), bytes.Join(all[:lines], nil), 0o644)).To(Succeed())
	}
	keep(record.LifecyclesFile, 1)
	keep(record.RequestsFile, 12+attempts)
	if !wave {
		keep(record.WavesFile, 1)
	}
	return dir
}

// resumed goes on with a run to its end, and its bundle has to hold then.
func resumed(ctx context.Context, p *plan.Plan, dir string) reports.Bundle {
	GinkgoHelper()
	r, err := suite.NewRun(p, "")
	Expect(err).NotTo(HaveOccurred())
	Expect(r.Resume(dir, "operator")).To(Succeed())
	b, err := r.All(ctx, dir)
	Expect(err).NotTo(HaveOccurred())
	Expect(against(dir)).To(BeEmpty())
	return b
}

var _ = Describe("a run that was killed", Label("protocol"), func() {
	DescribeTable("goes on, and its bundle holds, wherever in its lines it was killed", func(ctx SpecContext, attempts int, wave bool) {
		dir := killed(ctx, attempts, wave)
		// What a file is written to before it has its name.
		half := filepath.Join(dir, "."+reports.SummaryFile+"-123456")
		Expect(os.WriteFile(half, []byte("{"), 0o600)).To(Succeed())
		b := resumed(ctx, pairs(onlyFixed...), dir)
		Expect(b.Summary).To(KeepTheProtocol())
		Expect(b.Summary.Status).To(Equal("complete"))
		seen := 0
		for _, q := range b.Run.Requests {
			if q.Lifecycle == 2 {
				seen++
			}
		}
		if !wave {
			Expect(seen).To(BeZero(), "no wave is there to which they belong")
			aside, err := os.ReadFile(filepath.Join(dir, record.CutOff(record.RequestsFile)))
			if attempts > 0 {
				Expect(err).NotTo(HaveOccurred())
			}
			seen = bytes.Count(aside, []byte("\n"))
		}
		Expect(seen).To(Equal(attempts), "nothing that was seen is thrown away")
	},
		Entry("before the first of a sequence's attempts", 0, false),
		Entry("between two of them", 5, false),
		Entry("behind the last of them", 12, false),
		Entry("behind the line of the wave", 12, true),
	)

	It("goes on although its plan had not been written yet", func(ctx SpecContext) {
		dir := killed(ctx, 0, false)
		Expect(os.Remove(filepath.Join(dir, reports.PlanFile))).To(Succeed())
		resumed(ctx, pairs(onlyFixed...), dir)
	})
})
