package matchers

import (
	"fmt"
	"strings"

	"github.com/onsi/gomega/types"

	"assay/harness/crossing"
	"assay/harness/metric"
)

// CrossBy succeeds if every pair of a lane's result has crossed by request n:
// D(m) ≤ 0 for some m ≤ n. It takes a metric.Lane, over the pairs that its
// plan's rule keeps, or a metric.Analysis. A result of no pair fails.
func CrossBy(n int) types.GomegaMatcher {
	return &crossingMatcher{
		name: "CrossBy", what: fmt.Sprintf("to have crossed by request %d", n),
		holds: func(p crossing.PairResult) bool { return p.First != nil && *p.First <= n },
	}
}

// SustainCrossing succeeds if every pair of a lane's result has a crossing that
// is sustained to the declared end, over the plan's dwell at least. It takes
// what [CrossBy] takes.
func SustainCrossing() types.GomegaMatcher {
	return &crossingMatcher{
		name: "SustainCrossing", what: "to have a sustained crossing",
		holds: func(p crossing.PairResult) bool { return p.Sustained != nil },
	}
}

// BeCensored succeeds if every pair of a lane's result has a debt and no
// sustained crossing by its last request: whether one would have come nobody
// saw. It takes what [CrossBy] takes.
func BeCensored() types.GomegaMatcher {
	return &crossingMatcher{
		name: "BeCensored", what: "to be right-censored",
		holds: func(p crossing.PairResult) bool { return p.Applicable && p.Sustained == nil },
	}
}

type crossingMatcher struct {
	name, what string
	holds      func(crossing.PairResult) bool
	pairs      int
	against    []string
}

func (m *crossingMatcher) Match(actual any) (bool, error) {
	var a metric.Analysis
	switch v := actual.(type) {
	case metric.Lane:
		a = v.Kept
	case metric.Analysis:
		a = v
	default:
		return false, fmt.Errorf("%s takes a metric.Lane or a metric.Analysis, not %T", m.name, actual)
	}
	m.pairs, m.against = 0, nil
	if a.Result == nil {
		m.against = []string{"there is no result: " + a.Reason}
		return false, nil
	}
	for _, p := range a.Result.Pairs {
		m.pairs++
		if !m.holds(p) {
			m.against = append(m.against, describePair(p))
		}
	}
	return len(m.against) == 0 && m.pairs > 0, nil
}

func describePair(p crossing.PairResult) string {
	switch {
	case !p.Applicable:
		return fmt.Sprintf("pair %d has no debt to repay: D(0) is %.3f s", p.Pair, p.Debt)
	case p.Sustained != nil:
		return fmt.Sprintf("pair %d crossed at request %d, sustained from %d on", p.Pair, *p.First, *p.Sustained)
	case p.First != nil:
		return fmt.Sprintf("pair %d crossed at request %d first, and is censored at %d", p.Pair, *p.First, p.CensoredAt)
	default:
		return fmt.Sprintf("pair %d did not cross, and is censored at %d", p.Pair, p.CensoredAt)
	}
}

func (m *crossingMatcher) FailureMessage(any) string {
	return fmt.Sprintf("expected every pair %s; %d of %d are not:\n%s", m.what, len(m.against), m.pairs, strings.Join(m.against, "\n"))
}

func (m *crossingMatcher) NegatedFailureMessage(any) string {
	return fmt.Sprintf("expected not every one of the %d pairs %s", m.pairs, m.what)
}

// NotBeInferiorTo succeeds if a lane's candidate is shown to do no worse than
// the baseline, which is named, by more than the plan's margin: in success, and
// in right answers where they were evaluated. Where nothing went wrong in
// either arm it succeeds too, since there is nothing that could be worse. It
// takes a metric.Lane.
func NotBeInferiorTo(baseline string) types.GomegaMatcher {
	return &inferiorMatcher{baseline: baseline}
}

type inferiorMatcher struct {
	baseline string
	against  []string
}

func (m *inferiorMatcher) Match(actual any) (bool, error) {
	l, ok := actual.(metric.Lane)
	if !ok {
		return false, fmt.Errorf("NotBeInferiorTo takes a metric.Lane, not %T", actual)
	}
	if l.Baseline.Arm != m.baseline {
		return false, fmt.Errorf("NotBeInferiorTo(%q): the %s lane's baseline is %s", m.baseline, l.Lane, l.Baseline.Arm)
	}
	m.against = nil
	hold := func(what string, n crossing.NonInferiority) {
		if !n.Shown && !n.Degenerate {
			m.against = append(m.against, fmt.Sprintf("%s, over %d pairs with a margin of %g: %s", what, n.K, n.Margin, n.Reason))
		}
	}
	hold("success", l.Success)
	if l.Correctness != nil {
		hold(fmt.Sprintf("right answers (%d of %d against %d of %d)", l.Candidate.Correct, l.Candidate.Evaluated, l.Baseline.Correct, l.Baseline.Evaluated), *l.Correctness)
	}
	return len(m.against) == 0, nil
}

func (m *inferiorMatcher) FailureMessage(any) string {
	return fmt.Sprintf("it is not shown to be no worse than %s:\n%s", m.baseline, strings.Join(m.against, "\n"))
}

func (m *inferiorMatcher) NegatedFailureMessage(any) string {
	return "it is shown to be no worse than " + m.baseline
}
