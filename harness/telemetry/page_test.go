package telemetry_test

import (
	_ "embed"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/record"
	"assay/harness/telemetry"
)

// Pages of a real vLLM 0.22.1, as it serves three requests and once it has.
var (
	//go:embed testdata/vllm-0.22.1-busy.txt
	busy []byte
	//go:embed testdata/vllm-0.22.1-idle.txt
	idle []byte
)

func TestARealPage(t *testing.T) {
	g := NewWithT(t)
	page, err := telemetry.ParsePage(busy)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(page.Values).To(HaveKeyWithValue(record.Running, 3.0))
	g.Expect(page.Values).To(HaveKeyWithValue(record.Waiting, 0.0))
	page, err = telemetry.ParsePage(idle)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(page.Values).To(HaveKeyWithValue(record.Running, 0.0))
	for _, name := range []string{record.Generated, record.Preemptions, record.PrefixHits, record.KVCacheUse, "vllm:request_success_total", "vllm:prompt_tokens_total"} {
		g.Expect(page.Values).To(HaveKey(name))
	}
	ttft := page.Histograms[record.TTFTHistogram]
	g.Expect(ttft.Count).To(BeNumerically(">=", 3))
	g.Expect(ttft.Sum).To(BeNumerically(">", 0))
	g.Expect(ttft.Buckets[len(ttft.Buckets)-1]).To(Equal(record.Bucket{Upper: "+Inf", Count: ttft.Count}))
}

func TestWhatIsNotKeptIsNotRead(t *testing.T) {
	g := NewWithT(t)
	page, err := telemetry.ParsePage([]byte("# TYPE other gauge\nother this is no number\nvllm:num_requests_running{engine=\"0\"} 2\nvllm:num_requests_running{engine=\"1\"} 3\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(page.Values).To(Equal(map[string]float64{record.Running: 5}))
}

func TestANumberThatIsNone(t *testing.T) {
	g := NewWithT(t)
	page, err := telemetry.ParsePage([]byte("vllm:num_requests_running NaN\nvllm:num_requests_waiting +Inf\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(page.Values).To(BeEmpty())
}

func TestHistogramsThatDoNotFitAreNotAdded(t *testing.T) {
	g := NewWithT(t)
	name := record.TTFTHistogram
	text := "# TYPE " + name + " histogram\n" +
		strings.NewReplacer("N", name).Replace("N_bucket{e=\"0\",le=\"1\"} 1\nN_bucket{e=\"0\",le=\"+Inf\"} 1\nN_sum{e=\"0\"} 1\nN_count{e=\"0\"} 1\n"+
			"N_bucket{e=\"1\",le=\"2\"} 1\nN_bucket{e=\"1\",le=\"+Inf\"} 1\nN_sum{e=\"1\"} 1\nN_count{e=\"1\"} 1\n")
	page, err := telemetry.ParsePage([]byte(text))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(page.Histograms).To(BeEmpty())
}

func FuzzParsePage(f *testing.F) {
	f.Add(busy)
	f.Add([]byte("vllm:num_requests_running 1"))
	for _, engine := range engines {
		f.Add([]byte(engine.page))
	}
	f.Add([]byte("# TYPE vllm:time_to_first_token_seconds histogram\nvllm:time_to_first_token_seconds_bucket{le=\"x\"} 1\n"))
	f.Add([]byte("# \n#\n{}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		page, err := telemetry.ParsePage(text)
		if err != nil {
			return
		}
		for name, v := range page.Values {
			if v != v {
				t.Errorf("%s is no number", name)
			}
		}
	})
}
