package plan

import (
	"math/rand/v2"
	"slices"
)

// Pairing is what a crossover plan has in place of a workload and a sweep:
// pairs of lifecycles, each of which serves one sequence, one request after the
// other.
type Pairing struct {
	Caches    Caches
	Lanes     Lanes
	Pairs     int      // of each lane; even, since a block has two
	Blocks    []string // orders that a block of two pairs may have: "ABBA", "BAAB"
	Failure   string   // ExcludePair or StopPair
	Crossing  Crossing
	Inference Inference
	Cost      *Cost   // nil: not declared
	Resume    *Resume // nil: nothing may add a pair
}

// The rules for a pair in which a request failed, the same for both arms.
const (
	ExcludePair = "exclude_pair" // it enters no result, but the one with every pair in
	StopPair    = "stop_pair"    // its difference ends before the failed ordinal
)

// Caches are the declared states in which every lifecycle finds them.
type Caches struct {
	Compile string `yaml:"compile"` // "fresh": inside the server's container; "kept"
	Prefix  string `yaml:"prefix"`  // "off" or "on"
	Page    string `yaml:"page"`    // "warm", "cold" or "unknown"
	Image   string `yaml:"image"`   // "present" or "pulled"
}

// Lanes are the sequences. A plan has at least one.
type Lanes struct {
	Fixed   *Sequence `yaml:"fixed,omitempty"`
	Natural *Sequence `yaml:"natural,omitempty"`
}

// Sequence is what a lifecycle of a lane serves: cycles of tasks, over and over.
type Sequence struct {
	Tasks    string `yaml:"tasks"`    // a family of package workloads
	Requests int    `yaml:"requests"` // ordinals, one after the other
	Cycle    int    `yaml:"cycle"`    // tasks after which the sequence begins anew
	// OutputTokens is the exact number of the fixed lane, MaxTokens the most of
	// the natural lane; the other is 0.
	OutputTokens int `yaml:"output_tokens,omitempty"`
	MaxTokens    int `yaml:"max_tokens,omitempty"`
	// InputTokens are the exact lengths of the prompts, chat template included:
	// the tasks of a cycle get them in turn. Empty: as they were drawn.
	InputTokens []int `yaml:"input_tokens,omitempty"`
}

// InputLength is the exact length of a cycle's i-th prompt, from 0; 0: as it
// was drawn.
func (s *Sequence) InputLength(i int) int {
	if len(s.InputTokens) == 0 {
		return 0
	}
	return s.InputTokens[i%s.Cycle%len(s.InputTokens)]
}

// Fitted says whether any lane's prompts have to be made an exact length, for
// which an engine has to count them.
func (c *Pairing) Fitted() bool {
	for _, lane := range c.Lanes.Each() {
		if len(c.Lanes.Sequence(lane).InputTokens) > 0 {
			return true
		}
	}
	return false
}

// Crossing says when a crossing counts as sustained.
type Crossing struct {
	Dwell int `yaml:"dwell"` // ordinals up to the end over which D must stay at or below 0
}

// Inference is how pairs are judged.
type Inference struct {
	Level     Percent `yaml:"level"`     // of confidence
	Resamples int     `yaml:"resamples"` // of the bootstrap
	// Margin is the largest loss of success or correctness that counts as not
	// inferior, as a share.
	Margin Percent `yaml:"margin"`
}

// Cost is a declared price: a lower bound of what a run costs at list rate,
// never what was paid.
type Cost struct {
	ListRatePerHour float64 `yaml:"list_rate_per_hour"`
	Currency        string  `yaml:"currency"` // ISO 4217
	Source          string  `yaml:"source"`   // where the rate was read
	Boundary        string  `yaml:"boundary"` // what is billed, such as "boot to termination"
}

// Resume is what may add a pair in place of one that was interrupted.
type Resume struct {
	Causes []string `yaml:"causes"` // such as "preempted"
	AtMost int      `yaml:"at_most"`
}

// Each is the lanes that are declared, the fixed one first.
func (l Lanes) Each() []Lane {
	var out []Lane
	if l.Fixed != nil {
		out = append(out, Fixed)
	}
	if l.Natural != nil {
		out = append(out, Natural)
	}
	return out
}

