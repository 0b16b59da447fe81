package reports

import (
	"fmt"
	"slices"
	"strings"

	"assay/harness/crossing"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
)

// crossoverGrids are the tables of a crossover's report.
func crossoverGrids(b Bundle) []grid {
	return []grid{crossingTable(b), pairTable(b), scopeTable(b), serviceTable(b)}
}

func crossingTable(b Bundle) grid {
	base, cand := names(b)
	level := b.Plan.Pairing.Inference.Level
	g := grid{
		title: "Crossing" + emulatedHeading(b.Summary),
		head: []string{"lane", "pairs", "mean debt", "crossed", "sustained", "first crossing over pairs", "sustained from, over pairs", "mean D(N)",
			fmt.Sprintf("%s interval (sign flips)", level), "p"},
		footer: fmt.Sprintf("D(n): %s minus %s, from the start of each initialization to the n-th terminal moment. Below zero, %s is ahead. Pairs that the plan's rule leaves out are not in this table; the next has every pair.", cand, base, cand),
	}
	for _, l := range b.Summary.Lanes {
		row := []string{laneName(l), fmt.Sprintf("%d/%d", len(l.Kept.Pairs), len(l.Scheduled))}
		r := l.Kept.Result
		if r == nil {
			g.rows = append(g.rows, append(row, "null", "null", "null", "null", "null", "null", "null", "null"))
			continue
		}
		g.rows = append(g.rows, append(row, secondsOf(r.Debt.Mean), share(r.Crossed), share(r.Sustained),
			span(r.Pairs, func(p crossing.PairResult) *int { return p.First }), span(r.Pairs, func(p crossing.PairResult) *int { return p.Sustained }),
			secondsOf(r.End.Mean), interval(r.End.Inverted), pValue(r.End)))
	}
	return g
}

func laneName(l metric.Lane) string {
	text := string(l.Lane)
	if l.Status != "complete" {
		text += " " + strings.ReplaceAll(l.Status, "_", " ")
	}
	return text
}

func share(c crossing.Count) string {
	text := fmt.Sprintf("%d of %d", c.By, c.Of)
	if c.NotApplicable > 0 {
		text += fmt.Sprintf("; %d without debt", c.NotApplicable)
	}
	return text
}

// span is the smallest, the middle and the largest of a request's number over
// pairs; one that has none is censored, and then the largest is not known.
func span(pairs []crossing.PairResult, of func(crossing.PairResult) *int) string {
	var seen []float64
	censored := 0
	for _, p := range pairs {
		switch n := of(p); {
		case n != nil:
			seen = append(seen, float64(*n))
		case p.Applicable:
			censored++
		}
	}
	if len(seen) == 0 {
		return "none"
	}
	low, high := seen[0], seen[0]
	for _, v := range seen {
		low, high = min(low, v), max(high, v)
	}
	text := fmt.Sprintf("%.0f–%.0f", low, high)
	if low == high {
		text = fmt.Sprintf("%.0f", low)
	}
	if censored > 0 {
		text += fmt.Sprintf("; %d censored", censored)
	}
	return text
}

func secondsOf(v *float64) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprintf("%.3f s", *v)
}

func interval(i *crossing.Interval) string {
	if i == nil {
		return "null"
	}
	low, high := "−∞", "∞"
	if i.Low != nil {
		low = fmt.Sprintf("%.3f", *i.Low)
	}
	if i.High != nil {
		high = fmt.Sprintf("%.3f", *i.High)
	}
	return fmt.Sprintf("[%s, %s] s", low, high)
}

func pValue(e crossing.Effect) string {
	if e.PValue == nil {
		return "null"
	}
	text := fmt.Sprintf("%.4f", *e.PValue)
	if e.Label != "" {
		text += "; " + e.Label
	}
	return text
}

