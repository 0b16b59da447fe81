package metric_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/metric"
	"assay/harness/record"
	"assay/harness/record/recordtest"
)

func TestALifecyclesNumbersAreItsOwn(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan("lifecycles: 1", "lifecycles: 2")
	run := recordtest.Run(p, recordtest.Options{Fails: func(r record.Request) bool { return r.Lifecycle == 1 && r.Tier == 4 && r.Ordinal > 2 }})
	all := metric.ByLifecycle(p, run)
	g.Expect(all).To(HaveLen(8), "two tiers of four lifecycles")
	for _, a := range all {
		// The summary has the same of a pair, which is one lifecycle of each arm.
		for _, tier := range metric.Summarize(p, run).Tiers {
			if tier.Tier != a.Tier {
				continue
			}
			pair := (a.Lifecycle + 1) / 2
			goodput, ttft := tier.Pairs[pair-1].Baseline, tier.TTFTPairs[pair-1].Baseline
			if a.Arm == tier.Candidate.Arm {
				goodput, ttft = tier.Pairs[pair-1].Candidate, tier.TTFTPairs[pair-1].Candidate
			}
			g.Expect(*a.Goodput.Value).To(Equal(*goodput.Value))
			g.Expect(*a.TTFT95.Value).To(Equal(*ttft.Value))
			g.Expect(a.TTFT95.AtLeast).To(Equal(ttft.AtLeast))
		}
		if a.Lifecycle == 1 && a.Tier == 4 {
			g.Expect(*a.FailureRate.Value).To(Equal(0.5))
			g.Expect(a.TTFT95.AtLeast).To(BeTrue())
		} else {
			g.Expect(*a.FailureRate.Value).To(BeZero())
		}
		g.Expect(*a.TPOT50.Value).To(BeNumerically(">", 0))
	}
	run.Waves, run.Requests = nil, nil
	none := metric.ByLifecycle(p, run)[0]
	g.Expect(none.Goodput.Reason).To(Equal("no wave of it was recorded"))
	g.Expect(none.FailureRate.Value).To(BeNil())
}
