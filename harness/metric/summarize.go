package metric

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"assay/harness/plan"
	"assay/harness/record"
)

// Summarize computes every number of a run from its plan and its records. It
// never fails: what can't be computed is null with the reason, and what is
// wrong with the records is in the validity.
func Summarize(p *plan.Plan, run record.Run) Summary {
	return SummarizeFound(p, run, Check(p, run)) // which says it too if the plan can't be frozen
}

// provenance is that of what is computed from a plan's records.
func provenance(p *plan.Plan) record.Provenance {
	if p.Emulated() {
		return record.Emulated
	}
	return record.Derived
}

// SummarizeFound is [Summarize] for who has what [Check] found.
func SummarizeFound(p *plan.Plan, run record.Run, findings []Finding) Summary {
	run = run.Indexed()
	s := &summarizer{plan: p, schedule: Schedule(p, run), run: run, provenance: provenance(p), found: map[[2]int][]Finding{}, cut: abandonedPairs(run)}
	frozen, _ := plan.Freeze(p)
	out := Summary{
		Schema: SummarySchema, Contract: Contract, PlanSHA256: frozen.SHA256, ScheduleSHA256: p.Schedule().SHA256(), Run: run.Environment.Run,
		EnvironmentSHA256: environmentSHA256(run.Environment), Percentiles: PercentileType, Provenance: s.provenance, TimeScale: p.TimeScale, Status: s.status(),
		Lifecycles: []Lifecycle{}, Waves: []Wave{}, Tiers: []Tier{},
	}
	for _, f := range findings {
		s.found[[2]int{f.lifecycle, f.wave}] = append(s.found[[2]int{f.lifecycle, f.wave}], f)
	}
	for _, l := range run.Lifecycles {
		out.Lifecycles = append(out.Lifecycles, s.lifecycle(l))
	}
	s.lifecycles = out.Lifecycles
	for _, w := range run.Waves {
		out.Waves = append(out.Waves, s.wave(w))
	}
	s.waves = out.Waves
	for _, tier := range p.Sweep.Tiers {
		out.Tiers = append(out.Tiers, s.tier(tier))
	}
	s.arrivals(&out)
	out.Lanes, out.Cost, out.Invocations = s.lanes(findings), s.cost(), run.Environment.Invocations
	out.Inputs = inputs(run)
	out.Validity = s.validity(out, findings)
	return out
}

type summarizer struct {
	plan       *plan.Plan
	schedule   plan.Schedule
	run        record.Run
	provenance record.Provenance
	found      map[[2]int][]Finding // by lifecycle and wave
	waves      []Wave
	lifecycles []Lifecycle
	sharings   map[[2]int]sharing        // of a source's segments; nil: not worked out yet
	cut        map[int]record.Invocation // pairs that an interruption cut
}

