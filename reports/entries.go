package reports

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"assay/harness/plan"
	"assay/harness/record"
	"assay/workloads"
)

// Entries are what the waves of a plan with a source ask, from the first on: as
// many as the largest wave has, or all that a file has if they are fewer. The
// plan is expanded; relative paths of its files start at root. Output tokens
// are filled in for entries that don't say any. The error says everything that
// is wrong: a file that is not the plan's, or whose entries can't be asked as
// the plan wants it.
func Entries(p *plan.Plan, root string) ([]workloads.Entry, []record.Dataset, error) {
	s := p.Workload.Source
	l := loading{plan: p, root: root, n: p.LargestWave()}
	var entries []workloads.Entry
	if s.Drawn() {
		entries = l.drawn()
	} else {
		entries = l.file()
	}
	for i := range entries {
		if e := &entries[i]; e.Output == 0 && e.MaxTokens == 0 {
			e.MaxTokens = p.Workload.MaxTokens
		}
	}
	return entries, l.sets, l.err
}

// loading collects what is taken from files, and what is wrong with it.
type loading struct {
	plan *plan.Plan
	root string
	n    int // entries that are asked
	sets []record.Dataset
	err  error
}

func (l *loading) wrong(err error) { l.err = errors.Join(l.err, err) }

// drawn draws the entries, unless a file with their lengths is wrong.
func (l *loading) drawn() []workloads.Entry {
	s := l.plan.Workload.Source
	spec := map[string]workloads.LengthSpec{}
	for _, d := range s.Distributions() {
		spec[d.Key] = l.spec(d.Key, d.Lengths)
	}
	if l.err != nil {
		return nil
	}
	var of interface {
		Draw(n int, seed uint64) []workloads.Entry
	}
	var err error
	if s.Kind == "prefix" {
		of, err = workloads.NewPrefixFamilies(workloads.PrefixSpec{Families: s.Families, Prefix: s.Prefix, Suffix: spec["suffix"], Output: spec["output"]})
	} else {
		of, err = workloads.NewIndependent(workloads.IndependentSpec{Input: spec["input"], Output: spec["output"]})
	}
	if err != nil {
		l.wrong(err)
		return nil
	}
	return of.Draw(l.n, l.plan.Seed)
}

// spec is a distribution as package workloads has it.
func (l *loading) spec(of string, d *plan.Lengths) workloads.LengthSpec {
	switch {
	case d.Uniform != nil:
		return workloads.LengthSpec{Kind: "uniform", Min: d.Uniform.Min, Max: d.Uniform.Max}
	case d.Lognormal != nil:
		n := d.Lognormal
		return workloads.LengthSpec{Kind: "lognormal", Median: n.Median, Sigma: n.Sigma, Min: n.Min, Max: n.Max}
	case d.Empirical != nil:
		e := d.Empirical
		out := workloads.LengthSpec{Kind: "empirical", Min: e.Min, Max: e.Max}
		if path, ok := l.open(e.DataFile); ok {
			values, set, err := workloads.LoadLengths(path, e.Column, e.License)
			l.wrong(err)
			out.Values = values
			l.keep(of, set, err)
		}
		return out
	}
	return workloads.LengthSpec{Kind: "fixed", Tokens: d.Fixed}
}

