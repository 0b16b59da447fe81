package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/harness/arrival"
	"assay/harness/capacity"
)

// Rate is an arrival rate in requests a second, which a plan writes with its
// unit: "8rps".
type Rate float64

// String writes the rate as a plan does.
func (r Rate) String() string { return strconv.FormatFloat(float64(r), 'g', -1, 64) + "rps" }

// MarshalText writes the canonical form.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a rate with its unit; a bare number is refused.
func (r *Rate) UnmarshalText(text []byte) error {
	number, ok := strings.CutSuffix(strings.TrimSpace(string(text)), "rps")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(v >= 0 && v <= 1e6) {
		return fmt.Errorf("%q is no rate: write requests a second with the unit, such as 8rps or 0.5rps", text)
	}
	*r = Rate(v)
	return nil
}

// Arrivals is what an arrival plan has in place of tiers: when its requests
// come, whatever the server does. See package arrival for the processes, and
// for the windows.
type Arrivals struct {
	Process string `yaml:"process"` // one of [arrival.Processes]
	// Rates are the curve's, of a process that has one rate.
	Rates []Rate `yaml:"rates,omitempty"`
	// Burstiness is the shape of a gamma process's gaps: 1 is Poisson, less is
	// burstier.
	Burstiness float64 `yaml:"burstiness,omitempty"`
	// From, To and Over are a ramp's.
	From Rate     `yaml:"from,omitempty"`
	To   Rate     `yaml:"to,omitempty"`
	Over Duration `yaml:"over,omitempty"`
	// Steps are a step process's, in their order.
	Steps []RateStep `yaml:"steps,omitempty"`
	// Offsets are a trace's, from its beginning and never falling; Scale is what
	// each is multiplied by: 0.5 is twice as fast.
	Offsets []Duration `yaml:"offsets,omitempty"`
	Scale   float64    `yaml:"scale,omitempty"`
	// Order is that of the rates within a lifecycle: [Shuffled] by the plan's
	// seed, so that a drift does not look like load, or [Declared].
	Order       string   `yaml:"order"`
	Warmup      Duration `yaml:"warmup"`
	Measure     Duration `yaml:"measure"`
	Drain       Duration `yaml:"drain"`
	MinRequests int      `yaml:"min_requests"` // measured ones, of each rate
	// Think is the mean of the time, exponentially distributed, from the end of
	// an answer to the next turn of its conversation; 0: the workload has none.
	Think Duration `yaml:"think,omitempty"`
	// DialAhead is how long before its moment a request's connection is opened.
	DialAhead Duration `yaml:"dial_ahead"`
	// InFlight is the most requests in flight; 0: none. Beyond is what becomes of
	// an arrival beyond it: [Hold] or [Drop].
	InFlight int    `yaml:"in_flight,omitempty"`
	Beyond   string `yaml:"beyond,omitempty"`
}

// The orders of rates.
const (
	Shuffled = "shuffled"
	Declared = "declared"
)

// What becomes of an arrival beyond the limit on requests in flight.
const (
	Hold = "hold" // it waits, which is schedule_delay
	Drop = "drop" // it is never sent, and counts as a failure
)

// RateStep is a rate that holds for a while.
type RateStep struct {
	Rate Rate     `yaml:"rate"`
	For  Duration `yaml:"for"`
}

// Search is what an arrival plan looks for in each lifecycle, after its curve:
// the highest rate at which an objective holds. See package capacity.
type Search struct {
	SLO        SLO     `yaml:"slo"`
	From       Rate    `yaml:"from"`
	To         Rate    `yaml:"to"`
	Within     Percent `yaml:"within"`     // how narrow the bracket has to be
	Confidence Percent `yaml:"confidence"` // of each verdict, one-sided
	Tries      int     `yaml:"tries"`      // probes of one rate at most
}

// SLO is a service-level objective. Times count from an attempt's scheduled
// moment, and an attempt that failed is within no time.
type SLO struct {
	TTFT50      Duration `yaml:"ttft_p50,omitempty"`
	TTFT95      Duration `yaml:"ttft_p95,omitempty"`
	TTFT99      Duration `yaml:"ttft_p99,omitempty"`
	TPOT50      Duration `yaml:"tpot_p50,omitempty"`
	TPOT95      Duration `yaml:"tpot_p95,omitempty"`
	TPOT99      Duration `yaml:"tpot_p99,omitempty"`
	Latency95   Duration `yaml:"latency_p95,omitempty"`
	Latency99   Duration `yaml:"latency_p99,omitempty"`
	FailureRate *Percent `yaml:"failure_rate,omitempty"` // at most
}

