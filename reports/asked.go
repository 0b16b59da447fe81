package reports

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay/harness/plan"
	"assay/harness/record"
)

// asked says where the requests came from, and how long they were.
func asked(b Bundle) []string {
	s, e := b.Plan.Workload.Source, b.Run.Entries
	if s == nil || e == nil {
		return nil
	}
	exact := "at most"
	if b.Plan.Workload.Lane == plan.Fixed {
		exact = "exactly"
	}
	lines := []string{fmt.Sprintf("%s. Entries: %d, each with %s its own number of output tokens; the n-th request of every wave asks the n-th, over and over.", s, len(e.Entries), exact)}
	for _, d := range e.Datasets {
		text := fmt.Sprintf("Data set of the %s: %s, %s, SHA-256 %s, licence %s. Taken: %d of %d", d.Of, d.File, d.Kind, d.SHA256, d.License, d.Taken, d.Entries)
		if d.Seed != nil {
			text += fmt.Sprintf(", drawn with the seed %d", *d.Seed)
		}
		for _, reason := range slices.Sorted(maps.Keys(d.LeftOut)) {
			text += fmt.Sprintf("; left out, %s: %d", reason, d.LeftOut[reason])
		}
		lines = append(lines, text+".")
	}
	if in := b.Summary.Inputs; in != nil {
		by := "nothing but an estimate said how long a text is (" + e.Reason + ")"
		if e.CountedBy != nil {
			by = "the server of " + *e.CountedBy + " counted the texts before the first lifecycle"
		}
		lines = append(lines, fmt.Sprintf("Input lengths: %s. %s.", by, deviation(b)))
	}
	if text := prefixes(b); text != "" {
		lines = append(lines, text)
	}
	return lines
}

// prefixes says how much of the waves' prompts had been asked before, and what
// the engines' own counters found of it.
func prefixes(b Bundle) string {
	type key struct {
		tier int
		arm  string
	}
	var order []key
	expected, hits := map[key][]float64{}, map[key][]float64{}
	why := map[key]string{}
	some := false
	for _, w := range b.Summary.Waves {
		if w.Prefix == nil || w.Warmup || w.Prefix.Expected.Value == nil {
			continue
		}
		k := key{w.Tier, w.Arm}
		if expected[k] == nil {
			order = append(order, k)
		}
		expected[k] = append(expected[k], 100**w.Prefix.Expected.Value)
		some = some || *w.Prefix.Expected.Value > 0
		if v := w.Prefix.Hits; v.Value != nil {
			hits[k] = append(hits[k], 100**v.Value)
		} else {
			why[k] = v.Reason
		}
	}
	if !some {
		return ""
	}
	var parts []string
	for _, k := range order {
		found := "null (" + why[k] + ")"
		if len(hits[k]) > 0 {
			found = extent(hits[k]) + " %"
		}
		parts = append(parts, fmt.Sprintf("%s, %s: %s %%, hits %s", record.Clients(k.tier), k.arm, extent(expected[k]), found))
	}
	return "Prefixes that had been asked before in the same lifecycle, as a share of a wave's input tokens, by waves: expected of a cache that forgets nothing, and what the engine's own counter found. " + strings.Join(parts, "; ") + "."
}

// deviation holds the lengths that were wanted against the engine's counts.
func deviation(b Bundle) string {
	in := b.Summary.Inputs
	uncounted := ""
	if n := in.Wanted - in.Counted; n > 0 {
		uncounted = fmt.Sprintf("; of %d it said none", n)
	}
	if in.Other == 0 {
		return fmt.Sprintf("Of %d attempts the engine's own count is the length that was wanted in all %d%s", in.Wanted, in.Counted, uncounted)
	}
	return fmt.Sprintf("Of %d attempts the engine's own count is another than was wanted in %d, by %+d tokens at most (%s)%s", in.Wanted, in.Other, in.Most, in.MostIn, uncounted)
}
