package metric

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"assay/harness/arrival"
	"assay/harness/capacity"
	"assay/harness/plan"
	"assay/harness/record"
)

// Rate is one rate's numbers on the curve of an arrival plan.
type Rate struct {
	Rate      float64  `json:"rate_rps"` // 0: one that changes
	Validity  Validity `json:"validity"`
	Status    string   `json:"status"` // "complete", "partial", "not_selected"
	Baseline  OpenArm  `json:"baseline"`
	Candidate OpenArm  `json:"candidate"`
	Outputs   Outputs  `json:"outputs"` // of measured attempts
	// TTFTPairs are the pairs' p95 of the effective TTFT over all measured
	// attempts, FailurePairs their failure rates.
	TTFTPairs    []Pair `json:"ttft_pairs"`
	FailurePairs []Pair `json:"failure_pairs"`
}

// OpenArm is one arm's numbers at a rate. Its populations are the measured
// attempts: those whose scheduled moment lies in the measurement, however and
// whenever they ended. Its goodput is over what ended in the measurement.
type OpenArm struct {
	Arm
	// Over all measured attempts, from the scheduled moment on, failures
	// right-censored: what a user who came at that moment would have seen.
	EffectiveTTFT50    Value `json:"effective_ttft_p50"`
	EffectiveTTFT95    Value `json:"effective_ttft_p95"`
	EffectiveTTFT99    Value `json:"effective_ttft_p99"`
	EffectiveLatency50 Value `json:"effective_latency_p50"`
	EffectiveLatency95 Value `json:"effective_latency_p95"`
	EffectiveLatency99 Value `json:"effective_latency_p99"`
	// ScheduleDelay is sent_at − scheduled_at of those that were sent.
	ScheduleDelay50 Value `json:"schedule_delay_p50"`
	ScheduleDelay99 Value `json:"schedule_delay_p99"`
	Dropped         int   `json:"dropped"` // never sent: the limit on requests in flight was reached
	Drained         int   `json:"drained"` // cancelled at the drain's limit
	// Offered is how many attempts a second the measurement had, Completed how
	// many ended well in it, whenever they were scheduled.
	Offered   Value `json:"offered"`
	Completed Value `json:"completed"`
	// Attainment is the share of the measured attempts that kept every limit that
	// the plan's SLO sets to a single one.
	Attainment Value  `json:"slo_attainment"`
	Growth     Growth `json:"growth"`
}

// Growth says whether the requests in the server became ever more during the
// measurement.
type Growth struct {
	// PerSecond is how many a second, on average over the measurement.
	PerSecond Value    `json:"per_second"`
	PValue    *float64 `json:"p_value"`
	Unstable  bool     `json:"unstable"`
	Reason    string   `json:"reason,omitempty"` // why it was not tested
	// Left is how many measured attempts left without having been served: by their
	// timeout, by a limit on requests in flight that drops, or by the drain's. They
	// keep a backlog from growing, so that where there are any, one that did not
	// grow shows nothing.
	Left int `json:"left"`
}

// growthConfidence is that of the test of a growing backlog: at each of a
// handful of rates it may be wrong once in a hundred.
const growthConfidence = 0.99

// growthParts is how many equal parts of a measurement the backlog is looked at
// in, and mostGrowthParts in how many over all lifecycles, for which each has
// fewer.
const (
	growthParts     = 10
	mostGrowthParts = 50
)

// Searched is one lifecycle's search.
type Searched struct {
	Lifecycle int    `json:"lifecycle"`
	Pair      int    `json:"pair"`
	Arm       string `json:"arm"`
	Status    string `json:"status"` // "complete", "interrupted" or "not_run"
	// Holds is the highest rate at which the SLO was shown to hold, Fails the
	// lowest at which it was shown not to, in requests a second.
	Holds  Value  `json:"holds"`
	Fails  Value  `json:"fails"`
	Bound  Value  `json:"bound"` // fails / holds − 1
	Reason string `json:"reason,omitempty"`
	// Validity is that of its probes.
	Validity Validity `json:"validity"`
	Probes   []Probe  `json:"probes"`
}

