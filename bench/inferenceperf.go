//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// inferencePerf has a process that keeps the schedule and processes that send;
// one sends here, since there is one core. It asks for plain completions,
// whatever its api says, where its prompts share a beginning. It gives times in
// s.
var inferencePerf = peer{
	name: "inference-perf", folder: "inference-perf",
	arguments: func(j job) ([]string, error) {
		at, err := filepath.Abs(tokenizer)
		if err != nil {
			return nil, err
		}
		config := filepath.Join(j.dir, "config.yml")
		return []string{"inference-perf", "-c", config}, os.WriteFile(config, fmt.Appendf(nil, `api: {type: chat, streaming: true}
data: {type: shared_prefix, shared_prefix: {num_groups: 1, num_prompts_per_group: %[1]d, system_prompt_len: 16, question_len: 16, output_len: %[3]d}}
load: {type: concurrent, stages: [{num_requests: %[1]d, concurrency_level: %[2]d}], num_workers: 1, worker_max_concurrency: %[2]d}
server: {type: vllm, model_name: smollm2, base_url: %[4]q, ignore_eos: true}
tokenizer: {pretrained_model_name_or_path: %[5]q}
storage: {local_storage: {path: %[6]q}}
`, j.Requests, j.Clients, j.Tokens, j.URLs[0], at, j.dir), 0o644)
	},
	read: func(j job, _ []byte) (reported, error) {
		type metric struct {
			Median float64 `json:"median"`
			P99    float64 `json:"p99"`
		}
		var r struct {
			Successes struct {
				Count   int `json:"count"`
				Latency struct {
					TTFT metric `json:"time_to_first_token"`
					TPOT metric `json:"time_per_output_token"`
				} `json:"latency"`
			} `json:"successes"`
		}
		err := fromFile(j, "summary_lifecycle_metrics.json", &r)
		of := r.Successes.Latency
		return reported{Completed: r.Successes.Count, TTFT: &times{of.TTFT.Median * 1e3, of.TTFT.P99 * 1e3}, TPOT: &times{of.TPOT.Median * 1e3, of.TPOT.P99 * 1e3}}, err
	},
}
