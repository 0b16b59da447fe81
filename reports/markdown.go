package reports

import (
	"encoding/json"
	"fmt"
	"strings"

	"assay/claim"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
)

// grids are the tables of a report.
func grids(b Bundle) []grid {
	switch {
	case b.Plan.Pairing != nil:
		return crossoverGrids(b)
	case b.Plan.Arrivals != nil:
		return arrivalGrids(b)
	}
	return []grid{results(b), allAttempts(b)}
}

// Markdown is report.md: the tables and, in words, what they are over and what
// the run does not show.
func Markdown(b Bundle) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n\n%s\n\n", inMarkdown(heading(b)), inMarkdown(validity(b)))
	if b.Plan.Experiment == plan.Concurrency {
		fmt.Fprintf(&out, "![Token goodput against clients](%s)\n\n", goodputFile)
	}
	if b.Plan.Arrivals != nil {
		fmt.Fprintf(&out, "![TTFT from the scheduled moment against the rate](%s)\n\n", ttftFile)
	}
	for _, l := range b.Summary.Lanes {
		fmt.Fprintf(&out, "![D(n), %s lane](%s)\n\n", l.Lane, curveFile(l.Lane))
	}
	var tables []string
	for _, g := range grids(b) {
		tables = append(tables, g.markdown())
	}
	out.WriteString(strings.Join(tables, "\n"))
	for _, s := range append(words(b), section{"Claims", claimLines(b)}, section{"Where it ran", where(b)}) {
		if len(s.lines) == 0 {
			continue
		}
		fmt.Fprintf(&out, "\n## %s\n\n", s.title)
		for _, line := range s.lines {
			fmt.Fprintf(&out, "- %s\n", inItem(line))
		}
	}
	return out.String()
}

// section is a list under the tables.
type section struct {
	title string
	lines []string
}

// words are what stands under the tables wherever they are shown: a number is
// read with what it is over, or not at all.
func words(b Bundle) []section {
	switch {
	case b.Plan.Pairing != nil:
		return crossoverWords(b)
	case b.Plan.Arrivals != nil:
		return arrivalWords(b)
	}
	return []section{
		{"What was asked", asked(b)},
		{"How to read this", reading(b)},
		{limitsTitle, limits(b)},
		{"Beside the load", beside(b)},
		{nullsTitle, nullsOf(b.Summary)},
		{"Against its validity", grouped(b.Summary.Validity.Reasons)},
		{"Notes", grouped(b.Summary.Validity.Notes)},
	}
}

// grouped says what many waves have in common once, with all of them.
func grouped(texts []string) []string {
	var order []string
	waves := map[string][]string{}
	for _, n := range texts {
		at := ""
		for range 2 { // "8 clients: lifecycle 1 (naive), repeat 2: …"
			if head, rest, ok := strings.Cut(n, ": "); ok && (strings.HasSuffix(head, "client") || strings.HasSuffix(head, "clients") || strings.HasPrefix(head, "lifecycle ")) {
				at, n = strings.TrimPrefix(at+", "+head, ", "), rest
			}
		}
		if waves[n] == nil {
			order = append(order, n)
		}
		waves[n] = append(waves[n], at)
	}
	var out []string
	for _, n := range order {
		switch at := waves[n]; {
		case len(at) == 1 && at[0] == "":
			out = append(out, n)
		case len(at) == 1:
			out = append(out, at[0]+": "+n)
		default:
			out = append(out, fmt.Sprintf("%s (%d times: %s)", n, len(at), strings.Join(at, "; ")))
		}
	}
	return out
}

func heading(b Bundle) string {
	base, cand := names(b)
	what := ""
	if b.Summary.Provenance == record.Emulated {
		what = ", emulated"
	}
	return fmt.Sprintf("%s against %s%s: %s", cand, base, what, b.Run.Environment.Run)
}

func validity(b Bundle) string {
	v := b.Summary.Validity
	text := "Valid: the protocol was kept."
	if !v.Valid {
		more := ""
		if n := len(v.Reasons) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more)", n)
		}
		text = "INVALID: " + v.Reasons[0] + more
	}
	if b.Summary.Status != "complete" {
		text = strings.TrimSuffix(text, ".") + fmt.Sprintf(". The run is %s.", b.Summary.Status)
	}
	return text
}

