package workloads_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"assay/workloads"
)

func TestTheEightArePinned(t *testing.T) {
	g := NewWithT(t)
	set, err := workloads.Set("eight")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(set).To(HaveLen(8))
	texts := map[string]bool{}
	for i, p := range set {
		g.Expect(p.ID).To(Equal(fmt.Sprintf("eight/%d", i+1)))
		g.Expect(len(p.Text)).To(And(BeNumerically(">", 20), BeNumerically("<", 120)), p.Text)
		texts[p.Text] = true
	}
	g.Expect(texts).To(HaveLen(8), "no two are alike")
	// Runs on other prompts are other runs: what is published was asked this.
	g.Expect(workloads.Digest(set)).To(Equal("b2b266579b355bf6787c0aeefc210120a23da878f5d6d22878ad968fdfca4124"))
}

func TestADigestTellsSetsApart(t *testing.T) {
	g := NewWithT(t)
	a := []workloads.Prompt{{ID: "x/1", Text: "ab"}, {ID: "x/2", Text: "c"}}
	b := []workloads.Prompt{{ID: "x/1", Text: "a"}, {ID: "bx/2", Text: "c"}}
	g.Expect(workloads.Digest(a)).NotTo(Equal(workloads.Digest(b)))
	g.Expect(workloads.Digest(a)).NotTo(Equal(workloads.Digest([]workloads.Prompt{a[1], a[0]})), "the order counts")
}

func TestOrdinalsGoRoundTheSet(t *testing.T) {
	g := NewWithT(t)
	set, err := workloads.Set("eight")
	g.Expect(err).NotTo(HaveOccurred())
	for ordinal, want := range map[int]string{1: "eight/1", 8: "eight/8", 9: "eight/1", 64: "eight/8"} {
		g.Expect(workloads.For(set, ordinal).ID).To(Equal(want))
	}
}

func TestAnUnknownSetSaysWhichThereAre(t *testing.T) {
	_, err := workloads.Set("nine")
	NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(`"nine"`), ContainSubstring("eight"))))
}
