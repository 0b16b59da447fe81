package protocol_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
	. "assay/matchers"
	"assay/reports"
)

// arrivals is the arrival plan that every violation changes: two servers that
// batch, of which the candidate can be made to stall.
func arrivals(edits ...string) *plan.Plan {
	GinkgoHelper()
	return parsed(arrivalsText, edits...)
}

const arrivalsText = `
schema: assay.plan/v1
name: arrivals
experiment: arrival
labels: [protocol]
seed: 7
time_scale: 20
model: {name: emulated, revision: none, served_as: emulated}
arms:
  - {name: steady, role: baseline, on_disconnect: cancel, engine: {emulated: {parameters: t4-vllm}}}
  - {name: other, role: candidate, on_disconnect: cancel, engine: {emulated: {parameters: t4-vllm}}}
workload: {prompts: eight, max_tokens: 4, temperature: 0, lane: fixed}
arrivals: {process: constant, rates: [4rps], warmup: 5s, measure: 75s, drain: 30s, dial_ahead: 100ms}
schedule: {settle: {idle: 5m}}
timeouts: {ready: 10m, request: 30s, connect: 1000s, stop: 1000s}
gates: {client_lag: 500ms, coalesced: 100%, schedule_delay: 10s}
claims: []
`

func average(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v / float64(len(values))
	}
	return sum
}

// rewrittenLines is what verification says of a copy of a bundle in which a
// file's lines were changed, with new sums.
func rewrittenLines(dir, name string, change func(line map[string]any) bool) []string {
	GinkgoHelper()
	return rewritten(dir, name, func(text string) string {
		var out strings.Builder
		n := 0
		for line := range strings.Lines(text) {
			var fields map[string]any
			d := json.NewDecoder(strings.NewReader(line))
			d.UseNumber()
			Expect(d.Decode(&fields)).To(Succeed())
			if change(fields) {
				n++
			}
			written, err := json.Marshal(fields)
			Expect(err).NotTo(HaveOccurred())
			out.Write(append(written, '\n'))
		}
		Expect(n).To(BeNumerically(">", 0), "nothing was changed")
		return out.String()
	})
}

// rewritten is what verification says of a copy of a bundle in which a file's
// text was changed, with new sums.
func rewritten(dir, name string, change func(string) string) []string {
	GinkgoHelper()
	copied := filepath.Join(GinkgoT().TempDir(), "copy")
	Expect(os.CopyFS(copied, os.DirFS(dir))).To(Succeed())
	path := filepath.Join(copied, name)
	data, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	text := change(string(data))
	Expect(text).NotTo(Equal(string(data)), "nothing was changed")
	Expect(os.WriteFile(path, []byte(text), 0o644)).To(Succeed())
	Expect(reports.Seal(copied)).To(Succeed())
	return against(copied)
}

// only is the curve's one rate.
func only(b reports.Bundle) metric.Rate {
	GinkgoHelper()
	Expect(b.Summary.Rates).To(HaveLen(1))
	return b.Summary.Rates[0]
}

