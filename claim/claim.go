package claim

import (
	"fmt"
	"math"

	"assay/harness/crossing"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
)

// Schema is claims.json's.
const Schema = "assay.claims/v1"

// Verdict is what the evidence says to a claim.
type Verdict string

// The verdicts. Unsupported is an answer: the run does not show it.
const (
	Supported     Verdict = "supported"
	Unsupported   Verdict = "unsupported"
	NotApplicable Verdict = "not_applicable"
)

// Level is the confidence at which a claim over pairs is decided.
const Level = 0.95

// FewestPairs is the smallest number of pairs at which a two-sided sign-flip
// test can reach Level at all: its p-value can't go below 2/2^k.
const FewestPairs = 6

// NotRun is the reason of a claim at a tier that no filter selected.
const NotRun = "the tier was not run"

// Claim is one sentence that the experiment may support.
type Claim struct {
	Claim       plan.Claim `json:"claim"`
	Tier        int        `json:"tier"`
	Lane        plan.Lane  `json:"lane,omitempty"`     // of a crossover, which has no tiers
	Rate        float64    `json:"rate_rps,omitempty"` // of an arrival plan, which has none either
	Sentence    string     `json:"sentence"`
	Verdict     Verdict    `json:"verdict"`
	Reasons     []string   `json:"reasons"`
	Observation string     `json:"observation"` // what was seen, whatever the verdict
	// Provenance is that of the numbers: nothing emulated is an observation of
	// the engine that it stands for.
	Provenance record.Provenance `json:"provenance"`
	PValue     *float64          `json:"p_value"` // two-sided, exact sign flips over pairs; null where none was computed
	Records    []Pointer         `json:"records"`
}

// Pointer leads to the records behind a claim.
type Pointer struct {
	File      string `json:"file"`
	Lifecycle int    `json:"lifecycle"`
	Waves     []int  `json:"waves"`
}

// Document is claims.json.
type Document struct {
	Schema     string  `json:"schema"`
	PlanSHA256 string  `json:"plan_sha256"`
	Run        string  `json:"run"`
	Claims     []Claim `json:"claims"`
}

// Judge gives every claim of the plan its verdict, at every tier or in every
// lane that it is over.
func Judge(p *plan.Plan, s metric.Summary) Document {
	d := Document{Schema: Schema, PlanSHA256: s.PlanSHA256, Run: s.Run, Claims: []Claim{}}
	switch {
	case p.Pairing != nil:
		d.Claims = append(d.Claims, judgeLanes(p, s)...)
		return d
	case p.Arrivals != nil:
		d.Claims = append(d.Claims, judgeArrivals(p, s)...)
		return d
	}
	for _, name := range p.Claims {
		for _, tier := range s.Tiers {
			d.Claims = append(d.Claims, judge(p, s, tier, name))
		}
	}
	return d
}

