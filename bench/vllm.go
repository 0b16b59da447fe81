//go:build unix

package main

import (
	"path/filepath"
	"strconv"
)

// vllm is vLLM's own: one process, asyncio and aiohttp.
var vllm = peer{
	name: "vllm bench serve", folder: "vllm",
	arguments: func(j job) ([]string, error) {
		at, err := filepath.Abs(tokenizer)
		return []string{
			"vllm", "bench", "serve", "--backend", "openai-chat", "--base-url", j.URLs[0], "--endpoint", "/v1/chat/completions",
			"--model", "smollm2", "--tokenizer", at, "--dataset-name", "random", "--random-input-len", "32", "--random-output-len", strconv.Itoa(j.Tokens),
			"--num-prompts", strconv.Itoa(j.Requests), "--max-concurrency", strconv.Itoa(j.Clients), "--ignore-eos", "--ready-check-timeout-sec", "0",
			"--percentile-metrics", "ttft,tpot", "--metric-percentiles", "50,99",
			"--save-result", "--result-dir", j.dir, "--result-filename", "out.json", "--disable-tqdm",
		}, err
	},
	read: func(j job, _ []byte) (reported, error) {
		var r struct {
			Completed int     `json:"completed"`
			TTFT50    float64 `json:"p50_ttft_ms"`
			TTFT99    float64 `json:"p99_ttft_ms"`
			TPOT50    float64 `json:"p50_tpot_ms"`
			TPOT99    float64 `json:"p99_tpot_ms"`
		}
		err := fromFile(j, "out.json", &r)
		return reported{Completed: r.Completed, TTFT: &times{r.TTFT50, r.TTFT99}, TPOT: &times{r.TPOT50, r.TPOT99}}, err
	},
}
