package metric

import (
	"fmt"
	"maps"
	"slices"

	"assay/harness/clock"
	"assay/harness/engine"
	"assay/harness/plan"
	"assay/harness/record"
)

// Finding is one thing that is wrong with the records.
type Finding struct {
	Code  string // a short name, such as "schedule" or "incomplete"
	Where string // "lifecycle 2, wave 4, ordinal 7"; empty for the run
	Text  string
	// ByServer says that a server, or a busy machine, can bring it about: an honest
	// run may have it, and is invalid. Without it no honest run has such
	// records, and their bundle does not hold.
	ByServer bool

	lifecycle, wave int // of which it is; 0: of no single one
}

// String writes the finding on one line.
func (f Finding) String() string {
	if f.Where == "" {
		return f.Code + ": " + f.Text
	}
	return f.Code + ": " + f.Where + ": " + f.Text
}

// Check holds records against the plan's schedule and against what no honest
// run can break: every scheduled attempt accounted for exactly once, in the
// schedule's order, times that only grow within an attempt, counts that agree
// with what they count. What the servers did against the plan is in it too,
// and says so. It is the same live and when a bundle is verified.
func Check(p *plan.Plan, run record.Run) []Finding {
	run = run.Indexed()
	frozen, err := plan.Freeze(p)
	if err != nil {
		return []Finding{{Code: "plan", Text: err.Error()}}
	}
	c := &checker{plan: p, schedule: Schedule(p, run), run: run, planSum: frozen.SHA256, scheduleSum: p.Schedule().SHA256()}
	c.hashes()
	c.lifecycles()
	c.waves()
	c.requests()
	c.prompts()
	c.searches()
	c.entries()
	c.sampled()
	c.invocations()
	c.sameMakings()
	return c.findings
}

type checker struct {
	plan                 *plan.Plan
	schedule             plan.Schedule
	run                  record.Run
	planSum, scheduleSum string
	findings             []Finding
}

