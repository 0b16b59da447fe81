// Package concurrency_test is the concurrency experiment: what happens to a
// server that takes one request at a time, and to one that batches, when 1, 8,
// 32 and 64 clients come at once.
package concurrency_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"assay/harness/plan"
	. "assay/matchers"
	"assay/suites/suite"
)

func TestConcurrency(t *testing.T) { suite.Main(t, "Concurrency") }

var _ = suite.For(plan.Concurrency, func(exp *suite.Experiment) {
	for _, place := range exp.Schedule.Lifecycles {
		Context(exp.Place(place), Ordered, ContinueOnFailure, func() { // "1 of 2: naive"
			// Stops and removes the server again, whatever happens.
			BeforeAll(func(ctx SpecContext) { exp.Start(ctx, place) }, exp.StartTimeout())

			for wave := range exp.Waves(place) {
				It("serves "+wave.String(), wave.Labels(), func(ctx SpecContext) {
					Expect(wave.Run(ctx)).To(AccountForEveryAttempt())
				}, wave.Timeout())
			}

			for _, tier := range exp.Mechanisms(place) { // outside the comparison
				It("works on "+tier.String()+" at once, by its own gauge", tier.Labels(), func(ctx SpecContext) {
					Expect(exp.PeakRunning(ctx, place, tier)).To(Equal(tier.Clients))
				}, exp.WaveTimeout(1))
			}
		})
	}

	Context("the evidence", func() {
		It("kept the protocol", exp.AnyTier(), func() {
			Expect(exp.Evidence().Summary).To(KeepTheProtocol())
		})

		for _, tier := range exp.Tiers {
			It("says what it supports at "+tier.String(), tier.Labels(), func() {
				Expect(exp.Evidence().Claims.Claims).To(SupportOnly(exp.Plan.Claims...))
				AddReportEntry("verdicts", exp.Verdicts(tier), ReportEntryVisibilityFailureOrVerbose)
			})
		}
	})
})
