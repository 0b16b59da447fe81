package suite

import (
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"

	"assay/harness/lifecycle"
	"assay/harness/plan"
	"assay/harness/record/recordtest"
	"assay/reports/junit"
)

func TestSpecsAreSentences(t *testing.T) {
	for _, test := range []struct {
		containers []string
		text, want string
	}{
		{[]string{"concurrency", "p", "1 of 6: naive"}, "serves 8 clients, repeat 2 of 3", "naive serves 8 clients, repeat 2 of 3 (lifecycle 1 of 6)"},
		{[]string{"crossover", "p", "03 of 24: eager, fixed lane"}, "serves the sequence of 96", "eager serves the sequence of 96 (lifecycle 3 of 24, fixed lane)"},
		{[]string{"crossover", "p", "the evidence"}, "kept the protocol", "the evidence kept the protocol"},
		{[]string{"concurrency", "p"}, "can run", "concurrency p can run"},
	} {
		NewWithT(t).Expect(sentence(test.containers, test.text)).To(Equal(test.want))
	}
}

func TestASpecIsACaseByHowItEnded(t *testing.T) {
	p := recordtest.Plan("name: fixture\n", "name: fixture-0.5b\n")
	run, err := NewRun(p, "")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	run.redact = lifecycle.NewRedactor()
	e := &Experiment{Run: run}
	for state, want := range map[types.SpecState]junit.Case{
		types.SpecStatePassed:      {Kind: "passed"},
		types.SpecStateSkipped:     {Outcome: junit.Skipped, Message: "skipped: Expected\n    8 of 9"},
		types.SpecStatePending:     {Outcome: junit.Skipped, Message: "pending: Expected\n    8 of 9"},
		types.SpecStateFailed:      {Outcome: junit.Failed, Kind: "failed"},
		types.SpecStateTimedout:    {Outcome: junit.Failed, Kind: "timedout"},
		types.SpecStateInterrupted: {Outcome: junit.Errored, Kind: "interrupted"},
		types.SpecStatePanicked:    {Outcome: junit.Errored, Kind: "panicked", Message: "index out of range"},
	} {
		g := NewWithT(t)
		spec := types.SpecReport{
			ContainerHierarchyTexts: []string{string(plan.Concurrency), p.Name, "1 of 2: naive"}, LeafNodeType: types.NodeTypeIt, LeafNodeText: "serves 1 client", State: state, RunTime: time.Second,
			Failure:       types.Failure{Message: "Expected\n    8 of 9", Location: types.CodeLocation{FileName: builtIn() + "suites/x.go"}},
			ReportEntries: types.ReportEntries{{Name: "verdicts", Value: types.WrapEntryValue([]string{"unsupported: 3 of 4"})}},
		}
		if state == types.SpecStatePassed {
			spec.Failure = types.Failure{}
		}
		if state == types.SpecStatePanicked {
			spec.Failure.ForwardedPanic = "index out of range"
		}
		c := e.junitCase(spec)
		g.Expect(c.Name).To(Equal("naive serves 1 client (lifecycle 1 of 2)"))
		g.Expect(c.Class).To(Equal("concurrency.fixture-0_5b"))
		g.Expect(c.Took).To(Equal(time.Second))
		g.Expect(c.Output).To(And(ContainSubstring("verdicts: "), ContainSubstring("unsupported: 3 of 4")))
		g.Expect(c.Outcome).To(Equal(want.Outcome), state.String())
		g.Expect(c.Kind).To(Equal(want.Kind), state.String())
		if want.Message == "" && state != types.SpecStatePassed {
			want.Message = "Expected\n    8 of 9"
		}
		g.Expect(c.Message).To(Equal(want.Message), state.String())
		if c.Outcome == junit.Failed || c.Outcome == junit.Errored {
			g.Expect(c.Trace).To(ContainSubstring("8 of 9"))
			g.Expect(c.Trace).NotTo(ContainSubstring(builtIn()))
		}
	}
}