func (c *checker) found(code, where, format string, args ...any) {
	c.findings = append(c.findings, Finding{Code: code, Where: where, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) inWave(w record.Wave, code, format string, args ...any) {
	c.found(code, whereWave(w.Lifecycle, w.Number), format, args...)
	f := &c.findings[len(c.findings)-1]
	f.lifecycle, f.wave = w.Lifecycle, w.Number
}

func (c *checker) inAttempt(r record.Request, code, format string, args ...any) {
	c.found(code, whereRequest(r), format, args...)
	f := &c.findings[len(c.findings)-1]
	f.lifecycle, f.wave = r.Lifecycle, r.Wave
}

func (c *checker) byServer(r record.Request, code, format string, args ...any) {
	c.inAttempt(r, code, format, args...)
	c.findings[len(c.findings)-1].ByServer = true
}

func (c *checker) hashes() {
	check := func(where string, lifecycle int, planSum, scheduleSum, schema, want string) {
		before := len(c.findings)
		c.line(where, record.Chain{PlanSHA256: planSum, ScheduleSHA256: scheduleSum, Schema: schema}, want)
		for i := range c.findings[before:] {
			c.findings[before+i].lifecycle = lifecycle
		}
	}
	if got := c.run.Environment.PlanSHA256; got != c.planSum {
		c.found("plan_sha256", "environment", "it is of another plan: %.12s…, this one is %.12s…", got, c.planSum)
	}
	for _, l := range c.run.Lifecycles {
		check(fmt.Sprintf("lifecycle %d", l.Number), l.Number, l.PlanSHA256, l.ScheduleSHA256, l.Schema, record.LifecycleSchema)
	}
	for _, w := range c.run.Waves {
		check(whereWave(w.Lifecycle, w.Number), w.Lifecycle, w.PlanSHA256, w.ScheduleSHA256, w.Schema, record.WaveSchema)
	}
	for _, r := range c.run.Requests {
		check(whereRequest(r), r.Lifecycle, r.PlanSHA256, r.ScheduleSHA256, r.Schema, record.RequestSchema)
	}
}

func whereWave(lifecycle, wave int) string {
	return fmt.Sprintf("lifecycle %d, wave %d", lifecycle, wave)
}

func whereRequest(r record.Request) string {
	return fmt.Sprintf("lifecycle %d, wave %d, ordinal %d", r.Lifecycle, r.Wave, r.Ordinal)
}

// lifecycles checks that each scheduled one is there once, in the schedule's
// order, and that its moments only grow.
func (c *checker) lifecycles() {
	seen := map[int]int{}
	executed := 0
	for _, l := range c.run.Lifecycles {
		where := fmt.Sprintf("lifecycle %d", l.Number)
		seen[l.Number]++
		if l.Number < 1 || l.Number > len(c.schedule.Lifecycles) {
			c.found("schedule", where, "the schedule has no such lifecycle")
			continue
		}
		place := c.schedule.Lifecycles[l.Number-1]
		if l.Arm != place.Arm || l.Pair != place.Pair || l.Position != place.Position || l.Lane != string(place.Lane) {
			c.found("schedule", where, "it is %s in pair %d at position %d%s, the schedule has %s in pair %d at position %d%s",
				l.Arm, l.Pair, l.Position, inLane(l.Lane), place.Arm, place.Pair, place.Position, inLane(string(place.Lane)))
		}
		if arm := c.plan.Arm(l.Arm); arm != nil && l.Engine != arm.Engine.Kind() {
			c.found("engine", where, "it ran on a %s, the plan has a %s", l.Engine, arm.Engine.Kind())
		}
		if l.TimeScale != c.plan.TimeScale {
			c.found("time_scale", where, "%g, the plan has %g", l.TimeScale, c.plan.TimeScale)
		}
		if l.Executed > 0 {
			executed++
			if l.Executed != executed {
				c.found("order", where, "it ran as number %d, as number %d of those that ran it should have", l.Executed, executed)
			}
		}
		c.moments(l)
		c.explained(l)
	}
	for i := 1; i < len(c.run.Lifecycles); i++ {
		a, b := c.run.Lifecycles[i-1], c.run.Lifecycles[i]
		if a.Executed > 0 && b.Executed > 0 && b.Number <= a.Number {
			c.found("order", fmt.Sprintf("lifecycle %d", b.Number), "it ran after lifecycle %d, against the schedule", a.Number)
		}
	}
	for _, place := range c.schedule.Lifecycles {
		if n := seen[place.Number]; n != 1 {
			c.found("schedule", fmt.Sprintf("lifecycle %d (%s)", place.Number, place.Arm), "it has %d records, and needs exactly one", n)
		}
	}
}

// inLane names a lane behind something else; a concurrency plan has one alone.
func inLane(lane string) string {
	if lane == "" {
		return ""
	}
	return " in the " + lane + " lane"
}

// phases that follow one another wherever both were reached. An engine's own
// start is on its own clock, and stands in none. A server that died has left
// before its stop was requested, one that could not be started may have been
// removed before it.
var phases = [][]engine.Phase{
	{engine.Invoked, engine.ImageReady, engine.Created, engine.Started, engine.FirstListening, engine.Ready, engine.FirstSent, engine.LastTerminal, engine.StopRequested},
	{engine.Started, engine.Exited, engine.Removed},
}

// moments checks that a lifecycle's phases follow one another, and that its
// request phase is the one that its attempts had.
func (c *checker) moments(l record.Lifecycle) {
	where := fmt.Sprintf("lifecycle %d", l.Number)
	at := map[engine.Phase]*int64{}
	for _, m := range l.Moments {
		phase := engine.Phase(m.Phase)
		if _, twice := at[phase]; twice {
			c.found("time", where, "it has the moment %s twice", m.Phase)
		}
		at[phase] = m.At
	}
	chains := phases
	if l.Exit != nil && l.Exit.Asked {
		chains = append(slices.Clone(phases), []engine.Phase{engine.StopRequested, engine.Exited})
	}
	for _, chain := range chains {
		last, name := int64(0), engine.Phase("the beginning")
		for _, phase := range chain {
			if at[phase] == nil {
				continue
			}
			if *at[phase] < last {
				c.found("time", where, "%s at %d ns comes before %s at %d ns", phase, *at[phase], name, last)
			}
			last, name = *at[phase], phase
		}
	}
	var first, last *int64
	for i := range c.run.Requests {
		r := &c.run.Requests[i]
		if r.Lifecycle != l.Number || r.SentAt == nil {
			continue
		}
		if first == nil || *r.SentAt < *first {
			first = r.SentAt
		}
		if last == nil || r.EndedAt > *last {
			last = &r.EndedAt
		}
	}
	for _, end := range []struct {
		phase engine.Phase
		want  *int64
		what  string
	}{{engine.FirstSent, first, "first sent_at_ns"}, {engine.LastTerminal, last, "last ended_at_ns"}} {
		got := at[end.phase]
		if (got == nil) != (end.want == nil) || got != nil && *got != *end.want {
			c.found("time", where, "its %s is %s, and the %s of its attempts is %s", end.phase, nsOrNone(got), end.what, nsOrNone(end.want))
		}
	}
}

func nsOrNone(ns *int64) string {
	if ns == nil {
		return "null"
	}
	return fmt.Sprintf("%d ns", *ns)
}

// explained checks that what a lifecycle does not have, it has a reason for.
func (c *checker) explained(l record.Lifecycle) {
	where := fmt.Sprintf("lifecycle %d", l.Number)
	for _, m := range l.Moments {
		if m.At == nil && m.Reason == "" {
			c.found("nulls", where, "its moment %s is null without a reason", m.Phase)
		}
	}
	for _, f := range []struct {
		name string
		null bool
	}{{"exit", l.Exit == nil}, {"log", l.Log == nil}} {
		if f.null && l.Nulls[f.name] == "" {
			c.found("nulls", where, "its %s is null without a reason", f.name)
		}
	}
	for _, facts := range []map[string]record.Fact{l.Identity, l.Caches} {
		for _, name := range slices.Sorted(maps.Keys(facts)) {
			if f := facts[name]; f.Value == nil && f.Reason == "" {
				c.found("nulls", where, "its %s is null without a reason", name)
			}
		}
	}
	if l.Executed == 0 {
		for _, w := range c.run.Waves {
			if w.Lifecycle == l.Number && w.Executed > 0 {
				c.inWave(w, "order", "it ran, and its lifecycle did not")
			}
		}
	}
}

// waves checks each scheduled wave against its one record, and that waves of a
// lifecycle follow one another in order and in time.
func (c *checker) waves() {
	type key struct{ lifecycle, number int }
	seen := map[key]int{}
	before := map[int]record.Wave{}
	ends := map[key]int64{}
	for _, r := range c.run.Requests {
		if k := (key{r.Lifecycle, r.Wave}); !neverDue(r) {
			ends[k] = max(ends[k], r.EndedAt)
		}
	}
	for _, w := range c.run.Waves {
		seen[key{w.Lifecycle, w.Number}]++
		place, ok := c.place(w.Lifecycle, w.Number)
		if !ok {
			c.inWave(w, "schedule", "the schedule has no such wave")
			continue
		}
		l := c.schedule.Lifecycles[w.Lifecycle-1]
		if w.Tier != place.Tier || w.Repeat != place.Repeat || w.Warmup != place.Warmup || w.Arm != l.Arm {
			c.inWave(w, "schedule", "it is %s with %d clients, repeat %d; the schedule has %s with %d clients, repeat %d",
				w.Arm, w.Tier, w.Repeat, l.Arm, place.Tier, place.Repeat)
		}
		if w.Requests != place.Requests || w.Lane != string(l.Lane) {
			c.inWave(w, "schedule", "it is a sequence of %d%s; the schedule has one of %d%s", w.Requests, inLane(w.Lane), place.Requests, inLane(string(l.Lane)))
		}
		if w.Rate != place.Rate || w.Seed != place.Seed || w.Arrivals != place.Arrivals || w.ArrivalsSHA256 != place.ArrivalsSHA256 || w.Probe != place.Probe {
			c.inWave(w, "schedule", "it is an open loop of %d arrivals at %s by the seed %d; the schedule has %d at %s by %d, or others", w.Arrivals, w.Loop(), w.Seed, place.Arrivals, record.Rate(place.Rate), place.Seed)
		}
		c.explainedWave(w)
		if w.Status == "not_selected" || w.Status == "not_run" {
			continue
		}
		if w.ReleasedAt == nil {
			c.inWave(w, "wave", "it ran and has no release")
			continue
		}
		if last, ok := before[w.Lifecycle]; ok {
			if w.Number <= last.Number || w.Executed != last.Executed+1 {
				c.inWave(w, "order", "it ran as number %d after wave %d, against the schedule", w.Executed, last.Number)
			}
			if end := ends[key{last.Lifecycle, last.Number}]; *w.ReleasedAt < end {
				c.inWave(w, "time", "it was released at %d ns, before wave %d had ended at %d ns", *w.ReleasedAt, last.Number, end)
			}
		} else if w.Executed != 1 {
			c.inWave(w, "order", "it is the first of its lifecycle to have run, and says that it was number %d", w.Executed)
		}
		c.around(w, ends[key{w.Lifecycle, w.Number}], before[w.Lifecycle])
		before[w.Lifecycle] = w
	}
	for _, l := range c.schedule.Lifecycles {
		for _, w := range l.Waves {
			if n := seen[key{l.Number, w.Number}]; n != 1 {
				c.found("schedule", whereWave(l.Number, w.Number), "it has %d records, and needs exactly one", n)
			}
		}
	}
}

// around checks what surrounds a wave: the settling before it, and the
// readings of both clocks.
func (c *checker) around(w record.Wave, end int64, last record.Wave) {
	if s := w.Settle; s != nil {
		if s.From > s.Until || s.Until > *w.ReleasedAt {
			c.inWave(w, "settle", "it settled from %d ns to %d ns and was released at %d ns", s.From, s.Until, *w.ReleasedAt)
		}
		busy := s.Running != nil && *s.Running > 0 || s.Waiting != nil && *s.Waiting > 0
		if s.Idle && busy {
			c.inWave(w, "settle", "its server is called idle with requests running or waiting")
		}
		var carried *bool
		if s.Idle || s.Running != nil && s.Waiting != nil {
			carried = &busy
		}
		if (carried == nil) != (w.CarryOver == nil) || carried != nil && *carried != *w.CarryOver {
			c.inWave(w, "settle", "its carry_over is not what its settling saw")
		}
		left := 0
		for _, r := range c.run.Of(last).Attempts {
			if r.SentAt != nil && (r.Outcome == record.Timeout || r.Outcome == record.Cancelled) {
				left++
			}
		}
		if s.Abandoned != left {
			c.inWave(w, "settle", "it says that %d attempts of the wave before were abandoned, and %d were", s.Abandoned, left)
		}
	}
	readings := w.ClockReadings
	if readings == nil {
		return
	}
	if readings.Before.After > *w.ReleasedAt || readings.After.Before < end {
		c.inWave(w, "clock", "its readings of both clocks are not around it")
	}
	stepped := clock.Conversion{First: clock.Reading(readings.Before), Last: clock.Reading(readings.After)}.Stepped()
	if stepped != readings.Stepped {
		c.inWave(w, "clock", "stepped is %t, and its readings say %t", readings.Stepped, stepped)
	}
	for _, r := range c.run.Of(w).Attempts {
		if stepped && r.Clock.Provenance == record.KernelObserved {
			c.inAttempt(r, "clock", "its times are the kernel's, and the wall clock was stepped inside the wave")
		}
	}
}

// explainedWave checks that each null of a wave has its reason.
func (c *checker) explainedWave(w record.Wave) {
	for _, f := range []struct {
		name string
		null bool
	}{
		{"settle", w.Settle == nil}, {"carry_over", w.CarryOver == nil}, {"released_at_ns", w.ReleasedAt == nil},
		{"release_lag_ns", w.ReleaseLag == nil}, {"clock_readings", w.ClockReadings == nil}, {"client", w.Client == nil},
	} {
		if f.null != (w.Nulls[f.name] != "") {
			c.inWave(w, "nulls", "%s is null without a reason, or has a reason and is not null", f.name)
		}
	}
}

func (c *checker) place(lifecycle, wave int) (plan.Wave, bool) {
	if lifecycle < 1 || lifecycle > len(c.schedule.Lifecycles) {
		return plan.Wave{}, false
	}
	waves := c.schedule.Lifecycles[lifecycle-1].Waves
	if wave < 1 || wave > len(waves) {
		return plan.Wave{}, false
	}
	return waves[wave-1], true
}

// requests checks every wave's attempts and each attempt by itself.
func (c *checker) requests() {
	for _, w := range c.run.Waves {
		c.accounted(w)
	}
	for _, r := range c.run.Requests {
		place, ok := c.place(r.Lifecycle, r.Wave)
		if !ok {
			c.inAttempt(r, "schedule", "the schedule has no such wave")
			continue
		}
		l := c.schedule.Lifecycles[r.Lifecycle-1]
		if r.Arm != l.Arm || r.Pair != l.Pair || r.Position != l.Position || r.Tier != place.Tier || r.Repeat != place.Repeat || r.Warmup != place.Warmup && !place.Open() || r.Rate != place.Rate || r.Lane != string(c.plan.Asked(l).Lane) {
			c.inAttempt(r, "schedule", "its arm, pair, position, tier, repeat, warm-up or lane is not the schedule's")
		}
		for _, text := range Broken(r) {
			c.inAttempt(r, "record", "%s", text)
		}
		if text := Misreported(r); text != "" {
			c.byServer(r, "usage", "%s", text)
		}
		if r.Outcome == record.Timeout {
			limit := int64(c.plan.Scaled(c.plan.Timeouts.Request))
			if took := r.EndedAt - r.ScheduledAt; took < limit {
				c.inAttempt(r, "record", "it is called a timeout after %.3f s, and the limit is %.3f s", float64(took)/1e9, float64(limit)/1e9)
			}
		}
		if c.plan.Pairing != nil && r.InputTokens != nil {
			if want := c.plan.Pairing.Lanes.Sequence(l.Lane).InputLength(r.Ordinal - 1); want > 0 && *r.InputTokens != want {
				c.byServer(r, "prompts", "%s has %d input tokens, and the plan makes it exactly %d", r.PromptID, *r.InputTokens, want)
			}
		}
		if r.OutputTokens == nil {
			continue
		}
		asked := c.asked(l, r)
		switch n, most := *r.OutputTokens, asked.Tokens; {
		case n > most:
			c.byServer(r, "lane", "%d output tokens, and at most %d were asked for", n, most)
		case asked.Lane == plan.Fixed && r.Outcome == record.OK && n != most:
			c.byServer(r, "lane", "%d output tokens in the fixed lane, which needs exactly %d", n, most)
		}
	}
}

// accounted checks that a wave has each of its attempts exactly once.
func (c *checker) accounted(w record.Wave) {
	p := c.run.Of(w)
	if w.Status == "not_selected" || w.Status == "not_run" {
		if len(p.Attempts) > 0 {
			c.inWave(w, "incomplete", "it is %s, and has %d attempts", w.Status, len(p.Attempts))
		}
		return
	}
	for _, text := range Unaccounted(p) {
		c.inWave(w, "incomplete", "%s", text)
	}
	if w.Attempts != len(p.Attempts) {
		c.inWave(w, "incomplete", "the wave says %d attempts, and has %d", w.Attempts, len(p.Attempts))
	}
	if place, ok := c.place(w.Lifecycle, w.Number); ok && place.Open() {
		c.open(w, place, p.Attempts)
		return
	}
	if w.Requests > 0 {
		c.sequence(w, p.Attempts)
		return
	}
	var first, last *int64
	for i := range p.Attempts {
		r := p.Attempts[i]
		if w.ReleasedAt != nil && r.ScheduledAt != *w.ReleasedAt {
			c.inAttempt(r, "time", "it was scheduled at %d ns, and the wave was released at %d ns", r.ScheduledAt, *w.ReleasedAt)
		}
		if r.SentAt == nil {
			continue
		}
		if first == nil || *r.SentAt < *first {
			first = r.SentAt
		}
		if last == nil || *r.SentAt > *last {
			last = r.SentAt
		}
	}
	switch {
	case first == nil && w.ReleaseLag != nil:
		c.inWave(w, "release_lag", "the wave has a release lag, and nothing was sent")
	case first != nil && (w.ReleaseLag == nil || *w.ReleaseLag != *last-*first):
		c.inWave(w, "release_lag", "the wave's release lag is not the time between its first and its last sent_at, %d ns", *last-*first)
	}
}

// sequence checks that attempts followed one another: each scheduled when the
// one before had ended, the first at the release.
func (c *checker) sequence(w record.Wave, attempts []record.Request) {
	if w.ReleaseLag != nil {
		c.inWave(w, "release_lag", "a sequence has a release lag, and its requests are not released together")
	}
	attempts = slices.SortedFunc(slices.Values(attempts), func(a, b record.Request) int { return a.Ordinal - b.Ordinal })
	for i, r := range attempts {
		switch {
		case i > 0 && r.Ordinal == attempts[i-1].Ordinal+1 && r.ScheduledAt < attempts[i-1].EndedAt:
			c.inAttempt(r, "time", "it was scheduled at %d ns, before the one ahead of it had ended at %d ns", r.ScheduledAt, attempts[i-1].EndedAt)
		case r.Ordinal == 1 && w.ReleasedAt != nil && r.ScheduledAt != *w.ReleasedAt:
			c.inAttempt(r, "time", "it was scheduled at %d ns, and the sequence was released at %d ns", r.ScheduledAt, *w.ReleasedAt)
		}
	}
}

// Unaccounted says what is wrong with a population that is one wave's: an
// ordinal that is missing, doubled or beyond the wave, an outcome that is none.
func Unaccounted(p record.Population) []string {
	var out []string
	seen := map[int]int{}
	for _, r := range p.Attempts {
		seen[r.Ordinal]++
		if !slices.Contains(record.Outcomes, r.Outcome) {
			out = append(out, fmt.Sprintf("ordinal %d has the outcome %q, which is none", r.Ordinal, r.Outcome))
		}
		if r.Ordinal < 1 || r.Ordinal > p.Scheduled {
			out = append(out, fmt.Sprintf("ordinal %d is beyond the %d that were scheduled", r.Ordinal, p.Scheduled))
		}
	}
	for ordinal := 1; ordinal <= p.Scheduled; ordinal++ {
		switch n := seen[ordinal]; {
		case n == 0:
			out = append(out, fmt.Sprintf("ordinal %d has no attempt", ordinal))
		case n > 1:
			out = append(out, fmt.Sprintf("ordinal %d has %d attempts: there are no retries", ordinal, n))
		}
	}
	return out
}

// Broken says what in one attempt's record contradicts itself, whatever the
// server did.
func Broken(r record.Request) []string {
	if r.Condensed != nil {
		return r.Condensed.Broken
	}
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	times(r, say)
	events(r, say)
	tokens(r, say)
	outcome(r, say)
	nulls(r, say)
	return out
}

func times(r record.Request, say func(string, ...any)) {
	last, name := r.ScheduledAt, "scheduled_at_ns"
	for _, t := range []struct {
		name string
		at   *int64
	}{{"sent_at_ns", r.SentAt}, {"first_token_at_ns", r.FirstTokenAt}, {"last_token_at_ns", r.LastTokenAt}, {"ended_at_ns", &r.EndedAt}} {
		if t.at == nil {
			continue
		}
		if *t.at < last {
			say("%s is %d, before %s at %d", t.name, *t.at, name, last)
		}
		last, name = *t.at, t.name
	}
	if r.SentAt == nil && (r.FirstTokenAt != nil || len(r.Events) > 0) {
		say("tokens came back for a request that was not sent")
	}
	if p := r.Clock.Provenance; p != record.KernelObserved && p != record.ClientObserved {
		say("its times are %q, which no arrival can be", p)
	}
}

func events(r record.Request, say func(string, ...any)) {
	if len(r.Events) == 0 {
		if r.FirstTokenAt != nil || r.LastTokenAt != nil {
			say("it has a first or last token, and no event that carried one")
		}
		return
	}
	if r.FirstTokenAt == nil || *r.FirstTokenAt != r.Events[0].Arrival {
		say("first_token_at_ns is not the arrival of the first event with a token, %d", r.Events[0].Arrival)
	}
	if end := r.Events[len(r.Events)-1].Arrival; r.LastTokenAt == nil || *r.LastTokenAt != end {
		say("last_token_at_ns is not the arrival of the last event with a token, %d", end)
	}
	last := int64(0)
	for i, e := range r.Events {
		if e.Earliest > e.Arrival {
			say("event %d arrived at %d, before the earliest that it can have, %d", i+1, e.Arrival, e.Earliest)
		}
		if e.Arrival < last {
			say("event %d arrived at %d, before the event ahead of it at %d", i+1, e.Arrival, last)
		}
		last = max(last, e.Arrival)
	}
	if r.SentAt != nil && r.Events[0].Earliest < *r.SentAt {
		say("event 1 can have arrived at %d, before sent_at_ns at %d", r.Events[0].Earliest, *r.SentAt)
	}
	if n := len(r.ClientLag); (n != 0 || r.Clock.Provenance == record.KernelObserved) && n != len(r.Events) {
		say("it has %d events and %d client lags", len(r.Events), n)
	}
	for i, lag := range r.ClientLag {
		if lag < 0 {
			say("the client lag of event %d is %d: nothing is read before it arrives", i+1, lag)
		}
	}
	if r.Coalesced < 0 || r.Coalesced > len(r.Events) {
		say("%d of %d events are called coalesced", r.Coalesced, len(r.Events))
	}
}

func tokens(r record.Request, say func(string, ...any)) {
	carried, all := 0, len(r.Events) > 0
	for _, e := range r.Events {
		if e.Tokens == nil {
			all = false
			continue
		}
		carried += *e.Tokens
	}
	if carried != len(r.OutputTokenIDs) {
		say("its events carried %d token ids, and output_token_ids has %d", carried, len(r.OutputTokenIDs))
	}
	if (r.OutputTokens == nil) != (r.OutputTokensSource == nil) || (r.InputTokens == nil) != (r.InputTokensSource == nil) {
		say("a token count without its source, or a source without its count")
	}
	if r.OutputTokens == nil || r.OutputTokensSource == nil {
		return
	}
	switch *r.OutputTokensSource {
	case record.SourceTokenIDs:
		if *r.OutputTokens != len(r.OutputTokenIDs) || len(r.Events) > 0 && !all {
			say("output_tokens is %d by token ids, and there are %d ids", *r.OutputTokens, len(r.OutputTokenIDs))
		}
	case record.SourceUsage:
		if r.UsageOutputTokens == nil || *r.UsageOutputTokens != *r.OutputTokens {
			say("output_tokens is %d by usage, and usage_output_tokens is not", *r.OutputTokens)
		}
	case record.SourceTokenizer:
	default:
		say("output_tokens_source is %q, which is none", *r.OutputTokensSource)
	}
}

// Misreported says where the engine's usage lies against the token ids that it
// returned itself; empty: nowhere.
func Misreported(r record.Request) string {
	if r.Outcome != record.OK || r.UsageOutputTokens == nil || r.OutputTokens == nil || r.OutputTokensSource == nil ||
		*r.OutputTokensSource != record.SourceTokenIDs || *r.UsageOutputTokens == *r.OutputTokens {
		return ""
	}
	return fmt.Sprintf("the engine's usage counts %d output tokens, and it returned the ids of %d", *r.UsageOutputTokens, *r.OutputTokens)
}

func outcome(r record.Request, say func(string, ...any)) {
	if r.Outcome == record.OK {
		if r.HTTPStatus == nil || *r.HTTPStatus != 200 {
			say("it is called ok without HTTP 200")
		}
		if r.Error != nil {
			say("it is called ok and has the error %q", *r.Error)
		}
		if r.SentAt == nil {
			say("it is called ok and was not sent")
		}
		return
	}
	if r.Error == nil {
		say("it is called %s and has no error", r.Outcome)
	}
	if r.Outcome == record.HTTPError && (r.HTTPStatus == nil || *r.HTTPStatus == 200) {
		say("it is called http_error without an HTTP status that is one")
	}
	if r.Outcome == record.ConnectError && r.HTTPStatus != nil {
		say("it is called connect_error, and was answered with HTTP %d", *r.HTTPStatus)
	}
	if (r.Outcome == record.HTTPError || r.Outcome == record.ConnectError) && len(r.Events) > 0 {
		say("it is called %s, and %d events with a token arrived", r.Outcome, len(r.Events))
	}
}

func nulls(r record.Request, say func(string, ...any)) {
	for _, f := range []struct {
		name string
		null bool
	}{
		{"error", r.Error == nil}, {"http_status", r.HTTPStatus == nil}, {"finish_reason", r.FinishReason == nil},
		{"sent_at_ns", r.SentAt == nil}, {"first_token_at_ns", r.FirstTokenAt == nil}, {"last_token_at_ns", r.LastTokenAt == nil},
		{"dial_ns", r.Dial == nil}, {"tls_ns", r.TLS == nil}, {"input_tokens", r.InputTokens == nil}, {"input_tokens_source", r.InputTokensSource == nil},
		{"output_tokens", r.OutputTokens == nil}, {"output_tokens_source", r.OutputTokensSource == nil},
		{"usage_output_tokens", r.UsageOutputTokens == nil}, {"correct", r.Correct == nil},
	} {
		if f.null != (r.Nulls[f.name] != "") {
			say("%s is null without a reason, or has a reason and is not null", f.name)
		}
	}
}

// prompts checks that the same ordinal was asked the same thing everywhere: the
// same prompt, in the same bytes within an arm, and in the same number of
// tokens in both.
func (c *checker) prompts() {
	type key struct {
		arm     string
		lane    string
		tier    int
		warmup  bool
		ordinal int
	}
	input := map[key]*record.Request{}
	tokens := map[string]*record.Request{}
	for i := range c.run.Requests {
		r := &c.run.Requests[i]
		k := key{r.Arm, r.Lane, r.Tier, r.Warmup, r.Ordinal}
		if first, ok := input[k]; ok && (first.PromptID != r.PromptID || first.InputSHA256 != r.InputSHA256) {
			c.inAttempt(*r, "prompts", "it was asked %s, and the same ordinal was asked %s in wave %d", r.PromptID, first.PromptID, first.Wave)
		} else if !ok {
			input[k] = r
		}
		if r.InputTokens == nil {
			continue
		}
		if first, ok := tokens[r.PromptID]; ok && *first.InputTokens != *r.InputTokens {
			c.byServer(*r, "prompts", "%s has %d input tokens in %s, and %d in %s: the arms were not asked the same", r.PromptID, *r.InputTokens, r.Arm, *first.InputTokens, first.Arm)
			tokens[r.PromptID] = r // said once for each change, not for each attempt
		} else if !ok {
			tokens[r.PromptID] = r
		}
	}
	said := map[key]bool{}
	for _, r := range c.run.Requests {
		k := key{r.Arm, r.Lane, r.Tier, r.Warmup, r.Ordinal}
		if said[k] {
			continue
		}
		said[k] = true
		for _, arm := range c.plan.Arms {
			other, ok := input[key{arm.Name, k.lane, k.tier, k.warmup, k.ordinal}]
			if ok && arm.Name > k.arm && other.PromptID != r.PromptID {
				c.inAttempt(r, "prompts", "%s was asked %s, and %s was asked %s", k.arm, r.PromptID, arm.Name, other.PromptID)
			}
		}
	}
}
