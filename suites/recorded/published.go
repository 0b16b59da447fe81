package recorded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"assay/harness/record"
)

// Run is a published single-pair run: two lifecycles and their requests.
type Run struct {
	Title         string      `json:"title"`
	Model         string      `json:"model"`
	ModelRevision string      `json:"model_revision"`
	VLLMVersion   string      `json:"vllm_version"`
	GPU           string      `json:"gpu"`
	GPUMemoryMiB  int         `json:"gpu_memory_total_mib"`
	DriverVersion string      `json:"driver_version"`
	MaxTokens     int         `json:"max_tokens"`
	Lifecycles    []Lifecycle `json:"lifecycles"`
	Requests      []Request   `json:"requests"`
}

// Lifecycle is one server's, as published: wall-clock moments, and the
// durations in seconds that its author computed.
type Lifecycle struct {
	Mode                  string    `json:"mode"`
	HostInvocationStarted time.Time `json:"host_invocation_started_at"`
	ProcessStarted        time.Time `json:"process_started_at"`
	InitializationStarted time.Time `json:"initialization_started_at"`
	InitializationReady   time.Time `json:"initialization_ready_at"`
	Ended                 time.Time `json:"ended_at"`
	InitializationSeconds float64   `json:"initialization_seconds"`
	RequestPhaseSeconds   float64   `json:"request_phase_seconds"`
	HostLifecycleSeconds  float64   `json:"host_lifecycle_seconds"`
	PeakGPUMemoryMiB      int       `json:"peak_gpu_memory_mib"` // of samples: the true peak is no lower
	CompilationSeconds    *float64  `json:"compilation_seconds"`
	CompilationReason     string    `json:"compilation_seconds_reason"`
	CUDAGraphSeconds      *float64  `json:"cuda_graph_seconds"`
	CUDAGraphReason       string    `json:"cuda_graph_seconds_reason"`
	Config                struct {
		EnforceEager    bool   `json:"enforce_eager"`
		CompilationMode string `json:"compilation_mode"`
		CUDAGraphMode   string `json:"cuda_graph_mode"`
	} `json:"config"`
}

// Request is one attempt, as published. Its moments are a wall clock's to the
// microsecond; its latency and its time to first token were measured beside
// them.
type Request struct {
	Mode           string    `json:"mode"`
	Ordinal        int       `json:"ordinal"`
	ContextTier    string    `json:"context_tier"`
	Task           string    `json:"task"`
	InputTokens    int       `json:"input_token_count"`
	InputSHA256    string    `json:"input_token_ids_sha256"`
	Started        time.Time `json:"started_at"`
	Ended          time.Time `json:"ended_at"`
	LatencySeconds float64   `json:"latency_seconds"`
	TTFTSeconds    float64   `json:"ttft_seconds"`
	FinishReason   string    `json:"finish_reason"`
	OutputTokenIDs []int     `json:"output_token_ids"`
	OutputText     string    `json:"output_text"`
	Correct        bool      `json:"correct"`
}

// Latency is the published latency. Its clock counts whole nanoseconds; what
// the decimals have beyond them is the noise of a difference of floats.
func (q Request) Latency() time.Duration {
	return time.Duration(math.Round(float64(q.LatencySeconds * 1e9)))
}

// The arms of the published run.
const (
	Eager    = "eager"
	Compiled = "compiled"
)

const (
	// clocks is how far a latency may be from its own two moments, which
	// another clock gave.
	clocks = time.Millisecond
	// longest bounds a lifecycle: a difference of moments that are centuries
	// apart is cut short without a word, and would be a wrong figure.
	longest = 7 * 24 * time.Hour
)

