package suite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"assay/harness/client"
	"assay/harness/engine"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/reports"
	"assay/workloads"
)

// entry is what an ordinal asks whose plan has a source.
type entry struct {
	workloads.Entry
	text string // all that it says: what was written for its segments, or its messages
	ends []int  // of its segments in the text, in bytes
}

// entries are those that the largest wave reaches, or all there are if they are
// fewer.
type entries struct {
	of       []entry
	sets     []record.Dataset
	prepared bool // their texts are written, and kept
}

// at is the entry of an ordinal, from 1: the entries over and over.
func (e *entries) at(ordinal int) entry { return e.of[(ordinal-1)%len(e.of)] }

// texts are what the entries say.
func (e *entries) texts() []string {
	out := make([]string, len(e.of))
	for i, one := range e.of {
		out[i] = one.text
	}
	return out
}

// ask puts an entry's own messages and number of tokens into a request.
func (e *entries) ask(ordinal int, p *client.Params) {
	one := e.at(ordinal)
	p.MaxTokens = max(one.Output, one.MaxTokens)
	p.Tools, p.ToolChoice = one.Tools, one.ToolChoice
	for _, m := range one.Messages {
		p.Messages = append(p.Messages, client.Message(m))
	}
}

// loadEntries draws a source's entries, or reads them from its file, before
// anything is started.
func (r *Run) loadEntries(expanded *plan.Plan) error {
	if r.Plan.Workload.Source == nil {
		return nil
	}
	loaded, sets, err := reports.Entries(expanded, r.root)
	if err != nil {
		return err
	}
	if err := sameMoments(r.Plan, loaded); err != nil {
		return err
	}
	r.asks.entries = &entries{sets: sets}
	for _, e := range loaded {
		one := entry{Entry: e}
		for _, m := range e.Messages {
			one.text = strings.TrimPrefix(one.text+"\n"+m.Content, "\n")
		}
		r.asks.entries.of = append(r.asks.entries.of, one)
	}
	return nil
}

// sameMoments checks that a trace's requests come when the plan has them come:
// the n-th offset of the arrivals is that of the n-th entry.
func sameMoments(p *plan.Plan, loaded []workloads.Entry) error {
	if p.Arrivals == nil || p.Arrivals.Process != "trace" || !p.Workload.Source.Timed() {
		return nil
	}
	for i, o := range p.Arrivals.Offsets {
		if i < len(loaded) && loaded[i].Offset != o.D() {
			return fmt.Errorf("arrivals.offsets[%d] is %s, and the entry that is asked then, %s, came at %s: write both from the same file, window, sample and seed", i, o, loaded[i].ID, loaded[i].Offset)
		}
	}
	return nil
}

// prepareEntries writes the texts that entries lack, by the count of a server of
// the baseline arm or, where that engine can't count, of the candidate, and
// keeps what will be asked. The server is started for nothing else: no
// lifecycle of the schedule pays for it. Where neither can count, texts are as
// long as an estimate says.
func (r *Run) prepareEntries(ctx context.Context) error {
	e := r.asks.entries
	if e.prepared {
		return nil
	}
	kept := record.Entries{Datasets: e.sets, Reason: "no text had to be written"}
	if kept.Datasets == nil {
		kept.Datasets = []record.Dataset{}
	}
	if r.Plan.Workload.Source.Segments() {
		arm, why, err := r.write(ctx)
		if err != nil {
			return err
		}
		if kept.Reason = why; arm != "" {
			kept.CountedBy = &arm
		}
	}
	for _, one := range e.of {
		line, err := reports.Entry(one.Entry)
		if err != nil {
			return err
		}
		at := 0
		for i, end := range one.ends {
			line.Text, line.Segments[i].Bytes = one.text, end-at
			at = end
		}
		kept.Entries = append(kept.Entries, line)
	}
	written, sum, err := r.store.WriteEntries(kept)
	if err != nil {
		return err
	}
	r.kept.Entries, r.kept.EntriesSHA256, e.prepared = &written, sum, true
	return nil
}

// write writes the texts, and says which arm's server counted them, or why none
// did.
func (r *Run) write(ctx context.Context) (arm, why string, err error) {
	var reasons []string
	for _, role := range []plan.Role{plan.Baseline, plan.Candidate} {
		name := r.Plan.WithRole(role).Name
		err := r.counting(ctx, role, func(ctx context.Context, server engine.Server) error {
			return r.asks.entries.write(ctx, r.Plan.Seed, r.countWith(server))
		})
		if err == nil {
			return name, "", nil
		}
		if !errors.Is(err, errCanNotCount) {
			return "", "", err
		}
		reasons = append(reasons, name+": "+r.redact.Redact(firstLine(err.Error())))
	}
	err = r.asks.entries.write(ctx, r.Plan.Seed, func(_ context.Context, text string) (int, error) { return workloads.EstimateTokens(text), nil })
	return "", strings.Join(reasons, "; "), err
}

// mostUnwritten is how many entries that can't be made their length are named.
const mostUnwritten = 20

// write gives each entry its text. The error names every entry that can't have
// its length.
func (e *entries) write(ctx context.Context, seed uint64, count func(context.Context, string) (int, error)) error {
	var broken error // there is nothing to be counted with
	w := workloads.NewWriter(seed, func(ctx context.Context, text string) (n int, err error) {
		n, broken = count(ctx, text)
		return n, broken
	})
	var wrong []error
	for i := range e.of {
		one := &e.of[i]
		var err error
		one.text, one.ends, err = w.Write(ctx, one.Entry)
		switch {
		case err == nil:
		case broken != nil:
			return err
		case len(wrong) == mostUnwritten:
			return errors.Join(append(wrong, err)...)
		default:
			wrong = append(wrong, err)
		}
	}
	return errors.Join(wrong...)
}
