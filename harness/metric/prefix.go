package metric

import (
	"slices"

	"assay/harness/record"
)

// Prefix is how much of a wave's prompts had been read before, as a share of
// their input tokens.
type Prefix struct {
	// Expected is by the entries' segments: of the tokens that the prompts sent
	// should have, those in segments that a request before it in the lifecycle
	// began with. It is what a cache saves that forgets nothing, if each request
	// comes when those before it have been read. An engine saves less: it holds
	// whole blocks, and requests that are released together are read together.
	Expected Value `json:"expected"`
	// Hits is the growth of the engine's own counter of tokens found in its
	// prefix cache, over the input tokens of all attempts.
	Hits Value `json:"hits"`
}

// sharing is how many of so many tokens had been asked before.
type sharing struct{ shared, total, requests int }

// step is a segment behind others that were asked before.
type step struct {
	from   int
	key    string
	tokens int
}

// sharings are those of each wave, by lifecycle and wave, in the order in which
// they were asked: a fresh server has read nothing.
func sharings(run record.Run) map[[2]int]sharing {
	out := map[[2]int]sharing{}
	known := map[int]map[step]int{} // by lifecycle
	for _, w := range run.Waves {
		if known[w.Lifecycle] == nil {
			known[w.Lifecycle] = map[step]int{}
		}
		steps := known[w.Lifecycle]
		attempts := slices.SortedFunc(slices.Values(run.Of(w).Attempts), func(a, b record.Request) int { return a.Ordinal - b.Ordinal })
		var s sharing
		for _, r := range attempts {
			if r.SentAt == nil || r.Ordinal < 1 {
				continue
			}
			s.requests++
			at, hit := 0, true
			for _, q := range run.Entries.At(r.Ordinal).Segments {
				to := step{at, q.Key, q.Tokens}
				next, ok := steps[to]
				if hit = hit && ok; hit {
					s.shared += q.Tokens
				}
				if !ok {
					next = len(steps) + 1
					steps[to] = next
				}
				s.total += q.Tokens
				at = next
			}
		}
		out[[2]int{w.Lifecycle, w.Number}] = s
	}
	return out
}

// prefix is nil where no entry of a source is made of segments.
func (s *summarizer) prefix(w record.Wave, p record.Population, watched *Watched) *Prefix {
	e := s.run.Entries
	if e == nil || !slices.ContainsFunc(e.Entries, func(e record.Entry) bool { return len(e.Segments) > 0 }) {
		return nil
	}
	if s.sharings == nil {
		s.sharings = sharings(s.run)
	}
	name := p.Name + ", attempts sent"
	out := &Prefix{Expected: s.null("ratio", name, "nothing was sent"), Hits: s.hits(p, watched)}
	if of := s.sharings[[2]int{w.Lifecycle, w.Number}]; of.total > 0 {
		out.Expected = s.value(float64(of.shared)/float64(of.total), "ratio", of.requests, name)
	}
	out.Expected.Provenance = record.Modelled
	return out
}

// hits is the engine's own account.
func (s *summarizer) hits(p record.Population, watched *Watched) Value {
	name := p.Name + ", all attempts"
	if watched == nil || watched.Engine == nil {
		return s.null("ratio", name, "the plan does not look at the engine's page")
	}
	counter := watched.Engine.PrefixHits
	tokens := 0
	for _, r := range p.Attempts {
		if r.InputTokens == nil {
			return s.null("ratio", name, "the input tokens of an attempt are not known")
		}
		tokens += *r.InputTokens
	}
	switch {
	case counter.Value == nil:
		return s.null("ratio", name, counter.Reason)
	case tokens == 0:
		return s.null("ratio", name, "nothing was sent")
	}
	v := s.value(*counter.Value/float64(tokens), "ratio", len(p.Attempts), name)
	v.Provenance = counter.Provenance
	return v
}
