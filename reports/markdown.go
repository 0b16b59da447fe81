package reports

import (
	"fmt"
	"strings"

	"assay/claim"
	"assay/harness/plan"
	"assay/harness/record"
)

// Markdown is report.md: the two tables and, in words, what they are over and
// what the run does not show.
func Markdown(b Bundle) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n\n%s\n\n", heading(b), validity(b))
	fmt.Fprintf(&out, "%s\n%s\n", results(b).markdown(), allAttempts(b).markdown())
	section := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintf(&out, "## %s\n\n", title)
		for _, line := range lines {
			fmt.Fprintf(&out, "- %s\n", line)
		}
		out.WriteString("\n")
	}
	section("How to read this", reading(b))
	section("What this run does not show", limits(b))
	section("Claims", claimLines(b))
	section("Nulls", nullsOf(b.Summary))
	section("Against its validity", b.Summary.Validity.Reasons)
	section("Notes", b.Summary.Validity.Notes)
	section("Where it ran", where(b))
	return out.String()
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
		text += fmt.Sprintf(" The run is %s.", b.Summary.Status)
	}
	return text
}

// reading says what the numbers are over.
func reading(b Bundle) []string {
	p, s := b.Plan, b.Summary
	base, cand := names(b)
	var lines []string
	if s.Provenance == record.Emulated {
		lines = append(lines, fmt.Sprintf("Every number here is emulated: both servers are a scheduler model in this process, fitted to a published run. Seconds are emulated ones; measured times are %g times shorter, and the records keep those. Gates are in measured time.", s.TimeScale))
	}
	lines = append(lines,
		fmt.Sprintf("A wave is as many clients as its tier says, one request each, released together by one barrier. Waves recorded at each tier and lifecycle: %d; lifecycles of each arm: %d. There is one attempt at each request, and no retry.", p.Sweep.Repeats, p.Sweep.Lifecycles),
		"Token goodput of a wave: output tokens of its ok attempts, over the time from its release to the last terminal moment of any of its attempts, failed ones too. Tokens of failed attempts are not in it; they are in summary.json.",
		fmt.Sprintf("Percentiles are %s. TTFT is from the first byte of the request written to the arrival of the first event with a token; in the first table over ok attempts, pooled over repeats, in the second over all attempts.", s.Percentiles),
	)
	for _, t := range s.Tiers {
		if t.Status == "not_selected" {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: %s n = %d attempts, %d ok; %s n = %d attempts, %d ok. Tokens counted from %s and %s.",
			record.Clients(t.Tier), base, t.Baseline.Counts.Attempted, t.Baseline.Counts.OK, cand, t.Candidate.Counts.Attempted, t.Candidate.Counts.OK,
			source(t.Baseline.OutputTokensSource), source(t.Candidate.OutputTokensSource)))
	}
	return append(lines, arrivals(b.Run), cold(b))
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
		warmup = fmt.Sprintf("%d request(s) were sent to each fresh server before its first wave; they are recorded, and in no result.", n)
	}
	if !b.Plan.Emulated() {
		warmup += " The state of the page cache is not known; compile caches live inside the container and are fresh; prompts repeat within and between waves, so that a prefix cache, where the engine has one, is warm from the first repeat on."
	}
	return "Cold: " + warmup
}

// limits is what nobody should read out of this run.
func limits(b Bundle) []string {
	base, _ := names(b)
	lines := []string{
		"A sustainable rate: closed-loop bursts of simultaneous clients are no arrival process, and no latency objective at a rate was tested.",
		fmt.Sprintf("What an optimised server like %s could do: a baseline that serves one request at a time is not an optimised one.", base),
	}
	if b.Plan.Sweep.Lifecycles < 2 {
		lines = append(lines, "How much of it another start of the same servers would repeat: with one lifecycle an arm every ratio is an observation, not a claim.")
	}
	compared := 0
	for _, t := range b.Summary.Tiers {
		if t.Outputs.Compared {
			compared++
			lines = append(lines, fmt.Sprintf("That both arms say the same: at %s %d of %d outputs that both completed were equal, compared by %s.", record.Clients(t.Tier), t.Outputs.Equal, t.Outputs.Of, t.Outputs.By))
		} else if t.Status != "not_selected" {
			lines = append(lines, fmt.Sprintf("That both arms say the same: at %s outputs were not compared: %s.", record.Clients(t.Tier), t.Outputs.Reason))
		}
	}
	return append(lines, "That the outputs are any good: no answer was evaluated.")
}

// claimLines gives each claim a line with its verdict, its reasons and what
// was seen.
func claimLines(b Bundle) []string {
	var lines []string
	for _, c := range b.Claims.Claims {
		if notRun(c) {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: %s %s. Seen: %s.", c.Verdict, c.Sentence, strings.Join(c.Reasons, "; "), c.Observation))
	}
	return lines
}

func notRun(c claim.Claim) bool {
	return c.Verdict == claim.NotApplicable && len(c.Reasons) == 1 && c.Reasons[0] == claim.NotRun
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
		key := fmt.Sprint(c.Claim, c.Verdict, c.Reasons)
		if at[key] == nil {
			at[key] = &group{Claim: c}
			groups = append(groups, at[key])
		}
		at[key].tiers = append(at[key].tiers, fmt.Sprint(c.Tier))
	}
	var lines []string
	for _, g := range groups {
		lines = append(lines, fmt.Sprintf("%s, tier %s: %s: %s", g.Claim.Claim, strings.Join(g.tiers, ", "), g.Verdict, strings.Join(g.Reasons, "; ")))
	}
	return lines
}

func where(b Bundle) []string {
	facts := b.Run.Environment.Facts
	show := func(name string) string {
		f, ok := facts[name]
		if !ok || f.Value == nil {
			return "null (" + f.Reason + ")"
		}
		return fmt.Sprint(f.Value)
	}
	lines := []string{
		fmt.Sprintf("Processor: %s, %s cores; kernel %s; clock source %s; %s; project revision %s.",
			show("cpu_model"), show("cpu_count"), show("kernel"), show("clock_source"), show("go_version"), show("revision")),
		fmt.Sprintf("Plan %s, schedule %s.", b.Summary.PlanSHA256, b.Summary.ScheduleSHA256),
		fmt.Sprintf("Model: %s, revision %s.", b.Plan.Model.Name, b.Plan.Model.Revision),
	}
	for _, l := range b.Run.Lifecycles {
		if l.Status == "not_selected" {
			continue
		}
		identity := []string{}
		for _, name := range []string{"image", "image_id", "engine_version", "model_digest", "parameters"} {
			if f, ok := l.Identity[name]; ok && f.Value != nil {
				identity = append(identity, fmt.Sprintf("%s %v", name, f.Value))
			}
		}
		arm := b.Plan.Arm(l.Arm)
		lines = append(lines, fmt.Sprintf("Lifecycle %d: %s on %s (%s); a client that leaves: %s.", l.Number, l.Arm, l.Engine, strings.Join(identity, ", "), disconnect(arm)))
	}
	return lines
}

func disconnect(a *plan.Arm) string {
	if a == nil {
		return "unknown"
	}
	return map[plan.OnDisconnect]string{
		plan.Finish: "its request is finished all the same", plan.Cancel: "its request is cancelled", plan.Unknown: "not known what becomes of its request",
	}[a.OnDisconnect]
}