// pairTable has every pair, whatever the failure rule is, and those that could
// not be in any analysis.
func pairTable(b Bundle) grid {
	base, cand := names(b)
	g := grid{
		title:  "Every pair" + emulatedHeading(b.Summary),
		head:   []string{"pair", "lane", "order", "debt", "D(N)", "first", "sustained from", "equal outputs", "in the result"},
		footer: "A failed attempt counts here as it ended, which may be sooner than a whole one would have. The order: which arm of the pair came first.",
	}
	for _, l := range b.Summary.Lanes {
		results := map[int]crossing.PairResult{}
		if l.Every.Result != nil {
			for _, r := range l.Every.Result.Pairs {
				results[r.Pair] = r
			}
		}
		out := map[int]string{}
		for _, e := range append(append([]metric.Exclusion{}, l.Every.Out...), l.Kept.Out...) {
			out[e.Pair] = "no"
		}
		for _, pair := range l.Scheduled {
			order := base + ", " + cand
			verdict := "yes"
			if out[pair] != "" {
				verdict = out[pair]
			}
			r, ok := results[pair]
			if !ok {
				verdict = "no"
				g.rows = append(g.rows, []string{fmt.Sprint(pair), string(l.Lane), order, "null", "null", "null", "null", "null", verdict})
				continue
			}
			if r.CandidateFirst {
				order = cand + ", " + base
			}
			g.rows = append(g.rows, []string{
				fmt.Sprint(pair), string(l.Lane), order, fmt.Sprintf("%.3f s", r.Debt), secondsOf(r.End), ordinal(r.First, r.CensoredAt), ordinal(r.Sustained, r.CensoredAt),
				equalOutputs(l.Identity, pair), verdict,
			})
		}
	}
	return g
}

// ordinal is a request's number, or where it was censored.
func ordinal(n *int, censoredAt int) string {
	switch {
	case n != nil:
		return fmt.Sprint(*n)
	case censoredAt > 0:
		return fmt.Sprintf("> %d", censoredAt)
	default:
		return "–"
	}
}

func equalOutputs(i metric.Identity, pair int) string {
	for _, p := range i.Pairs {
		if p.Pair == pair {
			return fmt.Sprintf("%d/%d", p.Equal, p.Of)
		}
	}
	return "null"
}

func scopeTable(b Bundle) grid {
	g := grid{
		title:  "Scopes" + emulatedHeading(b.Summary),
		head:   []string{"lane", "arm", "lifecycles", "initialization", "request phase", "latency sum", "host lifecycle"},
		footer: "Median [min–max] over lifecycles. Initialization: started to ready. Request phase: first byte sent to last terminal moment. Latency sum: of ok attempts, without the time between them. Host lifecycle: invoked to removed. They answer different questions, and none is added to or subtracted from another.",
	}
	for _, l := range b.Summary.Lanes {
		for _, a := range []metric.LaneArm{l.Baseline, l.Candidate} {
			g.rows = append(g.rows, []string{string(l.Lane), a.Arm, fmt.Sprint(a.Lifecycles), spreadSeconds(a.Initialization), spreadSeconds(a.RequestPhase), spreadSeconds(a.LatencySum), spreadSeconds(a.Host)})
		}
	}
	return g
}

func spreadSeconds(s metric.Spread) string {
	if s.Median.Value == nil || s.Min == nil || s.Max == nil {
		return "null"
	}
	return fmt.Sprintf("%.3f [%.3f–%.3f] s", *s.Median.Value, *s.Min, *s.Max)
}

func serviceTable(b Bundle) grid {
	g := grid{
		title:  "Service" + emulatedHeading(b.Summary),
		head:   []string{"lane", "arm", "failures", "right answers", "input tokens", "output tokens", "p50 TTFT", "p50 latency", "p50 TPOT"},
		footer: "Failures: of all attempts. Right answers: of the answers that were evaluated. The others: over ok attempts, pooled over the lane's lifecycles.",
	}
	for _, l := range b.Summary.Lanes {
		for _, a := range []metric.LaneArm{l.Baseline, l.Candidate} {
			right := "not evaluated"
			if a.Evaluated > 0 {
				right = fmt.Sprintf("%d/%d", a.Correct, a.Evaluated)
			}
			tpot := "null"
			if a.TPOT50.Value != nil {
				tpot = fmt.Sprintf("%.2f ms", *a.TPOT50.Value*1e3)
			}
			g.rows = append(g.rows, []string{string(l.Lane), a.Arm, failures(metric.Arm{Counts: a.Counts}), right, whole(a.InputTokens), whole(a.OutputTokens), seconds(a.TTFT50), seconds(a.Latency50), tpot})
		}
	}
	return g
}