// environmentSHA256 is the hash of an environment's canonical JSON, in hex. Its
// values go through JSON once before, so that it is the same while a run lasts
// and when its bundle is read back.
func environmentSHA256(e record.Environment) string {
	var canonical any
	data, err := json.Marshal(e)
	if err == nil {
		err = json.Unmarshal(data, &canonical)
	}
	if err == nil {
		data, err = json.Marshal(canonical)
	}
	if err != nil {
		return "" // it can't be written either, which its writer says
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (s *summarizer) status() string {
	status := "complete"
	for _, w := range s.run.Waves {
		if s.abandoned(w.Lifecycle) {
			continue // it was gone on after it
		}
		switch w.Status {
		case "interrupted", "not_run":
			return "interrupted"
		case "not_selected":
			status = "partial"
		}
	}
	for _, l := range s.run.Lifecycles {
		if !s.abandoned(l.Number) && (l.Status == "interrupted" || l.Status == "not_run") {
			return "interrupted"
		}
	}
	if len(s.run.Lifecycles) < len(s.schedule.Lifecycles) {
		return "interrupted"
	}
	return status
}

// value makes a number of measured ns scaled to result seconds, or of another
// unit as it is.
func (s *summarizer) value(v float64, unit string, n int, population string) Value {
	v = Round(v)
	return Value{Value: &v, Unit: unit, N: n, Population: population, Provenance: s.provenance}
}

func (s *summarizer) null(unit, population, reason string) Value {
	return Value{Unit: unit, Population: population, Provenance: s.provenance, Reason: reason}
}

// seconds are measured ns in the seconds of the result: emulated ones under a
// time scale.
func (s *summarizer) seconds(ns float64) float64 {
	return float64(ns*s.plan.TimeScale) / 1e9
}

func (s *summarizer) lifecycle(l record.Lifecycle) Lifecycle {
	between := func(from, to string) Value {
		population := fmt.Sprintf("lifecycle %d, %s to %s", l.Number, from, to)
		at := map[string]*int64{}
		for _, m := range l.Moments {
			at[m.Phase] = m.At
		}
		if at[from] == nil || at[to] == nil {
			return s.null("s", population, "one of the two moments was not seen")
		}
		return s.value(s.seconds(float64(*at[to]-*at[from])), "s", 1, population)
	}
	out := Lifecycle{
		Number: l.Number, Executed: l.Executed, Arm: l.Arm, Status: l.Status,
		Initialization: between("started", "ready"), RequestPhase: between("first_sent", "last_terminal"), Host: between("invoked", "removed"),
	}
	if l.Lane != "" {
		sum := s.latencySum(l)
		out.Pair, out.Lane, out.LatencySum = l.Pair, plan.Lane(l.Lane), &sum
	}
	return out
}

// CountsOf counts a population by outcome.
func CountsOf(p record.Population) Counts {
	c := Counts{Attempted: len(p.Attempts), ByOutcome: p.Counts()}
	c.OK = c.ByOutcome[record.OK]
	c.Failed = c.Attempted - c.OK
	return c
}

// Wall is a wave's wall in measured ns: from its release to its last terminal
// moment, over all attempts, failed ones too.
func Wall(w record.Wave, attempts []record.Request) (int64, string) {
	if w.ReleasedAt == nil {
		return 0, "the wave was not released: " + w.Reason
	}
	last := *w.ReleasedAt
	for _, r := range attempts {
		last = max(last, r.EndedAt)
	}
	if last == *w.ReleasedAt {
		return 0, "no attempt ended after the release"
	}
	return last - *w.ReleasedAt, ""
}

// Goodput is a wave's token goodput in tok/s of measured time: output tokens
// of its ok attempts over its wall. It is null if any ok attempt's count is.
func Goodput(w record.Wave, attempts []record.Request) (float64, string) {
	wall, reason := Wall(w, attempts)
	if reason != "" {
		return 0, reason
	}
	tokens := 0
	for _, r := range attempts {
		if r.Outcome != record.OK {
			continue
		}
		if r.OutputTokens == nil {
			return 0, fmt.Sprintf("attempt %d is ok and has no token count: %s", r.Ordinal, r.Nulls["output_tokens"])
		}
		tokens += *r.OutputTokens
	}
	return float64(tokens) / (float64(wall) / 1e9), ""
}

func (s *summarizer) wave(w record.Wave) Wave {
	p := s.run.Of(w)
	out := Wave{
		Lifecycle: w.Lifecycle, Arm: w.Arm, Number: w.Number, Tier: w.Tier, Repeat: w.Repeat, Warmup: w.Warmup, Status: w.Status,
		Open: w.Open(), Rate: w.Rate, Probe: w.Probe,
		Counts: CountsOf(p),
	}
	for _, r := range p.Failed().Attempts {
		if r.OutputTokens != nil {
			out.FailedTokens += *r.OutputTokens
		}
	}
	name := p.Name
	if wall, reason := Wall(w, p.Attempts); reason != "" {
		out.Wall = s.null("s", name+", all attempts", reason)
	} else {
		out.Wall = s.value(s.seconds(float64(wall)), "s", len(p.Attempts), name+", all attempts")
	}
	if w.Open() {
		out.Goodput = s.null("tok/s", name+", ok attempts", "an open loop's is over its measurement: see rates")
	} else if goodput, reason := Goodput(w, p.Attempts); reason != "" {
		out.Goodput = s.null("tok/s", name+", ok attempts", reason)
	} else {
		out.Goodput = s.value(goodput/s.plan.TimeScale, "tok/s", out.Counts.OK, name+", ok attempts")
	}
	s.client(w, p, &out)
	out.Watched = s.watched(w, p)
	out.Prefix = s.prefix(w, p, out.Watched)
	out.Validity = s.waveValidity(w, p, out)
	return out
}

// client is how the client itself did: in measured time, whatever the scale.
func (s *summarizer) client(w record.Wave, p record.Population, out *Wave) {
	events, coalesced := 0, 0
	blind := 0
	for i := range p.Attempts {
		r := &p.Attempts[i]
		events += r.EventCount()
		coalesced += Shared(*r)
		if unread(r) > 0 {
			blind++
		}
	}
	lags := rank(knownLags(p.Attempts))
	population := p.Name + ", events with a token"
	measured := func(v float64, unit string, n int, population string) Value {
		v = Round(v)
		return Value{Value: &v, Unit: unit, N: n, Population: population, Provenance: record.Derived}
	}
	null := func(unit, population, reason string) Value {
		return Value{Unit: unit, Population: population, Provenance: record.Derived, Reason: reason}
	}
	lag := func(q float64) Value {
		switch {
		case events == 0:
			return null("s", population, "no event with a token arrived")
		case blind > 0:
			return null("s", population, "no kernel receive times to hold the reader against")
		}
		return measured(lags.percentile(q, 1e9), "s", lags.n, population)
	}
	out.ClientLagP50, out.ClientLagP99, out.ClientLagMax = lag(50), lag(99), lag(100)
	out.Coalesced = null("ratio", population, "no event with a token arrived")
	if events > 0 {
		out.Coalesced = measured(float64(coalesced)/float64(events), "ratio", events, population)
	}
	population = p.Name + ", attempts that were sent"
	out.ReleaseLag = null("s", population, "nothing was sent")
	if p.Wave != nil && p.Wave.Open() {
		out.ReleaseLag.Reason = "the requests of an open loop are released each at its own moment"
		delay := null("s", population, "nothing was sent")
		if delays := Delays(p.Attempts); len(delays) > 0 {
			delay = measured(Percentile(delays, 99)/1e9, "s", len(delays), population)
		}
		own := null("s", population, "nothing was sent")
		if a := s.plan.Arrivals; a != nil {
			if delays := OwnDelays(p.Attempts, a.DialAhead.D()); len(delays) > 0 {
				own = measured(Percentile(delays, 99)/1e9, "s", len(delays), population)
			}
		}
		out.ScheduleDelay, out.OwnDelay = &delay, &own
	} else if p.Wave != nil && p.Wave.Requests > 0 {
		out.ReleaseLag.Reason = "the requests of a sequence are not released together"
	} else if lag, sent := ReleaseLag(p.Attempts); sent > 0 {
		out.ReleaseLag = measured(float64(lag)/1e9, "s", sent, population)
	}
}

// KnownLag is, for each event with a token, how late the client is known to have
// read it, in ns: from the kernel's time of the last packet of its read to the
// read. The record's client_lag_ns is the most that it can have been: where
// something came behind an event in the same read, a server's own pause before
// it is in that too, and is nobody's fault here.
func KnownLag(r record.Request) []int64 {
	if r.Condensed != nil {
		return slices.Collect(r.Condensed.KnownLags.All())
	}
	out := make([]int64, 0, len(r.ClientLag))
	for i, lag := range r.ClientLag {
		if i >= len(r.Events) {
			break // told as a fault of the record
		}
		e := r.Events[i]
		if i > 0 && e.Arrival == r.Events[i-1].Arrival {
			out = append(out, out[i-1]) // the same read
			continue
		}
		if e.Earliest < e.Arrival {
			// The bracket begins at the kernel's time of the read before, and the
			// bound on the lag at that read itself, which was late by its own lag.
			lag -= e.Arrival - e.Earliest
			if i > 0 {
				lag += out[i-1]
			}
		}
		out = append(out, max(lag, 0))
	}
	return out
}

// knownLags are those of each event with a token of some attempts.
func knownLags(attempts []record.Request) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for i := range attempts {
			if c := attempts[i].Condensed; c != nil {
				for lag := range c.KnownLags.All() {
					if !yield(lag) {
						return
					}
				}
				continue
			}
			for _, lag := range KnownLag(attempts[i]) {
				if !yield(lag) {
					return
				}
			}
		}
	}
}

