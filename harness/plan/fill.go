package plan

import "time"

// FaultKinds are the misbehaviours that an emulated server knows; package
// emulated has what each does.
var FaultKinds = []string{
	FaultRefuse, FaultStallBefore, FaultStallAfter, FaultCut, FaultReset, FaultErrorEvent, FaultMalformed,
	FaultSlowHeaders, FaultWrongUsage, FaultExit, FaultHTTPStatus, FaultNoDone, FaultOtherText, FaultIgnoreDisconnect,
	FaultMissingDone, FaultNoFinish, FaultRepeatToken, FaultWrongAnswer, FaultShortAnswer,
}

// The faults, by the names that plans use.
const (
	FaultRefuse      = "refuse"             // close the connection without an answer
	FaultStallBefore = "stall_before_first" // no token comes
	FaultStallAfter  = "stall_after"        // after `after` tokens nothing more comes
	FaultCut         = "cut"                // end the response in its middle after `after` tokens
	FaultReset       = "reset"              // reset the connection after `after` tokens
	FaultErrorEvent  = "error_event"        // an error under HTTP 200 after `after` tokens
	FaultMalformed   = "malformed_event"    // an event that is no JSON after `after` tokens
	FaultSlowHeaders = "slow_headers"       // the answer's header comes `for` late
	FaultWrongUsage  = "wrong_usage"        // usage counts more tokens than were sent
	FaultExit        = "exit"               // the server dies with the request after `after` requests
	FaultHTTPStatus  = "http_status"        // answer with `status`
	FaultNoDone      = "no_done"            // neither a finish reason nor [DONE] at the end
	FaultOtherText   = "other_text"         // other tokens than the prompt's
	// FaultIgnoreDisconnect goes on with requests whose client has left, although
	// the arm is declared to cancel them.
	FaultIgnoreDisconnect = "ignore_disconnect"
	FaultMissingDone      = "missing_done"     // a finish reason, and no [DONE]
	FaultNoFinish         = "no_finish_reason" // [DONE], and no finish reason
	FaultRepeatToken      = "repeat_token"     // one token twice
	FaultWrongAnswer      = "wrong_answer"     // without the right answer, where the server knows it
	FaultShortAnswer      = "short_answer"     // one token fewer than were forced
)

// fill writes the defaults into a plan, so that a frozen one leaves nothing to
// be decided.
func (p *Plan) fill() {
	set(&p.TimeScale, 1)
	set(&p.Sampling.TopP, 1)
	set(&p.Sampling.RepetitionPenalty, 1)
	if p.Pairing != nil {
		p.fillPairing()
	} else {
		if p.Arrivals != nil {
			p.fillArrivals()
		}
		set(&p.Sweep.Lifecycles, 1)
		if p.Workload.API == Chat {
			p.Workload.API = "" // the hashes of plans from before the key stay what they are
		}
	}
	if !p.Sweep.Settle.None && !p.Sweep.Settle.written {
		p.Sweep.Settle.Idle = Duration(5 * time.Minute)
	}
	p.Sweep.Settle.written = false
	t := &p.Timeouts
	set(&t.Image, Duration(30*time.Minute))
	set(&t.Poll, Duration(50*time.Millisecond))
	set(&t.Connect, Duration(10*time.Second))
	g := &p.Gates
	set(&g.ClientLag, Duration(20*time.Millisecond))
	if !g.Coalesced.written {
		g.Coalesced = Percent{Value: 5}
	}
	g.Coalesced.written = false
	set(&g.ReleaseLag, Duration(time.Second))
	set(&g.CarryOver, "invalid")
	set(&g.Correctness, "none")
	set(&g.Identity, "report")
	if t := p.Telemetry; t != nil {
		if t.GPU > 0 {
			set(&g.Watch.Throttled, "report")
			set(&g.Watch.SharedGPU, "invalid")
		}
		if g.Watch.EngineTokens != nil {
			g.Watch.EngineTokens.written = false
		}
	}
	for i := range p.Arms {
		p.Arms[i].fill()
	}
}

// fillPairing writes a crossover plan's own defaults. A sequence begins on a
// fresh server, so that there is nothing to settle.
func (p *Plan) fillPairing() {
	c := p.Pairing
	p.Sweep.Settle = Settle{None: true}
	if p.Sampling.Temperature == nil {
		p.Sampling.Temperature = new(float64)
	}
	set(&c.Caches.Compile, "fresh")
	set(&c.Caches.Prefix, "off")
	set(&c.Caches.Page, "unknown")
	set(&c.Caches.Image, "present")
	if len(c.Blocks) == 0 {
		c.Blocks = []string{"ABBA", "BAAB"}
	}
	if !c.Inference.Level.written {
		c.Inference.Level = Percent{Value: 95}
	}
	set(&c.Inference.Resamples, 20_000)
	c.Inference.Level.written, c.Inference.Margin.written = false, false
	set(&p.Gates.Correctness, "report")
}

// fillArrivals writes an arrival plan's own defaults. A drain of a request's
// timeout cancels nothing that would not have timed out.
func (p *Plan) fillArrivals() {
	a := p.Arrivals
	set(&a.Order, Shuffled)
	set(&a.Drain, p.Timeouts.Request)
	set(&a.DialAhead, Duration(50*time.Millisecond))
	if a.Process == "gamma" {
		set(&a.Burstiness, 1)
	}
	if a.Process == "trace" {
		set(&a.Scale, 1)
	}
	if a.InFlight > 0 {
		set(&a.Beyond, Hold)
	}
	if p.Gates.ScheduleDelay == nil {
		p.Gates.ScheduleDelay = new(Duration)
	}
	set(p.Gates.ScheduleDelay, Duration(20*time.Millisecond))
	if s := p.Search; s != nil {
		if !s.Within.written {
			s.Within = Percent{Value: 5}
		}
		if !s.Confidence.written {
			s.Confidence = Percent{Value: 90}
		}
		s.Within.written, s.Confidence.written = false, false
		if s.SLO.FailureRate != nil {
			s.SLO.FailureRate.written = false
		}
		set(&s.Tries, 3)
	}
}

func (a *Arm) fill() {
	e := &a.Engine
	set(&e.Health, "/health")
	if e.Endpoint != nil {
		set(&a.OnDisconnect, Unknown)
	}
	if c := e.Container; c != nil {
		set(&c.Port, 8000)
		if !c.GPUs.None() {
			set(&c.GPUAccess, "auto")
		}
	}
	reports := e.Container != nil || e.Emulated != nil
	if e.Metrics == nil {
		path := ""
		if reports {
			path = "/metrics"
		}
		e.Metrics = &path
	}
	if a.TokenIDs == nil {
		a.TokenIDs = &reports
	}
}

func set[T comparable](to *T, value T) {
	var zero T
	if *to == zero {
		*to = value
	}
}