var _ = Describe("an open loop", Label("protocol", "search"), func() {
	It("shows a stall of 2 s in the p99 from the scheduled moment, which the p99 from the sending does not", func(ctx SpecContext) {
		// One request in flight: a client that waits for its server is what leaves
		// out the requests that would have waited too.
		b, _ := crossover(ctx, arrivals("dial_ahead: 100ms", "dial_ahead: 100ms, in_flight: 1", "time_scale: 20", "time_scale: 10",
			"name: other, role: candidate, on_disconnect: cancel, engine: {emulated: {parameters: t4-vllm}}",
			"name: other, role: candidate, on_disconnect: cancel, engine: {emulated: {parameters: t4-vllm, faults: [{kind: stall_before_first, requests: [170], for: 2s}]}}"))
		Expect(b.Summary).To(KeepTheProtocol())
		r := only(b)
		Expect(r.Candidate.Counts.Attempted).To(Equal(300))
		Expect(*r.Candidate.EffectiveTTFT99.Value).To(BeNumerically(">", 1))
		Expect(*r.Candidate.TTFTAll99.Value).To(BeNumerically("<", *r.Candidate.EffectiveTTFT99.Value/2))
		Expect(*r.Baseline.EffectiveTTFT99.Value).To(BeNumerically("<", *r.Candidate.EffectiveTTFT99.Value/2), "without the stall")
		Expect(b.Summary.Validity.Notes).To(ContainElement(ContainSubstring("schedule_delay was not checked: what the limit of 1 requests in flight held back is part of it")))
	})

	It("has a queue's textbook waiting time in real time, within its own interval", func(ctx SpecContext) {
		// Answers of one token: a serial server takes the same time for each, but
		// for its noise of 5 %, and Poisson arrivals make it an M/D/1 queue.
		const rate, batches = 3.0, 20
		b, _ := crossover(ctx, arrivals("process: constant", "process: poisson", "rates: [4rps]", "rates: [3rps]", "parameters: t4-vllm", "parameters: t4-naive",
			"max_tokens: 4", "max_tokens: 1", "time_scale: 20", "time_scale: 10", "warmup: 5s, measure: 75s", "warmup: 5s, measure: 200s"))
		Expect(b.Summary).To(KeepTheProtocol())
		var waits, alone []float64
		free := int64(0)
		for _, r := range b.Run.Requests {
			if r.Arm != "steady" {
				continue
			}
			v, reason := metric.EffectiveTTFT(r)
			Expect(reason).To(BeEmpty())
			took := float64(v) / 1e9 * b.Plan.TimeScale
			if free < r.ScheduledAt {
				alone = append(alone, took)
			}
			free = max(free, r.EndedAt)
			if !r.Warmup {
				waits = append(waits, took)
			}
		}
		// The service time is that of whoever found the server idle: what a client,
		// a connection and a busy machine add is in it.
		service := average(alone)
		Expect(service).To(BeNumerically("~", 0.172, 0.04), "the parameters' own, and what a machine adds")
		for i := range waits {
			waits[i] -= service
		}
		Expect(len(waits)).To(BeNumerically(">", 500))
		// Neighbours wait alike: means of long batches are nearly independent.
		var means []float64
		for i := range batches {
			means = append(means, average(waits[i*len(waits)/batches:(i+1)*len(waits)/batches]))
		}
		squares := 0.0
		for _, m := range means {
			squares += (m - average(means)) * (m - average(means))
		}
		half := 2.861 * math.Sqrt(squares/(batches-1)/batches) // Student's t, 19 degrees of freedom, 99 %
		textbook := rate * service * service / (2 * (1 - rate*service))
		By(fmt.Sprintf("the mean wait is %.4f ± %.4f s, Pollaczek and Khinchine's %.4f s", average(waits), half, textbook))
		Expect(average(waits)).To(BeNumerically("~", textbook, half))
		Expect(half).To(BeNumerically("<", textbook), "the interval says something")
	})

	It("counts what a declared limit drops as failures, each with its record", func(ctx SpecContext) {
		b, _ := crossover(ctx, arrivals("dial_ahead: 100ms", "dial_ahead: 100ms, in_flight: 1, beyond: drop", "rates: [4rps]", "rates: [40rps]", "measure: 75s", "measure: 10s"))
		Expect(b.Summary).To(KeepTheProtocol())
		r := only(b)
		Expect(r.Candidate.Counts.Attempted).To(Equal(400))
		Expect(r.Candidate.Dropped).To(BeNumerically(">", 100))
		Expect(r.Candidate.Counts.Failed).To(BeNumerically(">=", r.Candidate.Dropped))
	})

	It("names a rate at which the server no longer keeps up", func(ctx SpecContext) {
		b, _ := crossover(ctx, arrivals("process: constant", "process: poisson", "rates: [4rps]", "rates: [6rps]", "parameters: t4-vllm", "parameters: t4-naive",
			"warmup: 5s, measure: 75s", "warmup: 5s, measure: 40s"))
		for _, a := range []metric.OpenArm{only(b).Baseline, only(b).Candidate} {
			Expect(a.Growth.Unstable).To(BeTrue(), "a request takes 0.3 s, and six come a second: %+v", a.Growth)
			Expect(*a.Completed.Value).To(BeNumerically("<", *a.Offered.Value))
		}
	})

	Context("with a search", Ordered, func() {
		var b reports.Bundle
		var dir string
		BeforeAll(func(ctx SpecContext) {
			b, dir = crossover(ctx, arrivals("measure: 75s", "measure: 10s, min_requests: 50", "warmup: 5s", "warmup: 1s", "schedule:",
				"search: {slo: {ttft_p95: 1s, failure_rate: 10%}, from: 4rps, to: 16rps, within: 50%, confidence: 90%}\nschedule:"))
		})

		changed := func(name string, change func(line map[string]any) bool) []string {
			GinkgoHelper()
			return rewrittenLines(dir, name, change)
		}

		It("keeps every probe, with its seed and its verdict", func() {
			Expect(b.Summary.Searches).To(HaveLen(2))
			for _, s := range b.Summary.Searches {
				Expect(s.Status).To(Equal("complete"))
				Expect(s.Probes).NotTo(BeEmpty())
				for _, p := range s.Probes {
					Expect(p.Objectives).To(HaveLen(2))
				}
			}
		})

		It("is not verified if a probe was made at another rate", func() {
			Expect(changed(record.WavesFile, func(l map[string]any) bool {
				probe := l["probe"] != nil && l["number"] == json.Number("2")
				if probe {
					l["rate_rps"] = 5
				}
				return probe
			})).To(ContainElement(ContainSubstring("at probe 1 at 5 requests a second by the seed")))
		})

		It("is not verified if an arrival was moved", func() {
			Expect(changed(record.RequestsFile, func(l map[string]any) bool {
				at := l["wave"] == json.Number("1") && l["ordinal"] == json.Number("9")
				if at {
					n, err := l["scheduled_at_ns"].(json.Number).Int64()
					Expect(err).NotTo(HaveOccurred())
					l["scheduled_at_ns"] = n - 1000
				}
				return at
			})).To(ContainElement(ContainSubstring("its arrival was drawn for")))
		})

		It("is not verified if a slow attempt was called warm-up", func() {
			Expect(changed(record.RequestsFile, func(l map[string]any) bool {
				at := l["wave"] == json.Number("1") && l["ordinal"] == json.Number("30")
				if at {
					l["warmup"] = true
				}
				return at
			})).To(ContainElement(ContainSubstring("its arrival lies in the other window")))
		})
	})

	Context("of conversations", Ordered, func() {
		var b reports.Bundle
		var dir string
		BeforeAll(func(ctx SpecContext) {
			b, dir = crossover(ctx, arrivals("{prompts: eight, max_tokens: 4, temperature: 0, lane: fixed}",
				"{source: {kind: conversations, turns: 3, user: {uniform: {min: 40, max: 60}}, output: {fixed: 8}}, temperature: 0, lane: fixed}",
				"process: constant", "process: constant, think: 4s"))
		})
		nth := func(ordinal string, change func(l map[string]any)) []string {
			GinkgoHelper()
			return rewrittenLines(dir, record.RequestsFile, func(l map[string]any) bool {
				at := l["lifecycle"] == json.Number("1") && l["wave"] == json.Number("1") && l["ordinal"] == json.Number(ordinal)
				if at {
					change(l)
				}
				return at
			})
		}
		ns := func(l map[string]any, name string) int64 {
			GinkgoHelper()
			n, err := l[name].(json.Number).Int64()
			Expect(err).NotTo(HaveOccurred())
			return n
		}

		It("asks each turn once the answer before it has ended and been thought about, with the same text in both arms", func() {
			Expect(b.Summary).To(KeepTheProtocol())
			asked, late := 0, 0
			inputs := map[int]string{}
			for _, r := range b.Run.Requests {
				if known, ok := inputs[r.Ordinal]; ok {
					Expect(r.InputSHA256).To(Equal(known))
				}
				inputs[r.Ordinal] = r.InputSHA256
				if r.SentAt != nil {
					asked++
					continue
				}
				late++
				Expect(*r.Error).To(ContainSubstring("its moment came after the end of the measurement"))
				Expect(r.Warmup).To(BeTrue())
			}
			Expect(asked).To(BeNumerically(">", 9*late))
			Expect(*only(b).Candidate.Offered.Value).To(BeNumerically("~", 4, 0.8))
		})

		It("is not verified if a turn was asked before it could be", func() {
			Expect(nth("5", func(l map[string]any) { l["scheduled_at_ns"] = ns(l, "scheduled_at_ns") - 1_000_000 })).
				To(ContainElement(ContainSubstring("and the turn before it had ended and been thought about only at")))
		})

		It("is not verified if a turn was asked after one that failed", func() {
			Expect(nth("4", func(l map[string]any) { l["outcome"], l["finish_reason"] = "truncated", nil })).
				To(ContainElement(ContainSubstring("it was asked, and the turn before it ended as truncated")))
		})

		It("is invalid if the client was late with a turn", func() {
			run := clone(b.Run)
			for i := range run.Requests {
				if r := &run.Requests[i]; r.Lifecycle == 1 && r.Ordinal == 5 {
					r.ScheduledAt += int64(time.Second)
				}
			}
			Expect(reports.Derive(b.Plan, run).Summary.Validity.Reasons).To(ContainElement(ContainSubstring("after the turn before it had ended and been thought about, the plan allows the client 500ms")))
		})
	})
})
