package record

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The schemas that records name; each is published under reports/schema.
const (
	RequestSchema     = "assay.request/v3"
	WaveSchema        = "assay.wave/v1"
	LifecycleSchema   = "assay.lifecycle/v1"
	EnvironmentSchema = "assay.environment/v1"
)

// Outcome is how an attempt ended.
type Outcome string

// The outcomes. There is exactly one attempt at a request, so each is final.
const (
	OK           Outcome = "ok"
	Timeout      Outcome = "timeout"       // the plan's request timeout passed
	ConnectError Outcome = "connect_error" // no connection, or it broke before an answer
	HTTPError    Outcome = "http_error"    // an HTTP status other than 200
	StreamError  Outcome = "stream_error"  // the stream carried or met an error
	Truncated    Outcome = "truncated"     // ended without [DONE] and without a finish reason
	Cancelled    Outcome = "cancelled"     // this side gave up: interrupted, or never sent
)

// Outcomes lists them all, ok first.
var Outcomes = []Outcome{OK, Timeout, ConnectError, HTTPError, StreamError, Truncated, Cancelled}

// Provenance is where a value comes from.
type Provenance string

// The provenances.
const (
	ClientObserved Provenance = "client_observed"
	KernelObserved Provenance = "kernel_observed"
	EngineReported Provenance = "engine_reported"
	DeviceReported Provenance = "device_reported"
	Derived        Provenance = "derived"
	Declared       Provenance = "declared"
	Attested       Provenance = "attested"
	Modelled       Provenance = "modelled"
	Emulated       Provenance = "emulated"
)

// Sources of a token count, best first.
const (
	SourceTokenIDs  = "token_ids" // the engine returned the ids
	SourceUsage     = "usage"     // the engine counted
	SourceTokenizer = "tokenizer" // returned text tokenised again
)

// Event is one event of a stream that carried a token: its arrival as a
// bracket, and how many tokens came with it. In JSON: [earliest, arrival,
// tokens], the last null where the engine does not say.
type Event struct {
	Earliest int64 // ns on the lifecycle's clock: it can't have arrived before
	Arrival  int64 // ns: it had arrived by then
	Tokens   *int
}

// MarshalJSON writes the triple.
func (e Event) MarshalJSON() ([]byte, error) {
	if e.Tokens == nil {
		return fmt.Appendf(nil, "[%d,%d,null]", e.Earliest, e.Arrival), nil
	}
	return fmt.Appendf(nil, "[%d,%d,%d]", e.Earliest, e.Arrival, *e.Tokens), nil
}

// UnmarshalJSON reads the triple and refuses any other length.
func (e *Event) UnmarshalJSON(data []byte) error {
	var triple []*int64
	if err := json.Unmarshal(data, &triple); err != nil {
		return err
	}
	if len(triple) != 3 || triple[0] == nil || triple[1] == nil {
		return fmt.Errorf("an event is [earliest ns, arrival ns, tokens or null], not %s", data)
	}
	*e = Event{Earliest: *triple[0], Arrival: *triple[1]}
	if triple[2] != nil {
		n := int(*triple[2])
		e.Tokens = &n
	}
	return nil
}

// TimeSource says which clock an attempt's arrivals were read on.
type TimeSource struct {
	Provenance Provenance `json:"provenance"`       // kernel_observed or client_observed
	BoundNS    int64      `json:"bound_ns"`         // how far a converted time can be off
	Reason     string     `json:"reason,omitempty"` // why not the kernel's, where it is not
}

// ToolCall is a function that an answer asks to be called. The call's id is not
// kept: servers draw it at random.
type ToolCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // as the answer has them, JSON or not
}