// Objective is one part of an SLO.
type Objective struct {
	Name  string        // as the plan writes it: "ttft_p95"
	Of    string        // "ttft", "tpot", "latency" or "failure_rate"
	Limit time.Duration // in the plan's time; 0 of the failure rate
	Share float64       // of the attempts that has to be within it
	most  string        // the limit as the plan writes it
}

// String writes the objective: "ttft_p95 ≤ 500ms".
func (o Objective) String() string { return o.Name + " ≤ " + o.most }

// times are the limits on times that an SLO may have, 0 where the plan sets none.
func (s SLO) times() []Objective {
	of := func(kind, percentile string, share float64, limit Duration) Objective {
		return Objective{Name: kind + "_" + percentile, Of: kind, Limit: limit.D(), Share: share, most: limit.String()}
	}
	return []Objective{
		of("ttft", "p50", 0.50, s.TTFT50), of("ttft", "p95", 0.95, s.TTFT95), of("ttft", "p99", 0.99, s.TTFT99),
		of("tpot", "p50", 0.50, s.TPOT50), of("tpot", "p95", 0.95, s.TPOT95), of("tpot", "p99", 0.99, s.TPOT99),
		of("latency", "p95", 0.95, s.Latency95), of("latency", "p99", 0.99, s.Latency99),
	}
}

// Objectives are the parts of an SLO that the plan sets, in the order in which
// it is frozen.
func (s SLO) Objectives() []Objective {
	out := slices.DeleteFunc(s.times(), func(o Objective) bool { return o.Limit == 0 })
	if f := s.FailureRate; f != nil {
		out = append(out, Objective{Name: "failure_rate", Of: "failure_rate", Share: 1 - f.Share(), most: f.String()})
	}
	return out
}

// Capacity is a pair's search: its arms look with the same seeds.
func (p *Plan) Capacity(pair int) capacity.Search {
	s := p.Search
	out := capacity.Search{
		Confidence: s.Confidence.Share(), From: float64(s.From), To: float64(s.To), Within: s.Within.Share(), Tries: s.Tries,
		Seed: p.derived("search", pair, 0),
	}
	for _, o := range s.SLO.Objectives() {
		out.Objectives = append(out.Objectives, capacity.Objective{Name: o.Name, Share: o.Share})
	}
	return out
}

// derived is a seed that the plan's own gives for one purpose. It has 53 bits,
// which is what a reader of JSON may hold.
func (p *Plan) derived(purpose string, pair, i int) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s/%d/%d", p.Seed, purpose, pair, i))
	return binary.BigEndian.Uint64(sum[:]) >> 11
}

// spec is the process at a rate, which a ramp and steps have within themselves.
func (a *Arrivals) spec(rate float64) arrival.Spec {
	s := arrival.Spec{Process: a.Process, Burstiness: a.Burstiness, From: float64(a.From), To: float64(a.To), Over: a.Over.D()}
	if a.Swept() {
		s.Rate = rate
	}
	s.Scale = a.Scale
	for _, o := range a.Offsets {
		s.Offsets = append(s.Offsets, int64(o))
	}
	for _, step := range a.Steps {
		s.Steps = append(s.Steps, arrival.RateStep{Rate: float64(step.Rate), For: step.For.D()})
	}
	return s
}

// Swept says whether the process has one rate, which the plan varies.
func (a *Arrivals) Swept() bool {
	return a.Process == "constant" || a.Process == "poisson" || a.Process == "gamma"
}

// Levels are the rates of the curve, in the plan's order; a process that has no
// single rate is one level, of the rate 0.
func (a *Arrivals) Levels() []Rate {
	if a.Swept() {
		return a.Rates
	}
	return []Rate{0}
}

// declared draws a wave's arrivals in the plan's own time. Of conversations so
// many begin that their turns come at the rate, once the first have had all of
// theirs.
func (p *Plan) declared(rate float64, seed uint64) (arrival.Schedule, error) {
	a, turns := p.Arrivals, p.Turns()
	process, err := arrival.New(a.spec(rate / float64(turns)))
	if err != nil {
		return arrival.Schedule{}, err
	}
	least := (a.MinRequests + turns - 1) / turns
	s, err := arrival.Windows{Warmup: a.Warmup.D(), Measure: a.Measure.D(), AtLeast: least, Drain: a.Drain.D()}.Schedule(process, seed)
	if err != nil || turns == 1 {
		return s, err
	}
	return s.Conversations(turns, a.Think.D(), seed), nil
}

