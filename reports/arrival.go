package reports

import (
	"fmt"
	"slices"
	"strings"

	"assay/harness/metric"
	"assay/harness/record"
)

// arrivalGrids are the tables of an arrival plan's report.
func arrivalGrids(b Bundle) []grid {
	out := []grid{curveTable(b), delayTable(b)}
	if b.Plan.Search != nil {
		out = append(out, searchTable(b))
	}
	return out
}

// curveTable is the one table: a row for each rate and arm.
func curveTable(b Bundle) grid {
	g := grid{
		title:  "The curve" + emulatedHeading(b.Summary),
		head:   []string{"rate", "arm", "offered", "completed", "goodput median [min–max] tok/s", "p50 TTFT", "p95 TTFT", "p99 TTFT", "p95 TPOT", "failures", keptColumn, "backlog"},
		footer: "TTFT: from the scheduled moment, over all measured attempts, failures right-censored (≥: a lower bound; not reached: more than the rest failed before their first token). TPOT: over ok attempts. Offered, completed: attempts a second of the measurement. Backlog: by how many a second those that had come and not ended became more; UNSTABLE where it grew without end; cut where attempts left it unserved, by timeout, drop or drain.",
	}
	if b.Plan.Search == nil {
		g.head = slices.DeleteFunc(g.head, func(h string) bool { return h == keptColumn })
	}
	for _, r := range b.Summary.Rates {
		if r.Status == "not_selected" {
			continue
		}
		for _, a := range []metric.OpenArm{r.Baseline, r.Candidate} {
			row := []string{
				rateName(r), a.Arm.Arm, perSecond(a.Offered), perSecond(a.Completed), spread(a.Goodput),
				waited(a.EffectiveTTFT50, 50), waited(a.EffectiveTTFT95, 95), waited(a.EffectiveTTFT99, 99), milliseconds(a.TPOT95), failures(a.Arm),
			}
			if b.Plan.Search != nil {
				row = append(row, percent(a.Attainment))
			}
			g.rows = append(g.rows, append(row, backlog(a.Growth)))
		}
	}
	return g
}

// keptColumn is a column that only a plan with an SLO has.
const keptColumn = "SLO kept"

// waited is a percentile of a time over all attempts. Where the rest of them is
// smaller than the percentile's share, so many failed before it that their
// bounds, which may be those of quick refusals, would look like an answer.
func waited(v metric.Value, percentile float64) string {
	if v.Value != nil && v.AtLeast && float64(v.N-v.Censored) < percentile/100*float64(v.N) {
		return "not reached"
	}
	return seconds(v)
}

// delayTable holds the two ways to count from against one another.
func delayTable(b Bundle) grid {
	g := grid{
		title:  "From the scheduled moment, and from the moment of sending" + emulatedHeading(b.Summary),
		head:   []string{"rate", "arm", "p99 TTFT scheduled", "p99 TTFT sent", "p99 latency scheduled", "p99 latency sent", "p99 schedule delay", "dropped", "drained"},
		footer: "Scheduled, latency: from scheduled_at to the end, over all measured attempts, failures right-censored. Sent: from sent_at, over the same. What lies between the two was spent before the sending: by a late timer, by the opening of a connection, by the limit on requests in flight. Dropped: given up at that limit, never sent. Drained: cancelled at the drain's limit, sent or not.",
	}
	for _, r := range b.Summary.Rates {
		if r.Status == "not_selected" {
			continue
		}
		for _, a := range []metric.OpenArm{r.Baseline, r.Candidate} {
			g.rows = append(g.rows, []string{
				rateName(r), a.Arm.Arm, waited(a.EffectiveTTFT99, 99), waited(a.TTFTAll99, 99), waited(a.EffectiveLatency99, 99), waited(a.LatencyAll99, 99),
				milliseconds(a.ScheduleDelay99), fmt.Sprint(a.Dropped), fmt.Sprint(a.Drained),
			})
		}
	}
	return g
}