// Request is one attempt: a line of requests.jsonl. Times are ns on its
// lifecycle's clock. A null has its reason in Nulls, under its JSON name.
type Request struct {
	Schema         string `json:"schema"`
	PlanSHA256     string `json:"plan_sha256"`
	ScheduleSHA256 string `json:"schedule_sha256"`
	PreviousSHA256 string `json:"previous_sha256"` // of the line before, hex; 64 zeros on the first

	Lifecycle int    `json:"lifecycle"`
	Pair      int    `json:"pair"`
	Position  int    `json:"position"`
	Arm       string `json:"arm"`
	Lane      string `json:"lane"`
	Wave      int    `json:"wave"` // number within the lifecycle
	Tier      int    `json:"tier"`
	// Rate is an open loop's, in requests a second of the plan's time; 0 where
	// there is none, or one that changes.
	Rate        float64 `json:"rate_rps,omitempty"`
	Repeat      int     `json:"repeat"`
	Ordinal     int     `json:"ordinal"`
	PromptID    string  `json:"prompt_id"`
	InputSHA256 string  `json:"input_sha256"` // of the request's body as sent
	Warmup      bool    `json:"warmup"`

	Outcome      Outcome `json:"outcome"`
	Error        *string `json:"error"`
	HTTPStatus   *int    `json:"http_status"`
	FinishReason *string `json:"finish_reason"`

	ScheduledAt  int64  `json:"scheduled_at_ns"`
	SentAt       *int64 `json:"sent_at_ns"`
	FirstTokenAt *int64 `json:"first_token_at_ns"`
	LastTokenAt  *int64 `json:"last_token_at_ns"`
	EndedAt      int64  `json:"ended_at_ns"`
	Dial         *int64 `json:"dial_ns"`
	TLS          *int64 `json:"tls_ns"`

	Clock     TimeSource `json:"clock"`
	Events    []Event    `json:"events"`
	ClientLag []int64    `json:"client_lag_ns"`    // one for each event: the reader was that late, at most
	Coalesced int        `json:"coalesced_events"` // events whose read brought others too

	InputTokens        *int    `json:"input_tokens"`
	InputTokensSource  *string `json:"input_tokens_source"`
	OutputTokens       *int    `json:"output_tokens"`
	OutputTokensSource *string `json:"output_tokens_source"`
	UsageOutputTokens  *int    `json:"usage_output_tokens"` // the engine's own count, kept beside a better one
	OutputTokenIDs     []int   `json:"output_token_ids"`
	OutputText         string  `json:"output_text"`
	// ReasoningText and ToolCalls are the rest of the answer, where there is
	// any; older records have them in OutputText.
	ReasoningText string     `json:"reasoning_text,omitempty"`
	ToolCalls     []ToolCall `json:"tool_calls,omitempty"`
	ReceivedBytes int64      `json:"received_bytes"`
	AfterDone     int        `json:"events_after_done"`
	Correct       *bool      `json:"correct"`

	Nulls map[string]string `json:"nulls"`

	// Condensed stands for Events, ClientLag and OutputTokenIDs, which are nil
	// then, where a run is too large to hold them. It is in no file.
	Condensed *Condensed `json:"-"`
}

// The beginnings of the error of an attempt that an open loop gave up.
const (
	DroppedError = "dropped: "
	DrainedError = "drain: "
)

// Dropped says whether an attempt was never sent, since the limit on requests in
// flight was reached at its moment. Its outcome is cancelled.
func (r Request) Dropped() bool { return r.givenUp(DroppedError) }

// Drained says whether an attempt was cancelled at an open loop's drain limit.
func (r Request) Drained() bool { return r.givenUp(DrainedError) }

func (r Request) givenUp(why string) bool {
	return r.Outcome == Cancelled && r.Error != nil && strings.HasPrefix(*r.Error, why)
}

// SaysTheSame is whether two answers are equal in all that they say: text,
// reasoning and tool calls.
func (r Request) SaysTheSame(other Request) bool {
	return r.OutputText == other.OutputText && r.ReasoningText == other.ReasoningText && slices.Equal(r.ToolCalls, other.ToolCalls)
}

