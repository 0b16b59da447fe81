package metric

import (
	"strconv"

	"assay/harness/plan"
	"assay/harness/record"
)

// SummarySchema is summary.json's.
const SummarySchema = "assay.summary/v2"

// Value is one number with what it is, or nothing with the reason.
type Value struct {
	Value      *float64          `json:"value"`
	Unit       string            `json:"unit"`
	AtLeast    bool              `json:"at_least,omitempty"` // a lower bound: what it is over was cut short
	N          int               `json:"n"`
	Censored   int               `json:"censored,omitempty"` // how many of the n are known only to be longer than they were seen
	Population string            `json:"population"`
	Provenance record.Provenance `json:"provenance"`
	Reason     string            `json:"reason,omitempty"`
}

// Spread is the median, smallest and largest of a value over waves.
type Spread struct {
	Median Value    `json:"median"`
	Min    *float64 `json:"min"`
	Max    *float64 `json:"max"`
}

// Validity says whether the protocol was kept, apart from what was found.
type Validity struct {
	Valid   bool     `json:"valid"`
	Reasons []string `json:"reasons"`
	Notes   []string `json:"notes"` // worth knowing, and no reason against it
}

// take adds what is said of a part, and where that is.
func (v *Validity) take(part Validity, where string) {
	for _, r := range part.Reasons {
		v.Valid = false
		v.Reasons = append(v.Reasons, where+r)
	}
	for _, n := range part.Notes {
		v.Notes = append(v.Notes, where+n)
	}
}

// Counts are attempts by how they ended; attempted = ok + each failure kind.
type Counts struct {
	Attempted int                    `json:"attempted"`
	OK        int                    `json:"ok"`
	Failed    int                    `json:"failed"`
	ByOutcome map[record.Outcome]int `json:"by_outcome"`
}

// Wave is one wave's numbers.
type Wave struct {
	Lifecycle    int      `json:"lifecycle"`
	Arm          string   `json:"arm"`
	Number       int      `json:"number"`
	Tier         int      `json:"tier"`
	Repeat       int      `json:"repeat"`
	Warmup       bool     `json:"warmup"`
	Open         bool     `json:"open,omitempty"`     // an open loop
	Rate         float64  `json:"rate_rps,omitempty"` // its rate
	Probe        int      `json:"probe,omitempty"`    // of a search, from 1
	Status       string   `json:"status"`
	Validity     Validity `json:"validity"`
	Counts       Counts   `json:"counts"`
	Wall         Value    `json:"wall"`           // release to last terminal, all attempts
	Goodput      Value    `json:"goodput"`        // output tokens of ok attempts / wall
	FailedTokens int      `json:"failed_tokens"`  // seen of attempts that failed; in no goodput
	ClientLagP50 Value    `json:"client_lag_p50"` // by [KnownLag], in measured time, whatever the scale; likewise the next four
	ClientLagP99 Value    `json:"client_lag_p99"`
	ClientLagMax Value    `json:"client_lag_max"`
	Coalesced    Value    `json:"coalesced"` // by [Shared], of events with a token
	ReleaseLag   Value    `json:"release_lag"`
	// ScheduleDelay is the p99 of an open loop's, over the attempts that were
	// sent, in measured time; nil in others.
	ScheduleDelay *Value `json:"schedule_delay_p99,omitempty"`
	// OwnDelay is likewise, by [OwnDelays]: the part that is this side's.
	OwnDelay *Value `json:"own_delay_p99,omitempty"`
	// Watched is what was seen beside the load; nil where the plan looks at
	// nothing.
	Watched *Watched `json:"watched,omitempty"`
	// Prefix is where a source's entries are made of segments.
	Prefix *Prefix `json:"prefix,omitempty"`
}

// Arm is one arm's numbers at a tier.
type Arm struct {
	Arm     string    `json:"arm"`
	Role    plan.Role `json:"role"`
	Waves   int       `json:"waves"` // recorded ones
	Goodput Spread    `json:"goodput"`
	// Over ok attempts, pooled over all repeats.
	TTFT50    Value `json:"ttft_p50"`
	TTFT95    Value `json:"ttft_p95"`
	TTFT99    Value `json:"ttft_p99"`
	Latency50 Value `json:"latency_p50"`
	Latency95 Value `json:"latency_p95"`
	Latency99 Value `json:"latency_p99"`
	TPOT50    Value `json:"tpot_p50"`
	TPOT95    Value `json:"tpot_p95"`
	TPOT99    Value `json:"tpot_p99"`
	// Over all attempts, failures right-censored.
	TTFTAll50    Value `json:"ttft_all_p50"`
	TTFTAll95    Value `json:"ttft_all_p95"`
	TTFTAll99    Value `json:"ttft_all_p99"`
	LatencyAll50 Value `json:"latency_all_p50"`
	LatencyAll95 Value `json:"latency_all_p95"`
	LatencyAll99 Value `json:"latency_all_p99"`
	// Over failed attempts that had a first token: a population of its own.
	TTFTFailed50       Value  `json:"ttft_failed_p50"`
	TTFTFailed95       Value  `json:"ttft_failed_p95"`
	Counts             Counts `json:"counts"`
	FailureRate        Value  `json:"failure_rate"`
	FailedTokens       int    `json:"failed_tokens"`
	OutputTokensSource string `json:"output_tokens_source"` // "mixed" if not the same everywhere, "" if none
}

