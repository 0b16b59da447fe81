package metric

import (
	"fmt"
	"math"
	"slices"

	"assay/harness/crossing"
	"assay/harness/engine"
	"assay/harness/plan"
	"assay/harness/record"
)

// lanes are the numbers of a crossover, lane by lane.
func (s *summarizer) lanes(findings []Finding) []Lane {
	if s.plan.Pairing == nil {
		return nil
	}
	var out []Lane
	for _, lane := range s.plan.Pairing.Lanes.Each() {
		out = append(out, s.lane(lane, findings))
	}
	return out
}

// sides are the two lifecycles of a pair.
type sides struct {
	pair                int
	candidateFirst      bool
	baseline, candidate side
}

// side is one lifecycle of a pair with its attempts by ordinal.
type side struct {
	lifecycle *record.Lifecycle
	wave      *record.Wave
	attempts  []record.Request
}

func (s *summarizer) lane(lane plan.Lane, findings []Finding) Lane {
	c := s.plan.Pairing
	sequence := c.Lanes.Sequence(lane)
	out := Lane{
		Lane: lane, Requests: sequence.Requests, Dwell: c.Crossing.Dwell, Scheduled: s.schedule.PairsOf(lane),
		Baseline: s.laneArm(plan.Baseline, lane), Candidate: s.laneArm(plan.Candidate, lane), Eligible: map[plan.Claim]Analysis{},
	}
	out.Status = s.laneStatus(lane)
	var all []sides
	var unusable []Exclusion
	for _, pair := range out.Scheduled {
		both := s.sides(pair)
		if why := s.unusable(both, findings); why != "" {
			unusable = append(unusable, Exclusion{Pair: pair, Reason: why})
			continue
		}
		all = append(all, both)
	}
	out.Identity = s.identity(all, sequence.Requests)
	if lane == plan.Fixed {
		out.Exact = s.exact(all, sequence.Tokens())
	}
	out.Success, out.Correctness = s.rates(all)
	var kept []sides
	excluded := slices.Clone(unusable)
	for _, both := range all {
		if why := failedIn(both); why != "" && c.Failure == plan.ExcludePair {
			excluded = append(excluded, Exclusion{Pair: both.pair, Reason: why + ", and the plan's rule is " + c.Failure})
			continue
		}
		kept = append(kept, both)
	}
	if reason := runLevel(findings); reason != "" {
		// What is wrong with the run as a whole is wrong with each of its numbers.
		out.Every = Analysis{Pairs: []int{}, Out: unusable, Reason: reason}
		out.Kept = Analysis{Pairs: []int{}, Out: excluded, Reason: reason}
	} else {
		out.Every = s.analyse(lane, all, unusable, asEnded)
		out.Kept = out.Every
		if whole := !slices.ContainsFunc(all, func(b sides) bool { return failedIn(b) != "" }); !whole {
			out.Kept = s.analyse(lane, kept, excluded, untilFailure)
		}
	}
	for _, claim := range s.plan.ClaimsOf(lane) {
		out.Eligible[claim] = s.eligible(lane, claim, kept, out)
	}
	return out
}

// runLevel is the first thing that is wrong with the records as a whole, and
// with no single lifecycle.
func runLevel(findings []Finding) string {
	for _, f := range findings {
		if f.lifecycle == 0 {
			return f.String()
		}
	}
	return ""
}

func (s *summarizer) laneStatus(lane plan.Lane) string {
	ran, all, status := 0, 0, "complete"
	for _, w := range s.run.Waves {
		if w.Lane != string(lane) || s.abandoned(w.Lifecycle) {
			continue
		}
		all++
		switch w.Status {
		case "ran":
			ran++
		case "interrupted", "not_run":
			status = "interrupted"
		}
	}
	switch {
	case status != "complete":
		return status
	case ran == 0:
		return "not_selected"
	case ran < all || all < 2*s.whole(lane):
		return "partial"
	}
	return "complete"
}

// whole is how many pairs a complete run of a lane has: a pair that was
// abandoned has another in its place.
func (s *summarizer) whole(lane plan.Lane) int {
	n := 0
	for _, pair := range s.schedule.PairsOf(lane) {
		if _, abandoned := s.cut[pair]; !abandoned {
			n++
		}
	}
	return n
}