// Probe is one probe of a search, as it was judged.
type Probe struct {
	Wave int `json:"wave"`
	capacity.Probed
}

// SLORate is the rate up to which each arm keeps the plan's SLO.
type SLORate struct {
	Baseline  Spread `json:"baseline"`  // over lifecycles, of what holds
	Candidate Spread `json:"candidate"` //
	Ratio     Value  `json:"ratio"`     // of the medians
	Pairs     []Pair `json:"pairs"`
}

// EffectiveTTFT is first_token_at − scheduled_at, in measured ns.
func EffectiveTTFT(r record.Request) (int64, string) {
	if r.FirstTokenAt == nil {
		return 0, "no first token: " + r.Nulls["first_token_at_ns"]
	}
	return *r.FirstTokenAt - r.ScheduledAt, ""
}

// kept says whether an attempt kept one objective, what it is judged by in
// measured ns, and whether it has that. One that failed keeps none.
func kept(p *plan.Plan, o plan.Objective, r record.Request) (within bool, value float64, has bool) {
	if r.Outcome != record.OK {
		return false, math.Inf(1), true
	}
	reason := ""
	switch o.Of {
	case "ttft":
		var ns int64
		ns, reason = EffectiveTTFT(r) // an empty completion has none, and none is late
		value = float64(ns)
	case "tpot":
		value, reason = TPOT(r)
	case "latency":
		value = float64(EffectiveLatency(r))
	default:
		return true, 0, true
	}
	return value <= float64(o.Limit)/p.TimeScale, value, reason == ""
}

