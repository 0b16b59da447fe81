package metric_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/harness/record/recordtest"
)

const vllm = 2 // the lifecycle that is looked at

func watchedRun(t *testing.T, p *plan.Plan, o recordtest.Options) record.Run {
	run := chained(t, p, o)
	recordtest.Look(&run, vllm)
	return run
}

func TestWhatWasSeenBesideAWave(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.WatchedPlan("engine_ttft: 1ms, engine_tokens: 0%")
	run := watchedRun(t, p, recordtest.Options{})
	s := metric.Summarize(p, run)
	for _, w := range s.Waves {
		if w.Lifecycle != vllm {
			g.Expect(w.Watched.GPUs).To(BeEmpty(), "that server has no GPU")
			continue
		}
		g.Expect(w.Validity.Reasons).To(BeEmpty())
		gpu, engine := w.Watched.GPUs[0], w.Watched.Engine
		g.Expect(gpu.Looks).To(Equal(8), "the first look was before the release, the last after the end")
		g.Expect(*gpu.PeakPower.Value).To(Equal(300.0))
		g.Expect(*gpu.PeakMemory.Value).To(BeNumerically("~", 1<<30, 10))
		g.Expect(gpu.PeakMemory.Provenance).To(Equal(record.DeviceReported))
		// 300 W over the wall, to the millijoule of the counter.
		g.Expect(*gpu.Energy.Value).To(BeNumerically("~", *w.Wall.Value*300, 0.003))
		g.Expect(*gpu.EnergyPerToken.Value).To(BeNumerically("~", *gpu.Energy.Value / *engine.ClientTokens.Value, 1e-6))
		g.Expect(*engine.PeakRunning.Value).To(Equal(float64(w.Tier)))
		g.Expect(*engine.EngineTokens.Value).To(Equal(*engine.ClientTokens.Value))
		g.Expect(*engine.EngineTTFT.Value).To(BeNumerically("~", *engine.ClientTTFT.Value, 1e-6))
		g.Expect(*engine.Preemptions.Value).To(BeZero())
	}
}

// erase takes a quantity out of a GPU's looks.
func erase(t *record.Telemetry, r record.Reading) {
	for i := range t.Series[string(r)] {
		t.Series[string(r)][i] = nil
	}
	t.Nulls[string(r)] = "not supported"
}