// Turns is how many requests each arrival brings, one after the other: those of
// a conversation, or 1.
func (p *Plan) Turns() int {
	if s := p.Workload.Source; s != nil {
		return max(1, s.Turns)
	}
	return 1
}

// ArrivalsOf are a wave's arrivals in this machine's time, drawn anew from its
// rate and its seed. The error says what can't be drawn, which a plan that was
// checked does not have, but a rate that a search came to may.
func (p *Plan) ArrivalsOf(w Wave) (arrival.Schedule, error) {
	s, err := p.declared(w.Rate, w.Seed)
	if err != nil || p.TimeScale == 1 {
		return s, err
	}
	scaled := func(ns int64) int64 { return int64(p.Scaled(Duration(ns))) }
	for i := range s.Offsets {
		s.Offsets[i] = scaled(s.Offsets[i])
	}
	for i, think := range s.Thinks {
		if think > 0 {
			s.Thinks[i] = scaled(think)
		}
	}
	s.Warmup, s.End, s.Drain = scaled(s.Warmup), scaled(s.End), scaled(s.Drain)
	return s, nil
}

// Open is an open loop's place in a lifecycle: its arrivals are drawn here.
func (p *Plan) Open(number int, rate float64, seed uint64) (Wave, error) {
	s, err := p.declared(rate, seed)
	if err != nil {
		return Wave{}, err
	}
	return Wave{Number: number, Repeat: 1, Rate: rate, Seed: seed, Arrivals: len(s.Offsets), ArrivalsSHA256: s.Digest()}, nil
}

// Probe is the n-th probe of a lifecycle's search, from 1.
func (p *Plan) Probe(l Lifecycle, n int, rate float64, seed uint64) (Wave, error) {
	curve := 0
	for _, w := range l.Waves {
		if w.Probe == 0 {
			curve++
		}
	}
	w, err := p.Open(curve+n, rate, seed)
	w.Probe = n
	return w, err
}

// HighestRate is the highest that an arrival plan may come to, in requests a
// second.
func (p *Plan) HighestRate() Rate {
	a := p.Arrivals
	highest := max(a.From, a.To)
	for _, r := range a.Rates {
		highest = max(highest, r)
	}
	for _, s := range a.Steps {
		highest = max(highest, s.Rate)
	}
	if p.Search != nil {
		highest = max(highest, p.Search.To)
	}
	return highest
}

// curve are a pair's waves of arrivals: the same in both of its arms.
func (p *Plan) curve(pair, after int) []Wave {
	a := p.Arrivals
	rates := a.Levels()
	order := make([]int, len(rates))
	for i := range order {
		order[i] = i
	}
	if a.Order == Shuffled {
		random := rand.New(rand.NewPCG(p.derived("order", pair, 0), 0))
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	var waves []Wave
	for _, i := range order {
		w, err := p.Open(after+len(waves)+1, float64(rates[i]), p.derived("curve", pair, i))
		if err != nil {
			panic("arrivals that were checked can't be drawn: " + err.Error())
		}
		waves = append(waves, w)
	}
	return waves
}

// RateLabel is the Ginkgo label of a rate: "tier:8rps".
func RateLabel(rate float64) string {
	if rate == 0 {
		return "tier:changing"
	}
	return "tier:" + Rate(rate).String()
}

// SearchLabel is the Ginkgo label of the search.
const SearchLabel = "search"

// OpenTime is how long an open loop at a rate may take, in the plan's time:
// settling, its windows, and the drain. The least number of requests may take
// longer than the measurement; a tenth more allows for a random process.
func (p *Plan) OpenTime(rate float64) Duration {
	a := p.Arrivals
	measure := a.Measure
	if rate > 0 {
		measure = max(measure, Duration(1.1*float64(a.MinRequests)/rate*1e9))
	}
	return p.Sweep.Settle.Idle + p.Timeouts.Connect + a.DialAhead + a.Warmup + measure + a.Drain
}

// CurveTime is the most that a lifecycle's curve may take, in the plan's time.
func (p *Plan) CurveTime() Duration {
	var sum Duration
	for _, r := range p.Arrivals.Levels() {
		sum += p.OpenTime(float64(r))
	}
	return sum
}

// SearchTime is the most that a lifecycle's search may take, in the plan's
// time: as many probes as there can be, each at the lowest rate.
func (p *Plan) SearchTime() Duration {
	return Duration(p.Capacity(1).MostProbes()) * p.OpenTime(float64(p.Search.From))
}
