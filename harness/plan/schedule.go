package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"
)

// Schedule is everything that a plan will run, in order, drawn before the run
// from the plan alone.
type Schedule struct {
	Lifecycles []Lifecycle `json:"lifecycles"`
}

// Lifecycle is one fresh server's place in the schedule.
type Lifecycle struct {
	Number   int    `json:"number"`   // from 1, in the order of execution
	Pair     int    `json:"pair"`     // from 1; two adjacent lifecycles, one of each arm
	Position int    `json:"position"` // 1 or 2: place within the pair
	Arm      string `json:"arm"`
	Lane     Lane   `json:"lane,omitempty"` // of a crossover; else the workload's
	Waves    []Wave `json:"waves"`
}

// Wave is one burst's place in its lifecycle, or one sequence's.
type Wave struct {
	Number int  `json:"number"` // from 1 within the lifecycle
	Tier   int  `json:"tier"`   // clients, one request each
	Repeat int  `json:"repeat"` // from 1 within the tier; a warm-up's own count
	Warmup bool `json:"warmup"` // recorded, and in no result
	// Requests is how many a sequence has, one after the other; 0 is a burst.
	Requests int `json:"requests,omitempty"`
	// Of an open loop, which has no tier: its rate in requests a second (0: one
	// that changes), the seed of its arrivals, how many they are, and the SHA-256
	// of their offsets in the plan's time.
	Rate           float64 `json:"rate_rps,omitempty"`
	Seed           uint64  `json:"seed,omitempty"`
	Arrivals       int     `json:"arrivals,omitempty"`
	ArrivalsSHA256 string  `json:"arrivals_sha256,omitempty"`
	// Probe is a search's, from 1; 0: it is of the curve. Which probes there are
	// is known only as they are made, see [Plan.Capacity].
	Probe int `json:"probe,omitempty"`
}

// Attempts is how many requests the wave has.
func (w Wave) Attempts() int { return max(w.Tier, w.Requests, w.Arrivals) }

// Open says whether the wave is an open loop.
func (w Wave) Open() bool { return w.ArrivalsSHA256 != "" }

// Schedule draws the plan's lifecycles and waves. With one pair the baseline
// comes first; with more, pairs of pairs are ABBA or BAAB by the plan's seed,
// so that neither arm always comes first. Within a lifecycle the tiers follow
// one another as the plan has them, each with its repeats. A crossover's
// lifecycles have one sequence each, see [Pairing]; an arrival plan's have an open
// loop at each rate, see [Arrivals].
func (p *Plan) Schedule() Schedule {
	baseline, candidate := p.WithRole(Baseline).Name, p.WithRole(Candidate).Name
	if p.Pairing != nil {
		return Schedule{Lifecycles: p.Pairing.lifecycles(p.Seed, baseline, candidate)}
	}
	random := rand.New(rand.NewPCG(p.Seed, 0))
	var s Schedule
	first, second := baseline, candidate
	for pair := 1; pair <= p.Sweep.Lifecycles; pair++ {
		switch {
		case pair%2 == 0:
			first, second = second, first
		case p.Sweep.Lifecycles > 1 && random.IntN(2) == 1:
			first, second = candidate, baseline
		default:
			first, second = baseline, candidate
		}
		for i, arm := range []string{first, second} {
			s.Lifecycles = append(s.Lifecycles, Lifecycle{
				Number: len(s.Lifecycles) + 1, Pair: pair, Position: i + 1, Arm: arm, Waves: p.waves(pair),
			})
		}
	}
	return s
}

func (p *Plan) waves(pair int) []Wave {
	var waves []Wave
	for i := range p.Sweep.Warmup {
		waves = append(waves, Wave{Number: len(waves) + 1, Tier: 1, Repeat: i + 1, Warmup: true})
	}
	if p.Arrivals != nil {
		return append(waves, p.curve(pair, len(waves))...)
	}
	for _, tier := range p.Sweep.Tiers {
		for repeat := range p.Sweep.Repeats {
			waves = append(waves, Wave{Number: len(waves) + 1, Tier: tier, Repeat: repeat + 1})
		}
	}
	return waves
}

// SHA256 is the schedule's hash, in hex: of its JSON.
func (s Schedule) SHA256() string {
	data, err := json.Marshal(s)
	if err != nil {
		panic("a schedule that is no JSON: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Waves counts the schedule's waves, warm-up included.
func (s Schedule) Waves() int {
	n := 0
	for _, l := range s.Lifecycles {
		n += len(l.Waves)
	}
	return n
}

// Requests counts the schedule's attempts, warm-up included.
func (s Schedule) Requests() int {
	n := 0
	for _, l := range s.Lifecycles {
		for _, w := range l.Waves {
			n += w.Attempts()
		}
	}
	return n
}

// Scaled is a declared time in this machine's: shorter by the time scale.
func (p *Plan) Scaled(d Duration) time.Duration {
	return time.Duration(float64(d) / p.TimeScale)
}

// WorstCase is how long the run takes on this machine if every deadline is
// met by a hair: bringing each image once, starts, settling, connections,
// requests and stops.
func (p *Plan) WorstCase() time.Duration { return p.Scaled(p.WorstCaseEmulated()) }

// WorstCaseEmulated is [Plan.WorstCase] in the plan's own time, which differs
// from this machine's under a time scale.
func (p *Plan) WorstCaseEmulated() Duration {
	s := p.Schedule()
	t := p.Timeouts
	worst := Duration(p.Images())*t.Image +
		Duration(len(s.Lifecycles))*(t.Ready+t.Stop) +
		Duration(s.steps())*(p.Sweep.Settle.Idle+t.Connect+t.Request)
	if p.Arrivals != nil {
		worst += Duration(len(s.Lifecycles)) * p.CurveTime()
		if p.Search != nil {
			worst += Duration(len(s.Lifecycles)) * p.SearchTime()
		}
	}
	return worst
}

// steps counts what follows one another: bursts, and requests of sequences. An
// open loop has its own time.
func (s Schedule) steps() int {
	n := 0
	for _, l := range s.Lifecycles {
		for _, w := range l.Waves {
			if !w.Open() {
				n += max(1, w.Requests)
			}
		}
	}
	return n
}

// Images counts the images that the plan's containers are made of.
func (p *Plan) Images() int {
	images := map[string]bool{}
	for _, a := range p.Arms {
		if c := a.Engine.Container; c != nil {
			images[c.Image] = true
		}
	}
	return len(images)
}

// TierLabel is the Ginkgo label of a tier: "tier:64".
func (p *Plan) TierLabel(clients int) string { return fmt.Sprintf("tier:%d", clients) }