// unread is how many events with a token have no client lag.
func unread(r *record.Request) int {
	if r.Condensed != nil {
		return r.Condensed.Unread
	}
	return max(0, len(r.Events)-len(r.ClientLag))
}

// Shared counts the events with a token that came in one read with another one.
// Neither's time is known alone: the server sent them together, or the client
// read too late to tell them apart. What brings no token (a finish reason, usage,
// the end) shares a read with the last token without harm.
func Shared(r record.Request) int {
	if r.Condensed != nil {
		return r.Condensed.Shared
	}
	n := 0
	for i, e := range r.Events {
		before := i > 0 && r.Events[i-1].Arrival == e.Arrival
		after := i+1 < len(r.Events) && r.Events[i+1].Arrival == e.Arrival
		if before || after {
			n++
		}
	}
	return n
}

// ReleaseLag is the time from the first sent_at to the last, in measured ns,
// and how many attempts were sent at all.
func ReleaseLag(attempts []record.Request) (lag int64, sent int) {
	var first, last int64
	for _, r := range attempts {
		if r.SentAt == nil {
			continue
		}
		if sent == 0 {
			first, last = *r.SentAt, *r.SentAt
		}
		first, last = min(first, *r.SentAt), max(last, *r.SentAt)
		sent++
	}
	return last - first, sent
}

