package recordtest

import (
	"strings"

	"assay/harness/plan"
	"assay/harness/record"
)

// WatchedPlan is the fixture's plan with a candidate on a GPU, a
// baseline without a metrics page, everything
// looked at, and gates in YAML's flow style, such as "engine_tokens: 0%".
func WatchedPlan(gates string) *plan.Plan {
	return Plan(
		"engine: {emulated: {parameters: t4-naive}}", `engine: {emulated: {parameters: t4-naive}, metrics: ""}`,
		"engine: {emulated: {parameters: t4-vllm}}", "engine: {container: {image: vllm, gpus: all}}",
		"claims:", "telemetry: {gpu: 100ms, engine: 1s}\ngates: {"+gates+"}\nclaims:",
	)
}

// Look adds to a run what a GPU and an engine say over the waves of one of its
// lifecycles, ten looks each, the first before the release and the last after
// the end: 300 W, and counters that agree with the client's.
func Look(run *record.Run, lifecycle int) {
	for _, w := range run.Waves {
		if w.Lifecycle != lifecycle || w.ReleasedAt == nil {
			continue
		}
		end, tokens, sum, n := *w.ReleasedAt, 0, 0.0, 0
		for _, r := range run.Of(w).Attempts {
			end = max(end, r.EndedAt)
			if r.OutputTokens != nil {
				tokens += *r.OutputTokens
			}
			if r.FirstTokenAt != nil {
				sum, n = sum+float64(*r.FirstTokenAt-*r.SentAt)/1e9, n+1
			}
		}
		chain := record.Chain{Schema: record.TelemetrySchema, PlanSHA256: w.PlanSHA256, ScheduleSHA256: w.ScheduleSHA256}
		stretch := record.Stretch{Lifecycle: lifecycle, Arm: w.Arm, Wave: w.Number, Interval: 100 * ms, Failed: []record.FailedLook{}}
		step := (end - *w.ReleasedAt) / 8
		run.Telemetry = append(run.Telemetry, gpu(chain, stretch, *w.ReleasedAt-step/2, step))
		page := func(at int64, tokens, sum, n float64) *record.Page {
			return &record.Page{
				At: at, Values: map[string]float64{record.Generated: tokens, record.Preemptions: 0, record.PrefixHits: 0},
				Histograms: map[string]record.Histogram{record.TTFTHistogram: {Count: n, Sum: sum, Buckets: []record.Bucket{{Upper: "+Inf", Count: n}}}},
			}
		}
		peak := float64(w.Tier)
		chain.Schema, stretch.Interval = record.EngineMetricsSchema, second
		stretch.At, stretch.Took = []int64{*w.ReleasedAt + step}, []int64{1}
		run.EngineMetrics = append(run.EngineMetrics, record.EngineMetrics{
			Chain: chain, Stretch: stretch, Series: map[string][]*float64{record.Running: {&peak}}, Nulls: map[string]string{},
			Before: page(*w.ReleasedAt, 1000, 7, 70), After: page(end, 1000+float64(tokens), 7+sum, 70+float64(n)),
		})
	}
}

func gpu(chain record.Chain, s record.Stretch, from, step int64) record.Telemetry {
	t := record.Telemetry{Chain: chain, Stretch: s, Commitment: strings.Repeat("ab", 32), Series: map[string][]*int64{}, Nulls: map[string]string{}}
	for i := range int64(10) {
		at := from + i*step
		t.At, t.Took = append(t.At, at), append(t.Took, 1)
		for _, reading := range record.Readings {
			value := int64(1)
			switch reading {
			case record.Energy: // 300 W is 300 mJ a ms
				value = at * 300 / ms
			case record.Power:
				value = 300_000
			case record.MemoryUsed:
				value = 1<<30 + i
			case record.OtherProcesses, record.UnknownProcesses, record.OtherProcessMemory, record.Throttle:
				value = 0
			}
			t.Series[string(reading)] = append(t.Series[string(reading)], &value)
		}
	}
	return t
}
