package metric

import (
	"fmt"

	"assay/harness/plan"
	"assay/harness/record"
)

// Inputs holds the input tokens that a source's entries should have against
// those that the engine counted in each attempt.
type Inputs struct {
	Wanted  int `json:"wanted"`  // attempts at entries that should have a number of tokens
	Counted int `json:"counted"` // of these, those of which the engine said a number
	Other   int `json:"other"`   // of these, those of which it said another
	// Most is the largest difference, counted − wanted, by its size; of the
	// attempts that it is of, the first one's entry is MostIn.
	Most   int    `json:"most"`
	MostIn string `json:"most_in,omitempty"`
}

// inputs is nil where the plan has no source, or none whose entries should have
// a number of tokens.
func inputs(run record.Run) *Inputs {
	if run.Entries == nil || len(run.Entries.Entries) == 0 {
		return nil
	}
	var out Inputs
	for _, r := range run.Requests {
		if r.Ordinal < 1 {
			continue // the checks say so
		}
		e := run.Entries.At(r.Ordinal)
		if e.InputTokens == nil {
			continue
		}
		out.Wanted++
		if r.InputTokens == nil {
			continue
		}
		out.Counted++
		if d := *r.InputTokens - *e.InputTokens; d != 0 {
			out.Other++
			if magnitude(d) > magnitude(out.Most) {
				out.Most, out.MostIn = d, e.ID
			}
		}
	}
	if out.Wanted == 0 {
		return nil
	}
	return &out
}

func magnitude(n int) int { return max(n, -n) }

// entries checks what a source asks against the plan, and that each lifecycle
// was asked from the same file.
func (c *checker) entries() {
	e := c.run.Entries
	if c.plan.Workload.Source == nil {
		if e != nil {
			c.found("entries", "", "there is %s, and the plan has no source", record.EntriesFile)
		}
		return
	}
	if e == nil {
		for _, l := range c.run.Lifecycles {
			if l.Executed > 0 {
				c.found("entries", "", "there is no %s that can be read, and lifecycle %d was asked from one", record.EntriesFile, l.Number)
				break
			}
		}
		return
	}
	if e.PlanSHA256 != c.planSum {
		c.found("entries", "", "%s is of another plan: %.12s…, this one is %.12s…", record.EntriesFile, e.PlanSHA256, c.planSum)
	}
	for _, l := range c.run.Lifecycles {
		if l.Executed > 0 && l.EntriesSHA256 != c.run.EntriesSHA256 {
			c.found("entries", fmt.Sprintf("lifecycle %d", l.Number), "it was asked from another %s: its SHA-256 is %.12s…, and that of this one is %.12s…", record.EntriesFile, l.EntriesSHA256, c.run.EntriesSHA256)
		}
	}
	for _, r := range c.run.Requests {
		if r.Ordinal < 1 {
			continue
		}
		if want := e.At(r.Ordinal).ID; r.PromptID != want {
			c.inAttempt(r, "entries", "it was asked %s, and the entry there is %s", r.PromptID, want)
		}
	}
}

// asked is what an attempt asked for: what its entry has, else what the plan
// says of its place.
func (c *checker) asked(l plan.Lifecycle, r record.Request) plan.Asked {
	asked := c.plan.Asked(l)
	if e := c.run.Entries; e != nil && len(e.Entries) > 0 && r.Ordinal > 0 {
		asked.Tokens = e.At(r.Ordinal).OutputTokens
	}
	return asked
}
