package matchers

import (
	"errors"
	"fmt"
	"strings"

	"github.com/onsi/gomega/types"

	"assay/comparison"
)

// RegressionOption changes how [HaveNoRegressionAgainst] judges.
type RegressionOption func(*regressionMatcher)

// ByMetrics compares only these of [comparison.Metrics], which takes fewer
// lifecycles.
func ByMetrics(names ...string) RegressionOption {
	return func(m *regressionMatcher) {
		m.metrics = names
		if len(names) == 0 {
			m.misuse = append(m.misuse, errors.New("ByMetrics names no metric: leave it out, or name one of "+strings.Join(comparison.Metrics, ", ")))
		}
	}
}

// WithMinimum sets the smallest change that is worse, as a share; 5 % if it is
// left out.
func WithMinimum(share float64) RegressionOption {
	return func(m *regressionMatcher) { m.options.Minimum = share }
}

// AtLevel sets the level of confidence for all numbers together, from 0.5 to
// below 1; 95 % if it is left out.
func AtLevel(level float64) RegressionOption {
	return func(m *regressionMatcher) { m.options.Level = level }
}

// HaveNoRegressionAgainst succeeds if no number of a run is shown to be worse
// than that of the older bundle in a directory, by the code of assay compare. It
// takes a comparison.Run, or the directory of the newer bundle. It fails too
// where nothing can be shown: the runs are not comparable, the new one lacks a
// number that the old one has, or there are too few lifecycles. Bundles are read
// and not verified: that is for assay verify, or assay compare, to do.
func HaveNoRegressionAgainst(bundle string, options ...RegressionOption) types.GomegaMatcher {
	m := &regressionMatcher{bundle: bundle, options: comparison.Options{Minimum: comparison.DefaultMinimum, Level: comparison.DefaultLevel}}
	for _, o := range options {
		o(m)
	}
	return m
}

type regressionMatcher struct {
	bundle  string
	metrics []string
	options comparison.Options
	misuse  []error
	found   comparison.Comparison
}

func (m *regressionMatcher) Match(actual any) (bool, error) {
	errs := append(m.misuse, m.options.Check(), comparison.CheckMetrics(m.metrics))
	old, err := comparison.Open(m.bundle)
	errs = append(errs, err)
	var later comparison.Run
	switch v := actual.(type) {
	case comparison.Run:
		later = v
		if v.Plan == nil {
			errs = append(errs, errors.New("HaveNoRegressionAgainst was given a comparison.Run without a plan: make one with comparison.Open"))
		}
	case string:
		later, err = comparison.Open(v)
		errs = append(errs, err)
	default:
		errs = append(errs, fmt.Errorf("HaveNoRegressionAgainst takes a comparison.Run or a bundle's directory, not %T", actual))
	}
	if err := errors.Join(errs...); err != nil {
		return false, err
	}
	m.found, err = comparison.Runs(old, later, m.metrics, m.options)
	return m.found.Verdict == comparison.Better || m.found.Verdict == comparison.NoDifference, err
}

func (m *regressionMatcher) FailureMessage(any) string {
	out := []string{fmt.Sprintf("expected no regression against %s: %s: %s", m.bundle, m.found.Verdict, m.found.Reason)}
	if worst := m.found.Worst(); worst != nil {
		out = append(out, "the worst: "+worst.Sentence())
	} else {
		for _, r := range m.found.Rows {
			if r.Lost || r.Verdict == comparison.TooFew {
				out = append(out, "the first: "+r.Sentence())
				break
			}
		}
	}
	out = append(out, m.found.Against...)
	for _, d := range m.found.Differences {
		out = append(out, "what else differs: "+d)
	}
	return strings.Join(out, "\n")
}

func (m *regressionMatcher) NegatedFailureMessage(any) string {
	return fmt.Sprintf("expected a regression against %s: %s: %s", m.bundle, m.found.Verdict, m.found.Reason)
}
