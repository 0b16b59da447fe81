package reports_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"assay/golden"
	"assay/harness/record"
	"assay/harness/record/recordtest"
	"assay/reports"
)

func TestAReportIsShortForACommentOrAStep(t *testing.T) {
	p := recordtest.Plan()
	dir, _ := crossovers(t, recordtest.Options{Fails: reset, Partial: func(record.Request) int { return 2 }})
	crossover, err := reports.Read(dir)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	many := reports.Derive(p, recordtest.Run(p, recordtest.Options{}))
	for i := range 100 {
		tier := many.Summary.Tiers[0]
		tier.Tier = i
		many.Summary.Tiers = append(many.Summary.Tiers, tier)
		many.Summary.Validity.Reasons = append(many.Summary.Validity.Reasons, fmt.Sprintf("reason %d: %s", i, strings.Repeat("it is long ", 100)))
		c := many.Claims.Claims[0]
		c.Reasons = []string{fmt.Sprintf("another, %d", i)}
		many.Claims.Claims = append(many.Claims.Claims, c)
	}
	many.Summary.Validity.Valid, many.Summary.Status = false, "interrupted"
	for name, b := range map[string]reports.Bundle{
		"concurrency": derived(t, p, recordtest.Run(p, recordtest.Options{Fails: failing})), "crossover": crossover, "arrival": published(t, "arrival-cpu"),
		"many": many, "hostile": derived(t, p, spokenIn(p)),
	} {
		g := NewWithT(t)
		got := reports.Short(b)
		g.Expect(strings.Count(got, "\n")).To(BeNumerically("<", 60), name)
		g.Expect(len(got)).To(BeNumerically("<", 65_536), name)
		if name != "many" {
			golden.Hold(t, "short-"+name+".md", strings.ReplaceAll(got, b.Summary.PlanSHA256[:12], "<the plan>"))
		}
		g.Expect(got).NotTo(MatchRegexp("<script|\x1b|\u202e|[^\\\\]\\]\\(|\n# A heading"), name)
	}
}
