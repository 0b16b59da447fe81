//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"assay/harness/metric"
)

// peer compares TTFT in a burst with vLLM's own client, where that is
// installed. Both figures hold the server's accept queue as well.
func (b *suite) peer(n int, p pace) row {
	s := b.setup(p)
	raws := s.wave(n, nothing)
	conv := s.conversion()
	var ttfts []float64
	for _, raw := range raws {
		if v, reason := metric.TTFT(decoded(raw, &conv)); reason == "" {
			ttfts = append(ttfts, float64(v)/1e6)
		}
	}
	theirs, err := b.vllm(n, p)
	if err != nil {
		theirs = "vllm bench serve: " + err.Error()
	}
	return row{
		fmt.Sprintf("TTFT p50 / p99 in a burst of %d: %s, and the server's accept queue", n, p.first),
		fmt.Sprintf("%.1f / %.1f ms", metric.Percentile(ttfts, 50), metric.Percentile(ttfts, 99)), theirs, "none", "",
	}
}

func (b *suite) vllm(n int, p pace) (string, error) {
	vllm, err := exec.LookPath("vllm")
	if err != nil {
		return "", fmt.Errorf("not installed")
	}
	tokenizer := os.Getenv("ASSAY_BENCH_TOKENIZER")
	if tokenizer == "" {
		return "", fmt.Errorf("it needs a tokenizer's folder in ASSAY_BENCH_TOKENIZER")
	}
	dir, err := os.MkdirTemp("", "assay-bench-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	out, err := exec.Command(vllm, "bench", "serve", "--backend", "openai-chat", "--base-url", b.url, "--endpoint", p.path(),
		"--model", "null", "--tokenizer", tokenizer, "--dataset-name", "random", "--random-input-len", "32", "--random-output-len", strconv.Itoa(p.tokens),
		"--num-prompts", strconv.Itoa(n), "--max-concurrency", strconv.Itoa(n), "--ready-check-timeout-sec", "0",
		"--percentile-metrics", "ttft", "--metric-percentiles", "50,99", "--save-result", "--result-dir", dir, "--result-filename", "out.json", "--disable-tqdm").CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return "", fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	}
	data, err := os.ReadFile(filepath.Join(dir, "out.json"))
	if err != nil {
		return "", err
	}
	var result struct {
		P50 *float64 `json:"p50_ttft_ms"`
		P99 *float64 `json:"p99_ttft_ms"`
	}
	if err := json.Unmarshal(data, &result); err != nil {
		return "", err
	}
	if result.P50 == nil || result.P99 == nil {
		return "", fmt.Errorf("its result has no p50_ttft_ms and p99_ttft_ms")
	}
	return fmt.Sprintf("vllm bench serve: %.1f / %.1f ms", *result.P50, *result.P99), nil
}
