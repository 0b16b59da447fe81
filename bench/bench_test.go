//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/null"
)

// wrote is what a peer leaves, as far as it is read; times in the peer's unit.
var wrote = map[string]struct {
	peer       peer
	file, text string
}{
	"vllm":           {vllm, "out.json", `{"completed": 8, "p50_ttft_ms": 51.5, "p99_ttft_ms": 60.25, "p50_tpot_ms": 20, "p99_tpot_ms": 21}`},
	"aiperf":         {aiperf, "profile_export_aiperf.json", `{"request_count": {"avg": 8.0}, "time_to_first_token": {"p50": 51.5, "p99": 60.25}, "inter_token_latency": {"p50": 20, "p99": 21}}`},
	"guidellm":       {guidellm, "out.json", `{"benchmarks": [{"metrics": {"time_to_first_token_ms": {"successful": {"count": 8, "median": 51.5, "percentiles": {"p99": 60.25}}}, "inter_token_latency_ms": {"successful": {"median": 20, "percentiles": {"p99": 21}}}}}]}`},
	"inference-perf": {inferencePerf, "summary_lifecycle_metrics.json", `{"successes": {"count": 8, "latency": {"time_to_first_token": {"median": 0.0515, "p99": 0.06025}, "time_per_output_token": {"median": 0.02, "p99": 0.021}}}}`},
}

func TestWhatPeersReportIsReadInMilliseconds(t *testing.T) {
	for name, c := range wrote {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			j := job{dir: t.TempDir()}
			_, err := c.peer.read(j, nil)
			g.Expect(err).To(HaveOccurred(), "it wrote nothing")
			g.Expect(os.WriteFile(filepath.Join(j.dir, c.file), []byte(c.text), 0o644)).To(Succeed())
			r, err := c.peer.read(j, nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r.Completed).To(Equal(8))
			g.Expect([]float64{r.TTFT.P50, r.TTFT.P99, r.TPOT.P50, r.TPOT.P99}).To(HaveExactElements(
				BeNumerically("~", 51.5, 1e-9), BeNumerically("~", 60.25, 1e-9), BeNumerically("~", 20, 1e-9), BeNumerically("~", 21, 1e-9)))
		})
	}
}

func TestATimeThatAPeerDoesNotReportIsNoZero(t *testing.T) {
	g := NewWithT(t)
	j := job{dir: t.TempDir()}
	g.Expect(os.WriteFile(filepath.Join(j.dir, "summary_lifecycle_metrics.json"), []byte(`{"successes": {"count": 8, "latency": {"time_to_first_token": null}}}`), 0o644)).To(Succeed())
	r, err := inferencePerf.read(j, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found(r.TTFT, times{P50: 50, P99: 51})).To(BeNil())
	g.Expect(found(&times{}, times{})).NotTo(BeNil(), "the server did not wait either")
	g.Expect(found(&times{P50: 51, P99: 60}, times{P50: 50, P99: 51})).To(Equal(&times{P50: 51, P99: 60}))
}

func TestTheTruthOfAServersLog(t *testing.T) {
	g := NewWithT(t)
	truth := truthOf([]null.Served{
		{Received: 0, First: 50e6, Last: 250e6, Tokens: 11},
		{Received: 100e6, First: 160e6, Last: 500e6, Tokens: 18},
	})
	g.Expect([]float64{truth.ttft.P50, truth.tpot.P50, truth.seconds, truth.inFlight}).To(Equal([]float64{55, 20, 0.5, 1.3}))
	g.Expect([]int{truth.requests, truth.events}).To(Equal([]int{2, 29}))
}

func TestFiguresAreAMedianAndARange(t *testing.T) {
	g := NewWithT(t)
	g.Expect(figures{3, 1, 2}.String()).To(Equal("2 [1–3]"))
	g.Expect(figures{2, 2, 2}.String()).To(Equal("2"))
	g.Expect(figures{-0.001, 0, 0}.format("%.2f")).To(Equal("0.00"))
	g.Expect(figures{2, 9, 8}.over(figures{1, 3, 2})).To(Equal(figures{2, 3, 4}))
}