// searchTable has each lifecycle's search.
func searchTable(b Bundle) grid {
	g := grid{
		title: "The highest rate at which the SLO holds" + emulatedHeading(b.Summary),
		head:  []string{"lifecycle", "arm", "pair", "holds", "fails", "bracket", "probes"},
		footer: fmt.Sprintf("The SLO: %s. Holds, fails: the highest rate shown to keep it and the lowest shown not to, each verdict at a confidence of %s.",
			objectives(b), b.Plan.Search.Confidence),
	}
	for _, f := range b.Summary.Searches {
		if f.Status == "not_run" {
			continue
		}
		name := fmt.Sprint(f.Lifecycle)
		if !f.Validity.Valid {
			name += " INVALID"
		}
		if f.Status != "complete" {
			name += " " + f.Status
		}
		g.rows = append(g.rows, []string{name, f.Arm, fmt.Sprint(f.Pair), rps(f.Holds), rps(f.Fails), percent(f.Bound), fmt.Sprint(len(f.Probes))})
	}
	return g
}

// objectives writes the SLO as its plan does.
func objectives(b Bundle) string {
	var parts []string
	for _, o := range b.Plan.Search.SLO.Objectives() {
		parts = append(parts, o.String())
	}
	return strings.Join(parts, ", ")
}

func rateName(r metric.Rate) string {
	text := "changing"
	if r.Rate > 0 {
		text = rate(r.Rate) + " rps"
	}
	if !r.Validity.Valid {
		text += " INVALID"
	}
	if r.Status != "complete" {
		text += " " + r.Status
	}
	return text
}

func perSecond(v metric.Value) string {
	if v.Value == nil {
		return "null"
	}
	return rate(*v.Value)
}

func rps(v metric.Value) string {
	if v.Value == nil {
		return "none"
	}
	return fmt.Sprintf("%.3g rps", *v.Value)
}

func percent(v metric.Value) string {
	if v.Value == nil {
		return "null"
	}
	return fmt.Sprintf("%.1f %%", float64(*v.Value*100))
}

func milliseconds(v metric.Value) string {
	if v.Value == nil {
		return "null"
	}
	return fmt.Sprintf("%.1f ms", float64(*v.Value*1e3))
}

func backlog(g metric.Growth) string {
	if g.PerSecond.Value == nil {
		return "null"
	}
	text := fmt.Sprintf("%+.2f/s", *g.PerSecond.Value+0) // no −0
	switch {
	case g.Unstable:
		text += " UNSTABLE"
	case g.Left > 0:
		text += " cut"
	}
	return text
}

// arrivalWords are the sections of an arrival plan's report.
func arrivalWords(b Bundle) []section {
	return []section{
		{"Does it keep up?", keepsUp(b)},
		{"The searches, probe by probe", probeLines(b)},
		{"How to read this", arrivalReading(b)},
		{limitsTitle, arrivalLimits(b)},
		{"Beside the load", beside(b)},
		{nullsTitle, arrivalNulls(b)},
		{"Against its validity", grouped(b.Summary.Validity.Reasons)},
		{"Notes", grouped(b.Summary.Validity.Notes)},
	}
}

// keepsUp names the lowest rate at which each arm's backlog grew.
func keepsUp(b Bundle) []string {
	var lines []string
	for _, of := range []func(metric.Rate) metric.OpenArm{
		func(r metric.Rate) metric.OpenArm { return r.Baseline }, func(r metric.Rate) metric.OpenArm { return r.Candidate },
	} {
		highest, seen := 0.0, false
		for _, r := range b.Summary.Rates {
			a := of(r)
			if r.Status == "not_selected" || a.Growth.PValue == nil {
				continue
			}
			at := record.Rate(r.Rate)
			if !r.Validity.Valid {
				at += ", which is INVALID"
			}
			held := ""
			if n := b.Plan.Arrivals.InFlight; n > 0 {
				held = fmt.Sprintf(", with at most %d in flight by the plan's own limit", n)
			}
			if a.Growth.Unstable {
				lines = append(lines, fmt.Sprintf("%s does not keep up at %s%s: the requests that had come and not ended became more by %.2f a second (p = %.4f, one-sided exact sign flips over %d parts of the measurements).",
					a.Arm.Arm, at, held, *a.Growth.PerSecond.Value, *a.Growth.PValue, a.Growth.PerSecond.N))
				seen = true
				break
			}
			if a.Growth.Left > 0 {
				lines = append(lines, fmt.Sprintf("%s at %s%s: the backlog was not seen to grow, and shows nothing, since %d of %d attempts left it unserved, by timeout, drop or drain. It completed %s of %s offered a second.",
					a.Arm.Arm, at, held, a.Growth.Left, a.Counts.Attempted, perSecond(a.Completed), perSecond(a.Offered)))
				seen = true
				continue
			}
			if !seen {
				highest = r.Rate
			}
		}
		if name := b.Summary.Rates; highest > 0 {
			lines = append(lines, fmt.Sprintf("%s: up to %s no attempt left unserved, and the backlog was not seen to grow without end.", of(name[0]).Arm.Arm, record.Rate(highest)))
		}
	}
	return lines
}

