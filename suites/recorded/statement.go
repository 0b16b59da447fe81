package recorded

import (
	"fmt"

	"assay/claim"
	"assay/harness/crossing"
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

// level is the confidence that a statement about more than these records needs.
const level = 0.95

// Statements judges what might be said of the run, each from its records.
func (r *Run) Statements() ([]Statement, error) {
	n := len(r.Of(Eager))
	a, err := crossing.Analyze([]crossing.Pair{r.ByMoments()}, crossing.Options{Requests: n, Dwell: n, Level: level, Resamples: 1000, Seed: 1})
	if err != nil {
		return nil, err
	}
	pair := a.Pairs[0]
	few := fmt.Sprintf("%d pair: a two-sided sign-flip test takes %d to reach %g %%", a.K, plan.FewestPairs(level), 100*level)
	say := func(name, sentence string, reasons ...string) Statement {
		s := Statement{Name: name, Sentence: sentence, Verdict: claim.Supported, Provenance: record.Derived}
		for _, reason := range reasons {
			if reason != "" {
				s.Verdict, s.Reasons = claim.Unsupported, append(s.Reasons, reason)
			}
		}
		return s
	}
	censored, order := "", ""
	if pair.First == nil {
		censored = fmt.Sprintf("right-censored: D(%d) is %.6f s, and the sequence ended there", pair.CensoredAt, *pair.End)
	}
	if a.Order.Value == nil {
		order = "no counterbalance: " + a.Order.Reason
	}
	outputs, answers := "", ""
	if differ := r.Divergent(); len(differ) > 0 {
		outputs = fmt.Sprintf("outputs are equal at %d of %d ordinals; they differ at %v", n-len(differ), n, differ)
	}
	if e, c := r.Correct(Eager), r.Correct(Compiled); e != c {
		answers = fmt.Sprintf("answers: %d of %d are right in eager, %d of %d in compiled", e, n, c, n)
	}
	all := []Statement{
		say("break-even", "The compiled server was seen to make up for its longer initialization.", censored, few),
		say("faster in general", "A compiled server is faster than an eager one.", few, order, outputs, answers),
		say("output-identical", "Both servers gave the same output tokens.", outputs),
		say("equal quality", "Both servers answered equally well.", answers, few),
		say("replicated", "Another pair of lifecycles would show the same.", few, order),
		r.component("compilation time", func(l Lifecycle) (*float64, string) { return l.CompilationSeconds, l.CompilationReason }),
		r.component("graph capture time", func(l Lifecycle) (*float64, string) { return l.CUDAGraphSeconds, l.CUDAGraphReason }),
		say("provider spend", "The run cost what it is said to have cost.", "no invoice is attached: the figure is declared"),
		r.lower(n),
	}
	return append(all, modelled(pair)), nil
}

// component is a statement about a part of the initialization.
func (r *Run) component(name string, of func(Lifecycle) (*float64, string)) Statement {
	s := Statement{Name: name, Sentence: "The " + name + " is known.", Verdict: claim.Supported, Provenance: record.EngineReported}
	for _, l := range r.Lifecycles {
		if v, reason := of(l); v == nil {
			s.Verdict, s.Reasons = claim.NotApplicable, append(s.Reasons, l.Mode+": null: "+reason)
		}
	}
	return s
}

// lower is the one narrow thing about time that the records show of themselves.
func (r *Run) lower(n int) Statement {
	e, c := r.LatencySum(Eager), r.LatencySum(Compiled)
	s := Statement{
		Name: "lower latency sum", Sentence: fmt.Sprintf("In these two lifecycles the %d latencies of compiled add up to less than those of eager.", n),
		Verdict: claim.Unsupported, Provenance: record.Derived, Reasons: []string{fmt.Sprintf("%.6f s and %.6f s", c, e)},
	}
	if c < e {
		s.Verdict = claim.Supported
	}
	return s
}

// modelled is the crossing of the frozen sequence, with its whole label.
func modelled(p crossing.PairResult) Statement {
	s := Statement{Name: "modelled crossing", Sentence: p.Modelled.Label, Verdict: claim.Supported, Provenance: record.Modelled, Reasons: []string{"arithmetic on the exact observed increments, repeated unchanged; nothing of it was observed"}}
	if p.Modelled.At == nil {
		s.Verdict, s.Reasons = claim.NotApplicable, []string{p.Modelled.Reason}
	}
	return s
}
