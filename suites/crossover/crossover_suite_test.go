// Package crossover_test is the crossover experiment: a server that starts
// later and serves faster against one that is there sooner, in counterbalanced
// pairs of fresh lifecycles. Does it make up for its start, and when?
package crossover_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"assay/harness/crossing"
	"assay/harness/plan"
	. "assay/matchers"
	"assay/suites/suite"
)

// nearby is how far an emulated run may cross from where its model does: at two
// hundred times real time what a client and a server do between two tokens is
// a part of each, and more of it in the arm with the longer answers.
const nearby = 20

// middle is the request from which on the middle one of the pairs stays
// crossed: a machine that stalls for a moment moves one of them, at such a
// scale by many requests. A pair that does not stay crossed comes last.
func middle(pairs []crossing.PairResult) int {
	var at []int
	for _, p := range pairs {
		if p.Sustained == nil {
			at = append(at, math.MaxInt)
		} else {
			at = append(at, *p.Sustained)
		}
	}
	slices.Sort(at)
	return at[len(at)/2]
}

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
				It(fmt.Sprintf("crosses in the %s lane within %d requests of its model's %d, in the middle one of its pairs", lane, nearby, model), suite.LaneLabels(lane), func() {
					Expect(middle(exp.Lane(lane).Kept.Result.Pairs)).To(BeNumerically("~", model, nearby))
				})
			}

			It("says what the "+string(lane)+" lane supports", suite.LaneLabels(lane), func() {
				Expect(exp.Evidence().Claims.InLane(lane)).To(SupportOnly(exp.Plan.ClaimsOf(lane)...))
				AddReportEntry("verdicts", exp.LaneVerdicts(lane), ReportEntryVisibilityFailureOrVerbose)
			})
		}
	})
})