func judge(p *plan.Plan, s metric.Summary, t metric.Tier, name plan.Claim) Claim {
	c := Claim{Claim: name, Tier: t.Tier, Reasons: []string{}, Provenance: s.Provenance, Records: pointers(s, t.Tier)}
	at := "at " + record.Clients(t.Tier)
	as := configured(s)
	b, k := t.Baseline, t.Candidate
	var pairs []metric.Pair
	higher := false
	var effect func(metric.Pair) (effect, bool)
	switch name {
	case plan.ClaimGoodput:
		c.Sentence = fmt.Sprintf("%s%s has a higher token goodput than %s%s %s.", k.Arm, as, b.Arm, as, at)
		c.Observation = fmt.Sprintf("goodput medians: %s %s, %s %s; ratio %s", b.Arm, show(b.Goodput.Median), k.Arm, show(k.Goodput.Median), show(t.SpeedUp))
		pairs, higher, effect = t.Pairs, true, logRatio
	case plan.ClaimFailures:
		c.Sentence = fmt.Sprintf("%s%s fails less often than %s%s %s.", k.Arm, as, b.Arm, as, at)
		c.Observation = fmt.Sprintf("failures: %s %d of %d, %s %d of %d", b.Arm, b.Counts.Failed, b.Counts.Attempted, k.Arm, k.Counts.Failed, k.Counts.Attempted)
	case plan.ClaimTTFT:
		c.Sentence = fmt.Sprintf("%s%s has a lower p95 TTFT over all attempts than %s%s %s.", k.Arm, as, b.Arm, as, at)
		c.Observation = fmt.Sprintf("p95 TTFT over all attempts: %s %s, %s %s", b.Arm, show(b.TTFTAll95), k.Arm, show(k.TTFTAll95))
		pairs, effect = t.TTFTPairs, logRatio
	}
	c.emulated(s)
	c.Verdict = Unsupported
	if t.Status == "not_selected" {
		c.Verdict = NotApplicable
		c.Reasons = append(c.Reasons, NotRun)
		return c
	}
	c.obstacles(p, s, t)
	if name == plan.ClaimGoodput && t.SpeedUp.Value == nil {
		c.Reasons = append(c.Reasons, t.SpeedUp.Reason)
	}
	if name == plan.ClaimFailures {
		pairs, effect = failures(s, p, t.Tier), difference
		switch {
		case b.Counts.Attempted == 0 || k.Counts.Attempted == 0:
			c.Reasons = append(c.Reasons, fmt.Sprintf("%s made %d attempts and %s %d: there is nothing to compare", b.Arm, b.Counts.Attempted, k.Arm, k.Counts.Attempted))
		case b.Counts.Failed == 0 && k.Counts.Failed == 0:
			c.Verdict = NotApplicable
			c.Reasons = append(c.Reasons, "nothing failed in either arm: there is no difference to show")
			return c
		}
	}
	if len(c.Reasons) > 0 {
		return c
	}
	c.infer(pairs, higher, effect)
	return c
}

// obstacles are the reasons for which no claim can be supported, whatever the
// numbers are.
func (c *Claim) obstacles(p *plan.Plan, s metric.Summary, t metric.Tier) {
	c.replicates(p, s, "the tier", t.Status)
	if p.Gates.Identity == "require" && (!t.Outputs.Compared || t.Outputs.Equal != t.Outputs.Of) {
		c.Reasons = append(c.Reasons, fmt.Sprintf("the plan requires equal outputs, and %d of %d were", t.Outputs.Equal, t.Outputs.Of))
	}
}

// replicates are the reasons that a run as a whole gives: whether it is valid,
// how much of what is claimed about was run, and in how many lifecycles.
func (c *Claim) replicates(p *plan.Plan, s metric.Summary, what, status string) {
	if !s.Validity.Valid {
		c.Reasons = append(c.Reasons, fmt.Sprintf("the run is invalid, for %d reason(s) in its validity", len(s.Validity.Reasons)))
	}
	if status != "complete" {
		c.Reasons = append(c.Reasons, what+" is "+status)
	}
	if p.Sweep.Lifecycles < 2 {
		c.Reasons = append(c.Reasons, "one lifecycle an arm: what was seen is an observation, and repeats within a lifecycle are no replicates")
	} else if p.Sweep.Lifecycles < FewestPairs {
		c.Reasons = append(c.Reasons, fmt.Sprintf("descriptive: over %d pairs no two-sided sign-flip test can reach %.0f %%, it takes %d", p.Sweep.Lifecycles, Level*100, FewestPairs))
	}
}

// effect is what one pair shows; a bound has the right sign, and is known only
// to be at least so far from zero.
type effect struct {
	value float64
	bound bool
}

// infer decides from the pairs, each of which counts once.
func (c *Claim) infer(pairs []metric.Pair, higher bool, of func(metric.Pair) (effect, bool)) {
	var effects []float64
	bounds := 0
	for _, pair := range pairs {
		e, ok := of(pair)
		if !ok {
			c.Reasons = append(c.Reasons, fmt.Sprintf("pair %d has no effect that can be computed", pair.Pair))
			return
		}
		if !higher {
			e.value = -e.value
		}
		if e.bound {
			bounds++
		}
		effects = append(effects, e.value)
	}
	// Where all pairs point one way the p-value is 2/2^k whatever their sizes
	// are; where they don't, it needs the sizes.
	if bounds > 0 && !oneWay(effects) {
		c.Reasons = append(c.Reasons, fmt.Sprintf("%d of %d pairs are known only as bounds, and the pairs do not all point one way", bounds, len(effects)))
		return
	}
	p, exact := crossing.SignFlip(effects)
	if math.IsNaN(p) {
		c.Reasons = append(c.Reasons, "no pair has an effect")
		return
	}
	flips := "exact sign flips"
	if !exact {
		flips = "sampled sign flips"
	}
	c.PValue = &p
	sum := 0.0
	for _, v := range effects {
		sum += v
	}
	if bounds > 0 {
		c.Reasons = append(c.Reasons, fmt.Sprintf("%d of %d pairs are known only as bounds; all point one way, which is all that p needs", bounds, len(effects)))
	}
	switch {
	case sum <= 0:
		c.Reasons = append(c.Reasons, "the mean over pairs points the other way")
	case p > 1-Level:
		c.Reasons = append(c.Reasons, fmt.Sprintf("p = %.4f over %d pairs: not shown at %.0f %%", p, len(effects), Level*100))
	default:
		c.Verdict = Supported
		c.Reasons = append(c.Reasons, fmt.Sprintf("p = %.4f over %d pairs, two-sided %s", p, len(effects), flips))
	}
}

