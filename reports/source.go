package reports

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

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
	switch s.Kind {
	case "prefix":
		of, err = workloads.NewPrefixFamilies(workloads.PrefixSpec{Families: s.Families, Prefix: s.Prefix, Suffix: spec["suffix"], Output: spec["output"]})
	case plan.ConversationSource:
		of, err = workloads.NewConversations(workloads.ConversationSpec{Turns: s.Turns, User: spec["user"], Output: spec["output"]})
	default:
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
	source := workloads.Source{Kind: s.Kind, License: s.License, Sample: s.Sample, Seed: l.plan.Seed}
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
