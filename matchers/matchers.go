package matchers

import (
	"github.com/onsi/gomega/types"

	"assay/harness/plan"
)

// AccountForEveryAttempt succeeds if a population holds exactly one attempt
// for each that was scheduled: ordinals 1 to N once each, each with one of the
// known outcomes, attempted = ok + each failure kind, and nothing that a retry
// would leave.
func AccountForEveryAttempt() types.GomegaMatcher { return &accountMatcher{} }

// CompleteEveryRequest succeeds if every scheduled attempt of a population
// ended ok. An empty population fails.
func CompleteEveryRequest() types.GomegaMatcher { return &completeMatcher{} }

// HaveFailureRate compares a population's failure rate, failed attempts over
// all attempts, from 0 to 1, with a limit: comparator is "<", "<=", "==", ">="
// or ">". An empty population fails.
func HaveFailureRate(comparator string, limit float64) types.GomegaMatcher {
	return &failureRateMatcher{limit: bound{comparator, limit}}
}

// HaveGoodput compares token goodput in tok/s (output tokens of ok attempts
// over the wall from release to the last terminal moment, the metric
// contract's definition) with a limit. It takes a population that is exactly
// one wave; a goodput that is null fails with its reason.
func HaveGoodput(comparator string, tokensPerSecond float64) types.GomegaMatcher {
	return &goodputMatcher{limit: bound{comparator, tokensPerSecond}}
}

// HaveTTFT compares a percentile (Hyndman–Fan type 7) of the time to first
// token with a limit. It takes any population; failed attempts without a first
// token are right-censored at their end, so that a population of survivors
// has to be asked for by name (population.OK()).
func HaveTTFT(percentile float64, comparator string, limit plan.Duration) types.GomegaMatcher {
	return &ttftMatcher{percentile: percentile, limit: bound{comparator, limit.D().Seconds()}}
}

// KeepTheProtocol succeeds if a run is valid: every gate held, every scheduled
// attempt is accounted for, and no record breaks what an honest run can't.
// Validity is apart from pass and fail: a valid run may show anything.
func KeepTheProtocol() types.GomegaMatcher { return &protocolMatcher{} }

// SupportOnly succeeds if the evidence speaks of the declared claims alone,
// and of each of them: one with a verdict and its reasons for every tier. It
// takes claims; an unsupported claim is an answer, not a failure.
func SupportOnly(declared ...plan.Claim) types.GomegaMatcher {
	return &supportMatcher{declared: declared}
}
