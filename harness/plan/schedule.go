package plan

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
	Waves    []Wave `json:"waves"`
}

// Wave is one burst's place in its lifecycle.
type Wave struct {
	Number int  `json:"number"` // from 1 within the lifecycle
	Tier   int  `json:"tier"`   // clients, one request each
	Repeat int  `json:"repeat"` // from 1 within the tier; 0 for the warm-up
	Warmup bool `json:"warmup"` // recorded, and in no result
}
