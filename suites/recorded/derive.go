package recorded

import (
	"time"

	"assay/harness/crossing"
	"assay/harness/metric"
)

// Scopes are an arm's durations by their names. They answer different
// questions, and are never added or subtracted across kinds.
type Scopes struct {
	Initialization time.Duration `json:"initialization"` // initialization started → ready
	// ReadyToEnd is ready → the end of the process: what the publication calls
	// its request phase.
	ReadyToEnd   time.Duration `json:"ready_to_end"`
	RequestPhase time.Duration `json:"request_phase"` // first request sent → last terminal moment
	LatencySum   time.Duration `json:"latency_sum"`   // of the latencies that were measured
	// InvokedToEnd is the host's invocation → the end of the process, not its
	// removal, which was not recorded.
	InvokedToEnd time.Duration `json:"invoked_to_end"`
}

// Scopes are computed from the published moments, and the latency sum from the
// published latencies.
func (r *Run) Scopes(mode string) Scopes {
	l, q := r.Lifecycle(mode), r.Of(mode)
	s := Scopes{
		Initialization: l.InitializationReady.Sub(l.InitializationStarted),
		ReadyToEnd:     l.Ended.Sub(l.InitializationReady),
		RequestPhase:   q[len(q)-1].Ended.Sub(q[0].Started),
		InvokedToEnd:   l.Ended.Sub(l.HostInvocationStarted),
	}
	for _, q := range q {
		s.LatencySum += q.Latency()
	}
	return s
}

// Uncounted is the time from readiness to the last terminal moment that a sum
// of latencies leaves out, by where it lies.
type Uncounted struct {
	Before  time.Duration // from readiness to the first request
	Between time.Duration // from one request's end to the next one's start
	// Within is what a request's two moments, a wall clock's, have beyond its
	// latency, which another clock measured inside them.
	Within time.Duration
}

// Sum is all of it.
func (u Uncounted) Sum() time.Duration { return u.Before + u.Between + u.Within }

// Minus is u without v, part by part.
func (u Uncounted) Minus(v Uncounted) Uncounted {
	return Uncounted{Before: u.Before - v.Before, Between: u.Between - v.Between, Within: u.Within - v.Within}
}

// Uncounted is an arm's. It takes a request's latency by its moments from the
// metric contract.
func (r *Run) Uncounted(mode string) Uncounted {
	var u Uncounted
	free := int64(r.Scopes(mode).Initialization)
	for i, q := range r.Records(mode) {
		latency, _ := metric.Latency(q)
		u.Within += time.Duration(latency) - r.Of(mode)[i].Latency()
		if i == 0 {
			u.Before = time.Duration(*q.SentAt - free)
		} else {
			u.Between += time.Duration(*q.SentAt - free)
		}
		free = q.EndedAt
	}
	return u
}

// ByLatencies is the pair with each request beginning when the last has ended,
// and the first at readiness, as a sum of latencies has it.
func (r *Run) ByLatencies() crossing.Pair {
	return r.pair(func(mode string) []int64 {
		at := r.Scopes(mode).Initialization
		var out []int64
		for _, q := range r.Of(mode) {
			at += q.Latency()
			out = append(out, int64(at))
		}
		return out
	})
}

// ByMoments is the pair by its published moments, everything before and between
// requests included: the definition of D(n).
func (r *Run) ByMoments() crossing.Pair {
	return r.pair(func(mode string) []int64 {
		var out []int64
		for _, q := range r.Records(mode) {
			out = append(out, q.EndedAt)
		}
		return out
	})
}

func (r *Run) pair(terminals func(mode string) []int64) crossing.Pair {
	side := func(mode string) crossing.Side {
		return crossing.Side{Initialization: int64(r.Scopes(mode).Initialization), Terminals: terminals(mode)}
	}
	compiledFirst := r.Lifecycle(Compiled).HostInvocationStarted.Before(r.Lifecycle(Eager).HostInvocationStarted)
	return crossing.Pair{Number: 1, CandidateFirst: compiledFirst, Baseline: side(Eager), Candidate: side(Compiled)}
}

// TTFTSum is the sum of an arm's times to first token, in seconds: those that
// its author measured, since the records have no such moment.
func (r *Run) TTFTSum(mode string) float64 {
	sum := 0.0
	for _, q := range r.Of(mode) {
		sum += q.TTFTSeconds
	}
	return sum
}

// Divergences are the first divergence of each ordinal whose token arrays
// differ between the arms.
func (r *Run) Divergences() []metric.Divergence {
	eager, compiled := r.Records(Eager), r.Records(Compiled)
	var out []metric.Divergence
	for i := range eager {
		if d, differ := metric.FirstDivergence(eager[i].OutputTokenIDs, compiled[i].OutputTokenIDs); differ {
			d.Ordinal = eager[i].Ordinal
			out = append(out, d)
		}
	}
	return out
}

// Correct counts an arm's right answers.
func (r *Run) Correct(mode string) int {
	return r.count(mode, func(q Request) int {
		if q.Correct {
			return 1
		}
		return 0
	})
}

// OutputTokens counts an arm's output tokens, by their ids.
func (r *Run) OutputTokens(mode string) int {
	return r.count(mode, func(q Request) int { return len(q.OutputTokenIDs) })
}

// InputTokens counts an arm's input tokens.
func (r *Run) InputTokens(mode string) int {
	return r.count(mode, func(q Request) int { return q.InputTokens })
}

func (r *Run) count(mode string, of func(Request) int) int {
	n := 0
	for _, q := range r.Of(mode) {
		n += of(q)
	}
	return n
}
