// Package arrival_test is the arrival experiment: requests that come when they
// come, whatever the server does. How long do they wait at each rate, up to
// which rate is a service level kept, and where does the server no longer keep
// up?
package arrival_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"assay/harness/plan"
	. "assay/matchers"
	"assay/suites/suite"
)

func TestArrival(t *testing.T) { suite.Main(t, "Arrival") }

var _ = suite.For(plan.Arrival, func(exp *suite.Experiment) {
	for _, place := range exp.Schedule.Lifecycles {
		Context(exp.Place(place), Ordered, ContinueOnFailure, func() { // "1 of 2: naive"
			// Stops and removes the server again, whatever happens.
			BeforeAll(func(ctx SpecContext) { exp.Start(ctx, place) }, exp.StartTimeout())

			for wave := range exp.Waves(place) { // the curve, in its shuffled order
				It("serves "+wave.String(), wave.Labels(), func(ctx SpecContext) {
					Expect(wave.Run(ctx)).To(AccountForEveryAttempt())
				}, wave.Timeout())
			}

			if exp.Searches() {
				It("finds the highest rate at which the SLO holds", exp.SearchLabels(), func(ctx SpecContext) {
					Expect(exp.Search(ctx, place)).NotTo(BeEmpty())
				}, exp.SearchTimeout())
			}
		})
	}

	Context("the evidence", func() {
		It("kept the protocol", exp.AnyTier(), func() {
			Expect(exp.Evidence().Summary).To(KeepTheProtocol())
		})

		It("counts from the scheduled moment, which is never later than the sending", exp.AnyTier(), func() {
			for _, r := range exp.Evidence().Run.Requests {
				if r.SentAt != nil {
					Expect(*r.SentAt).To(BeNumerically(">=", r.ScheduledAt))
				}
			}
		})

		for _, rate := range exp.Rates() {
			It("says what it supports at "+rate.String(), rate.Labels(), func() {
				Expect(exp.Evidence().Claims.Claims).To(SupportOnly(exp.Plan.Claims...))
				AddReportEntry("verdicts", exp.RateVerdicts(rate), ReportEntryVisibilityFailureOrVerbose)
			})
		}

		if exp.Searches() {
			It("says up to which rate each arm keeps the SLO", exp.SearchLabels(), func() {
				Expect(exp.Evidence().Claims.Claims).To(SupportOnly(exp.Plan.Claims...))
				AddReportEntry("verdicts", exp.SearchVerdicts(), ReportEntryVisibilityFailureOrVerbose)
			})
		}
	})
})
