package matchers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"

	"assay/claim"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
)

// HaveIdenticalOutputs succeeds if a population's output tokens are those of
// another one's, ordinal by ordinal, all of them ok and with token ids. The
// failure shows the first divergence: the ordinal, the token's position, both
// ids and the text around it.
func HaveIdenticalOutputs(baseline record.Population) types.GomegaMatcher {
	return &identicalMatcher{baseline: baseline}
}

type identicalMatcher struct {
	baseline record.Population
	equal    int
	reason   string
}

func (m *identicalMatcher) Match(actual any) (bool, error) {
	p, err := population("HaveIdenticalOutputs", actual)
	if err != nil {
		return false, err
	}
	m.equal, m.reason = 0, ""
	if len(p.Attempts) == 0 || len(m.baseline.Attempts) == 0 {
		m.reason = fmt.Sprintf("there is nothing to compare: %d attempts against %d", len(p.Attempts), len(m.baseline.Attempts))
		return false, nil
	}
	byOrdinal := map[int]record.Request{}
	for _, r := range m.baseline.Attempts {
		if _, twice := byOrdinal[r.Ordinal]; twice {
			return false, fmt.Errorf("HaveIdenticalOutputs takes one lifecycle's attempts a side, and ordinal %d of %s is there twice", r.Ordinal, m.baseline.Name)
		}
		byOrdinal[r.Ordinal] = r
	}
	for _, c := range slices.SortedFunc(slices.Values(p.Attempts), func(a, b record.Request) int { return a.Ordinal - b.Ordinal }) {
		b, ok := byOrdinal[c.Ordinal]
		delete(byOrdinal, c.Ordinal)
		if why := m.differ(b, c, ok); why != "" {
			if m.reason == "" {
				m.reason = why
			}
			continue
		}
		m.equal++
	}
	if len(byOrdinal) > 0 && m.reason == "" {
		m.reason = fmt.Sprintf("%d ordinals of %s have no counterpart", len(byOrdinal), m.baseline.Name)
	}
	return m.reason == "", nil
}

// differ says how two attempts at an ordinal differ; empty: they don't.
func (m *identicalMatcher) differ(b, c record.Request, ok bool) string {
	switch {
	case !ok:
		return fmt.Sprintf("ordinal %d has no counterpart in %s", c.Ordinal, m.baseline.Name)
	case b.Outcome != record.OK || c.Outcome != record.OK:
		return fmt.Sprintf("ordinal %d is %s in %s and %s in %s", c.Ordinal, b.Outcome, b.Arm, c.Outcome, c.Arm)
	case !byIDs(b) || !byIDs(c):
		return fmt.Sprintf("ordinal %d has no token ids in one of the arms, and texts are not compared in their place", c.Ordinal)
	}
	at, differs := metric.FirstDivergence(b.TokenIDs(), c.TokenIDs())
	if !differs {
		return ""
	}
	return fmt.Sprintf("the first divergence: ordinal %d (%s), token %d: %s in %s, %s in %s\n  %s: %s\n  %s: %s",
		c.Ordinal, c.PromptID, at.Position, idOrEnd(at.Baseline), b.Arm, idOrEnd(at.Candidate), c.Arm,
		b.Arm, around(b, at.Position), c.Arm, around(c, at.Position))
}

func byIDs(r record.Request) bool {
	return r.OutputTokensSource != nil && *r.OutputTokensSource == record.SourceTokenIDs
}

func idOrEnd(id *int) string {
	if id == nil {
		return "the end"
	}
	return fmt.Sprint("id ", *id)
}

// around is the text near a token's place, as far as a share of the whole
// tells: the records keep the text, and not which token wrote which letter.
func around(r record.Request, position int) string {
	const most = 60
	text := []rune(r.OutputText)
	at := len(text) * (position - 1) / max(1, len(r.TokenIDs()))
	from, to := max(0, min(at, len(text))-most/2), min(len(text), at+most/2)
	out := fmt.Sprintf("%q", string(text[from:to]))
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += "…"
	}
	return out
}

