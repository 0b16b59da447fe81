package metric

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"assay/harness/record"
)

// Watched is what was seen beside a wave's load.
type Watched struct {
	GPUs   []GPU       `json:"gpus,omitempty"`   // one for each that was looked at
	Engine *EngineView `json:"engine,omitempty"` // nil: its page was not looked at
}

// GPU is one GPU over a wave. What is called peak or lowest is that of the
// looks: a sampled maximum, between two of which it may have been more.
type GPU struct {
	Device     int    `json:"device"`
	Commitment string `json:"commitment"`
	Looks      int    `json:"looks"`  // within the wave
	Failed     int    `json:"failed"` // looks that gave nothing
	PeakMemory Value  `json:"sampled_peak_memory"`
	PeakPower  Value  `json:"sampled_peak_power"`
	Busy       Value  `json:"mean_utilization"` // mean of the looks
	LowClock   Value  `json:"sampled_lowest_sm_clock"`
	HighClock  Value  `json:"sampled_peak_sm_clock"`
	// Energy is the growth of the GPU's own counter from the wave's release to
	// its last terminal moment, interpolated between the looks on either side.
	Energy Value `json:"energy"`
	// EnergyPerToken divides it by the output tokens of all attempts, failed
	// ones too, since the GPU worked for those as well. With several GPUs each
	// has its own.
	EnergyPerToken Value `json:"energy_per_output_token"`
	// Slowed are the reasons seen for a lower clock, by NVML's names. It is null
	// where no look says, for the reason beside it.
	Slowed       []string `json:"slowed"`
	SlowedReason string   `json:"slowed_reason,omitempty"`
	Others       Value    `json:"sampled_other_processes"`
	// Unknown are processes of which it could not be told whose they are.
	Unknown Value `json:"sampled_unknown_processes"`
}

// EngineView is a wave by the engine's own account, beside the client's.
type EngineView struct {
	Looks       int   `json:"looks"` // within the wave
	Failed      int   `json:"failed"`
	PeakRunning Value `json:"sampled_peak_running"`
	PeakWaiting Value `json:"sampled_peak_waiting"`
	PeakKV      Value `json:"sampled_peak_kv_cache"`
	Preemptions Value `json:"preemptions"`
	PrefixHits  Value `json:"prefix_cache_hits"` // tokens
	// The two accounts of the same wave.
	EngineTTFT   Value `json:"engine_mean_ttft"`
	ClientTTFT   Value `json:"client_mean_ttft"`
	EngineTokens Value `json:"engine_output_tokens"`
	ClientTokens Value `json:"client_output_tokens"`
	// Busy says that the engine was still at work when its counters were read
	// after the wave, so that they may lack what it has done since.
	Busy bool `json:"busy_after,omitempty"`
}

// SlowReasons names the bits of NVML's clocks event reasons that mean that a
// GPU ran slower than it could for power or heat, as nvml.h has them. Idle,
// application clocks, sync boost and display clocks are settings, not
// slowdowns.
var SlowReasons = []struct {
	Bit  int64
	Name string
}{
	{0x4, "sw_power_cap"}, {0x8, "hw_slowdown"}, {0x20, "sw_thermal_slowdown"}, {0x40, "hw_thermal_slowdown"}, {0x80, "hw_power_brake_slowdown"},
}

// watched is what was seen beside a wave; nil where the plan looks at nothing.
func (s *summarizer) watched(w record.Wave, p record.Population) *Watched {
	t := s.plan.Telemetry
	if t == nil || w.ReleasedAt == nil {
		return nil
	}
	end := *w.ReleasedAt
	for _, r := range p.Attempts {
		end = max(end, r.EndedAt)
	}
	out := &Watched{}
	if t.GPU > 0 {
		for _, device := range s.devices(w.Lifecycle) {
			out.GPUs = append(out.GPUs, s.gpu(w, p, device, end))
		}
	}
	if t.Engine > 0 {
		out.Engine = s.engineView(w, p, end)
	}
	return out
}

