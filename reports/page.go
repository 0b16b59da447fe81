package reports

import (
	"fmt"
	"slices"
	"strings"

	"assay/claim"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/reports/html"
)

// PageFile is the report as a page of one file. Bundles from before there was
// one lack it, and hold without it.
const PageFile = "report.html"

// HTML is report.html: the report as one file that needs no network.
func HTML(b Bundle) ([]byte, error) {
	frozen, err := plan.Freeze(b.Plan)
	if err != nil {
		return nil, err
	}
	p := html.Page{
		Plan: b.Plan, Run: b.Run, Summary: b.Summary, Claims: b.Claims,
		Title: heading(b), Question: question(b), Finding: finding(b), Verdict: claimVerdict(b.Claims.Claims), Validity: validity(b),
		Where: where(b), Frozen: string(frozen.Bytes),
	}
	for _, g := range grids(b) {
		p.Tables = append(p.Tables, html.Table{Title: g.title, Head: g.head, Rows: g.rows, Footer: g.footer})
	}
	for _, s := range words(b) {
		if s.title == nullsTitle {
			p.Nulls = s.lines
			continue
		}
		p.Sections = append(p.Sections, html.Section{Title: s.title, Lines: s.lines})
	}
	// What it does not show comes before how it was made.
	slices.SortStableFunc(p.Sections, func(a, b html.Section) int { return rank(a.Title) - rank(b.Title) })
	return p.Render()
}

// The sections that the page has in places of their own.
const (
	nullsTitle  = "Nulls"
	limitsTitle = "What this run does not show"
)

func rank(title string) int {
	if title == limitsTitle {
		return 0
	}
	return 1
}

// question is what a run of its kind asks.
func question(b Bundle) string {
	base, cand := names(b)
	switch {
	case b.Plan.Pairing != nil:
		return fmt.Sprintf("After how many requests is %s ahead of %s, from the start of each server on, and does it stay ahead?", cand, base)
	case b.Plan.Arrivals != nil:
		return fmt.Sprintf("Which rate of arrivals do %s and %s keep up with?", base, cand)
	}
	return fmt.Sprintf("How do %s and %s serve %s that come at once?", base, cand, tiers(b.Plan.Sweep.Tiers))
}

// tiers lists numbers of clients as a sentence does.
func tiers(of []int) string {
	if len(of) == 1 {
		return record.Clients(of[0])
	}
	words := make([]string, len(of))
	for i, n := range of {
		words[i] = fmt.Sprint(n)
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last] + " clients"
}

// finding is what was seen, in sentences. It claims nothing.
func finding(b Bundle) []string {
	var out []string
	switch {
	case b.Plan.Pairing != nil:
		out = crossingFinding(b)
	case b.Plan.Arrivals != nil:
		out = arrivalFinding(b)
	default:
		out = goodputFinding(b)
	}
	if len(out) == 0 {
		out = []string{"Nothing was recorded that could be compared."}
	}
	if b.Summary.Provenance == record.Emulated { // each may be read alone
		for i := range out {
			out[i] = "Emulated: " + out[i]
		}
	}
	if !b.Summary.Validity.Valid {
		out = append([]string{"This run is INVALID: what follows is what was recorded, and it shows nothing of either server."}, out...)
	}
	return out
}

// goodputFinding is of the largest tier that ran.
func goodputFinding(b Bundle) []string {
	for _, t := range slices.Backward(b.Summary.Tiers) {
		base, cand := t.Baseline, t.Candidate
		if t.Status == "not_selected" || base.Counts.Attempted == 0 || cand.Counts.Attempted == 0 {
			continue
		}
		at := record.Clients(t.Tier)
		median := func(v *float64) string {
			if v == nil {
				return "null"
			}
			return rate(*v) + " tok/s"
		}
		text := fmt.Sprintf("At %s the median token goodput of %s was %s, that of %s %s", at, cand.Arm, median(cand.Goodput.Median.Value), base.Arm, median(base.Goodput.Median.Value))
		if t.SpeedUp.Value != nil {
			text += fmt.Sprintf(" (%s)", times(t.SpeedUp))
		}
		out := []string{text + "."}
		if base.Counts.Failed+cand.Counts.Failed == 0 {
			out = append(out, fmt.Sprintf("No attempt failed at %s.", at))
		} else {
			out = append(out, fmt.Sprintf("Of %s's %d attempts at %s %s failed, of %s's %d %s.",
				base.Arm, base.Counts.Attempted, at, orNone(base.Counts.Failed), cand.Arm, cand.Counts.Attempted, orNone(cand.Counts.Failed)))
		}
		if o := t.Outputs; o.Compared && o.Equal != o.Of {
			out = append(out, "The two did not give the same answers, so that no ratio here is one engine's speed over another's.")
		}
		return out
	}
	return nil
}