// reading says what the numbers are over.
func reading(b Bundle) []string {
	p, s := b.Plan, b.Summary
	base, cand := names(b)
	lines := append(emulatedReading(b),
		fmt.Sprintf("A wave is as many clients as its tier says, one request each, released together by one barrier. Waves recorded at each tier and lifecycle: %d; lifecycles of each arm: %d. There is one attempt at each request, and no retry.", p.Sweep.Repeats, p.Sweep.Lifecycles),
		"Token goodput of a wave: output tokens of its ok attempts, over the time from its release to the last terminal moment of any of its attempts, failed ones too. Tokens of failed attempts are not in it; they are in summary.json.",
		fmt.Sprintf("Speed-up: the ratio of the goodput medians, %s over %s.", cand, base),
		fmt.Sprintf("Percentiles are %s (numpy's default). TTFT is from the first byte of the request written to the arrival of the first event with a token; in the first table over ok attempts, pooled over repeats, in the second over all attempts. There, one that failed before its first token counts as one that would have waited at least until it failed; one that failed after it has the TTFT that was seen.", s.Percentiles),
	)
	for _, t := range s.Tiers {
		if t.Status == "not_selected" {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: %s; %s.", record.Clients(t.Tier), population(t.Baseline), population(t.Candidate)))
	}
	lines = append(lines, outputs(s))
	lines = append(lines, varied(b)...)
	return append(lines, arrivals(b.Run), itself(b), cold(b))
}

// varied names the inputs that an arm did not answer the same way each time, if
// there are any.
func varied(b Bundle) []string {
	base, cand := names(b)
	var parts []string
	for _, arm := range []string{base, cand} {
		d := metric.DeterminismOf(b.Run.Recorded(arm))
		if len(d.Varied) == 0 {
			continue
		}
		var several []string
		for _, v := range d.Varied[:min(3, len(d.Varied))] {
			from := ""
			if v.Position > 0 {
				from = fmt.Sprintf(", apart from token %d on", v.Position)
			}
			several = append(several, fmt.Sprintf("%s (%d in %d answers%s)", v.PromptID, v.Outputs, v.Answers, from))
		}
		if more := len(d.Varied) - len(several); more > 0 {
			several = append(several, fmt.Sprintf("%d more", more))
		}
		parts = append(parts, fmt.Sprintf("%s had one output always at %d of %d inputs, by %s, and several at %s", arm, d.Same, d.Inputs, d.By, strings.Join(several, ", ")))
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{"Outputs that differ within an arm at the same input, over all tiers, repeats and lifecycles: " + strings.Join(parts, "; ") + "."}
}

// emulatedReading says what emulated numbers are; nothing of others.
func emulatedReading(b Bundle) []string {
	s := b.Summary
	if s.Provenance != record.Emulated {
		return nil
	}
	measured := "measured ones are as long"
	if s.TimeScale != 1 {
		measured = fmt.Sprintf("measured ones are %g times shorter", s.TimeScale)
	}
	return []string{fmt.Sprintf("Every number here is emulated: %s. Seconds are emulated ones; %s, and the records keep those. Gates are in measured time.", models(b.Plan), measured)}
}

// itself is how the client did, in its worst wave, beside what the plan allows.
func itself(b Bundle) string {
	g := b.Plan.Gates
	return fmt.Sprintf("The client itself, worst wave, in measured time: p99 of client lag %s (the plan allows %s), share of events that shared a read %s (%s), release lag %s (%s).",
		worst(b.Summary, func(w metric.Wave) metric.Value { return w.ClientLagP99 }, 1e3, "ms"), g.ClientLag,
		worst(b.Summary, func(w metric.Wave) metric.Value { return w.Coalesced }, 100, "%"), g.Coalesced,
		worst(b.Summary, func(w metric.Wave) metric.Value { return w.ReleaseLag }, 1e3, "ms"), g.ReleaseLag)
}

// worst is the largest of a value over the waves that were released.
func worst(s metric.Summary, of func(metric.Wave) metric.Value, scale float64, unit string) string {
	most, seen, waves := 0.0, 0, 0
	for _, w := range s.Waves {
		if w.Warmup || w.Counts.Attempted == 0 {
			continue
		}
		waves++
		if v := of(w).Value; v != nil {
			seen++
			most = max(most, *v)
		}
	}
	switch seen {
	case 0:
		return "null (in none of the waves it could be seen)"
	case waves:
		return fmt.Sprintf("%.3g %s", float64(most*scale), unit)
	default:
		return fmt.Sprintf("%.3g %s (seen in %d of %d waves)", float64(most*scale), unit, seen, waves)
	}
}

// outputs says how the arms' outputs compare, where they were compared.
func outputs(s metric.Summary) string {
	var parts []string
	say := func(at string, o metric.Outputs) {
		if o.Compared {
			parts = append(parts, fmt.Sprintf("%s %d of %d equal by %s", at, o.Equal, o.Of, o.By))
		}
	}
	for _, t := range s.Tiers {
		say(record.Clients(t.Tier), t.Outputs)
	}
	for _, r := range s.Rates {
		say(record.Rate(r.Rate), r.Outputs)
	}
	if len(parts) == 0 {
		return "Outputs were not compared."
	}
	return "Outputs, compared between the arms at the same ordinal where both completed it: " + strings.Join(parts, "; ") + "."
}

// models names the arms that nothing but a model served.
func models(p *plan.Plan) string {
	var emulated []string
	for _, a := range p.Arms {
		if a.Engine.Emulated != nil {
			emulated = append(emulated, fmt.Sprintf("%s (parameters %s)", a.Name, a.Engine.Emulated.Parameters))
		}
	}
	return strings.Join(emulated, " and ") + " ran on a model of a server's scheduler, in this process, and on no engine"
}

// population is what an arm's numbers at a tier are over.
func population(a metric.Arm) string {
	text := fmt.Sprintf("%s %d waves, n = %d attempts, %d ok", a.Arm, a.Waves, a.Counts.Attempted, a.Counts.OK)
	for _, o := range record.Outcomes[1:] {
		if n := a.Counts.ByOutcome[o]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, o)
		}
	}
	if a.TTFT95.N != a.Counts.OK {
		text += fmt.Sprintf(", %d of the ok with a TTFT", a.TTFT95.N)
	}
	return text + ", tokens counted from " + source(a.OutputTokensSource)
}

