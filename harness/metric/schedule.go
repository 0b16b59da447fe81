package metric

import (
	"fmt"
	"slices"

	"assay/harness/plan"
	"assay/harness/record"
)

// Schedule is what a run had to do: the plan's own schedule, after it the
// pairs that later invocations added, and the probes that a search came to.
func Schedule(p *plan.Plan, run record.Run) plan.Schedule {
	s := p.Schedule()
	for _, i := range run.Environment.Invocations {
		if i.Added > 0 {
			s = s.WithPair(i.Abandoned)
		}
	}
	return withProbes(p, run, s)
}

// abandonedPairs are those that an interruption cut.
func abandonedPairs(run record.Run) map[int]record.Invocation {
	out := map[int]record.Invocation{}
	for _, i := range run.Environment.Invocations {
		if i.Abandoned > 0 {
			out[i.Abandoned] = i
		}
	}
	return out
}

// abandoned says whether a lifecycle is of a pair that was.
func (s *summarizer) abandoned(lifecycle int) bool {
	if lifecycle < 1 || lifecycle > len(s.schedule.Lifecycles) {
		return false
	}
	_, is := s.cut[s.schedule.Lifecycles[lifecycle-1].Pair]
	return is
}

// invocations checks that a run went on only as its plan lets it: for a listed
// cause, not too often, and never in place of a server that died.
func (c *checker) invocations() {
	added := 0
	for n, i := range c.run.Environment.Invocations {
		where := fmt.Sprintf("invocation %d", n+2)
		if c.plan.Pairing == nil || c.plan.Pairing.Resume == nil {
			c.found("resume", where, "the plan lets nothing go on after an interruption")
			continue
		}
		r := c.plan.Pairing.Resume
		if !slices.Contains(r.Causes, i.Cause) {
			c.found("resume", where, "its cause is %q, and the plan lists %v", i.Cause, r.Causes)
		}
		if i.Added > 0 {
			added++
		}
		if i.Abandoned == 0 {
			continue
		}
		interrupted := false
		for _, l := range c.run.Lifecycles {
			if l.Pair != i.Abandoned {
				continue
			}
			interrupted = interrupted || l.Status == "interrupted"
			if l.Status == "failed" {
				c.found("resume", where, "pair %d was abandoned, and its lifecycle %d (%s) failed by itself: a server that dies is an outcome, and is not replaced", i.Abandoned, l.Number, l.Arm)
			}
		}
		if !interrupted {
			c.found("resume", where, "pair %d was abandoned, and none of its lifecycles was interrupted", i.Abandoned)
		}
	}
	if c.plan.Pairing != nil && c.plan.Pairing.Resume != nil && added > c.plan.Pairing.Resume.AtMost {
		c.found("resume", "", "%d pairs were added, and the plan allows %d", added, c.plan.Pairing.Resume.AtMost)
	}
}

// gpu is what a lifecycle's i-th GPU is, and which one: its commitment.
func gpu(l record.Lifecycle, i int) (kind, commitment string, ok bool) {
	facts, ok := l.Identity[fmt.Sprintf("gpu_%d", i)].Value.(map[string]any)
	if !ok {
		return "", "", false
	}
	return fmt.Sprintf("%v, compute capability %v", facts["name"], facts["compute_capability"]), fmt.Sprint(facts["commitment"]), true
}

// sameGPUs checks that a lifecycle's GPUs are of the kind that the others had.
// That they are the same ones is not asked: a run may go on elsewhere.
func (c *checker) sameGPUs(l record.Lifecycle, first map[int]record.Lifecycle) {
	for i := 0; ; i++ {
		kind, _, ok := gpu(l, i)
		if !ok {
			return
		}
		if _, seen := first[i]; !seen {
			first[i] = l
		}
		if want, _, _ := gpu(first[i], i); kind != want {
			c.found("fresh", fmt.Sprintf("lifecycle %d", l.Number), "its GPU %d is %s, and that of lifecycle %d was %s", i, kind, first[i].Number, want)
			last := &c.findings[len(c.findings)-1]
			last.lifecycle, last.ByServer = l.Number, true
		}
	}
}

// otherGPUs says where a run went on with another GPU of the same kind.
func otherGPUs(run record.Run) []string {
	var notes []string
	last := map[int]record.Lifecycle{}
	for _, l := range run.Lifecycles {
		for i := 0; ; i++ {
			_, commitment, ok := gpu(l, i)
			if !ok {
				break
			}
			if before, seen := last[i]; seen {
				if _, was, _ := gpu(before, i); was != commitment {
					notes = append(notes, fmt.Sprintf("from lifecycle %d on GPU %d is another one than that of lifecycle %d", l.Number, i, before.Number))
				}
			}
			last[i] = l
		}
	}
	return notes
}

// sameMakings checks that nothing but the arm differs between the lifecycles of
// a crossover: the image and the model of an arm are one, and both arms serve
// the same model.
func (c *checker) sameMakings() {
	if c.plan.Pairing == nil {
		return
	}
	seen := map[string]record.Lifecycle{}
	gpus := map[int]record.Lifecycle{}
	same := func(l record.Lifecycle, key, fact string) {
		f, ok := l.Identity[fact]
		if !ok || f.Value == nil {
			return
		}
		first, ok := seen[key]
		if !ok {
			seen[key] = l
			return
		}
		if a, b := fmt.Sprint(first.Identity[fact].Value), fmt.Sprint(f.Value); a != b {
			c.found("fresh", fmt.Sprintf("lifecycle %d", l.Number), "its %s is %s, and that of lifecycle %d was %s", fact, b, first.Number, a)
			last := &c.findings[len(c.findings)-1]
			last.lifecycle, last.ByServer = l.Number, true
		}
	}
	for _, l := range c.run.Lifecycles {
		for _, fact := range []string{"image_id", "engine_version", "parameters"} {
			same(l, l.Arm+" "+fact, fact)
		}
		same(l, "model_digest", "model_digest")
		same(l, "gpu_driver", "gpu_driver")
		same(l, "gpu_cuda", "gpu_cuda")
		c.sameGPUs(l, gpus)
		for _, part := range []string{"compilation_seconds", "graph_capture_seconds", "weight_load_seconds"} {
			if f := l.Identity[part]; f.Value != nil && f.Provenance != record.EngineReported {
				c.found("component", fmt.Sprintf("lifecycle %d", l.Number), "its %s is %v by %s, and only an interface of the engine can say it", part, f.Value, f.Provenance)
				c.findings[len(c.findings)-1].lifecycle = l.Number
			}
		}
		if f := l.Caches["prefix"]; f.Provenance == record.EngineReported && f.Value != any(c.plan.Pairing.Caches.Prefix) {
			c.found("caches", fmt.Sprintf("lifecycle %d", l.Number), "the engine says that prefix caching is %v, and the plan declares it %s", f.Value, c.plan.Pairing.Caches.Prefix)
			last := &c.findings[len(c.findings)-1]
			last.lifecycle, last.ByServer = l.Number, true
		}
	}
}
