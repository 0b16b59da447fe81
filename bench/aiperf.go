//go:build unix

package main

import "strconv"

// aiperf has seven processes or more; one of them sends here, since there is
// one core. What it calls inter-token latency is (latency − TTFT) / (tokens − 1)
// a request, which is TPOT here. It takes a tokenizer by the name that a model
// hub's cache has it under.
var aiperf = peer{
	name: "aiperf", folder: "aiperf",
	arguments: func(j job) ([]string, error) {
		return []string{
			"aiperf", "profile", "-m", "smollm2", "--tokenizer", "local/smollm2", "--url", j.URLs[0], "--endpoint-type", "chat", "--streaming",
			"--concurrency", strconv.Itoa(j.Clients), "--request-count", strconv.Itoa(j.Requests), "--isl", "32", "--osl", strconv.Itoa(j.Tokens),
			"--extra-inputs", "ignore_eos:true", "--ui", "none", "--no-gpu-telemetry", "--no-server-metrics",
			"--artifact-dir", j.dir, "--workers-max", "1",
		}, nil
	},
	read: func(j job, _ []byte) (reported, error) {
		type metric struct{ P50, P99 float64 }
		var r struct {
			Requests struct{ Avg float64 } `json:"request_count"`
			TTFT     metric                `json:"time_to_first_token"`
			ITL      metric                `json:"inter_token_latency"`
		}
		err := fromFile(j, "profile_export_aiperf.json", &r)
		return reported{Completed: int(r.Requests.Avg), TTFT: &times{r.TTFT.P50, r.TTFT.P99}, TPOT: &times{r.ITL.P50, r.ITL.P99}}, err
	},
}