// waveValidity is what the plan's gates say to a wave, and after it what is
// wrong with its records.
func (s *summarizer) waveValidity(w record.Wave, p record.Population, out Wave) Validity {
	v := s.gates(w, p, out)
	for _, f := range s.found[[2]int{w.Lifecycle, w.Number}] {
		v.Reasons = append(v.Reasons, f.String())
	}
	v.Valid = len(v.Reasons) == 0
	return v
}

// gates is what the plan's gates say to a wave.
func (s *summarizer) gates(w record.Wave, p record.Population, out Wave) Validity {
	v := Validity{Reasons: []string{}, Notes: []string{}}
	against := func(format string, args ...any) { v.Reasons = append(v.Reasons, fmt.Sprintf(format, args...)) }
	note := func(format string, args ...any) { v.Notes = append(v.Notes, fmt.Sprintf(format, args...)) }
	gates := s.plan.Gates
	switch w.Status {
	case "not_selected":
		note("not_selected: %s", w.Reason)
		return v
	case "not_run":
		against("not_run: %s", w.Reason)
		return v
	case "interrupted":
		against("interrupted: %s", w.Reason)
	}
	if lag := out.ClientLagP99.Value; lag != nil && *lag > gates.ClientLag.D().Seconds() {
		against("client_saturated: the p99 of client lag is %.3f ms, the plan allows %s: this machine was too busy to tell when tokens came; run it again with nothing else on it", *lag*1e3, gates.ClientLag)
	} else if lag == nil && out.Counts.OK > 0 {
		note("client_lag was not checked: %s", out.ClientLagP99.Reason)
	}
	if share := out.Coalesced.Value; share != nil && *share > gates.Coalesced.Share() {
		against("coalesced: %.1f %% of the events with a token came in a read with another one, the plan allows %s: the server sends tokens together, or this machine was too busy to tell them apart", *share*100, gates.Coalesced)
	}
	if lag := out.ReleaseLag.Value; lag != nil && *lag > gates.ReleaseLag.D().Seconds() {
		against("client_saturated: release_lag: the last request was sent %.3f ms after the first, the plan allows %s", *lag*1e3, gates.ReleaseLag)
	}
	if d := out.OwnDelay; d != nil && d.Value != nil {
		if whole := *out.ScheduleDelay.Value; whole > 2**d.Value && whole > 0.001 && s.plan.Arrivals.InFlight == 0 {
			note("the p99 of schedule_delay is %.3f ms, and %.3f ms without what connections took to open: the server was slow to accept them", whole*1e3, *d.Value*1e3)
		}
		switch limit := s.plan.Gates.ScheduleDelay; {
		case limit == nil: // told as a wave that the schedule does not have
		case s.plan.Arrivals.Beyond == plan.Hold:
			note("schedule_delay was not checked: what the limit of %d requests in flight held back is part of it; its p99 is %.3f ms", s.plan.Arrivals.InFlight, *d.Value*1e3)
		case *d.Value > limit.D().Seconds():
			against("client_saturated: schedule_delay: its p99 is %.3f ms, the plan allows %s: requests were not sent when they were due; run it again with nothing else on this machine, or at lower rates", *d.Value*1e3, *limit)
		}
	}
	s.saturation(w, p, against)
	switch {
	case w.Requests > 0: // on a fresh server, which nothing was sent to before
	case w.CarryOver == nil:
		note("carry_over was not seen: %s", w.Nulls["carry_over"])
	case *w.CarryOver && gates.CarryOver == "invalid":
		against("carry_over: the wave was released onto what the last one had left")
	case *w.CarryOver:
		note("carry_over: the wave was released onto what the last one had left, which the plan only reports")
	}
	if reason := s.disconnect(w); reason != "" {
		against("on_disconnect: %s", reason)
	}
	s.watchGates(w, out, against, note)
	if w.ClockReadings != nil && w.ClockReadings.Stepped {
		note("the wall clock was stepped inside the wave: arrivals are user-space times")
	}
	return v
}