func whole(v metric.Value) string {
	if v.Value == nil {
		return "null"
	}
	return fmt.Sprintf("%.0f", *v.Value)
}

// crossoverWords stand under a crossover's tables.
func crossoverWords(b Bundle) []section {
	return []section{
		{"How to read this", crossoverReading(b)},
		{"What pairs allow to infer", inference(b)},
		{"Pairs that are left out", leftOut(b)},
		{"Modelled, not observed", modelled(b)},
		{limitsTitle, crossoverLimits(b)},
		{"Cost", costLines(b)},
		{"Beside the load", beside(b)},
		{nullsTitle, crossoverNulls(b)},
		{"Against its validity", grouped(b.Summary.Validity.Reasons)},
		{"Notes", grouped(b.Summary.Validity.Notes)},
	}
}

func crossoverReading(b Bundle) []string {
	p, s := b.Plan, b.Summary
	base, cand := names(b)
	var lines []string
	if s.Provenance == record.Emulated {
		lines = append(lines, fmt.Sprintf("Every number here is emulated: %s. Seconds are emulated ones, which passed %g times faster; the records keep those that were measured. Gates are in measured time.", models(p), s.TimeScale))
	}
	for _, l := range s.Lanes {
		q := p.Pairing.Lanes.Sequence(l.Lane)
		tokens := fmt.Sprintf("at most %d tokens, where the model stops by itself", q.Tokens())
		if l.Exact != nil {
			tokens = fmt.Sprintf("exactly %d tokens: so it was, by token ids, in %d of %d ok attempts", l.Exact.Tokens, l.Exact.Exact, l.Exact.Of)
		}
		lines = append(lines, fmt.Sprintf("%s lane: %d requests, one after the other, in cycles of %d %s tasks; %s. One attempt at each, and no retry.", l.Lane, q.Requests, q.Cycle, q.Tasks, tokens))
	}
	lines = append(lines,
		fmt.Sprintf("D(n) of a pair: %s's time from the start of its initialization to its n-th terminal moment, minus %s's. D(0) is the debt. D is undefined from the first failed ordinal of either arm on.", cand, base),
		fmt.Sprintf("First crossing: the smallest n with D(n) ≤ 0. Sustained: the smallest n from which D stays there to the declared end, over %d requests at least. A pair without one is right-censored at its last request.", p.Pairing.Crossing.Dwell),
		fmt.Sprintf("A pair in which an attempt failed: %s, the same for both arms. Lifecycles are fresh servers; their order within pairs was drawn in blocks of %s by the plan's seed.", p.Pairing.Failure, strings.Join(p.Pairing.Blocks, " and ")),
		cacheLine(p),
		arrivals(b.Run), clientItself(b),
	)
	return lines
}

func cacheLine(p *plan.Plan) string {
	c := p.Pairing.Caches
	return fmt.Sprintf("Declared of the caches: compile %s, prefix %s, page %s, image %s. What the engine reports of them is in lifecycles.jsonl.", c.Compile, c.Prefix, c.Page, c.Image)
}

// clientItself is how the client did, in its worst sequence, beside what the
// plan allows.
func clientItself(b Bundle) string {
	g := b.Plan.Gates
	return fmt.Sprintf("The client itself, worst sequence, in measured time: p99 of client lag %s (the plan allows %s), share of events that shared a read %s (%s).",
		worst(b.Summary, func(w metric.Wave) metric.Value { return w.ClientLagP99 }, 1e3, "ms"), g.ClientLag,
		worst(b.Summary, func(w metric.Wave) metric.Value { return w.Coalesced }, 100, "%"), g.Coalesced)
}