// probeLines say what each search came to, one line a lifecycle.
func probeLines(b Bundle) []string {
	var lines []string
	for _, f := range b.Summary.Searches {
		if len(f.Probes) == 0 {
			continue
		}
		var parts []string
		for _, p := range f.Probes {
			invalid := ""
			if !validWave(b.Summary, f.Lifecycle, p.Wave) {
				invalid = "INVALID, "
			}
			parts = append(parts, fmt.Sprintf("%s %s (%s%s)", record.Rate(p.Rate), p.Verdict, invalid, strings.Join(judged(p), ", ")))
		}
		line := fmt.Sprintf("lifecycle %d, %s: %s.", f.Lifecycle, f.Arm, strings.Join(parts, "; "))
		if f.Reason != "" {
			line += " " + f.Reason + "."
		}
		lines = append(lines, line)
	}
	return lines
}

// validWave says whether the plan's gates let a wave count.
func validWave(s metric.Summary, lifecycle, wave int) bool {
	for _, w := range s.Waves {
		if w.Lifecycle == lifecycle && w.Number == wave {
			return w.Validity.Valid
		}
	}
	return true
}

func judged(p metric.Probe) []string {
	var out []string
	for _, o := range p.Objectives {
		out = append(out, fmt.Sprintf("%s %d/%d, worth %.0f: %.3f to %.3f", o.Name, o.Within, o.Of, o.Effective, o.Lower, o.Upper))
	}
	return out
}

