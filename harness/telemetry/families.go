package telemetry

import (
	dto "github.com/prometheus/client_model/go"

	"assay/harness/record"
)

// vllm are the families of vLLM's page that are kept, under their own names. Of
// a pair the second is an older version's name of the first.
var vllm = []string{
	record.Running, record.Waiting, record.KVCacheUse, "vllm:gpu_cache_usage_perc",
	"vllm:prefix_cache_queries_total", record.PrefixHits, record.Preemptions,
	"vllm:prompt_tokens_total", record.Generated, "vllm:request_success_total",
	record.TTFTHistogram, "vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds", "vllm:e2e_request_latency_seconds",
	"vllm:request_queue_time_seconds", "vllm:request_prefill_time_seconds", "vllm:request_decode_time_seconds",
}

// alias is another engine's family that says what one of vLLM's does.
type alias struct {
	name string
	as   string
	// late: it grows when a request has ended, and not as it is worked on. What
	// it grew by between two looks may have been made before the first.
	late bool
}

// aliases are as the engines' sources have them: SGLang 0.5.23
// (srt/observability/metrics_collector.py), Text Generation Inference 3
// (docs/source/reference/metrics.md) and llama.cpp (tools/server/server-task.cpp,
// as vendored in llama-cpp-python 0.3.36). What is not here has no counterpart
// with the same meaning: TGI's generated tokens, for one, are a histogram over
// requests that were completed.
var aliases = []alias{
	{name: "sglang:num_running_reqs", as: record.Running},
	{name: "sglang:num_queue_reqs", as: record.Waiting},
	{name: "sglang:token_usage", as: record.KVCacheUse},
	{name: "sglang:generation_tokens_total", as: record.Generated, late: true},
	{name: "sglang:num_retracted_requests_total", as: record.Preemptions},
	{name: "sglang:cached_tokens_total", as: record.PrefixHits, late: true},
	{name: "sglang:time_to_first_token_seconds", as: record.TTFTHistogram},
	{name: "tgi_batch_current_size", as: record.Running},
	{name: "tgi_queue_size", as: record.Waiting},
	{name: "llamacpp:requests_processing", as: record.Running},
	{name: "llamacpp:requests_deferred", as: record.Waiting},
	{name: "llamacpp:tokens_predicted_total", as: record.Generated, late: true},
}

var keptFamilies = func() map[string]bool {
	out := map[string]bool{}
	for _, name := range vllm {
		out[name] = true
	}
	for _, a := range aliases {
		out[a.name] = true
	}
	return out
}()

// named puts what other engines say beside what vLLM's names say, where a page
// does not have those. It returns the names that are late.
func named(families map[string]*dto.MetricFamily) (late map[string]bool) {
	late = map[string]bool{}
	for _, a := range aliases {
		f := families[a.name]
		delete(families, a.name)
		if f == nil || families[a.as] != nil {
			continue
		}
		families[a.as], late[a.as] = f, a.late
	}
	return late
}