// stragglers is how many tokens a server may still give to each request that
// was abandoned before it has noticed, when it cancels such requests.
const stragglers = 16

// disconnect holds what a server did for clients that had left against what
// the arm declares.
func (s *summarizer) disconnect(w record.Wave) string {
	arm := s.plan.Arm(w.Arm)
	if arm == nil || w.Settle == nil || w.Settle.Generated == nil || w.Settle.Abandoned == 0 {
		return ""
	}
	if arm.OnDisconnect == plan.Cancel && *w.Settle.Generated > stragglers*w.Settle.Abandoned {
		return fmt.Sprintf("%s is declared to cancel, and gave %d tokens to %d requests whose clients had left", w.Arm, *w.Settle.Generated, w.Settle.Abandoned)
	}
	return ""
}

func (s *summarizer) arm(role plan.Role, tier int) Arm {
	name := s.plan.WithRole(role).Name
	p := s.run.At(name, tier)
	out := Arm{Arm: name, Role: role, Counts: CountsOf(p)}
	var goodputs []float64
	reason := "no wave was recorded at this tier"
	for _, w := range s.waves {
		if w.Arm != name || w.Tier != tier || w.Warmup || w.Wall.Value == nil {
			continue
		}
		out.Waves++
		if w.Goodput.Value == nil {
			reason = w.Goodput.Reason
			continue
		}
		goodputs = append(goodputs, *w.Goodput.Value)
	}
	population := fmt.Sprintf("%s, waves", p.Name)
	out.Goodput = Spread{Median: s.null("tok/s", population, reason)}
	if len(goodputs) == out.Waves && out.Waves > 0 {
		out.Goodput = s.spread(goodputs, "tok/s", population)
	}
	s.distributions(p, &out)
	out.FailureRate = s.failureRate(p, p.Name+", all attempts")
	out.tokens(p)
	return out
}

// spread is the median and the range of values, of which there is one at least.
func (s *summarizer) spread(values []float64, unit, population string) Spread {
	low, high := Round(slices.Min(values)), Round(slices.Max(values))
	return Spread{Median: s.value(Median(values), unit, len(values), population), Min: &low, Max: &high}
}

// failureRate is the share of a population's attempts that failed.
func (s *summarizer) failureRate(p record.Population, population string) Value {
	c := CountsOf(p)
	if c.Attempted == 0 {
		return s.null("ratio", population, "no attempt was made")
	}
	return s.value(float64(c.Failed)/float64(c.Attempted), "ratio", c.Attempted, population)
}

// tokens are those of failed attempts, and where those of the others were
// counted.
func (out *Arm) tokens(p record.Population) {
	for _, r := range p.Attempts {
		if r.Outcome != record.OK {
			if r.OutputTokens != nil {
				out.FailedTokens += *r.OutputTokens
			}
			continue
		}
		source := "none"
		if r.OutputTokensSource != nil {
			source = *r.OutputTokensSource
		}
		if out.OutputTokensSource == "" {
			out.OutputTokensSource = source
		} else if out.OutputTokensSource != source {
			out.OutputTokensSource = "mixed"
		}
	}
}

