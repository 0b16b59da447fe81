package metric

import (
	"fmt"
	"slices"

	"assay/harness/plan"
	"assay/harness/record"
)

// Finding is one thing in the records that no honest run can have.
type Finding struct {
	Code  string // a short name, such as "schedule" or "tokens"
	Where string // "lifecycle 2, wave 4, ordinal 7"; empty for the run
	Text  string
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
// with what they count. It is the same live and when a bundle is verified.
func Check(p *plan.Plan, run record.Run) []Finding {
	frozen, err := plan.Freeze(p)
	if err != nil {
		return []Finding{{Code: "plan", Text: err.Error()}}
	}
	c := &checker{plan: p, schedule: p.Schedule(), run: run, planSum: frozen.SHA256}
	c.scheduleSum = c.schedule.SHA256()
	c.hashes()
	c.lifecycles()
	c.waves()
	c.requests()
	c.prompts()
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

func (c *checker) hashes() {
	check := func(where, planSum, scheduleSum, schema, want string) {
		if planSum != c.planSum {
			c.found("plan_sha256", where, "the record is of another plan: %.12s…, this one is %.12s…", planSum, c.planSum)
		}
		if scheduleSum != c.scheduleSum {
			c.found("schedule_sha256", where, "the record is of another schedule: %.12s…, this one is %.12s…", scheduleSum, c.scheduleSum)
		}
		if schema != want {
			c.found("schema", where, "%q where %q belongs", schema, want)
		}
	}
	if got := c.run.Environment.PlanSHA256; got != c.planSum {
		c.found("plan_sha256", "environment", "it is of another plan: %.12s…, this one is %.12s…", got, c.planSum)
	}
	for _, l := range c.run.Lifecycles {
		check(fmt.Sprintf("lifecycle %d", l.Number), l.PlanSHA256, l.ScheduleSHA256, l.Schema, record.LifecycleSchema)
	}
	for _, w := range c.run.Waves {
		check(whereWave(w.Lifecycle, w.Number), w.PlanSHA256, w.ScheduleSHA256, w.Schema, record.WaveSchema)
	}
	for _, r := range c.run.Requests {
		check(whereRequest(r), r.PlanSHA256, r.ScheduleSHA256, r.Schema, record.RequestSchema)
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
		if l.Arm != place.Arm || l.Pair != place.Pair || l.Position != place.Position {
			c.found("schedule", where, "it is %s in pair %d at position %d, the schedule has %s in pair %d at position %d", l.Arm, l.Pair, l.Position, place.Arm, place.Pair, place.Position)
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
		last := int64(0)
		for _, m := range l.Moments {
			// The engine's own start is on its own clock.
			if m.At == nil || m.Phase == "engine_started" {
				continue
			}
			if *m.At < last {
				c.found("time", where, "%s at %d ns comes before the moment ahead of it at %d ns", m.Phase, *m.At, last)
			}
			last = max(last, *m.At)
		}
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

// waves checks each scheduled wave against its one record, and that waves of a
// lifecycle follow one another in order and in time.
func (c *checker) waves() {
	type key struct{ lifecycle, number int }
	seen := map[key]int{}
	before := map[int]record.Wave{}
	ends := map[key]int64{}
	for _, r := range c.run.Requests {
		k := key{r.Lifecycle, r.Wave}
		ends[k] = max(ends[k], r.EndedAt)
	}
	for _, w := range c.run.Waves {
		where := whereWave(w.Lifecycle, w.Number)
		seen[key{w.Lifecycle, w.Number}]++
		place, ok := c.place(w.Lifecycle, w.Number)
		if !ok {
			c.found("schedule", where, "the schedule has no such wave")
			continue
		}
		if w.Tier != place.Tier || w.Repeat != place.Repeat || w.Warmup != place.Warmup || w.Arm != c.schedule.Lifecycles[w.Lifecycle-1].Arm {
			c.found("schedule", where, "it is %s with %d clients, repeat %d; the schedule has %s with %d clients, repeat %d",
				w.Arm, w.Tier, w.Repeat, c.schedule.Lifecycles[w.Lifecycle-1].Arm, place.Tier, place.Repeat)
		}
		if w.Status == "not_selected" || w.Status == "not_run" {
			continue
		}
		if w.ReleasedAt == nil {
			c.found("wave", where, "it ran and has no release")
			continue
		}
		if last, ok := before[w.Lifecycle]; ok {
			if w.Number <= last.Number || w.Executed != last.Executed+1 {
				c.found("order", where, "it ran as number %d after wave %d, against the schedule", w.Executed, last.Number)
			}
			if end := ends[key{last.Lifecycle, last.Number}]; *w.ReleasedAt < end {
				c.found("time", where, "it was released at %d ns, before wave %d had ended at %d ns", *w.ReleasedAt, last.Number, end)
			}
		} else if w.Executed != 1 {
			c.found("order", where, "it is the first of its lifecycle to have run, and says that it was number %d", w.Executed)
		}
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
			c.found("schedule", whereRequest(r), "the schedule has no such wave")
			continue
		}
		l := c.schedule.Lifecycles[r.Lifecycle-1]
		if r.Arm != l.Arm || r.Pair != l.Pair || r.Position != l.Position || r.Tier != place.Tier || r.Repeat != place.Repeat || r.Warmup != place.Warmup || r.Lane != string(c.plan.Workload.Lane) {
			c.found("schedule", whereRequest(r), "its arm, pair, position, tier, repeat, warm-up or lane is not the schedule's")
		}
		for _, text := range Broken(r) {
			c.found("record", whereRequest(r), "%s", text)
		}
		if r.Outcome == record.Timeout {
			limit := int64(c.plan.Scaled(c.plan.Timeouts.Request))
			if took := r.EndedAt - r.ScheduledAt; took < limit {
				c.found("record", whereRequest(r), "it is called a timeout after %.3f s, and the limit is %.3f s", float64(took)/1e9, float64(limit)/1e9)
			}
		}
		if c.plan.Workload.Lane == plan.Fixed && r.Outcome == record.OK && r.OutputTokens != nil && *r.OutputTokens != c.plan.Workload.MaxTokens {
			c.found("lane", whereRequest(r), "%d output tokens in the fixed lane, which needs exactly %d", *r.OutputTokens, c.plan.Workload.MaxTokens)
		}
	}
}

// accounted checks that a wave has each of its attempts exactly once.
func (c *checker) accounted(w record.Wave) {
	p := c.run.Of(w)
	where := whereWave(w.Lifecycle, w.Number)
	if w.Status == "not_selected" || w.Status == "not_run" {
		if len(p.Attempts) > 0 {
			c.found("attempts", where, "it is %s, and has %d attempts", w.Status, len(p.Attempts))
		}
		return
	}
	for _, text := range Unaccounted(p) {
		c.found("attempts", where, "%s", text)
	}
	if w.Attempts != len(p.Attempts) {
		c.found("attempts", where, "the wave says %d attempts, and has %d", w.Attempts, len(p.Attempts))
	}
	var first, last *int64
	for i := range p.Attempts {
		r := p.Attempts[i]
		if w.ReleasedAt != nil && r.ScheduledAt != *w.ReleasedAt {
			c.found("time", whereRequest(r), "it was scheduled at %d ns, and the wave was released at %d ns", r.ScheduledAt, *w.ReleasedAt)
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
		c.found("release_lag", where, "the wave has a release lag, and nothing was sent")
	case first != nil && (w.ReleaseLag == nil || *w.ReleaseLag != *last-*first):
		c.found("release_lag", where, "the wave's release lag is not the time between its first and its last sent_at, %d ns", *last-*first)
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

// Broken says what in one attempt contradicts itself.
func Broken(r record.Request) []string {
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
	if n := len(r.ClientLag); n != 0 && n != len(r.Events) {
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
		if r.Outcome == record.OK && r.UsageOutputTokens != nil && *r.UsageOutputTokens != *r.OutputTokens {
			say("the engine's usage counts %d output tokens, and it returned the ids of %d", *r.UsageOutputTokens, *r.OutputTokens)
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
		tier    int
		warmup  bool
		ordinal int
	}
	input := map[key]record.Request{}
	tokens := map[string]record.Request{}
	for _, r := range c.run.Requests {
		k := key{r.Arm, r.Tier, r.Warmup, r.Ordinal}
		if first, ok := input[k]; ok && (first.PromptID != r.PromptID || first.InputSHA256 != r.InputSHA256) {
			c.found("prompts", whereRequest(r), "it was asked %s, and the same ordinal was asked %s in wave %d", r.PromptID, first.PromptID, first.Wave)
		} else if !ok {
			input[k] = r
		}
		if r.InputTokens == nil {
			continue
		}
		if first, ok := tokens[r.PromptID]; ok && *first.InputTokens != *r.InputTokens {
			c.found("prompts", whereRequest(r), "%s has %d input tokens in %s, and %d in %s: the arms were not asked the same", r.PromptID, *r.InputTokens, r.Arm, *first.InputTokens, first.Arm)
			tokens[r.PromptID] = r // said once for each change, not for each attempt
		} else if !ok {
			tokens[r.PromptID] = r
		}
	}
	said := map[key]bool{}
	for _, r := range c.run.Requests {
		k := key{r.Arm, r.Tier, r.Warmup, r.Ordinal}
		if said[k] {
			continue
		}
		said[k] = true
		for _, arm := range c.plan.Arms {
			other, ok := input[key{arm.Name, k.tier, k.warmup, k.ordinal}]
			if ok && arm.Name > k.arm && other.PromptID != r.PromptID {
				c.found("prompts", whereRequest(r), "%s was asked %s, and %s was asked %s", k.arm, r.PromptID, arm.Name, other.PromptID)
			}
		}
	}
}