func (m *identicalMatcher) FailureMessage(actual any) string {
	p, _ := actual.(record.Population)
	return fmt.Sprintf("%s is not output-identical to %s: %d of %d ordinals are equal\n%s", p.Name, m.baseline.Name, m.equal, len(p.Attempts), m.reason)
}

func (m *identicalMatcher) NegatedFailureMessage(actual any) string {
	p, _ := actual.(record.Population)
	return fmt.Sprintf("%s is output-identical to %s: all %d ordinals are equal", p.Name, m.baseline.Name, m.equal)
}

// PassEvaluation succeeds if every attempt of a population has an answer that
// its task's evaluator took. An answer that was not evaluated fails, with the
// reason; an empty population fails.
func PassEvaluation() types.GomegaMatcher { return &evaluationMatcher{} }

type evaluationMatcher struct {
	right  int
	reason string
}

func (m *evaluationMatcher) Match(actual any) (bool, error) {
	p, err := population("PassEvaluation", actual)
	if err != nil {
		return false, err
	}
	m.right, m.reason = 0, ""
	if len(p.Attempts) == 0 {
		m.reason = "there is no attempt"
	}
	for _, r := range p.Attempts {
		switch {
		case r.Correct != nil && *r.Correct:
			m.right++
		case m.reason != "":
		case r.Correct == nil:
			m.reason = fmt.Sprintf("the first: ordinal %d (%s) was not evaluated: %s", r.Ordinal, r.PromptID, r.Nulls["correct"])
		default:
			m.reason = fmt.Sprintf("the first: ordinal %d (%s) answered %q", r.Ordinal, r.PromptID, r.OutputText)
		}
	}
	return m.reason == "", nil
}

func (m *evaluationMatcher) FailureMessage(actual any) string {
	p, _ := actual.(record.Population)
	return fmt.Sprintf("%s does not pass its evaluation: %d of %d answers are right\n%s", p.Name, m.right, len(p.Attempts), m.reason)
}

func (m *evaluationMatcher) NegatedFailureMessage(actual any) string {
	p, _ := actual.(record.Population)
	return fmt.Sprintf("%s passes its evaluation: all %d answers are right", p.Name, m.right)
}

// HaveNull succeeds if a field of a record is null for a reason that contains
// the one given, which must not be empty. It takes a record.Request, a
// record.Wave or a record.Lifecycle; the field goes by its JSON name, and a
// lifecycle's moments, identity and caches by theirs.
func HaveNull(field, reason string) types.GomegaMatcher {
	return &nullMatcher{field: field, reason: reason}
}

type nullMatcher struct {
	field, reason string
	found         string
}

func (m *nullMatcher) Match(actual any) (bool, error) {
	if m.reason == "" {
		return false, fmt.Errorf("HaveNull needs the reason for which %s is null: a null without one is a fault", m.field)
	}
	why, null, known := nullOf(actual, m.field)
	switch {
	case !known:
		return false, fmt.Errorf("HaveNull: %T has no field %q", actual, m.field)
	case !null:
		m.found = "it is not null"
		return false, nil
	case why == "":
		m.found = "it is null without a reason"
		return false, nil
	}
	m.found = "it is null for the reason: " + why
	return strings.Contains(why, m.reason), nil
}

// nullOf finds a field of a record, whether it is null, and why.
func nullOf(actual any, field string) (why string, null, known bool) {
	var nulls map[string]string
	switch r := actual.(type) {
	case record.Request:
		nulls = r.Nulls
	case record.Wave:
		nulls = r.Nulls
	case record.Lifecycle:
		for _, facts := range []map[string]record.Fact{r.Identity, r.Caches} {
			if f, ok := facts[field]; ok {
				return f.Reason, f.Value == nil, true
			}
		}
		for _, moment := range r.Moments {
			if moment.Phase == field {
				return moment.Reason, moment.At == nil, true
			}
		}
		nulls = r.Nulls
	default:
		return "", false, false
	}
	if why, ok := nulls[field]; ok {
		return why, true, true
	}
	data, err := json.Marshal(actual)
	var fields map[string]any
	if err != nil || json.Unmarshal(data, &fields) != nil {
		return "", false, false
	}
	v, known := fields[field]
	return "", v == nil, known
}