// distributions are the percentiles of an arm at a tier, each over its named
// population.
func (s *summarizer) distributions(p record.Population, out *Arm) {
	ok := p.OK()
	plain := func(of func(record.Request) (float64, string), q float64, p record.Population) Value {
		var values []float64
		for _, r := range p.Attempts {
			if v, reason := of(r); reason == "" {
				values = append(values, s.seconds(v))
			}
		}
		if len(values) == 0 {
			return s.null("s", p.Name, "no attempt of this population has it")
		}
		return s.value(Percentile(values, q), "s", len(values), p.Name)
	}
	ttft := func(r record.Request) (float64, string) { v, reason := TTFT(r); return float64(v), reason }
	latency := func(r record.Request) (float64, string) { v, reason := Latency(r); return float64(v), reason }
	out.TTFT50, out.TTFT95, out.TTFT99 = plain(ttft, 50, ok), plain(ttft, 95, ok), plain(ttft, 99, ok)
	out.Latency50, out.Latency95, out.Latency99 = plain(latency, 50, ok), plain(latency, 95, ok), plain(latency, 99, ok)
	out.TPOT50, out.TPOT95, out.TPOT99 = plain(TPOT, 50, ok), plain(TPOT, 95, ok), plain(TPOT, 99, ok)
	begun := p.Where("failed attempts with a first token", func(r record.Request) bool {
		return r.Outcome != record.OK && r.FirstTokenAt != nil
	})
	out.TTFTFailed50, out.TTFTFailed95 = plain(ttft, 50, begun), plain(ttft, 95, begun)
	all := p.Name + ", all attempts, failures right-censored"
	ttfts, latencies := CensoredTTFT(p), CensoredLatency(p)
	out.TTFTAll50, out.TTFTAll95, out.TTFTAll99 = s.censored(ttfts, 50, all), s.censored(ttfts, 95, all), s.censored(ttfts, 99, all)
	out.LatencyAll50, out.LatencyAll95, out.LatencyAll99 = s.censored(latencies, 50, all), s.censored(latencies, 95, all), s.censored(latencies, 99, all)
}

// censored is a percentile of durations in measured ns.
func (s *summarizer) censored(values []Censored, q float64, population string) Value {
	if len(values) == 0 {
		return s.null("s", population, "no attempt was made that could have one")
	}
	v, bound := CensoredPercentile(values, q)
	out := s.value(s.seconds(v), "s", len(values), population)
	out.AtLeast = bound
	for _, v := range values {
		if v.AtLeast {
			out.Censored++
		}
	}
	return out
}

// CensoredTTFT is the time to first token of every attempt, in measured ns. An
// attempt that failed before a first token is censored at its end; one that
// failed after it has its TTFT, which was observed. An empty completion that
// is ok has none, and never will: it is not in it.
func CensoredTTFT(p record.Population) []Censored {
	var out []Censored
	for _, r := range p.Attempts {
		if v, reason := TTFT(r); reason == "" {
			out = append(out, Censored{Value: float64(v)})
		} else if r.Outcome != record.OK {
			out = append(out, Censored{Value: cut(r), AtLeast: true})
		}
	}
	return out
}

// CensoredLatency is the latency of every attempt, in measured ns; one that
// failed is censored at its end.
func CensoredLatency(p record.Population) []Censored {
	var out []Censored
	for _, r := range p.Attempts {
		if r.Outcome != record.OK {
			out = append(out, Censored{Value: cut(r), AtLeast: true})
			continue
		}
		v, _ := Latency(r)
		out = append(out, Censored{Value: float64(v)})
	}
	return out
}

// cut is when a failed attempt ended, from its sending on, or from its
// scheduled moment if it was never sent.
func cut(r record.Request) float64 {
	if r.SentAt == nil {
		return float64(r.EndedAt - r.ScheduledAt)
	}
	return float64(r.EndedAt - *r.SentAt)
}