func arrivalReading(b Bundle) []string {
	p, s, a := b.Plan, b.Summary, b.Plan.Arrivals
	lines := emulatedReading(b)
	order := ""
	switch {
	case len(s.Rates) < 2:
	case a.Order == "shuffled":
		order = "the rates in an order that the plan's seed shuffled for each pair of lifecycles, "
	default:
		order = "the rates in the order in which the plan has them, "
	}
	loop := fmt.Sprintf("An open loop: each request is released at a moment that was drawn before the run (%s, seeded), whatever became of those before it; %sthe same arrivals for both arms of a pair. There is one attempt at each request, and no retry.", a.Process, order)
	if turns := p.Turns(); turns > 1 {
		loop = fmt.Sprintf("A partly open loop: each conversation begins at a moment that was drawn before the run (%s, seeded), whatever became of those before it; %sthe same for both arms of a pair. It has %d turns, and each but the first comes once the answer before it has ended and its user has thought, for %s on average (exponential, seeded). The rates are of requests: conversations begin %d times more rarely. A server that answers late is asked less, and so the offered may be fewer. A turn whose conversation broke off before it was never sent and is a failure; one whose moment came after the measurement was never sent and is in no result. Turns say again what was said before them, with the same text for both arms in the place of earlier answers. There is one attempt at each request, and no retry.", a.Process, order, turns, a.Think, turns)
	}
	lines = append(lines, loop,
		fmt.Sprintf("Windows: %s of warm-up, then a measurement of %s and of %d arrivals at least, then up to %s in which what is under way is waited for. An attempt belongs to the window that its scheduled moment lies in, however and whenever it ended; one that had not ended when the drain was over is a failure of its window.", a.Warmup, a.Measure, a.MinRequests, a.Drain),
		fmt.Sprintf("Lifecycles of each arm: %d. Percentiles are %s (numpy's default). One that failed before its first token counts as one that would have waited at least until it failed.", p.Sweep.Lifecycles, s.Percentiles),
		"Offered: attempts scheduled in the measurement; completed: attempts that ended ok in it, whenever they were scheduled; goodput: the output tokens of those. In an overload the offered go on, and the completed do not.",
		"Backlog: requests that had come and not ended, at eleven moments of the measurement. It is called unstable where its ten steps, over all lifecycles, grew by an exact one-sided test at 99 %. That is this measurement's, after its warm-up: a server near its limit takes long to show what it does.",
	)
	if a.InFlight > 0 {
		lines = append(lines, fmt.Sprintf("At most %d requests were in flight; beyond it the plan says: %s.", a.InFlight, a.Beyond))
	}
	if p.Search != nil {
		lines = append(lines, fmt.Sprintf("The search doubles the rate from %s until the SLO fails or %s holds, then halves the bracket on a logarithmic scale to within %s; a rate that stays undecided is probed up to %d times. An objective holds where the lower confidence bound on the share of attempts within its limit is as high as it asks, and fails where the upper one is lower. Attempts that wait in one queue are late together: the bounds are of the number of independent ones that they are worth. Every attempt counts, and one that failed is within no limit.", p.Search.From, p.Search.To, p.Search.Within, p.Search.Tries))
	}
	for _, r := range s.Rates {
		if r.Status != "not_selected" {
			lines = append(lines, fmt.Sprintf("%s: %s; %s.", record.Rate(r.Rate), population(r.Baseline.Arm), population(r.Candidate.Arm)))
		}
	}
	g := p.Gates
	return append(lines, outputs(s), arrivals(b.Run),
		fmt.Sprintf("The client itself, worst wave, in measured time: p99 of client lag %s (the plan allows %s), share of events that shared a read %s (%s), p99 of schedule delay without what connections took to open %s (%s).",
			worst(s, func(w metric.Wave) metric.Value { return w.ClientLagP99 }, 1e3, "ms"), g.ClientLag,
			worst(s, func(w metric.Wave) metric.Value { return w.Coalesced }, 100, "%"), g.Coalesced,
			worst(s, ownDelay, 1e3, "ms"), *g.ScheduleDelay), cold(b))
}

func ownDelay(w metric.Wave) metric.Value {
	if w.OwnDelay == nil {
		return metric.Value{}
	}
	return *w.OwnDelay
}

func arrivalLimits(b Bundle) []string {
	lines := []string{
		fmt.Sprintf("What other arrivals do: these are a %s process's, and those of people come in bursts.", b.Plan.Arrivals.Process),
	}
	if b.Plan.Sweep.Lifecycles < 2 {
		lines = append(lines, "How much of it another start of the same servers would repeat: with one lifecycle an arm every number is an observation, not a claim.")
	}
	if b.Plan.Search == nil {
		lines = append(lines, "The highest rate that a service level allows: none was set, and none was looked for.")
	}
	return append(lines, unknownAnswers(b.Summary)...)
}

func arrivalNulls(b Bundle) []string {
	var out []string
	say := func(what string, v metric.Value) {
		if v.Value == nil {
			out = append(out, fmt.Sprintf("%s of %s: %s", what, v.Population, v.Reason))
		}
	}
	for _, r := range b.Summary.Rates {
		if r.Status == "not_selected" {
			out = append(out, fmt.Sprintf("%s: not selected, so the tables have no row for it", record.Rate(r.Rate)))
			continue
		}
		for _, a := range []metric.OpenArm{r.Baseline, r.Candidate} {
			if a.Waves == 0 {
				out = append(out, fmt.Sprintf("every number of %s, %s: no open loop of it was recorded", a.Arm.Arm, record.Rate(r.Rate)))
				continue
			}
			say("goodput", a.Goodput.Median)
			say("p95 TTFT", a.EffectiveTTFT95)
			say("p95 TPOT", a.TPOT95)
			if b.Plan.Search != nil {
				say("SLO kept", a.Attainment)
			}
		}
	}
	for _, f := range b.Summary.Searches {
		if f.Status == "not_run" {
			out = append(out, fmt.Sprintf("search of lifecycle %d (%s): %s", f.Lifecycle, f.Arm, f.Reason))
		}
	}
	return out
}