// sides finds a pair's two lifecycles and what they served.
func (s *summarizer) sides(pair int) sides {
	out := sides{pair: pair}
	baseline := s.plan.WithRole(plan.Baseline).Name
	for i := range s.run.Lifecycles {
		l := &s.run.Lifecycles[i]
		if l.Pair != pair {
			continue
		}
		to := &out.candidate
		if l.Arm == baseline {
			to = &out.baseline
		}
		to.lifecycle = l
		for j := range s.run.Waves {
			if w := &s.run.Waves[j]; w.Lifecycle == l.Number {
				to.wave = w
			}
		}
		for _, r := range s.run.Requests {
			if r.Lifecycle == l.Number {
				to.attempts = append(to.attempts, r)
			}
		}
		slices.SortStableFunc(to.attempts, func(a, b record.Request) int { return a.Ordinal - b.Ordinal })
	}
	if l := out.candidate.lifecycle; l != nil {
		out.candidateFirst = l.Position == 1
	}
	return out
}

// unusable is why a pair has no difference at all: it was not run, or its
// records are not to be relied on. Nothing that is computed depends on it.
func (s *summarizer) unusable(both sides, findings []Finding) string {
	for _, side := range []side{both.baseline, both.candidate} {
		if side.lifecycle == nil || side.wave == nil {
			return "one of its lifecycles has no record"
		}
		l, w := side.lifecycle, side.wave
		where := fmt.Sprintf("lifecycle %d (%s) ", l.Number, l.Arm)
		if s.abandoned(l.Number) {
			return "the pair was abandoned after an interruption, cause " + s.cut[both.pair].Cause
		}
		if w.Status != "ran" {
			return fmt.Sprintf("%sdid not serve its sequence: it is %s: %s", where, w.Status, w.Reason)
		}
		if moment(l, engine.Started) == nil || moment(l, engine.Ready) == nil {
			return where + "has no initialization: its start or its readiness was not seen"
		}
	}
	numbers := []int{both.baseline.lifecycle.Number, both.candidate.lifecycle.Number}
	for _, f := range findings {
		if slices.Contains(numbers, f.lifecycle) {
			return f.String()
		}
	}
	for _, w := range s.waves {
		if slices.Contains(numbers, w.Lifecycle) && len(w.Validity.Reasons) > 0 {
			return fmt.Sprintf("lifecycle %d (%s): %s", w.Lifecycle, w.Arm, w.Validity.Reasons[0])
		}
	}
	return ""
}

// failedIn is which attempt of a pair failed first; empty: none did.
func failedIn(both sides) string {
	for _, side := range []side{both.baseline, both.candidate} {
		for _, r := range side.attempts {
			if r.Outcome != record.OK {
				return fmt.Sprintf("ordinal %d of lifecycle %d (%s) is %s", r.Ordinal, r.Lifecycle, r.Arm, r.Outcome)
			}
		}
	}
	return ""
}

// The two ways to count a sequence with a failure in it: to the end, each
// attempt when it ended, or until the first failed ordinal.
type counting int

const (
	asEnded counting = iota
	untilFailure
)

// analyse makes the analysis of pairs.
func (s *summarizer) analyse(lane plan.Lane, pairs []sides, out []Exclusion, how counting) Analysis {
	a := Analysis{Pairs: []int{}, Out: out}
	if a.Out == nil {
		a.Out = []Exclusion{}
	}
	var in []crossing.Pair
	for i, both := range pairs {
		a.Pairs = append(a.Pairs, both.pair)
		in = append(in, crossing.Pair{
			Number: i + 1, CandidateFirst: both.candidateFirst,
			Baseline: s.side(both.baseline, how), Candidate: s.side(both.candidate, how),
		})
	}
	if len(in) == 0 {
		a.Reason = "no pair is in it"
		return a
	}
	c := s.plan.Pairing
	result, err := crossing.Analyze(in, crossing.Options{
		Requests: c.Lanes.Sequence(lane).Requests, Dwell: c.Crossing.Dwell, Level: c.Inference.Level.Share(),
		Resamples: c.Inference.Resamples, Seed: s.plan.Seed,
	})
	if err != nil {
		a.Reason = err.Error()
		return a
	}
	for i := range result.Pairs {
		result.Pairs[i].Pair = a.Pairs[i] // the plan's number of it
	}
	a.Result = &result
	return a
}

