package metric_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/harness/record/recordtest"
)

// condensed is a run with all of its attempts made small.
func condensed(run record.Run) record.Run {
	var c metric.Condenser
	out := run
	out.Requests = append([]record.Request(nil), run.Requests...)
	for i := range out.Requests {
		c.Condense(&out.Requests[i])
	}
	return out
}

func TestACondensedRunHasTheSameNumbersAndFindings(t *testing.T) {
	failing := recordtest.Options{Fails: func(r record.Request) bool { return r.Ordinal%3 == 0 }, Partial: func(record.Request) int { return 2 }}
	crossover := recordtest.Pairs()
	for name, test := range map[string]struct {
		p   *plan.Plan
		run record.Run
	}{
		"concurrency":   {recordtest.Plan(), recordtest.Run(recordtest.Plan(), recordtest.Options{})},
		"with failures": {recordtest.Plan(), recordtest.Run(recordtest.Plan(), failing)},
		"crossover":     {crossover, recordtest.Sequences(crossover, recordtest.Options{}, func(r record.Request) recordtest.Answered { return recordtest.Answered{} })},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			random := rand.New(rand.NewPCG(3, 4))
			for i := range test.run.Requests {
				r := &test.run.Requests[i]
				for j := range r.ClientLag {
					r.ClientLag[j] = random.Int64N(100_000)
				}
				if n := len(r.Events); n > 2 && i%4 == 0 {
					r.Events[1].Arrival = r.Events[2].Arrival // one read
				}
				if i%7 == 0 && len(r.OutputTokenIDs) > 0 {
					r.OutputTokenIDs[0] = random.IntN(9)
				}
				switch i % 11 { // what no honest run has, and the client had no times of the kernel
				case 3:
					r.ClientLag = nil
				case 5:
					r.EndedAt = r.ScheduledAt - 1
				case 7:
					r.Coalesced = -1
				}
			}
			small := condensed(test.run)
			g.Expect(metric.Check(test.p, small)).To(Equal(metric.Check(test.p, test.run)))
			g.Expect(metric.Check(test.p, small)).NotTo(BeEmpty())
			g.Expect(metric.Summarize(test.p, small)).To(Equal(metric.Summarize(test.p, test.run)))
			g.Expect(metric.DeterminismOf(record.Population{Attempts: small.Requests})).To(Equal(metric.DeterminismOf(record.Population{Attempts: test.run.Requests})))
			for i := range small.Requests {
				was, is := &test.run.Requests[i], &small.Requests[i]
				g.Expect(is.Events).To(BeNil())
				g.Expect(is.EventCount()).To(Equal(len(was.Events)))
				g.Expect(fmt.Sprint(is.TokenIDs())).To(Equal(fmt.Sprint(was.OutputTokenIDs)))
				g.Expect(fmt.Sprint(metric.KnownLag(*is))).To(Equal(fmt.Sprint(metric.KnownLag(*was))))
				g.Expect(is.Nulls).To(Equal(was.Nulls))
			}
			g.Expect(func() { metric.Gaps(small.Requests[0]) }).To(Panic(), "they are not there, which is not that there are none")
		})
	}
}

func TestLagsOfALargeWaveHaveTheSamePercentiles(t *testing.T) {
	g := NewWithT(t)
	random := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 2, 3, 17, 1000, 3 << 19} { // the last are more than are held
		p := recordtest.Plan("tiers: [1, 4], repeats: 2", "tiers: [1], repeats: 1")
		run := recordtest.Run(p, recordtest.Options{})
		r := &run.Requests[len(run.Requests)-1]
		var values []float64
		r.Events, r.ClientLag = nil, nil
		for i := range n {
			lag := int64(random.ExpFloat64() * 1e5)
			if i%5 == 0 {
				lag = random.Int64N(3)
			}
			r.Events = append(r.Events, record.Event{Earliest: int64(i), Arrival: int64(i)})
			r.ClientLag = append(r.ClientLag, lag)
			values = append(values, float64(lag)/1e9)
		}
		summary := metric.Summarize(p, condensed(run))
		w := summary.Waves[len(summary.Waves)-1]
		for q, got := range map[float64]metric.Value{50: w.ClientLagP50, 99: w.ClientLagP99, 100: w.ClientLagMax} {
			g.Expect(got.N).To(Equal(n))
			g.Expect(*got.Value).To(BeNumerically("~", metric.Percentile(values, q), 1e-15), "%d values, p%g", n, q)
		}
	}
}
