//go:build unix

package main

import (
	"encoding/json"
	"errors"
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

// vllm runs vLLM's client, from the PATH or from the project's own image.
func (b *suite) vllm(n int, p pace) (string, error) {
	dir, err := os.MkdirTemp("", "assay-bench-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	command, err := vllmCommand(dir)
	if err != nil {
		return "", err
	}
	command = append(command, "--backend", "openai-chat", "--base-url", b.url, "--endpoint", p.path(),
		"--model", "null", "--dataset-name", "random", "--random-input-len", "32", "--random-output-len", strconv.Itoa(p.tokens),
		"--num-prompts", strconv.Itoa(n), "--max-concurrency", strconv.Itoa(n), "--ready-check-timeout-sec", "0",
		"--percentile-metrics", "ttft", "--metric-percentiles", "50,99", "--save-result", "--result-filename", "out.json", "--disable-tqdm")
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return "", fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	}
	data, err := os.ReadFile(filepath.Join(dir, "out.json"))
	if err != nil {
		return "", err
	}
	var result struct {
		Completed int      `json:"completed"`
		P50       *float64 `json:"p50_ttft_ms"`
		P99       *float64 `json:"p99_ttft_ms"`
	}
	if err := json.Unmarshal(data, &result); err != nil {
		return "", err
	}
	if result.P50 == nil || result.P99 == nil || result.Completed != n {
		return "", fmt.Errorf("%d of %d requests completed", result.Completed, n)
	}
	return fmt.Sprintf("vllm bench serve: %.1f / %.1f ms", *result.P50, *result.P99), nil
}

// vllmCommand is the beginning of a command line that writes its result into
// dir. The client needs a tokenizer: the folder that ASSAY_BENCH_TOKENIZER
// names, or the model that the images' servers mount.
func vllmCommand(dir string) ([]string, error) {
	const image, volume = "assay/vllm-cpu:0.22.1", "assay-model-smollm2"
	vllm, err := exec.LookPath("vllm")
	tokenizer := os.Getenv("ASSAY_BENCH_TOKENIZER")
	switch {
	case err == nil && tokenizer != "":
		return []string{vllm, "bench", "serve", "--tokenizer", tokenizer, "--result-dir", dir}, nil
	case err == nil:
		return nil, errors.New("it needs a tokenizer's folder in ASSAY_BENCH_TOKENIZER")
	case exec.Command("docker", "image", "inspect", image).Run() != nil || exec.Command("docker", "volume", "inspect", volume).Run() != nil:
		return nil, errors.New("not installed (make images model brings it)")
	}
	command := append([]string{"docker", "run", "--rm", "--network", "host"}, ownCore()...)
	return append(command, "-e", "HF_HUB_OFFLINE=1", "-e", "VLLM_NO_USAGE_STATS=1", "-v", volume+":/model:ro", "-v", dir+":/out",
		"--entrypoint", "vllm", image, "bench", "serve", "--tokenizer", "/model", "--result-dir", "/out"), nil
}