func TestTheGatesOnWhatWasSeen(t *testing.T) {
	for name, c := range map[string]struct {
		gates   string
		change  func(*record.Run)
		against string // a reason of the validity; empty: none
		note    string
	}{
		"two means that differ": {"engine_ttft: 1ms", func(r *record.Run) {
			h := r.EngineMetrics[1].After.Histograms[record.TTFTHistogram]
			h.Sum += 1
			r.EngineMetrics[1].After.Histograms[record.TTFTHistogram] = h
		}, "engine_ttft: the mean TTFT is", ""},
		"means of different requests": {"engine_ttft: 1ms", func(r *record.Run) {
			h := r.EngineMetrics[1].After.Histograms[record.TTFTHistogram]
			h.Count++
			r.EngineMetrics[1].After.Histograms[record.TTFTHistogram] = h
		}, "engine_ttft was not checked: the engine saw the first tokens of", ""},
		"an engine that counted other tokens": {"engine_tokens: 1%", func(r *record.Run) { r.EngineMetrics[1].After.Values[record.Generated]++ },
			"engine_tokens: the client counted", ""},
		"a page that is missing": {"engine_tokens: 1%", func(r *record.Run) {
			r.EngineMetrics[1].After, r.EngineMetrics[1].Nulls["after"] = nil, "/metrics answered 404"
		}, "engine_tokens was not checked: /metrics answered 404", ""},
		"a counter that went back": {"engine_tokens: 1%", func(r *record.Run) { r.EngineMetrics[1].Before.Values[record.Generated] = 1e9 },
			"engine_tokens was not checked: the engine's counter went back, from 1e+09 to", ""},
		"a counter that appeared": {"engine_tokens: 1%", func(r *record.Run) { delete(r.EngineMetrics[1].Before.Values, record.Generated) },
			"engine_tokens was not checked: the engine's page did not have it before the wave", ""},
		"an engine still at work": {"engine_tokens: 1%", func(r *record.Run) { r.EngineMetrics[1].After.Idle = new(bool) },
			"engine_tokens was not checked: the engine was still at work when its page was read", ""},
		"a GPU that is too hot, reported": {"throttled: report", func(r *record.Run) { *r.Telemetry[1].Series["throttle_reasons"][3] = 0x40 },
			"", "throttled: GPU 0 ran slower than it can, for [hw_thermal_slowdown]"},
		"a GPU that is too hot": {"throttled: invalid", func(r *record.Run) { *r.Telemetry[1].Series["throttle_reasons"][3] = 0x40 | 1 },
			"throttled: GPU 0 ran slower than it can, for [hw_thermal_slowdown]", ""},
		"a GPU that idles":     {"throttled: invalid", func(r *record.Run) { *r.Telemetry[1].Series["throttle_reasons"][3] = 1 }, "", ""},
		"heat before the wave": {"throttled: invalid", func(r *record.Run) { *r.Telemetry[1].Series["throttle_reasons"][0] = 0x40 }, "", ""},
		"a GPU that does not say why it is slow": {"throttled: invalid", func(r *record.Run) { erase(&r.Telemetry[1], record.Throttle) },
			"throttled was not checked on GPU 0: not supported", ""},
		"the same, reported": {"throttled: report", func(r *record.Run) { erase(&r.Telemetry[1], record.Throttle) },
			"", "throttled was not checked on GPU 0: not supported"},
		"nobody's process": {"shared_gpu: invalid", func(r *record.Run) { *r.Telemetry[1].Series["unknown_processes"][3] = 1 },
			"shared_gpu was not checked on GPU 0: up to 1 processes on it are nobody's that this machine can tell", ""},
		"processes that can't be listed": {"shared_gpu: invalid", func(r *record.Run) { erase(&r.Telemetry[1], record.OtherProcesses) },
			"shared_gpu was not checked on GPU 0: not supported", ""},
		"a wave between two looks": {"shared_gpu: invalid, throttled: invalid", func(r *record.Run) {
			t := &r.Telemetry[1]
			t.At, t.Took = t.At[:1], t.Took[:1]
			for name := range t.Series {
				t.Series[name] = t.Series[name][:1]
			}
		}, "", "shared_gpu was not checked on GPU 0: no look fell into the wave"},
		"a wave whose looks asked for power alone": {"shared_gpu: invalid, throttled: invalid", func(r *record.Run) {
			t := &r.Telemetry[1]
			for _, reading := range []record.Reading{record.OtherProcesses, record.UnknownProcesses, record.Throttle} {
				erase(t, reading)
				t.Nulls[string(reading)] = record.NotLooked
			}
		}, "", "shared_gpu was not checked on GPU 0: no look fell into the wave"},
		"one look of many that asked for more": {"shared_gpu: invalid", func(r *record.Run) {
			t := &r.Telemetry[1]
			erase(t, record.OtherProcesses)
			t.Nulls[string(record.OtherProcesses)] = record.NotLooked
			others := int64(2)
			t.Series[string(record.OtherProcesses)][1] = &others
		}, "shared_gpu: up to 2 processes that are not the server's were on GPU 0", ""},
		"somebody else": {"shared_gpu: invalid", func(r *record.Run) { *r.Telemetry[1].Series["other_processes"][3] = 2 },
			"shared_gpu: up to 2 processes that are not the server's were on GPU 0", ""},
		"a GPU that was lost": {"shared_gpu: invalid", func(r *record.Run) {
			r.Telemetry[1].Failed = []record.FailedLook{{At: 1, Times: 3, Reason: "the GPU has fallen off the bus"}}
		}, "", "telemetry: 3 looks at GPU 0 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := recordtest.WatchedPlan(c.gates)
			run := watchedRun(t, p, recordtest.Options{})
			c.change(&run)
			s := metric.Summarize(p, run)
			var w metric.Wave
			for _, is := range s.Waves {
				if is.Lifecycle == vllm && is.Number == 2 {
					w = is
				}
			}
			if c.against == "" {
				g.Expect(w.Validity.Reasons).To(BeEmpty())
			} else {
				g.Expect(w.Validity.Reasons).To(ContainElement(ContainSubstring(c.against)))
				g.Expect(s.Validity.Valid).To(BeFalse())
			}
			if c.note != "" {
				g.Expect(w.Validity.Notes).To(ContainElement(ContainSubstring(c.note)))
			}
		})
	}
}