// Settle is how the server was found idle before a wave.
type Settle struct {
	Rule    string `json:"rule"`    // "idle" or "none"
	Method  string `json:"method"`  // "metrics" (the engine's own gauges), "probe", or "none"
	From    int64  `json:"from_ns"` // when waiting began
	Until   int64  `json:"until_ns"`
	Idle    bool   `json:"idle"`    // seen idle
	Running *int   `json:"running"` // the gauges at the last look
	Waiting *int   `json:"waiting"`
	// Abandoned counts the attempts of the wave before that ended on this side
	// while the server may have been at them still (timeout, cancelled).
	Abandoned int `json:"abandoned"`
	// Generated is how many tokens the server's own counter grew by between
	// the first look and the last: what it did for nobody. It shows whether
	// the declared on_disconnect is true. Null where there is no counter.
	Generated *int   `json:"generated_tokens"`
	Detail    string `json:"detail,omitempty"`
}

// ClientLoad is what the client itself did while a wave ran.
type ClientLoad struct {
	CPU        int64 `json:"cpu_ns"`     // user and system time of this process
	GCPauses   int64 `json:"gc_pauses"`  // stop-the-world pauses
	GCMax      int64 `json:"gc_max_ns"`  // the longest of them, ns
	Goroutines int   `json:"goroutines"` // at release
	// Busiest is the largest share of the processors it may use (GOMAXPROCS)
	// that this process used over a second of the wave; null in a shorter one.
	// Servers that are emulated are part of this process.
	Busiest *float64 `json:"busiest_cpu_share,omitempty"`
	// Held is what was held at release, with a wave's connections open; null
	// in a sequence, and where the system does not say.
	Held *Held `json:"held,omitempty"`
}

// Held is what connections take of this process and of this machine.
type Held struct {
	Files      int    `json:"open_files"`
	FilesLimit uint64 `json:"open_files_limit"`
	Sockets    int    `json:"tcp_sockets"` // in use or waiting for late packets, of the whole network namespace
	Ports      int    `json:"local_ports"` // that the system gives out to connections
}

