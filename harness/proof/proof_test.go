package proof_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/proof"
	"assay/harness/record"
)

func TestTheClientAgainstAServerThatComputesNothing(t *testing.T) {
	g := NewWithT(t)
	p, err := proof.Run(t.Context(), 8)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]int{p.Streams, p.Events}).To(Equal([]int{8, 800}))
	if p.ArrivalErrorP99 != nil { // else this machine's wall clock was stepped just now
		g.Expect(*p.ArrivalErrorP50).To(BeNumerically("<=", *p.ArrivalErrorP99))
		g.Expect(time.Duration(*p.ArrivalErrorP99)).To(And(BeNumerically(">", 0), BeNumerically("<", time.Second)))
	}
	g.Expect(*p.Busiest).To(And(BeNumerically(">", 0), BeNumerically("<=", 1.1)), "two seconds hold a window of one")
	if runtime.GOOS == "linux" && p.ArrivalErrorP99 != nil {
		g.Expect(p.Clock).To(Equal(record.KernelObserved))
	}
	g.Expect(proof.Enough(p, time.Second)).To(Succeed())
}

func TestWhatSpeaksAgainstAClient(t *testing.T) {
	g := NewWithT(t)
	share, off := 0.99, int64(30_000_000)
	err := proof.Enough(record.ClientProof{Streams: 64, ArrivalErrorP99: &off, Busiest: &share}, 20*time.Millisecond)
	g.Expect(err).To(MatchError(And(
		ContainSubstring("with 64 streams from a server that computes nothing, the p99 of the arrivals' error is 30ms, and gates.client_lag allows 20ms"),
		ContainSubstring("took 99 % of the processors"))), "both are said at once")
	g.Expect(proof.Enough(record.ClientProof{ArrivalErrorP99: &off}, 30*time.Millisecond)).To(Succeed())
	g.Expect(proof.Enough(record.ClientProof{}, time.Nanosecond)).To(Succeed(), "where the wall clock was stepped nothing is known")
}

func TestAStoppedProofSaysSo(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := proof.Run(ctx, 2)
	g.Expect(err).To(MatchError(ContainSubstring("2 of 2 streams from a server that computes nothing did not come whole")))
}