func oneWay(effects []float64) bool {
	up, down := 0, 0
	for _, e := range effects {
		if e > 0 {
			up++
		} else if e < 0 {
			down++
		}
	}
	return up == len(effects) || down == len(effects)
}

// logRatio is an effect that treats twice as much and half as much alike. Of
// two values one may be a lower bound, if it is the greater one: then the true
// ratio lies beyond.
func logRatio(p metric.Pair) (effect, bool) {
	b, c := p.Baseline, p.Candidate
	if b.Value == nil || c.Value == nil || *b.Value <= 0 || *c.Value <= 0 {
		return effect{}, false
	}
	if c.AtLeast && (b.AtLeast || *c.Value <= *b.Value) || b.AtLeast && *b.Value <= *c.Value {
		return effect{}, false
	}
	return effect{value: math.Log(*c.Value / *b.Value), bound: b.AtLeast || c.AtLeast}, true
}

func difference(p metric.Pair) (effect, bool) {
	if p.Baseline.Value == nil || p.Candidate.Value == nil {
		return effect{}, false
	}
	return effect{value: *p.Candidate.Value - *p.Baseline.Value}, true
}

// failures are the pairs' failure rates.
func failures(s metric.Summary, p *plan.Plan, tier int) []metric.Pair {
	pairOf := map[int]int{}
	for _, l := range p.Schedule().Lifecycles {
		pairOf[l.Number] = l.Pair
	}
	rate := func(pair int, arm string) metric.Value {
		failed, attempted := 0, 0
		for _, w := range s.Waves {
			if pairOf[w.Lifecycle] == pair && w.Arm == arm && w.Tier == tier && !w.Warmup {
				failed += w.Counts.Failed
				attempted += w.Counts.Attempted
			}
		}
		if attempted == 0 {
			return metric.Value{Reason: "no attempt was made"}
		}
		v := float64(failed) / float64(attempted)
		return metric.Value{Value: &v, N: attempted}
	}
	var out []metric.Pair
	for pair := 1; pair <= p.Sweep.Lifecycles; pair++ {
		out = append(out, metric.Pair{Pair: pair, Baseline: rate(pair, p.WithRole(plan.Baseline).Name), Candidate: rate(pair, p.WithRole(plan.Candidate).Name)})
	}
	return out
}

func show(v metric.Value) string {
	if v.Value == nil {
		return "null (" + v.Reason + ")"
	}
	text := fmt.Sprintf("%.4g", *v.Value)
	if v.AtLeast {
		text = "≥ " + text
	}
	if v.Unit == "ratio" {
		return text
	}
	return text + " " + v.Unit
}

func pointers(s metric.Summary, tier int) []Pointer {
	return pointersTo(s, func(w metric.Wave) bool { return w.Tier == tier && !w.Warmup })
}

func pointersTo(s metric.Summary, is func(metric.Wave) bool) []Pointer {
	waves := map[int][]int{}
	var order []int
	for _, w := range s.Waves {
		if !is(w) || w.Status == "not_selected" {
			continue
		}
		if len(waves[w.Lifecycle]) == 0 {
			order = append(order, w.Lifecycle)
		}
		waves[w.Lifecycle] = append(waves[w.Lifecycle], w.Number)
	}
	out := []Pointer{}
	for _, l := range order {
		out = append(out, Pointer{File: "requests.jsonl", Lifecycle: l, Waves: waves[l]})
	}
	return out
}