// Wave is one burst, one sequence, or one open loop: a line of waves.jsonl.
type Wave struct {
	Schema         string `json:"schema"`
	PlanSHA256     string `json:"plan_sha256"`
	ScheduleSHA256 string `json:"schedule_sha256"`
	PreviousSHA256 string `json:"previous_sha256"`

	Lifecycle int    `json:"lifecycle"`
	Arm       string `json:"arm"`
	Number    int    `json:"number"`   // within the lifecycle's schedule
	Executed  int    `json:"executed"` // from 1: place among the waves that this lifecycle really ran
	Tier      int    `json:"tier"`
	Repeat    int    `json:"repeat"`
	Warmup    bool   `json:"warmup"`
	Lane      string `json:"lane,omitempty"`     // of a crossover
	Requests  int    `json:"requests,omitempty"` // of a sequence, one after the other; 0 is a burst
	// Of an open loop: its rate in requests a second of the plan's time (0: one
	// that changes), the seed of its arrivals, their number, the SHA-256 of their
	// offsets in the plan's time, and which probe of a search it is, from 1.
	Rate           float64 `json:"rate_rps,omitempty"`
	Seed           uint64  `json:"seed,omitempty"`
	Arrivals       int     `json:"arrivals,omitempty"`
	ArrivalsSHA256 string  `json:"arrivals_sha256,omitempty"`
	Probe          int     `json:"probe,omitempty"`

	// Status: "ran", "interrupted" (the run was stopped inside it), "not_run"
	// (its lifecycle had no server for it, or the run was stopped before it)
	// or "not_selected".
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`

	Settle        *Settle           `json:"settle"`
	CarryOver     *bool             `json:"carry_over"` // released onto a backlog; null where that can't be seen
	ReleasedAt    *int64            `json:"released_at_ns"`
	ReleaseLag    *int64            `json:"release_lag_ns"` // first to last sent_at
	Attempts      int               `json:"attempts"`
	ClockReadings *ClockReadings    `json:"clock_readings"`
	Client        *ClientLoad       `json:"client"`
	Nulls         map[string]string `json:"nulls"`
}

// Scheduled is how many attempts the schedule has for the wave.
func (w Wave) Scheduled() int { return max(w.Tier, w.Requests, w.Arrivals) }

// Open says whether the wave is an open loop.
func (w Wave) Open() bool { return w.ArrivalsSHA256 != "" }

// ClockReadings are the bracketed readings around a wave.
type ClockReadings struct {
	Before  ClockReading `json:"before"`
	After   ClockReading `json:"after"`
	Stepped bool         `json:"stepped"` // the wall clock was stepped inside the wave
}

// ClockReading is one reading of both clocks.
type ClockReading struct {
	Before int64 `json:"before_ns"`
	Wall   int64 `json:"wall_ns"`
	After  int64 `json:"after_ns"`
}

// Moment is one phase of a lifecycle reached.
type Moment struct {
	Phase      string     `json:"phase"`
	At         *int64     `json:"at_ns"`
	Provenance Provenance `json:"provenance,omitempty"`
	Reason     string     `json:"reason,omitempty"` // why At is null
}

// Fact is a value with its provenance, or null with the reason.
type Fact struct {
	Value      any        `json:"value"`
	Provenance Provenance `json:"provenance,omitempty"`
	Reason     string     `json:"reason,omitempty"`
}

// ClientProof is what the client did against a server that computes nothing.
type ClientProof struct {
	Streams int `json:"streams"` // at once
	Events  int `json:"events"`  // with a token
	// The error of an arrival is the time at which the client says that an event
	// came, minus the moment just before the server wrote it: the way through the
	// kernel is in it, and so is a server that was held up between the two.
	// Null where this machine's wall clock, on which the server writes, was
	// stepped meanwhile: then the two can't be compared.
	ArrivalErrorP50 *int64 `json:"arrival_error_p50_ns"`
	ArrivalErrorP99 *int64 `json:"arrival_error_p99_ns"`
	// ClientLagP99 is that of the client's reads, see KnownLag of package metric.
	ClientLagP99 int64 `json:"client_lag_p99_ns"`
	// Busiest is the largest share of the processors that this process may use
	// that it used over a second: what is left is spare. The server is part of
	// the process, so that the client's own share is smaller.
	Busiest *float64 `json:"busiest_cpu_share"`
	// Clock says whose times these are, the kernel's or the client's.
	Clock Provenance `json:"clock"`
}

// Exit is how a server ended.
type Exit struct {
	Code      *int     `json:"code"`
	OOMKilled bool     `json:"oom_killed"`
	Signal    string   `json:"signal,omitempty"`
	Asked     bool     `json:"asked"`
	Reason    string   `json:"reason,omitempty"`
	LastLines []string `json:"last_lines,omitempty"` // only where it was not asked for
}

// Lifecycle is one server from invocation to removal: a line of
// lifecycles.jsonl, written when it has ended.
type Lifecycle struct {
	Schema         string `json:"schema"`
	PlanSHA256     string `json:"plan_sha256"`
	ScheduleSHA256 string `json:"schedule_sha256"`
	PreviousSHA256 string `json:"previous_sha256"`

	Number   int    `json:"number"`   // in the schedule
	Executed int    `json:"executed"` // from 1: place among the lifecycles that really ran; 0: did not run
	Pair     int    `json:"pair"`
	Position int    `json:"position"`
	Arm      string `json:"arm"`
	Lane     string `json:"lane,omitempty"` // of a crossover
	Engine   string `json:"engine"`         // container, process, endpoint, emulated

	// Status: "ran", "failed" (never ready, or died), "interrupted", "not_run"
	// (the run was stopped before it) or "not_selected".
	Status string `json:"status"`
	Error  string `json:"error,omitempty"`

	Anchor    string          `json:"anchor"` // wall-clock time at which the clock read zero, RFC 3339, UTC
	TimeScale float64         `json:"time_scale"`
	Moments   []Moment        `json:"moments"`
	Identity  map[string]Fact `json:"identity"`
	Caches    map[string]Fact `json:"caches"`
	Exit      *Exit           `json:"exit"`
	Log       *Log            `json:"log"`

	RequestsHead string `json:"requests_head"` // SHA-256 of the last line of requests.jsonl at that time
	WavesHead    string `json:"waves_head"`    // likewise of waves.jsonl
	// Likewise of telemetry.jsonl and engine-metrics.jsonl, where there are any.
	TelemetryHead     string `json:"telemetry_head,omitempty"`
	EngineMetricsHead string `json:"engine_metrics_head,omitempty"`
	Requests          int    `json:"requests"` // lines of this lifecycle in requests.jsonl
	Waves             int    `json:"waves"`    // and in waves.jsonl

	// EntriesSHA256 is that of entries.json, where the plan has a source.
	EntriesSHA256 string `json:"entries_sha256,omitempty"`

	Nulls map[string]string `json:"nulls"`
}

// Log is a server's output in the bundle.
type Log struct {
	File     string `json:"file"` // under logs/
	Lines    int    `json:"lines"`
	Redacted int    `json:"redacted"` // lines in which a secret or an identity was blacked out
	SHA256   string `json:"sha256"`   // of the original, before redaction
	// KeptSHA256 is that of the file in the bundle, redacted and marked: it
	// binds the log to the chain. Bundles from before it was kept lack it.
	KeptSHA256 string `json:"kept_sha256,omitempty"`
	AfterStop  int    `json:"after_stop"` // lines after stop was requested, marked in the file
}

// Environment is where a run ran: environment.json.
type Environment struct {
	Schema     string `json:"schema"`
	PlanSHA256 string `json:"plan_sha256"`
	Run        string `json:"run"`
	StartedAt  string `json:"started_at"` // RFC 3339, UTC
	// Selection is the label filter that picked a part of the plan, or empty.
	Selection     string            `json:"selection"`
	Substitutions map[string]string `json:"substitutions"` // what each ${VAR} stood for, redacted
	Facts         map[string]Fact   `json:"facts"`         // kernel, cpu, memory, go, revision, clock source, …
	// Invocations are those that went on with the run after it was interrupted,
	// in their order; none in most runs.
	Invocations []Invocation `json:"invocations,omitempty"`
}

// Invocation is a later start of the same run, which went on after the last
// complete lifecycle.
type Invocation struct {
	StartedAt string `json:"started_at"` // RFC 3339, UTC
	Cause     string `json:"cause"`      // one that the plan lists, as the operator declared it
	After     int    `json:"after"`      // number of the last lifecycle that had a record by then
	// Abandoned is the pair that the interruption cut, Added the one that was
	// added for it; 0: none.
	Abandoned int             `json:"abandoned_pair"`
	Added     int             `json:"added_pair"`
	Facts     map[string]Fact `json:"facts"`
}

// Run is all the evidence of one run, as read back from a bundle or as kept
// while it runs.
type Run struct {
	Environment Environment
	Lifecycles  []Lifecycle
	Waves       []Wave
	Requests    []Request
	// What was sampled beside the load; empty where the plan samples nothing.
	Telemetry     []Telemetry
	EngineMetrics []EngineMetrics
	// Entries is what a plan's source asks, with the SHA-256 of its file; nil
	// where the plan has none, and before it is written.
	Entries       *Entries
	EntriesSHA256 string

	places *places // of each wave's requests; nil: see Indexed
}

// Genesis is the previous_sha256 of a file's first line.
const Genesis = "0000000000000000000000000000000000000000000000000000000000000000"