// devices are the GPUs of a lifecycle of which there is a line.
func (s *summarizer) devices(lifecycle int) []int {
	var out []int
	for _, t := range s.run.Telemetry {
		if t.Lifecycle == lifecycle && !slices.Contains(out, t.Device) {
			out = append(out, t.Device)
		}
	}
	slices.Sort(out)
	return out
}

// noLook is why something is null over a wave that lay between two looks.
const noLook = "no look fell into the wave"

// point is one reading at one moment, in ns on the lifecycle's clock.
type point struct {
	at    int64
	value float64
}

func (s *summarizer) gpu(w record.Wave, p record.Population, device int, end int64) GPU {
	out := GPU{Device: device}
	name := fmt.Sprintf("%s, GPU %d", p.Name, device)
	within := map[record.Reading][]float64{}
	var energy []point
	reasons := map[record.Reading]string{}
	for _, t := range s.run.Telemetry {
		if t.Lifecycle != w.Lifecycle || t.Device != device {
			continue
		}
		out.Commitment = t.Commitment
		if t.Wave == w.Number {
			for _, f := range t.Failed {
				out.Failed += f.Times
				reasons[""] = f.Reason
			}
		}
		for _, r := range record.Readings {
			// A reading that is not asked for at each look is missing at most of a
			// stretch that has it: a reason is why only for the wave's own, and
			// that none of its looks asked is the same as no look.
			if reason := t.Nulls[string(r)]; reason != "" && reason != record.NotLooked && (t.Wave == w.Number || r == record.Energy) {
				reasons[r] = reason
			}
			for i, v := range t.Series[string(r)] {
				if v == nil || i >= len(t.At) {
					continue
				}
				if t.At[i] >= *w.ReleasedAt && t.At[i] <= end {
					within[r] = append(within[r], float64(*v))
				}
				if r == record.Energy {
					energy = append(energy, point{t.At[i], float64(*v)})
				}
			}
		}
		for _, at := range t.At {
			if at >= *w.ReleasedAt && at <= end {
				out.Looks++
			}
		}
	}
	of := func(r record.Reading, unit string, scale float64, pick func([]float64) float64) Value {
		if len(within[r]) == 0 {
			return s.null(unit, name, cmp.Or(reasons[r], reasons[""], noLook))
		}
		v := s.value(pick(within[r])*scale, unit, len(within[r]), name)
		v.Provenance = record.DeviceReported
		return v
	}
	highest, lowest := slices.Max[[]float64], slices.Min[[]float64]
	out.PeakMemory = of(record.MemoryUsed, "B", 1, highest)
	out.PeakPower = of(record.Power, "W", 1e-3, highest)
	out.Busy = of(record.GPUUtilization, "ratio", 1e-2, mean)
	out.LowClock, out.HighClock = of(record.SMClock, "MHz", 1, lowest), of(record.SMClock, "MHz", 1, highest)
	out.Others = of(record.OtherProcesses, "processes", 1, highest)
	out.Unknown = of(record.UnknownProcesses, "processes", 1, highest)
	if len(within[record.Throttle]) == 0 {
		out.SlowedReason = cmp.Or(reasons[record.Throttle], reasons[""], noLook)
	} else {
		out.Slowed = []string{}
	}
	for _, slow := range SlowReasons {
		if slices.ContainsFunc(within[record.Throttle], func(v float64) bool { return int64(v)&slow.Bit != 0 }) {
			out.Slowed = append(out.Slowed, slow.Name)
		}
	}
	s.energy(w, p, name, energy, end, cmp.Or(reasons[record.Energy], reasons[""]), &out)
	return out
}