// ParseRun reads a published run. A field that it does not know is refused, and
// so are records that are no pair of the same requests, or that contradict
// themselves: every fault at once.
func ParseRun(data []byte) (*Run, error) {
	var r Run
	if err := strict(data, &r); err != nil {
		return nil, fmt.Errorf("these are not the published records: %w", err)
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	return &r, nil
}

func (r *Run) validate() error {
	if len(r.Lifecycles) != 2 || r.Lifecycles[0].Mode != Eager || r.Lifecycles[1].Mode != Compiled {
		return errors.New("it needs one lifecycle of eager and then one of compiled")
	}
	var errs []error
	for i, q := range r.Requests {
		if q.Mode != Eager && q.Mode != Compiled {
			errs = append(errs, fmt.Errorf("request %d is of mode %q: write eager or compiled", i+1, q.Mode))
		}
	}
	eager, compiled := r.Of(Eager), r.Of(Compiled)
	if len(eager) == 0 || len(eager) != len(compiled) {
		errs = append(errs, fmt.Errorf("%d requests in eager and %d in compiled: it needs as many in both, and one at least", len(eager), len(compiled)))
	}
	for i := range min(len(eager), len(compiled)) {
		if eager[i].Ordinal != i+1 || compiled[i].Ordinal != i+1 {
			errs = append(errs, fmt.Errorf("ordinal %d is missing or there twice", i+1))
		}
		if eager[i].InputSHA256 != compiled[i].InputSHA256 || eager[i].InputTokens != compiled[i].InputTokens {
			errs = append(errs, fmt.Errorf("ordinal %d was not asked the same in both arms", i+1))
		}
	}
	for _, l := range r.Lifecycles {
		for _, err := range append(r.moments(l), components(l)...) {
			errs = append(errs, fmt.Errorf("%s: %w", l.Mode, err))
		}
		for _, q := range r.Of(l.Mode) {
			for _, err := range q.faults(r.MaxTokens) {
				errs = append(errs, fmt.Errorf("%s, ordinal %d: %w", l.Mode, q.Ordinal, err))
			}
		}
	}
	return errors.Join(errs...)
}

// moments says where a lifecycle's go backwards.
func (r *Run) moments(l Lifecycle) []error {
	var errs []error
	before, name := l.HostInvocationStarted, "the host's invocation"
	then := func(t time.Time, what string) {
		if t.Before(before) {
			errs = append(errs, fmt.Errorf("%s at %s comes before %s at %s", what, t.Format(time.RFC3339Nano), name, before.Format(time.RFC3339Nano)))
		}
		before, name = t, what
	}
	then(l.ProcessStarted, "the process's start")
	then(l.InitializationStarted, "the initialization's start")
	then(l.InitializationReady, "readiness")
	for _, q := range r.Of(l.Mode) {
		then(q.Started, fmt.Sprintf("request %d's start", q.Ordinal))
		then(q.Ended, fmt.Sprintf("request %d's end", q.Ordinal))
	}
	then(l.Ended, "the end")
	if d := l.Ended.Sub(l.HostInvocationStarted); d > longest {
		errs = append(errs, fmt.Errorf("it lasted %s: %s is the most", d, longest))
	}
	return errs
}

// components says which part of the initialization is null without a reason.
func components(l Lifecycle) []error {
	var errs []error
	if l.CompilationSeconds == nil && l.CompilationReason == "" {
		errs = append(errs, errors.New("compilation_seconds is null without a reason"))
	}
	if l.CUDAGraphSeconds == nil && l.CUDAGraphReason == "" {
		errs = append(errs, errors.New("cuda_graph_seconds is null without a reason"))
	}
	return errs
}

// faults says what in one request contradicts itself.
func (q Request) faults(maxTokens int) []error {
	var errs []error
	if apart := math.Abs(q.LatencySeconds - q.Ended.Sub(q.Started).Seconds()); apart > clocks.Seconds() {
		errs = append(errs, fmt.Errorf("its latency of %.6f s is %.6f s from what its moments say", q.LatencySeconds, apart))
	}
	if !(q.TTFTSeconds > 0 && q.TTFTSeconds <= q.LatencySeconds) {
		errs = append(errs, fmt.Errorf("its time to first token of %g s is not within its latency of %g s", q.TTFTSeconds, q.LatencySeconds))
	}
	if n := len(q.OutputTokenIDs); n < 1 || n > maxTokens {
		errs = append(errs, fmt.Errorf("it has %d output tokens: 1 to %d were possible", n, maxTokens))
	}
	if q.FinishReason == "" {
		errs = append(errs, errors.New("it has no finish reason: it may have been cut short"))
	}
	return errs
}

// Of is an arm's requests in the order of their ordinals.
func (r *Run) Of(mode string) []Request {
	out := []Request{}
	for _, q := range r.Requests {
		if q.Mode == mode {
			out = append(out, q)
		}
	}
	slices.SortStableFunc(out, func(a, b Request) int { return a.Ordinal - b.Ordinal })
	return out
}

// Lifecycle is an arm's.
func (r *Run) Lifecycle(mode string) Lifecycle {
	return r.Lifecycles[slices.IndexFunc(r.Lifecycles, func(l Lifecycle) bool { return l.Mode == mode })]
}

// Records are an arm's requests as the metric contract has them, their moments
// in ns from the initialization's start.
func (r *Run) Records(mode string) []record.Request {
	zero := r.Lifecycle(mode).InitializationStarted
	var out []record.Request
	for _, q := range r.Of(mode) {
		sent, ended := int64(q.Started.Sub(zero)), int64(q.Ended.Sub(zero))
		out = append(out, record.Request{
			Arm: mode, Ordinal: q.Ordinal, Outcome: record.OK,
			ScheduledAt: sent, SentAt: &sent, EndedAt: ended, OutputTokenIDs: q.OutputTokenIDs,
		})
	}
	return out
}

// Cost is what a run is said to have cost.
type Cost struct {
	Title           string            `json:"title"`
	Amount          float64           `json:"amount"`
	Currency        string            `json:"currency"`
	ListRatePerHour float64           `json:"list_rate_per_hour"`
	Source          string            `json:"source"`
	Boundary        string            `json:"boundary"` // what is paid for, from when to when
	Provenance      record.Provenance `json:"provenance"`
	Invoice         *string           `json:"invoice"` // null: none is attached
}

// ParseCost reads what is said of a cost. Nobody observes one: it is declared,
// or attested by an invoice.
func ParseCost(data []byte) (*Cost, error) {
	var c Cost
	if err := strict(data, &c); err != nil {
		return nil, fmt.Errorf("this is no declared cost: %w", err)
	}
	want := record.Declared
	if c.Invoice != nil {
		want = record.Attested
	}
	var errs []error
	if c.Provenance != want {
		errs = append(errs, fmt.Errorf("the cost is %q: a cost is declared, or attested with its invoice", c.Provenance))
	}
	if !(c.Amount >= 0 && c.ListRatePerHour > 0) {
		errs = append(errs, fmt.Errorf("an amount of %g at %g an hour: write 0 or more, at more than 0", c.Amount, c.ListRatePerHour))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &c, nil
}

// Seconds is how long the amount pays for at the list rate.
func (c Cost) Seconds() float64 { return c.Amount / c.ListRatePerHour * 3600 }

// Of is what a duration costs at the list rate.
func (c Cost) Of(d time.Duration) float64 { return c.ListRatePerHour * d.Hours() }

// Table is a published table of a concurrency run, whose records were not
// published.
type Table struct {
	Title    string `json:"title"`
	Repeats  int    `json:"repeats"`  // waves at a tier
	Requests int    `json:"requests"` // of both arms, as said
	Tiers    []Tier `json:"tiers"`
}

// Tier is a row of it.
type Tier struct {
	Clients int     `json:"clients"`
	SpeedUp float64 `json:"speed_up"`
	Naive   TierArm `json:"naive"`
	VLLM    TierArm `json:"vllm"`
}

// TierArm is an arm's part of a row.
type TierArm struct {
	Goodput struct { // tok/s, over the waves, to one digit after the point
		Median float64 `json:"median"`
		Min    float64 `json:"min"`
		Max    float64 `json:"max"`
	} `json:"goodput"`
	TTFT95    float64 `json:"ttft_p95_seconds"` // of those that succeeded
	Failed    int     `json:"failed"`
	Attempted int     `json:"attempted"`
}

// ParseTable reads a published table: every fault at once.
func ParseTable(data []byte) (*Table, error) {
	var t Table
	if err := strict(data, &t); err != nil {
		return nil, fmt.Errorf("this is not the published table: %w", err)
	}
	var errs []error
	for _, row := range t.Tiers {
		for i, a := range []TierArm{row.Naive, row.VLLM} {
			name := []string{"naive", "vllm"}[i]
			if a.Attempted < 1 || a.Attempted > mostAttempts || a.Failed < 0 || a.Failed > a.Attempted {
				errs = append(errs, fmt.Errorf("%d clients, %s: %d of %d failed: 1 to %d attempts, and no more failures than attempts, can be", row.Clients, name, a.Failed, a.Attempted, mostAttempts))
			}
			if !(a.Goodput.Min > halfDigit && a.Goodput.Min <= a.Goodput.Median && a.Goodput.Median <= a.Goodput.Max) {
				errs = append(errs, fmt.Errorf("%d clients, %s: goodput %g [%g–%g] is no median with its range", row.Clients, name, a.Goodput.Median, a.Goodput.Min, a.Goodput.Max))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &t, nil
}

const (
	// halfDigit is half of the last digit that the table prints of a goodput.
	halfDigit = 0.05
	// mostAttempts keeps the arithmetic of rates within an int.
	mostAttempts = 1_000_000
)

// Ratio is the speed-up from the printed medians, with the smallest and the
// largest that their rounding allows.
func (t Tier) Ratio() (low, ratio, high float64) {
	n, v := t.Naive.Goodput.Median, t.VLLM.Goodput.Median
	return (v - halfDigit) / (n + halfDigit), v / n, (v + halfDigit) / (n - halfDigit)
}

// FailedTenths is the failure rate in tenths of a percent, rounded half up:
// 562.5 is 563.
func (a TierArm) FailedTenths() int { return (2*1000*a.Failed + a.Attempted) / (2 * a.Attempted) }

// strict decodes one JSON value with no field that is unknown and nothing after
// it.
func strict(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("there is something after its end, at byte %d", dec.InputOffset())
	}
	return nil
}
