package reports

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
)

// beside is what was seen of GPUs and engines while they served, by arm and
// tier, or by arm and lane.
func beside(b Bundle) []string {
	type key struct {
		where string
		arm   string
	}
	var order []key
	of := map[key][]metric.Wave{}
	for _, w := range b.Summary.Waves {
		if w.Watched == nil || w.Warmup {
			continue
		}
		k := key{record.Clients(w.Tier), w.Arm}
		switch {
		case w.Open && w.Probe > 0:
			k.where = "search"
		case w.Open:
			k.where = record.Rate(w.Rate)
		}
		if b.Plan.Pairing != nil {
			k.where = string(laneOf(b, w)) + " lane"
		}
		if of[k] == nil {
			order = append(order, k)
		}
		of[k] = append(of[k], w)
	}
	var lines []string
	for _, k := range order {
		var parts []string
		if text := gpusOf(of[k]); text != "" {
			parts = append(parts, text)
		}
		if text := engineOf(of[k]); text != "" {
			parts = append(parts, text)
		}
		if len(parts) > 0 {
			lines = append(lines, fmt.Sprintf("%s, %s: %s.", k.where, k.arm, strings.Join(parts, "; ")))
		}
	}
	if len(lines) > 0 {
		lines = append(lines, howSampled(*b.Plan.Telemetry))
	}
	return lines
}

// howSampled says what a peak is worth, and what an energy is of.
func howSampled(t plan.Telemetry) string {
	var of []string
	if t.GPU > 0 {
		of = append(of, fmt.Sprintf("%s apart at a GPU", t.GPU))
	}
	if t.Engine > 0 {
		of = append(of, fmt.Sprintf("%s apart at an engine", t.Engine))
	}
	text := "A peak is a sampled one, of looks " + strings.Join(of, " and ") + ": between two of them it may have been higher."
	if t.GPU > 0 {
		text += " Energy is the growth of the GPU's own counter; it is the whole board's, whatever runs on it."
	}
	return text
}

func laneOf(b Bundle, w metric.Wave) plan.Lane {
	for _, l := range b.Summary.Lifecycles {
		if l.Number == w.Lifecycle {
			return l.Lane
		}
	}
	return ""
}

// gpusOf sums up the GPUs over waves: the highest peak, the lowest clock, the
// range of the energies.
func gpusOf(waves []metric.Wave) string {
	var memory, power, busy, clock, energy, token []float64
	slowed := map[string]bool{}
	looks, devices := 0, 0
	keep := func(to *[]float64, v metric.Value, scale float64) {
		if v.Value != nil {
			*to = append(*to, *v.Value*scale)
		}
	}
	for _, w := range waves {
		devices = max(devices, len(w.Watched.GPUs))
		for _, g := range w.Watched.GPUs {
			looks += g.Looks
			keep(&memory, g.PeakMemory, 1.0/(1<<20))
			keep(&power, g.PeakPower, 1)
			keep(&busy, g.Busy, 100)
			keep(&clock, g.LowClock, 1)
			keep(&energy, g.Energy, 1)
			keep(&token, g.EnergyPerToken, 1)
			for _, s := range g.Slowed {
				slowed[s] = true
			}
		}
	}
	if devices == 0 {
		return ""
	}
	parts := []string{fmt.Sprintf("%d looks at %d GPU(s)", looks, devices)}
	say := func(values []float64, format string, pick func([]float64) float64) {
		if len(values) > 0 {
			parts = append(parts, fmt.Sprintf(format, pick(values)))
		}
	}
	highest, lowest := slices.Max[[]float64], slices.Min[[]float64]
	say(memory, "sampled peak memory %.0f MiB", highest)
	say(power, "sampled peak power %.0f W", highest)
	say(busy, "utilisation up to %.0f %% (mean of a wave's looks)", highest)
	say(clock, "SM clock no lower than %.0f MHz when looked at", lowest)
	if len(energy) > 0 {
		parts = append(parts, fmt.Sprintf("energy of a wave %s J (n = %d)", extent(energy), len(energy)))
	}
	if len(token) > 0 {
		parts = append(parts, fmt.Sprintf("%s J for an output token", extent(token)))
	}
	if len(slowed) > 0 {
		parts = append(parts, "slowed down for "+strings.Join(slices.Sorted(maps.Keys(slowed)), ", "))
	}
	return strings.Join(parts, ", ")
}

// engineOf sums up the engine's account over waves, beside the client's.
func engineOf(waves []metric.Wave) string {
	var running, kv, apart []float64
	looks, preempted := 0, 0.0
	engine, client, counted := 0.0, 0.0, 0
	for _, w := range waves {
		e := w.Watched.Engine
		if e == nil {
			continue
		}
		looks += e.Looks
		if v := e.PeakRunning.Value; v != nil {
			running = append(running, *v)
		}
		if v := e.PeakKV.Value; v != nil {
			kv = append(kv, *v)
		}
		if v := e.Preemptions.Value; v != nil {
			preempted += *v
		}
		if e.EngineTTFT.Value != nil && e.ClientTTFT.Value != nil && e.EngineTTFT.N == e.ClientTTFT.N {
			apart = append(apart, (*e.ClientTTFT.Value-*e.EngineTTFT.Value)*1e3)
		}
		if e.EngineTokens.Value != nil && e.ClientTokens.Value != nil {
			engine, client, counted = engine+*e.EngineTokens.Value, client+*e.ClientTokens.Value, counted+1
		}
	}
	if looks == 0 && counted == 0 {
		return ""
	}
	parts := []string{fmt.Sprintf("%d looks at the engine", looks)}
	if len(running) > 0 {
		parts = append(parts, fmt.Sprintf("sampled peak %.0f requests running", slices.Max(running)))
	}
	if len(kv) > 0 {
		parts = append(parts, fmt.Sprintf("KV cache up to %.1f %%", float64(slices.Max(kv)*100)))
	}
	if preempted > 0 {
		parts = append(parts, fmt.Sprintf("%.0f preemptions", preempted))
	}
	if counted > 0 {
		parts = append(parts, fmt.Sprintf("output tokens by the engine %.0f, by the client %.0f (%d waves)", engine, client, counted))
	}
	if len(apart) > 0 {
		parts = append(parts, fmt.Sprintf("mean TTFT of a wave by the client minus by the engine %s ms", extent(apart)))
	}
	return strings.Join(parts, ", ")
}

// extent writes the smallest and the largest of some values.
func extent(values []float64) string {
	low, high := fmt.Sprintf("%.3g", slices.Min(values)), fmt.Sprintf("%.3g", slices.Max(values))
	if low == high {
		return low
	}
	return low + " to " + high
}

// gpuNames are a lifecycle's GPUs by what they are; which ones, their
// commitments in lifecycles.jsonl say.
func gpuNames(l record.Lifecycle) []string {
	var out []string
	for i := 0; ; i++ {
		f, ok := l.Identity[fmt.Sprintf("gpu_%d", i)]
		facts, is := f.Value.(map[string]any)
		if !ok || !is {
			return out
		}
		out = append(out, fmt.Sprintf("GPU %d %v, compute capability %v", i, facts["name"], facts["compute_capability"]))
	}
}
