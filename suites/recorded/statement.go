package recorded

import (
	"fmt"
	"strings"

	"assay/claim"
	"assay/harness/crossing"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
)

// Statement is one sentence about a published run, with what its records say
// to it.
type Statement struct {
	Name       string
	Sentence   string
	Verdict    claim.Verdict
	Reasons    []string
	Provenance record.Provenance
}

// Evidence is everything that a statement is judged by.
type Evidence struct {
	Setups      []string // model and GPU
	Requests    int      // to an arm
	Pairs       []crossing.Pair
	Latencies   []Latencies // of each pair
	Divergences []metric.Divergence
	Correct     map[string]int // right answers, by mode
	Components  []Component
	Cost        Cost
}

// Latencies are a pair's latency sums, in seconds.
type Latencies struct{ Eager, Compiled float64 }

// Component is a part of an initialization, or null with the reason.
type Component struct {
	Name, Mode string
	Seconds    *float64
	Reason     string
}

// Evidence gathers what the records have, and what is declared of the cost.
func (r *Run) Evidence(cost Cost) Evidence {
	e := Evidence{
		Setups: []string{r.Model + " on one " + r.GPU}, Requests: len(r.Of(Eager)), Pairs: []crossing.Pair{r.ByMoments()},
		Latencies:   []Latencies{{Eager: r.Scopes(Eager).LatencySum.Seconds(), Compiled: r.Scopes(Compiled).LatencySum.Seconds()}},
		Divergences: r.Divergences(), Correct: map[string]int{Eager: r.Correct(Eager), Compiled: r.Correct(Compiled)}, Cost: cost,
	}
	for _, l := range r.Lifecycles {
		e.Components = append(e.Components,
			Component{"compilation", l.Mode, l.CompilationSeconds, l.CompilationReason},
			Component{"graph capture", l.Mode, l.CUDAGraphSeconds, l.CUDAGraphReason})
	}
	return e
}

// The statements' names: what the run's author refused to say, and the two
// narrow things that were said.
const (
	BreakEven       = "break-even"
	CrossingSeen    = "a crossing was observed"
	FasterInGeneral = "faster in general"
	EqualOutputs    = "equal outputs"
	EqualQuality    = "equal quality"
	Repeatable      = "a second lifecycle would repeat it"
	ComponentTimes  = "component times"
	ProviderSpend   = "provider spend"
	LowerLatencies  = "lower latency sum"
	ModelCrossing   = "modelled crossing"
)

// level is the confidence that a statement about more than these records needs.
const level = claim.Level

// Statements judges what might be said of the run. The error is that of the
// analysis: pairs that are none.
func (e Evidence) Statements() ([]Statement, error) {
	o := crossing.Options{Requests: e.Requests, Dwell: e.Requests, Level: level, Resamples: 1000, Seed: 1}
	a, err := crossing.Analyze(e.Pairs, o)
	if err != nil {
		return nil, err
	}
	few, order, outputs, quality := e.few(), counterbalance(a), e.outputs(), e.quality()
	all := []Statement{
		crossed(a, judge(BreakEven, "A compiled server makes up for its longer initialization within this sequence.", few, uncrossed(a.Sustained, a))),
		crossed(a, judge(CrossingSeen, "The compiled server was seen to be ahead of the eager one, counted from each one's start.", uncrossed(a.Crossed, a))),
		judge(FasterInGeneral, "A compiled server is faster than an eager one.", few, e.unsure(), order, e.elsewhere(), outputs, quality),
		judge(EqualOutputs, "Both servers gave the same output tokens to every request.", outputs),
		judge(EqualQuality, "Both servers answer equally well.", few, quality),
		judge(Repeatable, "Another pair of lifecycles would show the same order of latency sums.", few, e.unsure(), order),
		e.components(),
		e.spend(),
		e.lower(),
	}
	for _, p := range a.Pairs {
		all = append(all, modelled(p))
	}
	return all, nil
}

// judge supports a statement unless there are reasons against it.
func judge(name, sentence string, against ...string) Statement {
	s := Statement{Name: name, Sentence: sentence, Verdict: claim.Supported, Provenance: record.Derived}
	for _, reason := range against {
		if reason != "" {
			s.Verdict, s.Reasons = claim.Unsupported, append(s.Reasons, reason)
		}
	}
	return s
}

// few is why so many pairs can't show anything beyond themselves.
func (e Evidence) few() string {
	k, fewest := len(e.Pairs), plan.FewestPairs(level)
	if k >= fewest {
		return ""
	}
	return fmt.Sprintf("k = %d: it takes %d pairs before a two-sided sign-flip test can reach %g %%", k, fewest, 100*level)
}