func TestAClientWithoutAProcessorLeftIsSaturated(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.WatchedPlan("")
	run := watchedRun(t, p, recordtest.Options{})
	share := 0.97
	for i := range run.Waves {
		run.Waves[i].Client.Busiest = &share
	}
	for _, w := range metric.Summarize(p, run).Waves {
		if w.Lifecycle == vllm {
			g.Expect(w.Validity.Reasons).To(ConsistOf(ContainSubstring("client_saturated: cpu: the client used 97 % of the processors")))
		} else {
			g.Expect(w.Validity.Reasons).To(BeEmpty(), "an emulated server is part of this process")
		}
	}
}

func TestTokensOfFailedAttemptsAreHeldAgainstNobody(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.WatchedPlan("engine_tokens: 0%")
	run := watchedRun(t, p, recordtest.Options{Fails: func(r record.Request) bool { return r.Lifecycle == vllm && r.Tier == 4 && r.Ordinal == 1 }, Partial: func(record.Request) int { return 1 }})
	for i := range run.EngineMetrics {
		run.EngineMetrics[i].After.Values[record.Generated] += 3 // which nobody was sent
	}
	noted := 0
	for _, w := range metric.Summarize(p, run).Waves {
		if w.Lifecycle == vllm && w.Tier == 4 {
			g.Expect(w.Validity.Notes).To(ContainElement(ContainSubstring("engine_tokens was not checked: 1 attempts failed")))
			noted++
		}
	}
	g.Expect(noted).To(Equal(2))
}

func TestAnEnergyCounterThatCanNotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*record.Telemetry)
		reason string
	}{
		"none": {func(t *record.Telemetry) {
			for i := range t.Series["energy_mj"] {
				t.Series["energy_mj"][i] = nil
			}
			t.Nulls["energy_mj"] = "this device does not support it"
		}, "this device does not support it"},
		"no look after the wave": {func(t *record.Telemetry) {
			for i := range t.Series["energy_mj"] {
				if i > 4 {
					t.Series["energy_mj"][i] = nil
				}
			}
		}, "no look on either side of the wave"},
		"backwards": {func(t *record.Telemetry) {
			for i, v := range t.Series["energy_mj"] {
				*v = int64(1000 - i)
			}
		}, "the GPU's counter went backwards"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := recordtest.WatchedPlan("")
			run := watchedRun(t, p, recordtest.Options{})
			run.Telemetry = run.Telemetry[:1]
			c.change(&run.Telemetry[0])
			for _, w := range metric.Summarize(p, run).Waves {
				if w.Lifecycle == vllm && w.Number == 1 {
					g.Expect(w.Watched.GPUs[0].Energy.Value).To(BeNil())
					g.Expect(w.Watched.GPUs[0].Energy.Reason).To(Equal(c.reason))
					g.Expect(w.Watched.GPUs[0].EnergyPerToken.Reason).To(ContainSubstring(c.reason))
				}
			}
		})
	}
}
