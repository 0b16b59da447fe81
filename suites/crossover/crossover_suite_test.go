// Package crossover_test is the crossover experiment: a server that starts
// later and serves faster against one that is there sooner, in counterbalanced
// pairs of fresh lifecycles. Does it make up for its start, and when?
package crossover_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"assay/harness/plan"
	. "assay/matchers"
	"assay/suites/suite"
)

// nearby is how far an emulated run may cross from where its model does: at two
// hundred times real time what a client and a server do between two tokens is
// a part of each, and more of it in the arm with the longer answers.
const nearby = 20

func TestCrossover(t *testing.T) { suite.Main(t, "Crossover") }

var _ = suite.For(plan.Crossover, func(exp *suite.Experiment) {
	for _, place := range exp.Remaining() {
		Context(exp.Place(place), Ordered, ContinueOnFailure, func() { // "01 of 24: eager, fixed lane"
			// Stops and removes the server again, whatever happens.
			BeforeAll(func(ctx SpecContext) { exp.Start(ctx, place) }, exp.StartTimeout())

			for wave := range exp.Waves(place) {
				It("serves "+wave.String(), wave.Labels(), func(ctx SpecContext) {
					Expect(wave.Run(ctx)).To(AccountForEveryAttempt())
				}, wave.Timeout())
			}
		})
	}

	Context("the evidence", func() {
		It("kept the protocol", exp.AnyTier(), func() {
			Expect(exp.Evidence().Summary).To(KeepTheProtocol())
		})

		It("kept the schedule's order", exp.AnyTier(), func() {
			Expect(exp.Evidence().Run).To(KeepOrder(exp.Plan))
		})

		It("has no component time that no interface of the engine gave", exp.AnyTier(), func() {
			for _, l := range exp.Evidence().Run.Lifecycles {
				if l.Executed > 0 && l.Status == "ran" {
					Expect(l).To(HaveNull("compilation_seconds", "no stable interface of the engine says it"))
				}
			}
		})

		for _, lane := range exp.Lanes() {
			if model, ok := exp.Model(lane); ok {
				It(fmt.Sprintf("crosses in the %s lane within %d requests of its model's %d, over the mean of its pairs", lane, nearby, model), suite.LaneLabels(lane), func() {
					Expect(exp.Lane(lane).Kept.Result.Mean.Sustained).To(HaveValue(BeNumerically("~", model, nearby)))
				})
			}

			It("says what the "+string(lane)+" lane supports", suite.LaneLabels(lane), func() {
				Expect(exp.Evidence().Claims.InLane(lane)).To(SupportOnly(exp.Plan.ClaimsOf(lane)...))
				AddReportEntry("verdicts", exp.LaneVerdicts(lane), ReportEntryVisibilityFailureOrVerbose)
			})
		}
	})
})
