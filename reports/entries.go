package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"assay/harness/plan"
	"assay/harness/record"
	"assay/workloads"
)

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