// energy reads a GPU's energy counter at both ends of a wave.
func (s *summarizer) energy(w record.Wave, p record.Population, name string, counter []point, end int64, reason string, out *GPU) {
	out.Energy, out.EnergyPerToken = s.null("J", name, reason), s.null("J/token", name, "the energy is not known: "+reason)
	slices.SortFunc(counter, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	from, okFrom := interpolate(counter, *w.ReleasedAt)
	to, okTo := interpolate(counter, end)
	switch {
	case len(counter) > 0 && !(okFrom && okTo):
		reason = "no look on either side of the wave"
	case len(counter) > 0 && to < from:
		reason = "the GPU's counter went backwards"
	case len(counter) > 0:
		joules := (to - from) / 1e3
		out.Energy = s.value(joules, "J", around(counter, *w.ReleasedAt, end), name)
		tokens := 0
		for _, r := range p.Attempts {
			if r.OutputTokens != nil {
				tokens += *r.OutputTokens
			}
		}
		if tokens == 0 {
			out.EnergyPerToken = s.null("J/token", name, "no output token was counted")
			return
		}
		out.EnergyPerToken = s.value(joules/float64(tokens), "J/token", tokens, name+", output tokens of all attempts")
		return
	}
	out.Energy.Reason = cmp.Or(reason, "it was not looked at")
	out.EnergyPerToken.Reason = "the energy is not known: " + out.Energy.Reason
}

// around counts the looks between two moments, with the one on either side.
func around(counter []point, from, to int64) int {
	first := slices.IndexFunc(counter, func(p point) bool { return p.at >= from })
	last := slices.IndexFunc(counter, func(p point) bool { return p.at >= to })
	if counter[first].at > from {
		first--
	}
	return last - first + 1
}

// interpolate is a growing counter at a moment, from the looks on either side.
func interpolate(counter []point, at int64) (float64, bool) {
	after := slices.IndexFunc(counter, func(p point) bool { return p.at >= at })
	if after < 0 {
		return 0, false
	}
	b := counter[after]
	if b.at == at {
		return b.value, true
	}
	if after == 0 {
		return 0, false
	}
	a := counter[after-1]
	share := float64(at-a.at) / float64(b.at-a.at)
	return a.value + float64(share*(b.value-a.value)), true
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func (s *summarizer) engineView(w record.Wave, p record.Population, end int64) *EngineView {
	out := &EngineView{}
	var line *record.EngineMetrics
	for i := range s.run.EngineMetrics {
		if m := &s.run.EngineMetrics[i]; m.Lifecycle == w.Lifecycle && m.Wave == w.Number {
			line = m
		}
	}
	name := p.Name + ", by the engine"
	peaks := map[string]float64{}
	unseen, uncounted := "the engine's page was not looked at", "the engine's page was not looked at"
	var before, after *record.Page
	if line != nil {
		uncounted = "the engine's page does not have it"
		failure := ""
		for _, f := range line.Failed {
			out.Failed += f.Times
			failure = f.Reason
		}
		within := func(i int) bool { return i < len(line.At) && line.At[i] >= *w.ReleasedAt && line.At[i] <= end }
		for i := range line.At {
			if within(i) {
				out.Looks++
			}
		}
		for series, values := range line.Series {
			for i, v := range values {
				if v != nil && within(i) {
					peaks[series] = max(peaks[series], *v)
				}
			}
		}
		unseen = uncounted
		if out.Looks == 0 {
			unseen = cmp.Or(failure, noLook)
		}
		before, after = line.Before, line.After
		if before == nil && w.Requests > 0 {
			before = &record.Page{} // a fresh server's counters stand at zero
		}
		if before == nil || after == nil {
			uncounted = cmp.Or(line.Nulls["before"], line.Nulls["after"], failure, uncounted)
		}
		out.Busy = after != nil && after.Idle != nil && !*after.Idle
	}
	reported := func(v Value) Value {
		if !s.plan.Emulated() {
			v.Provenance = record.EngineReported
		}
		return v
	}
	peak := func(series, unit string) Value {
		if v, ok := peaks[series]; ok {
			return reported(s.value(v, unit, out.Looks, name))
		}
		return s.null(unit, name, unseen)
	}
	out.PeakRunning, out.PeakWaiting, out.PeakKV = peak(record.Running, "requests"), peak(record.Waiting, "requests"), peak(record.KVCacheUse, "ratio")
	grown := func(counter, unit string) Value {
		if before == nil || after == nil {
			return s.null(unit, name, uncounted)
		}
		to, ok := after.Values[counter]
		from, had := before.Values[counter]
		switch {
		case !ok:
			return s.null(unit, name, uncounted)
		case !had && line.Before != nil:
			return s.null(unit, name, "the engine's page did not have it before the wave")
		case to < from:
			return s.null(unit, name, fmt.Sprintf("the engine's counter went back, from %g to %g", from, to))
		}
		return reported(s.value(to-from, unit, 1, name))
	}
	out.Preemptions, out.PrefixHits, out.EngineTokens = grown(record.Preemptions, "times"), grown(record.PrefixHits, "tokens"), grown(record.Generated, "tokens")
	out.EngineTTFT = reported(s.engineTTFT(before, after, name, uncounted))
	s.clientView(p, out)
	return out
}

// engineTTFT is the mean of what the engine's histogram gained over a wave.
func (s *summarizer) engineTTFT(before, after *record.Page, name, reason string) Value {
	if before == nil || after == nil {
		return s.null("s", name, reason)
	}
	a, ok := after.Histograms[record.TTFTHistogram]
	b := before.Histograms[record.TTFTHistogram]
	switch n := a.Count - b.Count; {
	case !ok:
		return s.null("s", name, reason)
	case n < 0:
		return s.null("s", name, fmt.Sprintf("the engine's histogram went back, from %g first tokens to %g", b.Count, a.Count))
	case n == 0:
		return s.null("s", name, "the engine counted no first token")
	default:
		return s.value((a.Sum-b.Sum)/n, "s", int(n), name)
	}
}

// clientView is the client's account of what the engine counts too: all
// attempts, failed ones with what they had.
func (s *summarizer) clientView(p record.Population, out *EngineView) {
	name := p.Name + ", attempts with a first token"
	var ttfts []float64
	tokens, uncounted := 0, 0
	for _, r := range p.Attempts {
		if v, reason := TTFT(r); reason == "" {
			ttfts = append(ttfts, s.seconds(float64(v)))
		}
		switch {
		case r.OutputTokens != nil:
			tokens += *r.OutputTokens
		case r.EventCount() > 0:
			uncounted++
		}
	}
	out.ClientTTFT = s.null("s", name, "no attempt had a first token")
	if len(ttfts) > 0 {
		out.ClientTTFT = s.value(mean(ttfts), "s", len(ttfts), name)
	}
	name = p.Name + ", all attempts"
	if uncounted > 0 {
		out.ClientTokens = s.null("tokens", name, fmt.Sprintf("%d attempts have tokens that were not counted", uncounted))
	} else {
		out.ClientTokens = s.value(float64(tokens), "tokens", len(p.Attempts), name)
	}
}

// watchGates hold a wave's two accounts against one another, and its GPUs
// against the plan. What the plan wants held and nobody could look at counts
// against the wave too: a gate that can't be checked is none.
func (s *summarizer) watchGates(w record.Wave, out Wave, against, note func(string, ...any)) {
	if out.Watched == nil {
		return
	}
	gates := s.plan.Gates.Watch
	if e := out.Watched.Engine; e != nil {
		if *s.plan.Arm(w.Arm).Engine.Metrics == "" {
			note("telemetry: %s has no metrics page by the plan, so its account is not held against the client's", w.Arm)
		} else {
			s.accounts(e, out.Counts.Failed, against, note)
		}
	}
	by := func(rule string) func(string, ...any) {
		if rule == "invalid" {
			return against
		}
		return note
	}
	// A wave that lies between two looks is one that the plan's own rate misses.
	unchecked := func(gate, rule string, device int, reason string) {
		say := by(rule)
		if reason == noLook {
			say = note
		}
		say("%s was not checked on GPU %d: %s", gate, device, reason)
	}
	for _, g := range out.Watched.GPUs {
		switch {
		case len(g.Slowed) > 0:
			by(gates.Throttled)("throttled: GPU %d ran slower than it can, for %v", g.Device, g.Slowed)
		case g.Slowed == nil:
			unchecked("throttled", gates.Throttled, g.Device, g.SlowedReason)
		}
		switch others, unknown := g.Others.Value, g.Unknown.Value; {
		case others == nil:
			unchecked("shared_gpu", gates.SharedGPU, g.Device, g.Others.Reason)
		case *others > 0:
			by(gates.SharedGPU)("shared_gpu: up to %.0f processes that are not the server's were on GPU %d: end them, or run elsewhere", *others, g.Device)
		case unknown == nil:
			unchecked("shared_gpu", gates.SharedGPU, g.Device, g.Unknown.Reason)
		case *unknown > 0:
			unchecked("shared_gpu", gates.SharedGPU, g.Device, fmt.Sprintf("up to %.0f processes on it are nobody's that this machine can tell", *unknown))
		}
		if g.Failed > 0 {
			note("telemetry: %d looks at GPU %d failed", g.Failed, g.Device)
		}
	}
	if s.plan.Telemetry.GPU > 0 && len(out.Watched.GPUs) == 0 {
		note("telemetry: no GPU was looked at%s", s.whyNoGPU(w.Lifecycle))
	}
}

func (s *summarizer) whyNoGPU(lifecycle int) string {
	for _, l := range s.run.Lifecycles {
		if f, ok := l.Identity["gpu_driver"]; ok && l.Number == lifecycle && f.Value == nil {
			return ": " + f.Reason
		}
	}
	return ""
}

// accounts hold the client's mean TTFT and token count against the engine's.
// Where attempts failed, the engine may have done work for them of which the
// client saw nothing: then the two are of different things, which is no fault.
func (s *summarizer) accounts(e *EngineView, failed int, against, note func(string, ...any)) {
	gates := s.plan.Gates.Watch
	unchecked := against
	if failed > 0 {
		unchecked = note
	}
	if limit := gates.EngineTTFT; limit > 0 {
		switch engine, client := e.EngineTTFT, e.ClientTTFT; {
		case engine.Value == nil || client.Value == nil:
			unchecked("engine_ttft was not checked: %s", cmp.Or(engine.Reason, client.Reason))
		case e.Busy:
			unchecked("engine_ttft was not checked: the engine was still at work when its page was read")
		case engine.N != client.N:
			unchecked("engine_ttft was not checked: the engine saw the first tokens of %d requests, the client of %d", engine.N, client.N)
		case math.Abs(*engine.Value-*client.Value) > s.seconds(float64(limit.D())):
			against("engine_ttft: the mean TTFT is %.6g s by the client and %.6g s by the engine, the plan allows a difference of %s", *client.Value, *engine.Value, limit)
		}
	}
	if limit := gates.EngineTokens; limit != nil {
		switch engine, client := e.EngineTokens, e.ClientTokens; {
		case engine.Value == nil || client.Value == nil:
			unchecked("engine_tokens was not checked: %s", cmp.Or(engine.Reason, client.Reason))
		case failed > 0:
			note("engine_tokens was not checked: %d attempts failed, for which the engine may have counted tokens that nobody was sent", failed)
		case e.Busy:
			unchecked("engine_tokens was not checked: the engine was still at work when its page was read")
		case math.Abs(*engine.Value-*client.Value) > float64(limit.Share()*(*client.Value)):
			against("engine_tokens: the client counted %.0f output tokens and the engine %.0f, the plan allows a difference of %s", *client.Value, *engine.Value, limit)
		}
	}
}