// unsure is why the latency sums' difference may be chance.
func (e Evidence) unsure() string {
	var differences []float64
	sum := 0.0
	for _, l := range e.Latencies {
		differences = append(differences, l.Compiled-l.Eager)
		sum += l.Compiled - l.Eager
	}
	p, _ := crossing.SignFlip(differences)
	if p <= 1-level && sum < 0 {
		return ""
	}
	return fmt.Sprintf("the mean difference of the latency sums is %+.6f s, with p = %.4g by two-sided sign flips", sum/float64(len(differences)), p)
}

// counterbalance is why the difference may be one of order.
func counterbalance(a crossing.Analysis) string {
	if a.Order.Value != nil {
		return ""
	}
	return "no counterbalance: " + a.Order.Reason
}

// elsewhere is why nothing is said of other set-ups.
func (e Evidence) elsewhere() string {
	if len(e.Setups) > 1 {
		return ""
	}
	return "one set-up: " + strings.Join(e.Setups, ", ")
}

// outputs is why the arms did not do the same work.
func (e Evidence) outputs() string {
	if len(e.Divergences) == 0 {
		return ""
	}
	var at []int
	for _, d := range e.Divergences {
		at = append(at, d.Ordinal)
	}
	return fmt.Sprintf("outputs are equal at %d of %d ordinals, and differ at %v", e.Requests-len(at), e.Requests, at)
}

// quality is why the arms did not do equally good work.
func (e Evidence) quality() string {
	if e.Correct[Eager] == e.Correct[Compiled] {
		return ""
	}
	return fmt.Sprintf("right answers: %d of %d in eager, %d of %d in compiled", e.Correct[Eager], e.Requests, e.Correct[Compiled], e.Requests)
}

// uncrossed is how the pairs ended that did not cross.
func uncrossed(c crossing.Count, a crossing.Analysis) string {
	if c.By == c.Of {
		return ""
	}
	var ends []string
	for _, p := range a.Pairs {
		if p.CensoredAt > 0 && p.End != nil {
			ends = append(ends, fmt.Sprintf("pair %d is right-censored at %d, where compiled is %+.6f s from eager", p.Pair, p.CensoredAt, *p.End))
		}
	}
	return fmt.Sprintf("%d of %d pairs crossed: %s", c.By, c.Of, strings.Join(ends, "; "))
}

// crossed takes a statement about a crossing back where no pair has a debt.
func crossed(a crossing.Analysis, s Statement) Statement {
	if a.Crossed.NotApplicable == a.Crossed.Of {
		s.Verdict, s.Reasons = claim.NotApplicable, []string{"there is no debt to repay"}
	}
	return s
}

// components is whether the parts of the initialization are known.
func (e Evidence) components() Statement {
	s := Statement{Name: ComponentTimes, Sentence: "So much of the initialization is compilation, and so much is graph capture.", Verdict: claim.Supported, Provenance: record.EngineReported}
	for _, c := range e.Components {
		if c.Seconds == nil {
			s.Verdict, s.Reasons = claim.NotApplicable, append(s.Reasons, fmt.Sprintf("%s, %s: null, %s", c.Mode, c.Name, c.Reason))
		}
	}
	return s
}

// spend is whether a provider's bill is known.
func (e Evidence) spend() Statement {
	c := e.Cost
	s := Statement{Name: ProviderSpend, Sentence: fmt.Sprintf("The provider billed %.6f %s.", c.Amount, c.Currency), Verdict: claim.Supported, Provenance: c.Provenance}
	if c.Invoice == nil {
		s.Verdict, s.Reasons = claim.Unsupported, []string{fmt.Sprintf("the figure is %s, from the %s at a list rate of %g an hour, %s; no invoice is attached", c.Provenance, c.Source, c.ListRatePerHour, c.Boundary)}
	}
	return s
}

// lower is the one narrow thing about time that the records show of themselves.
func (e Evidence) lower() Statement {
	s := Statement{
		Name: LowerLatencies, Sentence: fmt.Sprintf("In these %d requests to each, compiled's latencies add up to less than eager's.", e.Requests),
		Verdict: claim.Supported, Provenance: record.Derived,
	}
	for i, l := range e.Latencies {
		s.Reasons = append(s.Reasons, fmt.Sprintf("pair %d: compiled %.6f s, eager %.6f s", e.Pairs[i].Number, l.Compiled, l.Eager))
		if l.Compiled >= l.Eager {
			s.Verdict = claim.Unsupported
		}
	}
	return s
}

// modelled is the crossing of the frozen sequence, with its whole label.
func modelled(p crossing.PairResult) Statement {
	s := Statement{
		Name: ModelCrossing, Sentence: p.Modelled.Label, Verdict: claim.Supported, Provenance: record.Modelled,
		Reasons: []string{fmt.Sprintf("pair %d: its exact observed increments repeated unchanged; nothing of it was observed", p.Pair)},
	}
	if p.Modelled.At == nil {
		s.Sentence, s.Verdict, s.Reasons = "The frozen sequence crosses in the model.", claim.NotApplicable, []string{p.Modelled.Reason}
	}
	return s
}
