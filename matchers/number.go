package matchers

import (
	"fmt"

	"assay/harness/metric"
	"assay/harness/record"
)

// bound is a limit with how a value is held against it.
type bound struct {
	comparator string
	limit      float64
}

// holds is an error if the comparator is none.
func (b bound) holds(v float64) (bool, error) {
	switch b.comparator {
	case "<":
		return v < b.limit, nil
	case "<=":
		return v <= b.limit, nil
	case "==":
		return v == b.limit, nil
	case ">=":
		return v >= b.limit, nil
	case ">":
		return v > b.limit, nil
	default:
		return false, fmt.Errorf("%q compares nothing: write <, <=, ==, >= or >", b.comparator)
	}
}

// numeric is what the matchers on one number share: the number, or why there
// is none.
type numeric struct {
	limit  bound
	what   string
	unit   string
	p      record.Population
	value  float64
	prefix string // "≥ " for a lower bound
	reason string // why there is no number, or none that decides
}

func (n *numeric) decide() (bool, error) {
	holds, err := n.limit.holds(n.value)
	return holds && n.reason == "", err
}

func (n *numeric) message(verb string) string {
	if n.reason != "" {
		return fmt.Sprintf("%s has no %s that could be held against %s %g %s: %s\n%s", n.p.Name, n.what, n.limit.comparator, n.limit.limit, n.unit, n.reason, counts(n.p))
	}
	return fmt.Sprintf("%s: expected its %s %s be %s %g %s, and it is %s%.6g %s\n%s", n.p.Name, n.what, verb, n.limit.comparator, n.limit.limit, n.unit, n.prefix, n.value, n.unit, counts(n.p))
}

func (n *numeric) FailureMessage(any) string        { return n.message("to") }
func (n *numeric) NegatedFailureMessage(any) string { return n.message("not to") }

type failureRateMatcher struct {
	numeric
	limit bound
}

func (m *failureRateMatcher) Match(actual any) (bool, error) {
	p, err := population("HaveFailureRate", actual)
	if err != nil {
		return false, err
	}
	m.numeric = numeric{limit: m.limit, what: "failure rate", p: p}
	if m.limit.limit < 0 || m.limit.limit > 1 {
		return false, fmt.Errorf("a failure rate lies between 0 and 1, and the limit is %g", m.limit.limit)
	}
	if len(p.Attempts) == 0 || len(p.Attempts) < p.Scheduled {
		m.reason = fmt.Sprintf("%d of %d scheduled attempts are there", len(p.Attempts), p.Scheduled)
	} else {
		m.value = float64(len(p.Failed().Attempts)) / float64(len(p.Attempts))
	}
	return m.decide()
}

type goodputMatcher struct {
	numeric
	limit bound
}

func (m *goodputMatcher) Match(actual any) (bool, error) {
	p, err := population("HaveGoodput", actual)
	if err != nil {
		return false, err
	}
	if p.Wave == nil {
		return false, fmt.Errorf("HaveGoodput takes one wave's attempts, since goodput is over a wave's wall; %s is not one wave", p.Name)
	}
	m.numeric = numeric{limit: m.limit, what: "token goodput", unit: "tok/s", p: p}
	m.value, m.reason = metric.Goodput(*p.Wave, p.Attempts)
	return m.decide()
}

type ttftMatcher struct {
	numeric
	percentile float64
	limit      bound
}

func (m *ttftMatcher) Match(actual any) (bool, error) {
	p, err := population("HaveTTFT", actual)
	if err != nil {
		return false, err
	}
	if m.percentile < 0 || m.percentile > 100 {
		return false, fmt.Errorf("a percentile lies between 0 and 100, not at %g", m.percentile)
	}
	m.numeric = numeric{limit: m.limit, what: fmt.Sprintf("p%g TTFT", m.percentile), unit: "s", p: p}
	values := metric.CensoredTTFT(p)
	if len(values) == 0 {
		m.reason = "no attempt has one"
		return m.decide()
	}
	ns, atLeast := metric.CensoredPercentile(values, m.percentile)
	m.value = ns / 1e9
	if atLeast {
		m.prefix = "≥ "
		// A lower bound decides one way alone: that something is long.
		holds, err := m.limit.holds(m.value)
		decided := holds && (m.limit.comparator == ">" || m.limit.comparator == ">=") ||
			!holds && (m.limit.comparator == "<" || m.limit.comparator == "<=")
		if err == nil && !decided {
			m.reason = fmt.Sprintf("it is only known to be at least %.6g s, since failed attempts are in the population", m.value)
		}
	}
	return m.decide()
}