func source(s string) string {
	if s == "" {
		return "nothing (no ok attempt)"
	}
	return s
}

func arrivals(run record.Run) string {
	kernel := 0
	for _, r := range run.Requests {
		if r.Clock.Provenance == record.KernelObserved {
			kernel++
		}
	}
	return fmt.Sprintf("Arrival times are the kernel's receive times in %d of %d attempts, user-space times in the others.", kernel, len(run.Requests))
}

// cold says what a lifecycle's first wave met.
func cold(b Bundle) string {
	warmup := "Nothing was sent before the first wave: the first request of each lifecycle met whatever a fresh server has not done yet (kernels, caches, allocations)."
	if n := b.Plan.Sweep.Warmup; n > 0 {
		warmup = fmt.Sprintf("%d warm-up request(s) were sent to each fresh server before its first wave; they are recorded, and in no result.", n)
	}
	if !b.Plan.Emulated() {
		warmup += " The state of the page cache is not known; " + compiled(b.Plan) + "; prompts repeat within and between waves, so that a prefix cache, where the engine has one, is warm from the first repeat on."
	}
	return "Cold: " + warmup
}

// compiled says what is known of the compile caches.
func compiled(p *plan.Plan) string {
	containers := 0
	for _, a := range p.Arms {
		if a.Engine.Container == nil {
			continue
		}
		containers++
		if target := a.Engine.Container.Writable(); target != "" {
			return fmt.Sprintf("%s may write to what is mounted at %s, which outlives its container: compile caches there are kept from one start to the next", a.Name, target)
		}
	}
	if containers < len(p.Arms) {
		return "what was compiled before, and kept, is not known"
	}
	return "compile caches live inside the container and are fresh"
}