// Outputs is how the arms' outputs compare at a tier: ordinal by ordinal, each
// with the same ordinal of the same repeat of the pair's other arm.
type Outputs struct {
	Compared bool   `json:"compared"`
	By       string `json:"by,omitempty"` // "token_ids" or "text"
	Equal    int    `json:"equal"`
	Of       int    `json:"of"`
	Reason   string `json:"reason,omitempty"` // why they were not compared
}

// Pair is one pair's numbers at a tier.
type Pair struct {
	Pair      int   `json:"pair"`
	Baseline  Value `json:"baseline"`
	Candidate Value `json:"candidate"`
}

// Tier is one tier's numbers.
type Tier struct {
	Tier      int      `json:"tier"`
	Validity  Validity `json:"validity"`
	Status    string   `json:"status"` // "complete", "partial", "not_selected"
	Baseline  Arm      `json:"baseline"`
	Candidate Arm      `json:"candidate"`
	SpeedUp   Value    `json:"speed_up"` // ratio of the goodput medians
	Outputs   Outputs  `json:"outputs"`
	Pairs     []Pair   `json:"pairs"` // goodput medians within each pair
	// TTFTPairs are the pairs' p95 of TTFT over all attempts.
	TTFTPairs []Pair `json:"ttft_pairs"`
}

// Lifecycle is one lifecycle's durations. They answer different questions and
// are never added or subtracted across kinds.
type Lifecycle struct {
	Number         int    `json:"number"`
	Executed       int    `json:"executed"`
	Arm            string `json:"arm"`
	Status         string `json:"status"`
	Initialization Value  `json:"initialization"` // started → ready
	RequestPhase   Value  `json:"request_phase"`  // first sent → last terminal
	Host           Value  `json:"host"`           // invoked → removed
	// Of a crossover: the pair, the lane, and the sum of the sequence's
	// latencies.
	Pair       int       `json:"pair,omitempty"`
	Lane       plan.Lane `json:"lane,omitempty"`
	LatencySum *Value    `json:"latency_sum,omitempty"`
}

// Summary is every number of a run: summary.json.
type Summary struct {
	Schema         string `json:"schema"`
	Contract       int    `json:"metric_contract"`
	PlanSHA256     string `json:"plan_sha256"`
	ScheduleSHA256 string `json:"schedule_sha256"`
	Run            string `json:"run"`
	// EnvironmentSHA256 binds environment.json, in which no chain ends: the
	// hash of its canonical JSON.
	EnvironmentSHA256 string            `json:"environment_sha256"`
	Percentiles       string            `json:"percentiles"`
	Provenance        record.Provenance `json:"provenance"` // of every result: derived, or emulated
	TimeScale         float64           `json:"time_scale"`
	Status            string            `json:"status"` // "complete", "partial" or "interrupted"
	Validity          Validity          `json:"validity"`
	Lifecycles        []Lifecycle       `json:"lifecycles"`
	Waves             []Wave            `json:"waves"`
	Tiers             []Tier            `json:"tiers"`
	Lanes             []Lane            `json:"lanes,omitempty"` // of a crossover
	// Of an arrival plan: the curve by rate, and what its searches found.
	Rates    []Rate     `json:"rates,omitempty"`
	Searches []Searched `json:"searches,omitempty"`
	SLORate  *SLORate   `json:"slo_rate,omitempty"`
	Cost     *Cost      `json:"cost,omitempty"` // where the plan declares a rate
	// Inputs is where the plan has a source whose entries should have a number
	// of tokens.
	Inputs *Inputs `json:"inputs,omitempty"`
	// Invocations are those that went on with the run after an interruption.
	Invocations []record.Invocation `json:"invocations,omitempty"`
}

// digits is how many significant digits a value keeps: far more than any
// measurement has, and fewer than would differ between machines. guard is cut
// to first: two machines' last bits may fall on either side of a tie of nine
// digits, of which whole nanoseconds have many, and guard brings both to it.
const (
	digits = 9
	guard  = 13
)

// Round is a number as a summary keeps it: the same on every machine.
func Round(v float64) float64 {
	for _, n := range []int{guard, digits} {
		// Decimal rounding by strconv is exact, and so the same everywhere;
		// its own output always parses.
		v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'e', n-1, 64), 64)
	}
	return v
}