func (m *nullMatcher) FailureMessage(any) string {
	return fmt.Sprintf("expected %s to be null, since %q: %s", m.field, m.reason, m.found)
}

func (m *nullMatcher) NegatedFailureMessage(any) string {
	return fmt.Sprintf("expected %s not to be null, since %q", m.field, m.reason)
}

// KeepOrder succeeds if what ran of a run ran in the order of its plan's
// schedule, each lifecycle and each wave in its own place. A run in which
// nothing ran fails.
func KeepOrder(p *plan.Plan) types.GomegaMatcher { return &orderMatcher{plan: p} }

type orderMatcher struct {
	plan   *plan.Plan
	reason string
}

func (m *orderMatcher) Match(actual any) (bool, error) {
	run, ok := actual.(record.Run)
	if !ok {
		return false, fmt.Errorf("KeepOrder takes a record.Run, not %T", actual)
	}
	m.reason = ""
	schedule := metric.Schedule(m.plan, run)
	executed, last := 0, 0
	for _, l := range run.Lifecycles {
		if l.Executed == 0 {
			continue
		}
		executed++
		place := plan.Lifecycle{Arm: "nothing"}
		if l.Number >= 1 && l.Number <= len(schedule.Lifecycles) {
			place = schedule.Lifecycles[l.Number-1]
		}
		switch {
		case l.Arm != place.Arm || l.Pair != place.Pair || l.Position != place.Position:
			m.reason = fmt.Sprintf("lifecycle %d ran %s in pair %d at position %d, and the schedule has %s there, in pair %d at position %d",
				l.Number, l.Arm, l.Pair, l.Position, place.Arm, place.Pair, place.Position)
		case l.Executed != executed || l.Number <= last:
			m.reason = fmt.Sprintf("lifecycle %d ran as number %d, after lifecycle %d", l.Number, l.Executed, last)
		}
		if m.reason != "" {
			return false, nil
		}
		last = l.Number
	}
	if executed == 0 {
		m.reason = "nothing ran"
	}
	return m.reason == "", nil
}

func (m *orderMatcher) FailureMessage(any) string {
	return "the run did not keep the schedule's order: " + m.reason
}

func (m *orderMatcher) NegatedFailureMessage(any) string { return "the run kept the schedule's order" }

// SupportClaim succeeds if the evidence supports a claim, wherever it is
// judged. It takes claims; the failure has the reasons of each verdict that is
// another.
func SupportClaim(name plan.Claim) types.GomegaMatcher { return &claimMatcher{name: name} }

type claimMatcher struct {
	name    plan.Claim
	reasons []string
}

func (m *claimMatcher) Match(actual any) (bool, error) {
	claims, ok := actual.([]claim.Claim)
	if !ok {
		return false, fmt.Errorf("SupportClaim takes []claim.Claim, not %T", actual)
	}
	m.reasons = nil
	judged := 0
	for _, c := range claims {
		if c.Claim != m.name {
			continue
		}
		judged++
		if c.Verdict != claim.Supported {
			m.reasons = append(m.reasons, fmt.Sprintf("%s: %s\n  %s", c.Verdict, c.Sentence, strings.Join(c.Reasons, "\n  ")))
		}
	}
	if judged == 0 {
		m.reasons = []string{"there is no verdict on it"}
	}
	return len(m.reasons) == 0, nil
}

func (m *claimMatcher) FailureMessage(any) string {
	return fmt.Sprintf("the evidence does not support %q:\n%s", m.name, strings.Join(m.reasons, "\n"))
}

func (m *claimMatcher) NegatedFailureMessage(any) string {
	return fmt.Sprintf("the evidence supports %q", m.name)
}