// limits is what nobody should read out of this run.
func limits(b Bundle) []string {
	base, _ := names(b)
	lines := []string{
		"A sustainable rate: closed-loop bursts of simultaneous clients are no arrival process, and no latency objective at a rate was tested.",
		fmt.Sprintf("What an optimised baseline could do: %s is what the plan configures, and a server that takes one request at a time is not an optimised one.", base),
	}
	if b.Plan.Sweep.Lifecycles < 2 {
		lines = append(lines, "How much of it another start of the same servers would repeat: with one lifecycle an arm every ratio is an observation, not a claim.")
	}
	if b.Summary.Status == "partial" && b.Plan.Sweep.Warmup == 0 {
		lines = append(lines, "How a whole run does: what ran here ran on servers that had not served the tiers before it, and no warm-up makes the two alike.")
	}
	return append(lines, unknownAnswers(b.Summary)...)
}

// unknownAnswers is what a run whose answers nobody evaluates does not show of
// them, and an emulated one not of any engine.
func unknownAnswers(s metric.Summary) []string {
	lines := append(sameWork(s), "That the outputs are any good: no answer was evaluated.")
	if s.Provenance == record.Emulated {
		lines = append(lines, "How any engine does: what was served here is a model of one.")
	}
	return lines
}

// sameWork says where the arms did not give the same answers, or nobody looked.
func sameWork(s metric.Summary) []string {
	var lines, unequal, uncompared []string
	say := func(at, status string, o metric.Outputs) {
		switch {
		case status == "not_selected":
		case !o.Compared:
			uncompared = append(uncompared, fmt.Sprintf("%s (%s)", at, o.Reason))
		case o.Equal != o.Of:
			unequal = append(unequal, at)
		}
	}
	for _, t := range s.Tiers {
		say(record.Clients(t.Tier), t.Status, t.Outputs)
	}
	for _, r := range s.Rates {
		say(record.Rate(r.Rate), r.Status, r.Outputs)
	}
	if len(unequal) > 0 {
		lines = append(lines, fmt.Sprintf("That both arms did the same work: their outputs differ at %s, so no ratio here is one engine's speed over another's at the same answers.", strings.Join(unequal, ", ")))
	}
	if len(uncompared) > 0 {
		lines = append(lines, fmt.Sprintf("That both arms say the same: outputs were not compared at %s.", strings.Join(uncompared, ", ")))
	}
	return lines
}

// claimLines gives each claim a line with its verdict, its reasons and what
// was seen.
func claimLines(b Bundle) []string {
	var lines []string
	for _, c := range b.Claims.Claims {
		if notRun(c) {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: \"%s\" Why: %s. Seen: %s. Records: %s.", c.Verdict, c.Sentence, strings.Join(c.Reasons, "; "), c.Observation, records(c)))
	}
	return lines
}

// records names the evidence behind a claim.
func records(c claim.Claim) string {
	var parts []string
	for _, p := range c.Records {
		waves := make([]string, len(p.Waves))
		for i, w := range p.Waves {
			waves[i] = fmt.Sprint(w)
		}
		parts = append(parts, fmt.Sprintf("%s, lifecycle %d, waves %s", p.File, p.Lifecycle, strings.Join(waves, ", ")))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, "; ")
}

func notRun(c claim.Claim) bool {
	return c.Verdict == claim.NotApplicable && len(c.Reasons) == 1 && (c.Reasons[0] == claim.NotRun || c.Reasons[0] == claim.LaneNotRun)
}

