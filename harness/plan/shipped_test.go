package plan_test

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/plan"
)

func TestEveryShippedPlanLoadsAndFreezesToAFixedPoint(t *testing.T) {
	files, err := filepath.Glob("../../suites/*/plans/*.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	named, err := filepath.Glob("../../suites/*/plans/named/*.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	files = append(files, named...)
	NewWithT(t).Expect(len(files)).To(BeNumerically(">=", 4))
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			g := NewWithT(t)
			p, err := plan.Load(file)
			g.Expect(err).NotTo(HaveOccurred())
			once, err := plan.Freeze(p)
			g.Expect(err).NotTo(HaveOccurred())
			again, err := plan.Parse("frozen", once.Bytes)
			g.Expect(err).NotTo(HaveOccurred(), string(once.Bytes))
			twice, err := plan.Freeze(again)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(twice.Bytes)).To(Equal(string(once.Bytes)))
		})
	}
}