// side is a lifecycle's times from the start of its initialization on, in the
// result's time.
func (s *summarizer) side(of side, how counting) crossing.Side {
	started := *moment(of.lifecycle, engine.Started)
	scaled := func(ns int64) int64 { return int64(math.Round(float64(float64(ns-started) * s.plan.TimeScale))) }
	out := crossing.Side{Initialization: scaled(*moment(of.lifecycle, engine.Ready))}
	for _, r := range of.attempts {
		if r.Outcome != record.OK && how == untilFailure {
			break
		}
		out.Terminals = append(out.Terminals, scaled(r.EndedAt))
	}
	return out
}

func moment(l *record.Lifecycle, phase engine.Phase) *int64 {
	for _, m := range l.Moments {
		if m.Phase == string(phase) {
			return m.At
		}
	}
	return nil
}

// eligible is the analysis of the kept pairs that pass a claim's gate.
func (s *summarizer) eligible(lane plan.Lane, claim plan.Claim, kept []sides, of Lane) Analysis {
	var in []sides
	out := slices.Clone(of.Kept.Out)
	for _, both := range kept {
		if why := s.gated(claim, both, of); why != "" {
			out = append(out, Exclusion{Pair: both.pair, Reason: why})
			continue
		}
		in = append(in, both)
	}
	if len(in) == len(kept) || of.Kept.Result == nil {
		return of.Kept
	}
	return s.analyse(lane, in, out, untilFailure)
}

// gated is why a pair is not eligible for a claim; empty: it is.
func (s *summarizer) gated(claim plan.Claim, both sides, of Lane) string {
	switch claim {
	case plan.ClaimOutputIdentical:
		if p := of.Identity.of(both.pair); !p.Whole {
			return fmt.Sprintf("outputs: %d of %d ordinals are equal", p.Equal, of.Requests)
		}
	case plan.ClaimEqualTokenCount:
		for _, r := range slices.Concat(both.baseline.attempts, both.candidate.attempts) {
			if r.Outcome == record.OK && !exactly(r, of.Exact.Tokens) {
				return fmt.Sprintf("tokens: ordinal %d of lifecycle %d has not exactly %d by token ids", r.Ordinal, r.Lifecycle, of.Exact.Tokens)
			}
		}
	}
	if s.plan.Gates.Correctness == "require" {
		for _, r := range slices.Concat(both.baseline.attempts, both.candidate.attempts) {
			if r.Correct != nil && !*r.Correct {
				return fmt.Sprintf("correctness: ordinal %d of lifecycle %d (%s) is wrong", r.Ordinal, r.Lifecycle, r.Arm)
			}
		}
	}
	if s.plan.Gates.Identity == "require" {
		if p := of.Identity.of(both.pair); !p.Whole {
			return fmt.Sprintf("outputs: %d of %d ordinals are equal, and the plan requires all", p.Equal, of.Requests)
		}
	}
	return ""
}

func exactly(r record.Request, tokens int) bool {
	return r.OutputTokens != nil && *r.OutputTokens == tokens && r.OutputTokensSource != nil && *r.OutputTokensSource == record.SourceTokenIDs
}

func (i Identity) of(pair int) PairIdentity {
	for _, p := range i.Pairs {
		if p.Pair == pair {
			return p
		}
	}
	return PairIdentity{Pair: pair}
}

