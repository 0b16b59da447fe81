//go:build unix

package main

import (
	"errors"
	"fmt"
	"path/filepath"
)

// guidellm has processes that make prompts and send; one sends here, since
// there is one core. What it calls its inter-token latency is (last token −
// first token) / (tokens − 1) a request, which is TPOT here; what it calls time
// per output token is the whole latency over the tokens.
var guidellm = peer{
	name: "guidellm", folder: "guidellm",
	arguments: func(j job) ([]string, error) {
		at, err := filepath.Abs(tokenizer)
		return []string{
			"guidellm", "run", "--backend", "kind=openai_http,target=" + j.URLs[0] + ",model=smollm2",
			"--profile", fmt.Sprintf("kind=concurrent,streams=%d", j.Clients), "--constraint", fmt.Sprintf("kind=max_requests,count=%d", j.Requests),
			"--tokenizer", "kind=huggingface_auto,model=" + at, "--data", fmt.Sprintf("kind=synthetic_text,prompt_tokens=32,output_tokens=%d", j.Tokens),
			"--output", "kind=json,path=" + filepath.Join(j.dir, "out.json"), "--disable-console",
		}, err
	},
	environment: func(job) []string { return []string{"GUIDELLM__MAX_WORKER_PROCESSES=1"} },
	read: func(j job, _ []byte) (reported, error) {
		type metric struct {
			Successful struct {
				Count       int     `json:"count"`
				Median      float64 `json:"median"`
				Percentiles struct {
					P99 float64 `json:"p99"`
				} `json:"percentiles"`
			} `json:"successful"`
		}
		var r struct {
			Benchmarks []struct {
				Metrics struct {
					TTFT metric `json:"time_to_first_token_ms"`
					ITL  metric `json:"inter_token_latency_ms"`
				} `json:"metrics"`
			} `json:"benchmarks"`
		}
		if err := fromFile(j, "out.json", &r); err != nil {
			return reported{}, err
		}
		if len(r.Benchmarks) == 0 {
			return reported{}, errors.New("its result holds no benchmark")
		}
		ttft, tpot := r.Benchmarks[0].Metrics.TTFT.Successful, r.Benchmarks[0].Metrics.ITL.Successful
		return reported{Completed: ttft.Count, TTFT: &times{ttft.Median, ttft.Percentiles.P99}, TPOT: &times{tpot.Median, tpot.Percentiles.P99}}, nil
	},
}