// open is where a file of the plan is, if it is the one that the plan names.
func (l *loading) open(f plan.DataFile) (path string, ok bool) {
	path = f.File
	if !filepath.IsAbs(path) {
		path = filepath.Join(l.root, path)
	}
	file, err := os.Open(path)
	if err != nil {
		l.wrong(fmt.Errorf("a file of the workload's source can't be read: %w", err))
		return path, false
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		l.wrong(fmt.Errorf("a file of the workload's source can't be read: %w", err))
		return path, false
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != f.SHA256 {
		l.wrong(fmt.Errorf("%s is another file than the plan's: its SHA-256 is %s, and the plan has %s", path, sum, f.SHA256))
		return path, false
	}
	return path, true
}

func (l *loading) keep(of string, d workloads.Dataset, err error) {
	if err == nil {
		l.sets = append(l.sets, record.Dataset{
			Of: of, Kind: d.Kind, File: d.File, SHA256: d.SHA256, License: d.License, Column: d.Column,
			Seed: d.Seed, Entries: d.Entries, Taken: d.Taken, LeftOut: d.LeftOut,
		})
	}
}

// file takes the entries of a file that the waves reach.
func (l *loading) file() []workloads.Entry {
	s := l.plan.Workload.Source
	path, ok := l.open(s.DataFile)
	if !ok {
		return nil
	}
	source := workloads.Source{Kind: s.Kind, License: s.License, Speed: s.Speed, Sample: s.Sample, Seed: l.plan.Seed}
	if w := s.Window; w != nil {
		source.Window = workloads.Window{From: w.From.D(), To: w.To.D()}
	}
	entries, set, err := workloads.Load(path, source)
	if err != nil {
		l.wrong(err)
		return nil
	}
	place := 0
	entries = set.Keep(entries, "beyond the largest wave", func(workloads.Entry) bool { place++; return place <= l.n })
	l.keep("entries", set, nil)
	l.askable(entries)
	return entries
}

// mostUnasked is how many entries that can't be asked are named.
const mostUnasked = 20

// askable finds every entry that can't be asked as the plan wants it.
func (l *loading) askable(entries []workloads.Entry) {
	w := l.plan.Workload
	var why []error
	for _, e := range entries {
		switch {
		case w.Source.Segments():
			continue // an own number is exact in the fixed lane, and the most in the natural one
		case e.Output > 0 && w.Lane == plan.Natural:
			why = append(why, fmt.Errorf("%s has output_tokens, an exact number, and the natural lane forces none: write max_tokens there, or lane: fixed in the plan", e.ID))
		case e.MaxTokens > 0 && w.Lane == plan.Fixed:
			why = append(why, fmt.Errorf("%s has max_tokens, and the fixed lane gives exact numbers: write output_tokens there, or lane: natural in the plan", e.ID))
		}
		if w.API == plan.Completions && (len(e.Messages) != 1 || e.Messages[0].Role != "user" || e.Tools != nil) {
			why = append(why, fmt.Errorf("%s is a chat, or has tools, and the plan's api, completions, takes one prompt: write api: chat", e.ID))
		}
	}
	if more := len(why) - mostUnasked; more > 0 {
		why = append(why[:mostUnasked], fmt.Errorf("and %d more: the first %d are named", more, mostUnasked))
	}
	l.wrong(errors.Join(why...))
}

// Entry is an entry's record: without a text for its segments, and with the
// digest of its messages.
func Entry(e workloads.Entry) (record.Entry, error) {
	out := record.Entry{ID: e.ID, OutputTokens: max(e.Output, e.MaxTokens)}
	for _, s := range e.Segments {
		out.Segments = append(out.Segments, record.Segment{Key: s.Key, Tokens: s.Tokens})
	}
	if len(e.Segments) > 0 {
		n := e.Input()
		out.InputTokens = &n
		return out, nil
	}
	var said any = e.Messages
	if e.Tools != nil {
		said = []any{e.Messages, e.Tools, e.ToolChoice}
	}
	data, err := json.Marshal(said)
	out.MessagesSHA256 = record.LineSHA256(data)
	return out, err
}

// entries checks what was asked: that the texts are made of their segments, and
// where the plan alone decides what is drawn, that it is what was asked.
func (v *verification) entries(p *plan.Plan, run record.Run) {
	s := p.Workload.Source
	if s == nil || run.Entries == nil {
		return // said by the invariants, where there should be any
	}
	known := map[string]string{} // the text of segments, by their keys and tokens
	for _, e := range run.Entries.Entries {
		at, path, tokens := 0, "", 0
		for _, q := range e.Segments {
			tokens += q.Tokens
		}
		for _, q := range e.Segments {
			end := at + q.Bytes
			path += fmt.Sprintf("%s/%d\n", q.Key, q.Tokens)
			if q.Bytes < 1 || end > len(e.Text) {
				v.found("%s: %s has %d bytes of text, and its segments have others", record.EntriesFile, e.ID, len(e.Text))
				at = len(e.Text)
				break
			}
			if text, ok := known[path]; ok && text != e.Text[:end] {
				v.found("%s: %s begins with the segments of an entry before it, and with another text", record.EntriesFile, e.ID)
			}
			known[path] = e.Text[:end]
			at = end
		}
		if len(e.Segments) > 0 && at < len(e.Text) {
			v.found("%s: %s has %d bytes of text, and its segments have %d", record.EntriesFile, e.ID, len(e.Text), at)
		}
		if (len(e.Segments) > 0) != (e.InputTokens != nil) || e.InputTokens != nil && *e.InputTokens != tokens {
			v.found("%s: %s has not the input tokens that its segments have together, %d", record.EntriesFile, e.ID, tokens)
		}
	}
	if !redrawn(s) {
		return
	}
	drawn, _, err := Entries(p, "")
	if err != nil {
		v.found("the plan's entries can't be drawn: %s", err)
		return
	}
	if len(drawn) != len(run.Entries.Entries) {
		v.found("%s: it has %d entries, and the plan draws %d", record.EntriesFile, len(run.Entries.Entries), len(drawn))
		return
	}
	for i, e := range drawn {
		want, err := Entry(e)
		got := run.Entries.Entries[i]
		got.Text, got.Segments = "", slices.Clone(got.Segments)
		for j := range got.Segments {
			got.Segments[j].Bytes = 0
		}
		if err != nil || !equalJSON(got, want) {
			v.found("%s: entry %d is %s, and the plan draws %s", record.EntriesFile, i+1, compact(got), compact(want))
		}
	}
}

func equalJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// redrawn is whether the plan alone decides the entries.
func redrawn(s *plan.Source) bool {
	return s.Drawn() && !slices.ContainsFunc(s.Distributions(), func(d plan.Distribution) bool { return d.Lengths.Empirical != nil })
}

// entriesFiles are the files that a bundle may have since its plan has a source.
func entriesFiles(p *plan.Plan) []string {
	s := p.Workload.Source
	if s == nil {
		return nil
	}
	files := []string{record.EntriesFile}
	if s.Segments() {
		for _, a := range p.Arms { // whose server counted the texts' tokens
			files = append(files, fmt.Sprintf("%s/00-%s.log", record.LogsDir, a.Name))
		}
	}
	return files
}

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