// identity compares token arrays, ordinal by ordinal within each pair.
func (s *summarizer) identity(pairs []sides, requests int) Identity {
	out := Identity{Pairs: []PairIdentity{}}
	if s.plan.Gates.Identity == "none" {
		out.Reason = "the plan's gates.identity is none"
		return out
	}
	for _, both := range pairs {
		p := PairIdentity{Pair: both.pair}
		for _, b := range both.baseline.attempts {
			i := slices.IndexFunc(both.candidate.attempts, func(c record.Request) bool { return c.Ordinal == b.Ordinal })
			if i < 0 || b.Outcome != record.OK || both.candidate.attempts[i].Outcome != record.OK {
				continue
			}
			c := both.candidate.attempts[i]
			if fromText(b) || fromText(c) {
				out.Reason = fmt.Sprintf("ordinal %d of pair %d has no token ids in one of the arms", b.Ordinal, both.pair)
				return Identity{Pairs: []PairIdentity{}, Reason: out.Reason}
			}
			p.Of++
			at, differ := FirstDivergence(b.TokenIDs(), c.TokenIDs())
			if !differ {
				p.Equal++
			} else if p.First == nil {
				at.Ordinal = b.Ordinal
				p.First = &at
			}
		}
		p.Whole = p.Equal == requests
		out.Equal += p.Equal
		out.Of += p.Of
		out.Pairs = append(out.Pairs, p)
	}
	out.Compared = out.Of > 0
	if !out.Compared {
		out.Reason = "no ordinal was completed by both arms of a pair"
	}
	return out
}

// FirstDivergence finds the first position, from 1, at which two token arrays
// differ; false: they are equal.
func FirstDivergence(baseline, candidate []int) (Divergence, bool) {
	at := func(ids []int, i int) *int {
		if i < len(ids) {
			return &ids[i]
		}
		return nil
	}
	for i := range max(len(baseline), len(candidate)) {
		b, c := at(baseline, i), at(candidate, i)
		if b == nil || c == nil || *b != *c {
			return Divergence{Position: i + 1, Baseline: b, Candidate: c}, true
		}
	}
	return Divergence{}, false
}

func (s *summarizer) exact(pairs []sides, tokens int) *ExactCount {
	out := &ExactCount{Tokens: tokens}
	for _, both := range pairs {
		for _, r := range slices.Concat(both.baseline.attempts, both.candidate.attempts) {
			if r.Outcome != record.OK {
				continue
			}
			out.Of++
			if exactly(r, tokens) {
				out.Exact++
			}
		}
	}
	return out
}

// rates hold success and correctness against the margin, pair by pair.
func (s *summarizer) rates(pairs []sides) (crossing.NonInferiority, *crossing.NonInferiority) {
	var success, correctness []crossing.Rate
	evaluated := false
	for i, both := range pairs {
		of := func(side side) (ok, correct, n int) {
			for _, r := range side.attempts {
				n++
				if r.Outcome == record.OK {
					ok++
				}
				if r.Correct != nil {
					evaluated = true
					if *r.Correct {
						correct++
					}
				}
			}
			return ok, correct, n
		}
		bOK, bRight, bn := of(both.baseline)
		cOK, cRight, cn := of(both.candidate)
		success = append(success, crossing.Rate{Pair: i + 1, Baseline: bOK, BaselineOf: bn, Candidate: cOK, CandidateOf: cn})
		// A failed attempt has no right answer: it counts as one that is not.
		correctness = append(correctness, crossing.Rate{Pair: i + 1, Baseline: bRight, BaselineOf: bn, Candidate: cRight, CandidateOf: cn})
	}
	margin, level := s.plan.Pairing.Inference.Margin.Share(), s.plan.Pairing.Inference.Level.Share()
	out := crossing.NonInferior(success, margin, level)
	if !evaluated {
		return out, nil
	}
	quality := crossing.NonInferior(correctness, margin, level)
	return out, &quality
}