func (s *summarizer) tier(tier int) Tier {
	t := Tier{Tier: tier, Status: "complete", Baseline: s.arm(plan.Baseline, tier), Candidate: s.arm(plan.Candidate, tier), Pairs: []Pair{}, TTFTPairs: []Pair{}}
	t.Validity = Validity{Valid: true, Reasons: []string{}, Notes: []string{}}
	ran, all := 0, 0
	for _, w := range s.waves {
		if w.Tier != tier || w.Warmup {
			continue
		}
		all++
		of := w.Validity
		if w.Status == "not_selected" {
			of.Notes = nil
		} else {
			ran++
		}
		t.Validity.take(of, ofWave(w))
	}
	switch {
	case ran == 0:
		t.Status = "not_selected"
	case ran < s.plan.Sweep.Lifecycles*2*s.plan.Sweep.Repeats:
		t.Status = "partial"
	}
	t.SpeedUp = s.speedUp(t)
	t.Outputs = s.outputs(tier)
	s.pairs(&t)
	return t
}

func ofWave(w Wave) string {
	return fmt.Sprintf("lifecycle %d (%s), repeat %d: ", w.Lifecycle, w.Arm, w.Repeat)
}

func (s *summarizer) speedUp(t Tier) Value {
	population := fmt.Sprintf("%s, goodput medians of %s over %s", record.Clients(t.Tier), t.Candidate.Arm, t.Baseline.Arm)
	b, c := t.Baseline, t.Candidate
	switch {
	case !t.Validity.Valid:
		return s.null("ratio", population, fmt.Sprintf("the tier is invalid, for %d reason(s) in its validity", len(t.Validity.Reasons)))
	case b.Goodput.Median.Value == nil:
		return s.null("ratio", population, b.Arm+" has no goodput: "+b.Goodput.Median.Reason)
	case c.Goodput.Median.Value == nil:
		return s.null("ratio", population, c.Arm+" has no goodput: "+c.Goodput.Median.Reason)
	case *b.Goodput.Median.Value == 0:
		return s.null("ratio", population, b.Arm+" has a goodput of 0: nothing can be divided by it")
	case b.OutputTokensSource != c.OutputTokensSource || c.OutputTokensSource == "mixed":
		return s.null("ratio", population, fmt.Sprintf("tokens were counted from %s in %s and from %s in %s", orNone(b.OutputTokensSource), b.Arm, orNone(c.OutputTokensSource), c.Arm))
	}
	return s.value(*c.Goodput.Median.Value / *b.Goodput.Median.Value, "ratio", min(b.Goodput.Median.N, c.Goodput.Median.N), population)
}

func orNone(source string) string {
	if source == "" {
		return "no ok attempt"
	}
	return source
}

type place struct{ pair, repeat, ordinal int }

// outputs compares what both arms answered to the same ordinal of the same
// repeat of the same pair, where both answered whole.
func (s *summarizer) outputs(tier int) Outputs {
	return s.compared(s.run.At(s.plan.WithRole(plan.Baseline).Name, tier), s.run.At(s.plan.WithRole(plan.Candidate).Name, tier))
}

func (s *summarizer) compared(ofBaseline, ofCandidate record.Population) Outputs {
	if s.plan.Gates.Identity == "none" {
		return Outputs{Reason: "the plan's gates.identity is none"}
	}
	of := func(p record.Population) map[place]*record.Request {
		out := map[place]*record.Request{}
		for i := range p.Attempts {
			if r := &p.Attempts[i]; r.Outcome == record.OK {
				out[place{r.Pair, r.Repeat, r.Ordinal}] = r
			}
		}
		return out
	}
	baseline, candidate := of(ofBaseline), of(ofCandidate)
	out := Outputs{Compared: true, By: record.SourceTokenIDs}
	for at, b := range baseline {
		if c, both := candidate[at]; both && (fromText(*b) || fromText(*c)) {
			out.By = "text"
		}
	}
	for at, b := range baseline {
		c, both := candidate[at]
		if !both {
			continue
		}
		out.Of++
		if out.By == "text" && b.SaysTheSame(*c) || out.By != "text" && b.PackedIDs() == c.PackedIDs() {
			out.Equal++
		}
	}
	if out.Of == 0 {
		return Outputs{Reason: "no ordinal was answered whole by both arms"}
	}
	return out
}

func fromText(r record.Request) bool {
	return r.OutputTokensSource == nil || *r.OutputTokensSource != record.SourceTokenIDs
}

