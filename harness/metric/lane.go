package metric

import (
	"assay/harness/crossing"
	"assay/harness/plan"
)

// Lane is one lane's numbers in a crossover.
type Lane struct {
	Lane     plan.Lane `json:"lane"`
	Status   string    `json:"status"` // "complete", "partial", "interrupted" or "not_selected"
	Requests int       `json:"requests"`
	Dwell    int       `json:"dwell"`
	// Scheduled are the numbers of the lane's pairs, those that were added
	// after an interruption too.
	Scheduled []int   `json:"scheduled"`
	Baseline  LaneArm `json:"baseline"`
	Candidate LaneArm `json:"candidate"`
	// Every is over each pair that has two whole sequences, failed attempts
	// counted as they ended, whatever the plan's failure rule is.
	Every Analysis `json:"every_pair"`
	// Kept is over the pairs that the plan's failure rule keeps.
	Kept Analysis `json:"kept"`
	// Eligible is, by claim, over the pairs of Kept that pass the claim's gate.
	Eligible map[plan.Claim]Analysis `json:"eligible"`
	Identity Identity                `json:"identity"`
	Exact    *ExactCount             `json:"exact_count"` // of the fixed lane, else null
	// Success and Correctness are the pairs' rates, held against the plan's
	// margin.
	Success     crossing.NonInferiority  `json:"success"`
	Correctness *crossing.NonInferiority `json:"correctness"` // null where nothing was evaluated
}

// Analysis is what a set of pairs shows, or nothing with the reason.
type Analysis struct {
	Pairs  []int              `json:"pairs"`
	Out    []Exclusion        `json:"out"` // the scheduled pairs that are not in it, each with why
	Result *crossing.Analysis `json:"result"`
	Reason string             `json:"reason,omitempty"`
}

// Exclusion is a pair that is not in an analysis.
type Exclusion struct {
	Pair   int    `json:"pair"`
	Reason string `json:"reason"`
}

// LaneArm is one arm's numbers in a lane.
type LaneArm struct {
	Arm        string    `json:"arm"`
	Role       plan.Role `json:"role"`
	Lifecycles int       `json:"lifecycles"` // that served the lane
	Counts     Counts    `json:"counts"`
	Evaluated  int       `json:"evaluated"`
	Correct    int       `json:"correct"`
	// Sums over ok attempts; null if any ok attempt's count is.
	InputTokens  Value `json:"input_tokens"`
	OutputTokens Value `json:"output_tokens"`
	// Over ok attempts, pooled over the lane's lifecycles.
	TTFT50    Value `json:"ttft_p50"`
	TTFT95    Value `json:"ttft_p95"`
	Latency50 Value `json:"latency_p50"`
	Latency95 Value `json:"latency_p95"`
	TPOT50    Value `json:"tpot_p50"`
	// Over lifecycles. They answer different questions and are never added or
	// subtracted across kinds.
	Initialization Spread `json:"initialization"`
	RequestPhase   Spread `json:"request_phase"`
	LatencySum     Spread `json:"latency_sum"`
	Host           Spread `json:"host"`
}

// Identity is how the arms' outputs compare, ordinal by ordinal within each
// pair, where both completed it.
type Identity struct {
	Compared bool           `json:"compared"`
	Reason   string         `json:"reason,omitempty"`
	Equal    int            `json:"equal"`
	Of       int            `json:"of"`
	Pairs    []PairIdentity `json:"pairs"`
}

// PairIdentity is one pair's. Whole says that every scheduled ordinal was equal.
type PairIdentity struct {
	Pair  int         `json:"pair"`
	Equal int         `json:"equal"`
	Of    int         `json:"of"`
	Whole bool        `json:"whole"`
	First *Divergence `json:"first"` // null where nothing differs
}

// Divergence is the first place at which two arms' outputs to an ordinal
// differ. An id is null where the output had ended.
type Divergence struct {
	Ordinal   int  `json:"ordinal"`
	Position  int  `json:"position"` // of the token, from 1
	Baseline  *int `json:"baseline_id"`
	Candidate *int `json:"candidate_id"`
}

// ExactCount is how many ok attempts of the fixed lane had exactly the declared
// number of tokens, counted from token ids.
type ExactCount struct {
	Tokens int `json:"tokens"`
	Exact  int `json:"exact"`
	Of     int `json:"of"`
}

// Cost is a list-rate lower bound of what the lifecycles cost: their host
// durations at the declared rate. What a provider billed is null unless an
// invoice says it, and none can be attached yet.
type Cost struct {
	ListRateLowerBound Value  `json:"list_rate_lower_bound"`
	Currency           string `json:"currency"`
	Source             string `json:"source"`
	Boundary           string `json:"boundary"`
	Spend              Value  `json:"provider_spend"`
}