// judge judges a probe by its attempts, in the order of their arrivals.
func judge(p *plan.Plan, search capacity.Search, rate float64, seed uint64, attempts []record.Request) (capacity.Probed, error) {
	attempts = slices.SortedFunc(slices.Values(attempts), func(a, b record.Request) int {
		return cmp.Or(cmp.Compare(a.ScheduledAt, b.ScheduledAt), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	objectives := p.Search.SLO.Objectives()
	outcome, values := make(capacity.Outcome, len(objectives)), make([][]float64, len(objectives))
	for i, o := range objectives {
		outcome[i] = []bool{}
		for _, r := range attempts {
			within, value, has := kept(p, o, r)
			if r.Warmup || !has {
				continue
			}
			outcome[i] = append(outcome[i], within)
			if o.Limit > 0 {
				values[i] = append(values[i], value)
			}
		}
	}
	return search.Judge(rate, seed, outcome, values...)
}

// Probes are a lifecycle's, judged again from their records. The error says
// which of them the search would not have asked for, or can't be judged.
func Probes(p *plan.Plan, run record.Run, l plan.Lifecycle) ([]Probe, error) {
	search := p.Capacity(l.Pair)
	var out []Probe
	var done []capacity.Probed
	for _, w := range run.Waves {
		if w.Lifecycle != l.Number || w.Probe == 0 || w.Status != "ran" {
			continue
		}
		judged, err := judge(p, search, w.Rate, w.Seed, run.Of(w).Attempts)
		if err != nil {
			return out, fmt.Errorf("probe %d: %w", w.Probe, err)
		}
		done = append(done, judged)
		out = append(out, Probe{Wave: w.Number, Probed: judged})
	}
	return out, search.Follows(done)
}

// Probed are the probes as the search itself knows them.
func Probed(probes []Probe) []capacity.Probed {
	out := make([]capacity.Probed, len(probes))
	for i, p := range probes {
		out[i] = p.Probed
	}
	return out
}

// withProbes is the schedule with the probes that were made: a search's next
// rate is known only once the last was judged.
func withProbes(p *plan.Plan, run record.Run, s plan.Schedule) plan.Schedule {
	if p.Search == nil {
		return s
	}
	out := plan.Schedule{Lifecycles: slices.Clone(s.Lifecycles)}
	for i := range out.Lifecycles {
		l := &out.Lifecycles[i]
		place := *l
		l.Waves = slices.Clone(l.Waves)
		search := p.Capacity(l.Pair)
		var done []capacity.Probed
		for n := 1; ; n++ {
			rate, seed, over := search.Next(done)
			at := slices.IndexFunc(run.Waves, func(w record.Wave) bool { return w.Lifecycle == l.Number && w.Probe == n })
			if over || at < 0 {
				break
			}
			wave, err := p.Probe(place, n, rate, seed)
			if err != nil {
				break // told as a wave that the schedule does not have
			}
			l.Waves = append(l.Waves, wave)
			if run.Waves[at].Status != "ran" {
				break
			}
			judged, err := judge(p, search, rate, seed, run.Of(run.Waves[at]).Attempts)
			if err != nil {
				break
			}
			done = append(done, judged)
		}
	}
	return out
}

// open checks that each attempt of an open loop was scheduled at its own moment
// and belongs to its own window.
func (c *checker) open(w record.Wave, place plan.Wave, attempts []record.Request) {
	s, err := c.plan.ArrivalsOf(place)
	if err != nil || w.ReleasedAt == nil {
		return // told as another wave than the schedule's, and as one without a release
	}
	for _, r := range attempts {
		if r.Ordinal < 1 || r.Ordinal > len(s.Offsets) {
			continue // said already
		}
		if at := *w.ReleasedAt + s.Offsets[r.Ordinal-1]; s.Follows(r.Ordinal - 1) {
			c.turn(r, attempts, s.Thinks[r.Ordinal-1])
		} else if r.ScheduledAt != at {
			c.inAttempt(r, "time", "it was scheduled at %d ns, and its arrival was drawn for %d ns", r.ScheduledAt, at)
		}
		if warm := !s.Measured(r.ScheduledAt - *w.ReleasedAt); r.Warmup != warm {
			c.inAttempt(r, "schedule", "warm-up is %t, and its arrival lies in the other window", r.Warmup)
		}
	}
}

// turn checks that an attempt came so long after the end of the one that it
// follows, and was asked only if that was answered. This side sees an end a
// little after it came: more than the plan allows the client is against the run.
func (c *checker) turn(r record.Request, attempts []record.Request, think int64) {
	at := slices.IndexFunc(attempts, func(q record.Request) bool { return q.Ordinal == r.Ordinal-1 })
	if at < 0 {
		return // said already
	}
	before := attempts[at]
	due := before.EndedAt + think
	switch late := r.ScheduledAt - due; {
	case late < -before.Clock.BoundNS:
		c.inAttempt(r, "time", "it was scheduled at %d ns, and the turn before it had ended and been thought about only at %d ns", r.ScheduledAt, due)
	case late > c.plan.Gates.ClientLag.D().Nanoseconds():
		c.byServer(r, "turn_late", "it was scheduled %s after the turn before it had ended and been thought about, the plan allows the client %s", time.Duration(late), c.plan.Gates.ClientLag)
	}
	if r.SentAt != nil && before.Outcome != record.OK {
		c.inAttempt(r, "turn", "it was asked, and the turn before it ended as %s", before.Outcome)
	}
}

// searches checks that a search went on to its end.
func (c *checker) searches() {
	if c.plan.Search == nil {
		return
	}
	for _, l := range c.schedule.Lifecycles {
		probes, err := Probes(c.plan, c.run, l)
		if err != nil {
			c.found("search", fmt.Sprintf("lifecycle %d", l.Number), "%s", err)
			continue
		}
		if rate, _, over := c.plan.Capacity(l.Pair).Next(Probed(probes)); !over && searchRan(c.run, l.Number) {
			c.found("search", fmt.Sprintf("lifecycle %d", l.Number), "it ended after %d probes, and the next was to be at %s", len(probes), record.Rate(rate))
		}
	}
}

// searchRan says whether a lifecycle's search began, and nothing stopped it.
func searchRan(run record.Run, lifecycle int) bool {
	began := false
	for _, w := range run.Waves {
		if w.Lifecycle != lifecycle || w.Probe == 0 {
			continue
		}
		if began = true; w.Status != "ran" {
			return false
		}
	}
	for _, l := range run.Lifecycles {
		if l.Number == lifecycle && l.Status != "ran" {
			return false
		}
	}
	return began
}

// neverDue says that the run was stopped before an attempt's moment.
func neverDue(r record.Request) bool {
	return r.SentAt == nil && r.Outcome == record.Cancelled && r.EndedAt == r.ScheduledAt
}

// arrivals summarizes the curve and the searches of an arrival plan.
func (s *summarizer) arrivals(out *Summary) {
	a := s.plan.Arrivals
	if a == nil {
		return
	}
	for _, r := range slices.Sorted(slices.Values(a.Levels())) {
		out.Rates = append(out.Rates, s.rate(float64(r)))
	}
	if s.plan.Search == nil {
		return
	}
	for _, l := range s.schedule.Lifecycles {
		out.Searches = append(out.Searches, s.search(l))
	}
	rate := s.sloRate(out.Searches)
	out.SLORate = &rate
}

// onCurve says whether a wave is of the curve at a rate.
func onCurve(w Wave, rate float64) bool { return w.Open && w.Probe == 0 && w.Rate == rate }

func (s *summarizer) rate(rate float64) Rate {
	t := Rate{Rate: rate, Status: "complete", TTFTPairs: []Pair{}, FailurePairs: []Pair{}}
	t.Validity = Validity{Valid: true, Reasons: []string{}, Notes: []string{}}
	ran := 0
	for _, w := range s.waves {
		if !onCurve(w, rate) || w.Status == "not_selected" {
			continue
		}
		ran++
		t.Validity.take(w.Validity, fmt.Sprintf("lifecycle %d (%s): ", w.Lifecycle, w.Arm))
	}
	switch {
	case ran == 0:
		t.Status = "not_selected"
	case ran < s.plan.Sweep.Lifecycles*2:
		t.Status = "partial"
	}
	var baseline, candidate record.Population
	t.Baseline, baseline = s.openArm(plan.Baseline, rate)
	t.Candidate, candidate = s.openArm(plan.Candidate, rate)
	t.Outputs = s.compared(baseline, candidate)
	for pair := 1; pair <= s.plan.Sweep.Lifecycles; pair++ {
		ttft, failed := Pair{Pair: pair}, Pair{Pair: pair}
		ttft.Baseline, failed.Baseline = s.ofRatePair(plan.Baseline, rate, pair)
		ttft.Candidate, failed.Candidate = s.ofRatePair(plan.Candidate, rate, pair)
		t.TTFTPairs, t.FailurePairs = append(t.TTFTPairs, ttft), append(t.FailurePairs, failed)
	}
	return t
}

// measured are an arm's measured attempts at a rate of the curve, of one pair or
// of all (0), with their waves.
func (s *summarizer) measured(arm string, rate float64, pair int) (record.Population, []record.Wave) {
	p := record.Population{Name: fmt.Sprintf("%s, %s, measured attempts", arm, record.Rate(rate))}
	if pair > 0 {
		p.Name = fmt.Sprintf("pair %d, %s", pair, p.Name)
	}
	var waves []record.Wave
	for _, w := range s.run.Waves {
		if !w.Open() || w.Probe > 0 || w.Rate != rate || w.Arm != arm || w.ReleasedAt == nil || pair > 0 && s.pairOf(w.Lifecycle) != pair {
			continue
		}
		waves = append(waves, w)
		p.Attempts = append(p.Attempts, s.run.Of(w).Measured().Attempts...)
	}
	p.Scheduled = len(p.Attempts)
	return p, waves
}

func (s *summarizer) pairOf(lifecycle int) int {
	for _, l := range s.schedule.Lifecycles {
		if l.Number == lifecycle {
			return l.Pair
		}
	}
	return 0
}

func (s *summarizer) ofRatePair(role plan.Role, rate float64, pair int) (ttft, failed Value) {
	p, _ := s.measured(s.plan.WithRole(role).Name, rate, pair)
	return s.censored(effectiveTTFTs(p), 95, p.Name+", all, failures right-censored"), s.failureRate(p, p.Name)
}

// effectiveTTFTs are those of every attempt, from its scheduled moment on.
func effectiveTTFTs(p record.Population) []Censored {
	var out []Censored
	for _, r := range p.Attempts {
		if v, reason := EffectiveTTFT(r); reason == "" {
			out = append(out, Censored{Value: float64(v)})
		} else if r.Outcome != record.OK {
			out = append(out, Censored{Value: float64(EffectiveLatency(r)), AtLeast: true})
		}
	}
	return out
}

func effectiveLatencies(p record.Population) []Censored {
	var out []Censored
	for _, r := range p.Attempts {
		out = append(out, Censored{Value: float64(EffectiveLatency(r)), AtLeast: r.Outcome != record.OK})
	}
	return out
}

// openArm is an arm's numbers at a rate, and the measured attempts that they are
// over.
func (s *summarizer) openArm(role plan.Role, rate float64) (OpenArm, record.Population) {
	name := s.plan.WithRole(role).Name
	p, waves := s.measured(name, rate, 0)
	out := OpenArm{Arm: Arm{Arm: name, Role: role, Waves: len(waves), Counts: CountsOf(p), FailureRate: s.failureRate(p, p.Name)}}
	s.distributions(p, &out.Arm)
	out.tokens(p)
	all := p.Name + ", all, failures right-censored"
	ttfts, latencies := effectiveTTFTs(p), effectiveLatencies(p)
	out.EffectiveTTFT50, out.EffectiveTTFT95, out.EffectiveTTFT99 = s.censored(ttfts, 50, all), s.censored(ttfts, 95, all), s.censored(ttfts, 99, all)
	out.EffectiveLatency50, out.EffectiveLatency95, out.EffectiveLatency99 = s.censored(latencies, 50, all), s.censored(latencies, 95, all), s.censored(latencies, 99, all)
	delays := Delays(p.Attempts)
	delay := func(q float64) Value {
		if len(delays) == 0 {
			return s.null("s", p.Name+", that were sent", "nothing was sent")
		}
		return s.value(s.seconds(Percentile(delays, q)), "s", len(delays), p.Name+", that were sent")
	}
	out.ScheduleDelay50, out.ScheduleDelay99 = delay(50), delay(99)
	for _, r := range p.Attempts {
		if r.Dropped() {
			out.Dropped++
		}
		if r.Drained() {
			out.Drained++
		}
	}
	s.flows(p, waves, &out)
	out.Attainment = s.attainment(p)
	return out, p
}

// Delays are the schedule delays of those attempts that were sent, in measured
// ns.
func Delays(attempts []record.Request) []float64 {
	var out []float64
	for _, r := range attempts {
		if v, reason := ScheduleDelay(r); reason == "" {
			out = append(out, float64(v))
		}
	}
	return out
}

// OwnDelays are how late this side was with those attempts that were sent, in
// measured ns: their schedule delay without what their connection took longer to
// open than the plan has it opened ahead, which is the server's doing.
func OwnDelays(attempts []record.Request, ahead time.Duration) []float64 {
	var out []float64
	for _, r := range attempts {
		v, reason := ScheduleDelay(r)
		if reason != "" {
			continue
		}
		opening := int64(0)
		if r.Dial != nil {
			opening = *r.Dial
		}
		if r.TLS != nil {
			opening += *r.TLS
		}
		out = append(out, float64(max(0, v-max(0, opening-int64(ahead)))))
	}
	return out
}

// attainment is the share of attempts that kept every limit on a single one. An
// ok attempt that has not what a limit is of has not broken it.
func (s *summarizer) attainment(p record.Population) Value {
	if s.plan.Search == nil {
		return s.null("ratio", p.Name, "the plan sets no SLO")
	}
	if len(p.Attempts) == 0 {
		return s.null("ratio", p.Name, "no attempt was made")
	}
	good := 0
	for _, r := range p.Attempts {
		whole := r.Outcome == record.OK
		for _, o := range s.plan.Search.SLO.Objectives() {
			if within, _, has := kept(s.plan, o, r); has && !within {
				whole = false
			}
		}
		if whole {
			good++
		}
	}
	return s.value(float64(good)/float64(len(p.Attempts)), "ratio", len(p.Attempts), p.Name)
}

// flows are what went into the measurements and what came out of them: rates,
// goodput, and whether the backlog grew.
func (s *summarizer) flows(p record.Population, waves []record.Wave, out *OpenArm) {
	population := fmt.Sprintf("%s, %s, measurements", out.Arm.Arm, record.Rate(rateOf(waves)))
	out.Goodput = Spread{Median: s.null("tok/s", population, "no measurement was made")}
	out.Offered, out.Completed = s.null("rps", population, "no measurement was made"), s.null("rps", population, "no measurement was made")
	out.Growth = Growth{PerSecond: s.null("rps", population, "no measurement was made"), Reason: "no measurement was made"}
	var goodputs []float64
	parts := min(growthParts, max(1, mostGrowthParts/max(1, len(waves))))
	path := []int{0} // the lifecycles' backlogs, one set on top of the other
	seconds, offered, completed := 0.0, 0, 0
	missing := ""
	for _, w := range waves {
		schedule, err := s.arrivalsOf(w)
		if err != nil {
			continue // told as a wave that the schedule does not have
		}
		attempts := s.run.Of(w).Attempts
		from, to := *w.ReleasedAt+schedule.Warmup, *w.ReleasedAt+schedule.End
		length := s.seconds(float64(to - from))
		seconds += length
		ended, tokens, reason := endedWithin(attempts, from, to)
		completed += ended
		if reason != "" {
			missing = reason
		}
		goodputs = append(goodputs, float64(tokens)/length)
		for _, r := range attempts {
			if !r.Warmup {
				offered++
			}
		}
		backlog := Backlog(attempts, from, to, parts)
		for i := 1; i < len(backlog); i++ {
			path = append(path, path[len(path)-1]+backlog[i]-backlog[i-1])
		}
	}
	if seconds == 0 {
		return
	}
	out.Offered = s.value(float64(offered)/seconds, "rps", offered, population)
	out.Completed = s.value(float64(completed)/seconds, "rps", completed, population)
	if missing != "" {
		out.Goodput.Median.Reason = missing
	} else {
		out.Goodput = s.spread(goodputs, "tok/s", population)
	}
	left := 0
	for _, r := range p.Attempts {
		if r.Outcome == record.Timeout || r.Dropped() || r.Drained() {
			left++
		}
	}
	g := capacity.Grows(path, growthConfidence)
	out.Growth = Growth{PerSecond: s.value(float64(path[len(path)-1])/seconds, "rps", len(path)-1, population), Unstable: g.Unstable, Reason: g.Reason, Left: left}
	if g.P != nil {
		p := Round(*g.P)
		out.Growth.PValue = &p
	}
}

func rateOf(waves []record.Wave) float64 {
	if len(waves) == 0 {
		return 0
	}
	return waves[0].Rate
}

// arrivalsOf are a recorded wave's arrivals, in this machine's time.
func (s *summarizer) arrivalsOf(w record.Wave) (arrival.Schedule, error) {
	return s.plan.ArrivalsOf(plan.Wave{Rate: w.Rate, Seed: w.Seed})
}

// endedWithin is what ended well between two moments: how many attempts, with
// how many tokens; the reason is why their tokens are not known.
func endedWithin(attempts []record.Request, from, to int64) (n, tokens int, reason string) {
	for _, r := range attempts {
		if r.Outcome != record.OK || r.EndedAt < from || r.EndedAt >= to {
			continue
		}
		n++
		if r.OutputTokens == nil {
			reason = fmt.Sprintf("attempt %d is ok and has no token count: %s", r.Ordinal, r.Nulls["output_tokens"])
			continue
		}
		tokens += *r.OutputTokens
	}
	return n, tokens, reason
}

// Backlog is how many attempts had come and not ended at the beginning of each
// of so many equal parts of a time, and at its end. One that failed is there
// until it failed: it was asked for.
func Backlog(attempts []record.Request, from, to int64, parts int) []int {
	out := make([]int, parts+1)
	for i := range out {
		at := from + (to-from)*int64(i)/int64(parts)
		for _, r := range attempts {
			if r.ScheduledAt <= at && r.EndedAt > at {
				out[i]++
			}
		}
	}
	return out
}

func (s *summarizer) search(l plan.Lifecycle) Searched {
	population := fmt.Sprintf("lifecycle %d (%s), search", l.Number, l.Arm)
	out := Searched{Lifecycle: l.Number, Pair: l.Pair, Arm: l.Arm, Status: "complete", Probes: []Probe{}, Validity: Validity{Valid: true, Reasons: []string{}, Notes: []string{}}}
	probes, err := Probes(s.plan, s.run, l)
	for _, p := range probes {
		p.Objectives = slices.Clone(p.Objectives)
		for i := range p.Objectives {
			o := &p.Objectives[i]
			o.Effective, o.Lower, o.Upper = Round(o.Effective), Round(o.Lower), Round(o.Upper)
		}
		out.Probes = append(out.Probes, p)
	}
	for _, w := range s.waves {
		if w.Lifecycle != l.Number || w.Probe == 0 {
			continue
		}
		out.Validity.take(w.Validity, fmt.Sprintf("probe %d: ", w.Probe))
	}
	search := s.plan.Capacity(l.Pair)
	rps := func(v *float64, reason string) Value {
		if v == nil {
			return s.null("rps", population, reason)
		}
		return s.value(*v, "rps", len(probes), population)
	}
	done := Probed(probes)
	found := search.Result(done)
	_, _, over := search.Next(done)
	switch {
	case err != nil:
		out.Reason = err.Error()
	case len(probes) == 0:
		out.Status, out.Reason = "not_run", "no probe of it was made"
	case !over:
		out.Status, out.Reason = "interrupted", "the run was stopped before the search was over"
	default:
		out.Reason = found.Reason
	}
	out.Holds = rps(found.Holds, orReason(out.Reason, "no rate was shown to hold"))
	out.Fails = rps(found.Fails, orReason(out.Reason, "no rate was shown to fail"))
	out.Bound = s.null("ratio", population, orReason(out.Reason, "one end of the bracket is missing"))
	if found.Bound != nil {
		out.Bound = s.value(*found.Bound, "ratio", len(probes), population)
	}
	return out
}

func orReason(reason, otherwise string) string {
	if reason == "" {
		return otherwise
	}
	return reason
}

func (s *summarizer) sloRate(searches []Searched) SLORate {
	var out SLORate
	out.Pairs = []Pair{}
	of := func(role plan.Role, pair int) Value {
		name := s.plan.WithRole(role).Name
		for _, f := range searches {
			if f.Arm == name && f.Pair == pair {
				return f.Holds
			}
		}
		return s.null("rps", name, "it was not looked for")
	}
	spread := func(role plan.Role) Spread {
		name := s.plan.WithRole(role).Name
		population := name + ", lifecycles"
		var values []float64
		reason := "no search was made"
		n := 0
		for _, f := range searches {
			if f.Arm != name {
				continue
			}
			if n++; f.Holds.Value == nil {
				reason = f.Holds.Reason
				continue
			}
			values = append(values, *f.Holds.Value)
		}
		if n == 0 || len(values) < n {
			return Spread{Median: s.null("rps", population, reason)}
		}
		return s.spread(values, "rps", population)
	}
	out.Baseline, out.Candidate = spread(plan.Baseline), spread(plan.Candidate)
	for pair := 1; pair <= s.plan.Sweep.Lifecycles; pair++ {
		out.Pairs = append(out.Pairs, Pair{Pair: pair, Baseline: of(plan.Baseline, pair), Candidate: of(plan.Candidate, pair)})
	}
	b, c := out.Baseline.Median, out.Candidate.Median
	population := fmt.Sprintf("medians of %s over %s", s.plan.WithRole(plan.Candidate).Name, s.plan.WithRole(plan.Baseline).Name)
	switch {
	case b.Value == nil:
		out.Ratio = s.null("ratio", population, "the baseline has none: "+b.Reason)
	case c.Value == nil:
		out.Ratio = s.null("ratio", population, "the candidate has none: "+c.Reason)
	default:
		out.Ratio = s.value(*c.Value / *b.Value, "ratio", min(b.N, c.N), population)
	}
	return out
}