// claimGroups gives all tiers of a claim that have the same verdict for the
// same reasons one line: what a terminal has room for.
func claimGroups(b Bundle) []string {
	type group struct {
		claim.Claim
		tiers []string
	}
	var groups []*group
	at := map[string]*group{}
	for _, c := range b.Claims.Claims {
		if notRun(c) {
			continue
		}
		key := fmt.Sprint(c.Claim, c.Lane, c.Verdict, c.Reasons)
		if at[key] == nil {
			at[key] = &group{Claim: c}
			groups = append(groups, at[key])
		}
		tier := fmt.Sprint(c.Tier)
		switch {
		case c.Rate > 0:
			tier = plan.Rate(c.Rate).String()
		case b.Plan.Arrivals != nil:
			tier = "changing"
		}
		at[key].tiers = append(at[key].tiers, tier)
	}
	var lines []string
	for _, g := range groups {
		where := "tier " + strings.Join(g.tiers, ", ")
		if g.Lane != "" {
			where = string(g.Lane) + " lane"
		}
		if g.Claim.Claim == plan.ClaimSLORate {
			where = "search"
		}
		lines = append(lines, fmt.Sprintf("%s, %s: %s: %s", g.Claim.Claim, where, g.Verdict, strings.Join(g.Reasons, "; ")))
	}
	return lines
}

func where(b Bundle) []string {
	facts := b.Run.Environment.Facts
	show := func(name string) string { return fact(b, name) }
	lines := []string{
		fmt.Sprintf("Processor: %s, %s cores; kernel %s; clock source %s; %s; project revision %s.",
			show("cpu_model"), show("cpu_count"), show("kernel"), show("clock_source"), show("go_version"), show("revision")),
	}
	lines = append(lines, provedClient(facts["client_proof"])...)
	lines = append(lines,
		fmt.Sprintf("Plan %s, schedule %s.", b.Summary.PlanSHA256, b.Summary.ScheduleSHA256),
		fmt.Sprintf("Model: %s, revision %s.", b.Plan.Model.Name, b.Plan.Model.Revision),
	)
	for _, l := range b.Run.Lifecycles {
		if l.Status == "not_selected" {
			continue
		}
		identity := []string{}
		for _, name := range []string{"image", "image_id", "engine_version", "model_digest", "parameters", "gpu_access", "gpus_seen", "gpu_driver", "gpu_cuda"} {
			if f, ok := l.Identity[name]; ok && f.Value != nil {
				identity = append(identity, fmt.Sprintf("%s %v", name, f.Value))
			}
		}
		identity = append(identity, gpuNames(l)...)
		arm := b.Plan.Arm(l.Arm)
		kind := l.Engine
		if len(identity) > 0 {
			kind += " (" + strings.Join(identity, ", ") + ")"
		}
		lines = append(lines, fmt.Sprintf("Lifecycle %d: %s, %s; a client that leaves: %s.", l.Number, l.Arm, kind, disconnect(arm)))
	}
	return lines
}

// provedClient is what the client showed before the first lifecycle; nothing
// where it was not asked to.
func provedClient(f record.Fact) []string {
	if f.Value == nil {
		if f.Reason == "" {
			return nil
		}
		return []string{"The client did not prove itself: " + f.Reason + "."}
	}
	// What was read from a file is a map by now.
	var p record.ClientProof
	data, err := json.Marshal(f.Value)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return []string{"The client's proof can't be read: " + err.Error() + "."}
	}
	us := func(ns int64) string { return fmt.Sprintf("%.0f µs", float64(ns)/1e3) }
	off := "how far arrivals were off is null, since the wall clock was stepped meanwhile"
	if p.ArrivalErrorP50 != nil && p.ArrivalErrorP99 != nil {
		off = fmt.Sprintf("arrivals were off by %s at p50 and %s at p99", us(*p.ArrivalErrorP50), us(*p.ArrivalErrorP99))
	}
	line := fmt.Sprintf("The client, before the first lifecycle, with %d streams from a server that computes nothing: %s, reads came up to %s late at p99",
		p.Streams, off, us(p.ClientLagP99))
	if p.Busiest != nil {
		line += fmt.Sprintf("; it used %.0f %% of its processors at most over a second, that server included", float64(*p.Busiest*100))
	}
	return []string{line + "."}
}

func disconnect(a *plan.Arm) string {
	if a == nil {
		return "unknown"
	}
	return map[plan.OnDisconnect]string{
		plan.Finish: "its request is finished all the same", plan.Cancel: "its request is cancelled", plan.Unknown: "not known what becomes of its request",
	}[a.OnDisconnect]
}
