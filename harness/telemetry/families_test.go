package telemetry_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/record"
	"assay/harness/telemetry"
)

// engines are small pages as other engines write them, with numbers that are
// invented.
var engines = map[string]struct {
	page       string
	values     map[string]float64
	histograms []string
}{
	"SGLang": {`# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m",tp_rank="0"} 3.0
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{model_name="m",tp_rank="0"} 2.0
# TYPE sglang:token_usage gauge
sglang:token_usage{model_name="m",tp_rank="0"} 0.25
# TYPE sglang:num_used_tokens gauge
sglang:num_used_tokens{model_name="m",tp_rank="0"} 99.0
# TYPE sglang:num_retracted_requests_total counter
sglang:num_retracted_requests_total{model_name="m"} 1.0
# TYPE sglang:cached_tokens_total counter
sglang:cached_tokens_total{cache_source="device",model_name="m"} 8.0
sglang:cached_tokens_total{cache_source="host",model_name="m"} 4.0
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{is_streaming="true",model_name="m"} 70.0
sglang:generation_tokens_total{is_streaming="false",model_name="m"} 7.0
# TYPE sglang:time_to_first_token_seconds histogram
sglang:time_to_first_token_seconds_sum{model_name="m"} 0.5
sglang:time_to_first_token_seconds_bucket{le="0.1",model_name="m"} 1.0
sglang:time_to_first_token_seconds_bucket{le="+Inf",model_name="m"} 2.0
sglang:time_to_first_token_seconds_count{model_name="m"} 2.0
`, map[string]float64{
		record.Running: 3, record.Waiting: 2, record.KVCacheUse: 0.25, record.Preemptions: 1, record.PrefixHits: 12, record.Generated: 77,
	}, []string{record.TTFTHistogram}},
	"TGI": {`# TYPE tgi_batch_current_size gauge
tgi_batch_current_size 3
# TYPE tgi_queue_size gauge
tgi_queue_size 2
# TYPE tgi_request_generated_tokens histogram
tgi_request_generated_tokens_bucket{le="+Inf"} 1
tgi_request_generated_tokens_sum 40
tgi_request_generated_tokens_count 1
`, map[string]float64{record.Running: 3, record.Waiting: 2}, nil},
	"llama.cpp": {`# HELP llamacpp:tokens_predicted_total Number of generation tokens processed.
# TYPE llamacpp:tokens_predicted_total counter
llamacpp:tokens_predicted_total 77
# HELP llamacpp:requests_processing Number of requests processing.
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 3
# HELP llamacpp:requests_deferred Number of requests deferred.
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 2
`, map[string]float64{record.Running: 3, record.Waiting: 2, record.Generated: 77}, nil},
}

func TestOtherEnginesPagesAreKeptByOneSetOfNames(t *testing.T) {
	for name, engine := range engines {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			page, err := telemetry.ParsePage([]byte(engine.page))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(page.Values).To(Equal(engine.values))
			g.Expect(page.Histograms).To(HaveLen(len(engine.histograms)))
			for _, name := range engine.histograms {
				g.Expect(page.Histograms).To(HaveKeyWithValue(name, HaveField("Count", 2.0)))
			}
		})
	}
}

func TestOtherEnginesGaugesSayWhetherTheyAreIdle(t *testing.T) {
	for name, engine := range engines {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			gauges, err := telemetry.ReadGauges(t.Context(), page(t, engine.page))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect([]int{*gauges.Running, *gauges.Waiting}).To(Equal([]int{3, 2}))
			g.Expect(gauges.Generated).To(BeNil(), "counted at a request's end, it says nothing of who left")
			g.Expect(gauges.Idle()).To(BeFalse())
		})
	}
	g := NewWithT(t)
	gauges, err := telemetry.ReadGauges(t.Context(), page(t, "llamacpp:requests_processing 0\nllamacpp:requests_deferred 0\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(gauges.Idle()).To(BeTrue())
}

func TestTwoEnginesOnOnePageAreNotAdded(t *testing.T) {
	g := NewWithT(t)
	text := "llamacpp:requests_processing 7\nvllm:num_requests_running 1\nvllm:num_requests_waiting 0\nvllm:generation_tokens_total 5\nllamacpp:tokens_predicted_total 9\n"
	parsed, err := telemetry.ParsePage([]byte(text))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parsed.Values).To(Equal(map[string]float64{record.Running: 1, record.Waiting: 0, record.Generated: 5}))
	gauges, err := telemetry.ReadGauges(t.Context(), page(t, text))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(gauges.Generated).To(HaveValue(Equal(5)), "vLLM counts as it goes")
}
