package capacity_test

import (
	"encoding/json"
	"os"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/capacity"
)

func TestBoundsAreSciPys(t *testing.T) {
	g := NewWithT(t)
	data, err := os.ReadFile("testdata/bounds.json")
	g.Expect(err).NotTo(HaveOccurred())
	var table struct {
		Cases []struct{ Within, N, Confidence, Lower, Upper float64 }
	}
	g.Expect(json.Unmarshal(data, &table)).To(Succeed())
	g.Expect(len(table.Cases)).To(BeNumerically(">=", 60))
	for _, c := range table.Cases {
		g.Expect(capacity.LowerBound(c.Within, c.N, c.Confidence)).To(BeNumerically("~", c.Lower, 1e-9), "%+v", c)
		g.Expect(capacity.UpperBound(c.Within, c.N, c.Confidence)).To(BeNumerically("~", c.Upper, 1e-9), "%+v", c)
	}
}

func TestAProbeHoldsIfAllObjectivesDoAndFailsIfOneDoes(t *testing.T) {
	const h, f, u = capacity.Holds, capacity.Fails, capacity.Undecided
	for _, test := range []struct {
		outcome capacity.Outcome
		each    []capacity.Verdict
		whole   capacity.Verdict
	}{
		{capacity.Outcome{of(300, 300), of(300, 300), of(300, 300)}, []capacity.Verdict{h, h, h}, h},
		{capacity.Outcome{of(300, 300), of(285, 300), of(300, 300)}, []capacity.Verdict{h, u, h}, u},
		{capacity.Outcome{of(300, 300), of(285, 300), of(200, 300)}, []capacity.Verdict{h, u, f}, f},
		{capacity.Outcome{of(200, 300), of(285, 300), of(300, 300)}, []capacity.Verdict{f, u, h}, f},
		{capacity.Outcome{of(300, 300), nil, of(300, 300)}, []capacity.Verdict{h, u, h}, u},
		{capacity.Outcome{of(0, 300), nil, of(0, 300)}, []capacity.Verdict{f, u, f}, f},
	} {
		g := NewWithT(t)
		p, err := three.Judge(3, 9, test.outcome)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect([]any{p.Rate, p.Seed, p.Verdict}).To(Equal([]any{3.0, uint64(9), test.whole}))
		for i, j := range p.Objectives {
			g.Expect(j.Verdict).To(Equal(test.each[i]))
			g.Expect(j.Name).To(Equal(three.Objectives[i].Name))
			g.Expect(j.Of).To(Equal(len(test.outcome[i])))
		}
	}
	_, err := three.Judge(3, 9, capacity.Outcome{nil})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("outcomes of 1 objectives, and 3 are sought")))
}

func TestFailingIsCorrectedForTheNumberOfObjectives(t *testing.T) {
	g := NewWithT(t)
	alone := three
	alone.Objectives = three.Objectives[:1]
	within := of(279, 300)
	one, err := alone.Judge(1, 0, capacity.Outcome{within})
	g.Expect(err).NotTo(HaveOccurred())
	all, err := three.Judge(1, 0, capacity.Outcome{within, within, of(300, 300)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(one.Verdict).To(Equal(capacity.Fails))
	g.Expect(all.Verdict).To(Equal(capacity.Undecided))
	a, b := one.Objectives[0], all.Objectives[0]
	g.Expect(a.Lower).To(Equal(b.Lower), "holding asks for no correction")
	g.Expect(a.Upper).To(Equal(capacity.UpperBound(279, 300, 0.9)))
	g.Expect(b.Upper).To(Equal(capacity.UpperBound(279, 300, 1-(1-0.9)/3)))
}

func TestTheFewestAttemptsAreThoseThatCanHold(t *testing.T) {
	for _, s := range []capacity.Search{one, three} {
		g := NewWithT(t)
		n := s.FewestAttempts()
		for less, want := range []capacity.Verdict{capacity.Holds, capacity.Undecided} {
			var o capacity.Outcome
			for range s.Objectives {
				o = append(o, of(n-less, n-less))
			}
			p, err := s.Judge(1, 0, o)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(p.Verdict).To(Equal(want), "%d attempts", n-less)
		}
	}
}