func (s *summarizer) laneArm(role plan.Role, lane plan.Lane) LaneArm {
	name := s.plan.WithRole(role).Name
	p := s.run.InLane(name, string(lane))
	if len(s.cut) > 0 {
		// What this side's interruption cut short is no arm's failure.
		p = p.Where("pairs that were not abandoned", func(r record.Request) bool { return !s.abandoned(r.Lifecycle) })
	}
	out := LaneArm{Arm: name, Role: role, Counts: CountsOf(p)}
	var d Arm
	s.distributions(p, &d)
	out.TTFT50, out.TTFT95, out.Latency50, out.Latency95, out.TPOT50 = d.TTFT50, d.TTFT95, d.Latency50, d.Latency95, d.TPOT50
	ok := p.OK()
	out.InputTokens = s.tokens(ok, "input tokens", func(r record.Request) *int { return r.InputTokens })
	out.OutputTokens = s.tokens(ok, "output tokens", func(r record.Request) *int { return r.OutputTokens })
	for _, r := range p.Attempts {
		if r.Correct != nil {
			out.Evaluated++
			if *r.Correct {
				out.Correct++
			}
		}
	}
	var own []Lifecycle
	for _, l := range s.lifecycles {
		if l.Arm == name && l.Lane == lane && l.Executed > 0 && !s.abandoned(l.Number) {
			own = append(own, l)
		}
	}
	out.Lifecycles = len(own)
	over := func(what string, of func(Lifecycle) Value) Spread { return s.laneSpread(name, lane, what, own, of) }
	out.Initialization = over("initialization", func(l Lifecycle) Value { return l.Initialization })
	out.RequestPhase = over("request phase", func(l Lifecycle) Value { return l.RequestPhase })
	out.LatencySum = over("latency sum", func(l Lifecycle) Value { return *l.LatencySum })
	out.Host = over("host lifecycle", func(l Lifecycle) Value { return l.Host })
	return out
}

// tokens is a sum of counts over ok attempts.
func (s *summarizer) tokens(ok record.Population, what string, of func(record.Request) *int) Value {
	total := 0
	for _, r := range ok.Attempts {
		n := of(r)
		if n == nil {
			return s.null(what, ok.Name, fmt.Sprintf("attempt %d of lifecycle %d has no count", r.Ordinal, r.Lifecycle))
		}
		total += *n
	}
	if len(ok.Attempts) == 0 {
		return s.null(what, ok.Name, "no attempt is ok")
	}
	return s.value(float64(total), what, len(ok.Attempts), ok.Name)
}

// laneSpread is a duration over the lifecycles that have it.
func (s *summarizer) laneSpread(arm string, lane plan.Lane, what string, own []Lifecycle, of func(Lifecycle) Value) Spread {
	population := fmt.Sprintf("%s, %s lane, %s, lifecycles", arm, lane, what)
	var values []float64
	for _, l := range own {
		if v := of(l).Value; v != nil {
			values = append(values, *v)
		}
	}
	if len(values) == 0 {
		return Spread{Median: s.null("s", population, "no lifecycle has it")}
	}
	return s.spread(values, "s", population)
}

// latencySum is the sum of a sequence's latencies: of nothing else, so that the
// time between two requests is not in it.
func (s *summarizer) latencySum(l record.Lifecycle) Value {
	population := fmt.Sprintf("lifecycle %d, ok attempts", l.Number)
	sum, n := int64(0), 0
	for _, r := range s.run.Requests {
		if r.Lifecycle != l.Number || r.Outcome != record.OK {
			continue
		}
		v, reason := Latency(r)
		if reason != "" {
			return s.null("s", population, reason)
		}
		sum += v
		n++
	}
	if n == 0 {
		return s.null("s", population, "no attempt is ok")
	}
	return s.value(s.seconds(float64(sum)), "s", n, population)
}

// cost is the declared list rate over the host lifecycles.
func (s *summarizer) cost() *Cost {
	if s.plan.Pairing == nil || s.plan.Pairing.Cost == nil {
		return nil
	}
	c := s.plan.Pairing.Cost
	out := &Cost{Currency: c.Currency, Source: c.Source, Boundary: c.Boundary}
	population := "host lifecycles, invoked to removed, at the declared list rate"
	hours, n := 0.0, 0
	for _, l := range s.lifecycles {
		if v := l.Host.Value; v != nil {
			hours += *v / 3600
			n++
		}
	}
	out.ListRateLowerBound = s.null(c.Currency, population, "no lifecycle has a host duration")
	if n > 0 {
		out.ListRateLowerBound = s.value(float64(hours*c.ListRatePerHour), c.Currency, n, population)
		out.ListRateLowerBound.AtLeast = true
	}
	out.ListRateLowerBound.Provenance = record.Declared
	out.Spend = Value{Unit: c.Currency, Population: "what the provider billed", Provenance: record.Attested, Reason: "no invoice is attached"}
	return out
}