// LaneLabel is the Ginkgo label of a lane: "lane:fixed".
func LaneLabel(lane Lane) string { return "lane:" + string(lane) }

// Sequence is a lane's, or nil.
func (l Lanes) Sequence(lane Lane) *Sequence {
	if lane == Fixed {
		return l.Fixed
	}
	return l.Natural
}

// Tokens is what a request of the sequence may get at most, which in the fixed
// lane is exactly what it gets.
func (s *Sequence) Tokens() int { return max(s.OutputTokens, s.MaxTokens) }

// lifecycles draws a crossover's schedule: block after block, a block of each
// lane in turn, so that neither a lane nor an arm has the better part of the
// day. Of the orders in Blocks each comes as often as any other, as far as the
// number of blocks allows.
func (c *Pairing) lifecycles(seed uint64, baseline, candidate string) []Lifecycle {
	random := rand.New(rand.NewPCG(seed, 0))
	orders := map[Lane][]string{}
	blocks := c.Pairs / 2
	for _, lane := range c.Lanes.Each() {
		for i := range blocks {
			orders[lane] = append(orders[lane], c.Blocks[i%len(c.Blocks)])
		}
		random.Shuffle(blocks, func(i, j int) { orders[lane][i], orders[lane][j] = orders[lane][j], orders[lane][i] })
	}
	var out []Lifecycle
	for block := range blocks {
		for _, lane := range c.Lanes.Each() {
			for i, letter := range orders[lane][block] {
				arm := baseline
				if letter == 'B' {
					arm = candidate
				}
				number := len(out) + 1
				out = append(out, Lifecycle{
					Number: number, Pair: (number + 1) / 2, Position: i%2 + 1, Arm: arm, Lane: lane,
					Waves: []Wave{{Number: 1, Tier: 1, Repeat: 1, Requests: c.Lanes.Sequence(lane).Requests}},
				})
			}
		}
	}
	return out
}

// WithPair is the schedule with one more pair at its end, in place of a pair
// that was interrupted: the same lane, in the same order.
func (s Schedule) WithPair(abandoned int) Schedule {
	out := Schedule{Lifecycles: slices.Clone(s.Lifecycles)}
	last := 0
	for _, l := range s.Lifecycles {
		last = max(last, l.Pair)
	}
	for _, l := range s.Lifecycles {
		if l.Pair == abandoned {
			l.Number, l.Pair = len(out.Lifecycles)+1, last+1
			out.Lifecycles = append(out.Lifecycles, l)
		}
	}
	return out
}

// PairsOf are the numbers of a lane's pairs in a schedule, in its order.
func (s Schedule) PairsOf(lane Lane) []int {
	var out []int
	for _, l := range s.Lifecycles {
		if l.Lane == lane && !slices.Contains(out, l.Pair) {
			out = append(out, l.Pair)
		}
	}
	return out
}

// ClaimsOf are the claims of the plan that are over a lane.
func (p *Plan) ClaimsOf(lane Lane) []Claim {
	var out []Claim
	for _, c := range p.Claims {
		if c == ClaimOutputIdentical || c == ClaimEqualTokenCount && lane == Fixed || c == ClaimNaturalQuality && lane == Natural {
			out = append(out, c)
		}
	}
	return out
}

// Asked is what the requests of a lifecycle ask for.
type Asked struct {
	Lane   Lane
	Tokens int // at most; in the fixed lane exactly
}

// Asked is what the requests of a place of the schedule ask for.
func (p *Plan) Asked(l Lifecycle) Asked {
	if p.Pairing == nil {
		return Asked{Lane: p.Workload.Lane, Tokens: p.Workload.MaxTokens}
	}
	return Asked{Lane: l.Lane, Tokens: p.Pairing.Lanes.Sequence(l.Lane).Tokens()}
}

// Temperature is that of every request.
func (p *Plan) Temperature() float64 {
	if p.Pairing == nil {
		return p.Workload.Temperature
	}
	return *p.Sampling.Temperature
}