// pairs are the units of inference: goodput medians within each pair, and the
// pair's p95 of TTFT over all attempts.
func (s *summarizer) pairs(t *Tier) {
	for pair := 1; pair <= s.plan.Sweep.Lifecycles; pair++ {
		goodput := Pair{Pair: pair}
		ttft := Pair{Pair: pair}
		for _, role := range []plan.Role{plan.Baseline, plan.Candidate} {
			arm := s.plan.WithRole(role).Name
			g, q := s.ofPair(t.Tier, pair, arm)
			if role == plan.Baseline {
				goodput.Baseline, ttft.Baseline = g, q
			} else {
				goodput.Candidate, ttft.Candidate = g, q
			}
		}
		t.Pairs, t.TTFTPairs = append(t.Pairs, goodput), append(t.TTFTPairs, ttft)
	}
}

func (s *summarizer) ofPair(tier, pair int, arm string) (goodput, ttft Value) {
	numbers := map[int]bool{}
	for _, l := range s.schedule.Lifecycles {
		if l.Pair == pair && l.Arm == arm {
			numbers[l.Number] = true
		}
	}
	population := fmt.Sprintf("pair %d, %s, %s", pair, arm, record.Clients(tier))
	goodput = s.null("tok/s", population+", waves", "no wave with a goodput")
	var values []float64
	for _, w := range s.waves {
		if numbers[w.Lifecycle] && w.Tier == tier && !w.Warmup && w.Goodput.Value != nil {
			values = append(values, *w.Goodput.Value)
		}
	}
	if len(values) > 0 {
		goodput = s.value(Median(values), "tok/s", len(values), population+", waves")
	}
	attempts := s.run.At(arm, tier).Where(fmt.Sprintf("pair %d", pair), func(r record.Request) bool { return r.Pair == pair })
	return goodput, s.censored(CensoredTTFT(attempts), 95, population+", all attempts, failures right-censored")
}

// validity is the run's: everything that is wrong with its records, and what
// makes a tier invalid.
func (s *summarizer) validity(out Summary, findings []Finding) Validity {
	v := Validity{Reasons: []string{}, Notes: []string{}}
	said := map[string]bool{}
	for _, f := range findings {
		said[f.String()] = true
		v.Reasons = append(v.Reasons, f.String())
	}
	for _, w := range out.Waves {
		if w.Warmup || w.Status == "not_selected" || s.abandoned(w.Lifecycle) {
			continue // in no result
		}
		where := fmt.Sprintf("%s: %s", record.Clients(w.Tier), ofWave(w))
		if w.Open {
			where = fmt.Sprintf("lifecycle %d (%s), %s: ", w.Lifecycle, w.Arm, record.Wave{Rate: w.Rate, Probe: w.Probe}.Loop())
		}
		if s.plan.Pairing != nil {
			where = fmt.Sprintf("lifecycle %d (%s): ", w.Lifecycle, w.Arm)
		}
		for _, r := range w.Validity.Reasons {
			if !said[r] {
				v.Reasons = append(v.Reasons, where+r)
			}
		}
		for _, n := range w.Validity.Notes {
			v.Notes = append(v.Notes, where+n)
		}
	}
	for _, l := range s.run.Lifecycles {
		if l.Status == "failed" {
			text, more, _ := strings.Cut(l.Error, "\n")
			if more != "" {
				text += " (its last lines are in lifecycles.jsonl)"
			}
			v.Reasons = append(v.Reasons, fmt.Sprintf("lifecycle %d (%s) failed: %s", l.Number, l.Arm, text))
		}
	}
	v.Notes = append(v.Notes, otherGPUs(s.run)...)
	for n, i := range s.run.Environment.Invocations {
		text := fmt.Sprintf("invocation %d went on after lifecycle %d, cause %s", n+2, i.After, i.Cause)
		if i.Abandoned > 0 {
			text += fmt.Sprintf(": pair %d was abandoned", i.Abandoned)
		}
		if i.Added > 0 {
			text += fmt.Sprintf(", pair %d was added", i.Added)
		}
		v.Notes = append(v.Notes, text)
	}
	switch out.Status {
	case "interrupted":
		v.Reasons = append(v.Reasons, "interrupted: the run did not come to its end")
	case "partial":
		v.Notes = append(v.Notes, fmt.Sprintf("partial: the label filter %q selected a part of the plan", s.run.Environment.Selection))
	}
	v.Valid = len(v.Reasons) == 0
	return v
}