func orNone(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

func crossingFinding(b Bundle) []string {
	base, cand := names(b)
	var out []string
	for _, l := range b.Summary.Lanes {
		r := l.Kept.Result
		if r == nil {
			out = append(out, fmt.Sprintf("In the %s lane no crossing can be told: %s.", l.Lane, l.Kept.Reason))
			continue
		}
		text := fmt.Sprintf("In the %s lane %s had passed %s by request %d in %s pairs", l.Lane, cand, base, r.Requests, share(r.Crossed))
		switch v := r.End.Mean; {
		case v == nil:
		case *v <= 0:
			text += fmt.Sprintf("; by then it was %.1f s ahead on average", -*v+0)
		default:
			text += fmt.Sprintf("; by then it was still %.1f s behind on average", *v)
		}
		if i := r.End.Inverted; i != nil {
			text += fmt.Sprintf(" (D(%d), %s interval %s)", r.Requests, b.Plan.Pairing.Inference.Level, interval(i))
		}
		out = append(out, text+".")
	}
	return out
}

// arrivalFinding says of each arm up to which rate it kept up, and what was seen
// of it at the first at which it did not.
func arrivalFinding(b Bundle) []string {
	var out []string
	for _, of := range []func(metric.Rate) metric.OpenArm{
		func(r metric.Rate) metric.OpenArm { return r.Candidate }, func(r metric.Rate) metric.OpenArm { return r.Baseline },
	} {
		kept, name, beyond := "", "", ""
		for _, r := range b.Summary.Rates {
			a := of(r)
			if r.Status == "not_selected" || a.Growth.PValue == nil {
				continue
			}
			name = a.Arm.Arm
			if a.Growth.Unstable {
				beyond = fmt.Sprintf("at %s it grew by %s a second", record.Rate(r.Rate), rate(*a.Growth.PerSecond.Value))
			} else if a.Growth.Left > 0 {
				beyond = fmt.Sprintf("at %s %d of %d attempts left it unserved", record.Rate(r.Rate), a.Growth.Left, a.Counts.Attempted)
			}
			if beyond != "" {
				break
			}
			kept = fmt.Sprintf("Up to %s no attempt left %s unserved, and its backlog was not seen to grow", record.Rate(r.Rate), name)
		}
		switch {
		case name == "":
		case kept == "":
			out = append(out, fmt.Sprintf("The backlog of %s was not seen to hold at any rate: %s.", name, beyond))
		case beyond == "":
			out = append(out, kept+"; no higher rate was tried.")
		default:
			out = append(out, kept+"; "+beyond+".")
		}
	}
	return out
}

// claimVerdict says what the claims came to, and where none is supported the
// reason that most of them share.
func claimVerdict(claims []claim.Claim) string {
	of := map[claim.Verdict]int{}
	why := map[string]int{}
	asked := 0
	var order []string
	for _, c := range claims {
		if notRun(c) {
			continue
		}
		asked++
		of[c.Verdict]++
		for _, r := range c.Reasons {
			if why[r] == 0 {
				order = append(order, r)
			}
			why[r]++
		}
	}
	switch {
	case asked == 0:
		return "None was asked of what ran."
	case of[claim.Supported] > 0:
		return fmt.Sprintf("%d of %d supported, %d unsupported, %d not applicable.", of[claim.Supported], asked, of[claim.Unsupported], of[claim.NotApplicable])
	}
	text := fmt.Sprintf("None of %d is supported", asked)
	if len(order) == 0 {
		return text + "."
	}
	most := slices.MaxFunc(order, func(a, b string) int { return why[a] - why[b] })
	if 2*why[most] <= asked {
		return text + "; each says why."
	}
	return fmt.Sprintf("%s: %s (%d of %d).", text, most, why[most], asked)
}