// inference says what the intervals are worth at this number of pairs.
func inference(b Bundle) []string {
	var lines []string
	said := map[int]bool{}
	for _, l := range b.Summary.Lanes {
		r := l.Kept.Result
		if r == nil {
			lines = append(lines, fmt.Sprintf("%s lane: nothing: %s", l.Lane, l.Kept.Reason))
			continue
		}
		lines = append(lines, fmt.Sprintf("%s lane: mean D(%d) %s, p = %s by two-sided %s; by inverting that test %s, by the bootstrap of whole pairs (%d resamples, percentile) %s. Order within the pair: %s; drift over the run: %s.",
			l.Lane, r.Requests, secondsOf(r.End.Mean), pValue(r.End), or(r.End.PValueMethod, "sign flips"), interval(r.End.Inverted), r.Resamples, interval(r.End.Bootstrap), estimate(r.Order), estimate(r.Period)))
		for _, note := range r.Notes {
			lines = append(lines, fmt.Sprintf("%s lane: %s", l.Lane, note))
		}
		if lines = append(lines, inferior(l)...); !said[r.K] {
			said[r.K] = true
			lines = append(lines, calibrated(r.K)...)
		}
	}
	return lines
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func inferior(l metric.Lane) []string {
	say := func(what string, n crossing.NonInferiority) string {
		return fmt.Sprintf("%s lane, %s: %s", l.Lane, what, inferiority(n))
	}
	lines := []string{say("success", l.Success)}
	if l.Correctness != nil {
		lines = append(lines, say("right answers", *l.Correctness))
	}
	return lines
}

func inferiority(n crossing.NonInferiority) string {
	verdict := "not shown to be no worse"
	switch {
	case n.Degenerate:
		verdict = "degenerate"
	case n.Shown:
		verdict = "not inferior"
	}
	text := fmt.Sprintf("%s with a margin of %.1f points", verdict, n.Margin*100)
	if n.Mean != nil {
		text += fmt.Sprintf(", mean difference %.1f points", *n.Mean*100)
	}
	if n.PValue != nil {
		text += fmt.Sprintf(", one-sided p = %.4f", *n.PValue)
	}
	if n.Reason != "" {
		text += ": " + n.Reason
	}
	return text
}

// leftOut says of each pair that is not in the result why it is not.
func leftOut(b Bundle) []string {
	var lines []string
	for _, l := range b.Summary.Lanes {
		for _, e := range l.Kept.Out {
			lines = append(lines, fmt.Sprintf("pair %d, %s lane: %s", e.Pair, l.Lane, e.Reason))
		}
	}
	return lines
}

// modelled says of each lane's pairs what their observed increments would give,
// pairs of the same answer together.
func modelled(b Bundle) []string {
	var lines []string
	for _, l := range b.Summary.Lanes {
		if l.Every.Result == nil {
			continue
		}
		var order []string
		pairs := map[string][]string{}
		for _, r := range l.Every.Result.Pairs {
			text := r.Modelled.Label
			if r.Modelled.At == nil {
				text = "null: " + r.Modelled.Reason
			}
			if pairs[text] == nil {
				order = append(order, text)
			}
			pairs[text] = append(pairs[text], fmt.Sprint(r.Pair))
		}
		for _, text := range order {
			noun := "pair"
			if len(pairs[text]) > 1 {
				noun = "pairs"
			}
			lines = append(lines, fmt.Sprintf("%s lane, %s %s: %s", l.Lane, noun, strings.Join(pairs[text], ", "), text))
		}
	}
	return lines
}

func crossoverLimits(b Bundle) []string {
	base, cand := names(b)
	lines := []string{
		"How either arm does with several clients at once: one request followed the other.",
		fmt.Sprintf("Anything about other sequences: the crossing is that of these tasks in this order, with these lengths, after %s and %s as configured.", base, cand),
		"Why one arm is faster: no component of an initialization or of a request was measured, and none was subtracted.",
	}
	for _, l := range b.Summary.Lanes {
		switch i := l.Identity; {
		case !i.Compared:
			lines = append(lines, fmt.Sprintf("That both arms say the same in the %s lane: outputs were not compared: %s.", l.Lane, i.Reason))
		case i.Equal != i.Of:
			lines = append(lines, fmt.Sprintf("That both arms say the same in the %s lane: %d of %d outputs were equal by token ids%s. Unequal outputs carry no claim about the engine.", l.Lane, i.Equal, i.Of, firstDivergence(i)))
		}
	}
	if b.Summary.Provenance == record.Emulated {
		lines = append(lines, "How any engine does: what was served here is a model of one.")
	}
	return lines
}

func firstDivergence(i metric.Identity) string {
	for _, p := range i.Pairs {
		if d := p.First; d != nil {
			return fmt.Sprintf(" (the first to differ: pair %d, ordinal %d, token %d)", p.Pair, d.Ordinal, d.Position)
		}
	}
	return ""
}

func costLines(b Bundle) []string {
	c := b.Summary.Cost
	if c == nil {
		return nil
	}
	lower := "null: " + c.ListRateLowerBound.Reason
	if v := c.ListRateLowerBound.Value; v != nil {
		lower = fmt.Sprintf("≥ %.6f %s", *v, c.Currency)
	}
	return []string{
		fmt.Sprintf("List-rate lower bound, declared: %s, over %s (source: %s; billed: %s).", lower, c.ListRateLowerBound.Population, c.Source, c.Boundary),
		"Provider spend: null: " + c.Spend.Reason + ".",
	}
}

// crossoverNulls lists the numbers of the tables that are null, with the
// reasons.
func crossoverNulls(b Bundle) []string {
	var out []string
	for _, l := range b.Summary.Lanes {
		if l.Kept.Result == nil {
			out = append(out, fmt.Sprintf("crossing in the %s lane: %s", l.Lane, l.Kept.Reason))
		} else if l.Kept.Result.End.Mean == nil {
			out = append(out, fmt.Sprintf("mean D(N) in the %s lane: %s", l.Lane, l.Kept.Result.End.Reason))
		}
		for _, a := range []metric.LaneArm{l.Baseline, l.Candidate} {
			for _, v := range []struct {
				what string
				metric.Value
			}{
				{"initialization", a.Initialization.Median}, {"request phase", a.RequestPhase.Median}, {"latency sum", a.LatencySum.Median}, {"host lifecycle", a.Host.Median},
				{"input tokens", a.InputTokens}, {"output tokens", a.OutputTokens}, {"p50 TTFT", a.TTFT50}, {"p50 TPOT", a.TPOT50},
			} {
				if v.Value.Value == nil {
					out = append(out, fmt.Sprintf("%s of %s, %s lane: %s", v.what, a.Arm, l.Lane, v.Reason))
				}
			}
		}
	}
	return append(out, componentTimes(b.Run)...)
}

// componentTimes says why the parts of initializations are null, each reason
// once.
func componentTimes(run record.Run) []string {
	var lines []string
	for _, l := range run.Lifecycles {
		f, ok := l.Identity["compilation_seconds"]
		text := "compilation, graph capture and weight load, of each initialization: " + f.Reason
		if ok && f.Value == nil && !slices.Contains(lines, text) {
			lines = append(lines, text)
		}
	}
	return lines
}

func estimate(e crossing.Estimate) string {
	if e.Value == nil {
		return "null (" + e.Reason + ")"
	}
	return fmt.Sprintf("%.3f %s", *e.Value, e.Unit)
}

// calibrated is what simulation says of the intervals at so many pairs.
func calibrated(k int) []string {
	lines, ok := crossing.Calibration(k)
	if !ok {
		return []string{fmt.Sprintf("At %d pairs the intervals were not simulated; docs/statistics.md has the numbers of pairs that were.", k)}
	}
	var out []string
	for _, l := range lines {
		out = append(out, fmt.Sprintf("Simulated at %d pairs, %s differences: a 95 %% interval covers the true mean in %.1f %% of experiments by sign flips, in %.1f %% by the bootstrap; two arms that are the same are called different in %.1f %%.",
			k, l.Distribution, 100*l.Inverted, 100*l.Bootstrap, 100*l.FalseClaims))
	}
	return out
}
