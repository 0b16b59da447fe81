package matchers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"

	"assay/claim"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
)

// population takes the subject of a matcher, or says what it takes.
func population(matcher string, actual any) (record.Population, error) {
	p, ok := actual.(record.Population)
	if !ok {
		return p, fmt.Errorf("%s takes a record.Population (a wave's attempts, or run.At(arm, tier)), not %T", matcher, actual)
	}
	return p, nil
}

// counts writes a population's outcomes: "64 attempts: 13 ok, 51 timeout".
func counts(p record.Population) string {
	var parts []string
	c := p.Counts()
	for _, o := range record.Outcomes {
		if c[o] > 0 || o == record.OK {
			parts = append(parts, fmt.Sprintf("%d %s", c[o], o))
		}
	}
	return fmt.Sprintf("%d attempts: %s", len(p.Attempts), strings.Join(parts, ", "))
}

// firstFailure names the first attempt that failed, with its error.
func firstFailure(p record.Population) string {
	for _, r := range p.Attempts {
		if r.Outcome != record.OK {
			text := fmt.Sprintf("the first: wave %d, ordinal %d, %s", r.Wave, r.Ordinal, r.Outcome)
			if r.Error != nil {
				text += ": " + record.Visible(*r.Error)
			}
			return text
		}
	}
	return ""
}

type accountMatcher struct {
	p       record.Population
	reasons []string
}

func (m *accountMatcher) Match(actual any) (bool, error) {
	p, err := population("AccountForEveryAttempt", actual)
	if err != nil {
		return false, err
	}
	m.p, m.reasons = p, nil
	if p.Wave == nil {
		return false, fmt.Errorf("AccountForEveryAttempt takes one wave's attempts, and %s is not one wave", p.Name)
	}
	m.reasons = metric.Unaccounted(p)
	if p.Scheduled == 0 {
		m.reasons = append(m.reasons, "nothing was scheduled")
	}
	for _, r := range p.Attempts {
		for _, text := range metric.Broken(r) {
			m.reasons = append(m.reasons, fmt.Sprintf("ordinal %d: %s", r.Ordinal, text))
		}
	}
	return len(m.reasons) == 0, nil
}

func (m *accountMatcher) FailureMessage(any) string {
	first, more := "nothing was found against it", "" // a message may be asked for before it is needed
	if len(m.reasons) > 0 {
		first = m.reasons[0]
	}
	if n := len(m.reasons) - 1; n > 0 {
		more = fmt.Sprintf("\n(and %d more)", n)
	}
	return fmt.Sprintf("%s does not account for each of its %d scheduled attempts:\n%s%s\n%s", m.p.Name, m.p.Scheduled, first, more, counts(m.p))
}

func (m *accountMatcher) NegatedFailureMessage(any) string {
	return fmt.Sprintf("%s accounts for each of its %d scheduled attempts\n%s", m.p.Name, m.p.Scheduled, counts(m.p))
}

type completeMatcher struct{ p record.Population }

func (m *completeMatcher) Match(actual any) (bool, error) {
	p, err := population("CompleteEveryRequest", actual)
	m.p = p
	return err == nil && len(p.Attempts) > 0 && len(p.Attempts) == p.Scheduled && len(p.OK().Attempts) == p.Scheduled, err
}

func (m *completeMatcher) FailureMessage(any) string {
	return fmt.Sprintf("%s did not complete each of its %d scheduled requests\n%s\n%s", m.p.Name, m.p.Scheduled, counts(m.p), firstFailure(m.p))
}

func (m *completeMatcher) NegatedFailureMessage(any) string {
	return fmt.Sprintf("%s completed each of its %d scheduled requests", m.p.Name, m.p.Scheduled)
}

type protocolMatcher struct{ v metric.Validity }

func (m *protocolMatcher) Match(actual any) (bool, error) {
	switch s := actual.(type) {
	case metric.Summary:
		m.v = s.Validity
	case metric.Validity:
		m.v = s
	default:
		return false, fmt.Errorf("KeepTheProtocol takes a metric.Summary or its Validity, not %T", actual)
	}
	return m.v.Valid && len(m.v.Reasons) == 0, nil
}

func (m *protocolMatcher) FailureMessage(any) string {
	if len(m.v.Reasons) == 0 {
		return "the run is not valid, and gives no reason: it was not summarised"
	}
	const most = 10
	shown := m.v.Reasons[:min(most, len(m.v.Reasons))]
	text := fmt.Sprintf("the run did not keep the protocol, for %d reason(s):\n%s", len(m.v.Reasons), strings.Join(shown, "\n"))
	if n := len(m.v.Reasons) - most; n > 0 {
		text += fmt.Sprintf("\n(and %d more)", n)
	}
	return text
}

func (m *protocolMatcher) NegatedFailureMessage(any) string { return "the run kept the protocol" }

type supportMatcher struct {
	declared []plan.Claim
	reason   string
}

func (m *supportMatcher) Match(actual any) (bool, error) {
	claims, ok := actual.([]claim.Claim)
	if !ok {
		return false, fmt.Errorf("SupportOnly takes []claim.Claim, not %T", actual)
	}
	m.reason = ""
	tiers := map[int]map[plan.Claim]bool{}
	for _, c := range claims {
		switch {
		case !slices.Contains(m.declared, c.Claim):
			m.reason = fmt.Sprintf("%q is claimed at %s, and the plan does not declare it", c.Claim, record.Clients(c.Tier))
		case len(c.Reasons) == 0:
			m.reason = fmt.Sprintf("%q at %s is %s without a reason", c.Claim, record.Clients(c.Tier), c.Verdict)
		case c.Verdict == claim.Supported && len(c.Records) == 0:
			m.reason = fmt.Sprintf("%q at %s is supported, and points to no record", c.Claim, record.Clients(c.Tier))
		case c.Verdict != claim.Supported && c.Verdict != claim.Unsupported && c.Verdict != claim.NotApplicable:
			m.reason = fmt.Sprintf("%q at %s has the verdict %q, which is none", c.Claim, record.Clients(c.Tier), c.Verdict)
		}
		if m.reason != "" {
			return false, nil
		}
		if tiers[c.Tier] == nil {
			tiers[c.Tier] = map[plan.Claim]bool{}
		}
		tiers[c.Tier][c.Claim] = true
	}
	if len(tiers) == 0 && len(m.declared) > 0 {
		m.reason = fmt.Sprintf("there is no verdict on any of %v", m.declared)
	}
	for tier, have := range tiers {
		for _, name := range m.declared {
			if !have[name] {
				m.reason = fmt.Sprintf("there is no verdict on %q at %s", name, record.Clients(tier))
			}
		}
	}
	return m.reason == "", nil
}

func (m *supportMatcher) FailureMessage(any) string {
	return "the claims are not the declared ones: " + m.reason
}

func (m *supportMatcher) NegatedFailureMessage(any) string {
	return fmt.Sprintf("the claims are the declared ones, %v", m.declared)
}

var (
	_ types.GomegaMatcher = (*accountMatcher)(nil)
	_ types.GomegaMatcher = (*completeMatcher)(nil)
	_ types.GomegaMatcher = (*protocolMatcher)(nil)
	_ types.GomegaMatcher = (*supportMatcher)(nil)
)
