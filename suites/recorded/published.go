package recorded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"assay/harness/crossing"
	"assay/harness/metric"
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
	PeakGPUMemoryMiB      int       `json:"peak_gpu_memory_mib"`
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

// Request is one attempt, as published.
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

// The arms of the published run.
const (
	Eager    = "eager"
	Compiled = "compiled"
)

// Load reads a published run. A field that it does not know is refused, and so
// is a run that is no pair of the same requests: each fault is told.
func Load(path string) (*Run, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r Run
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return nil, fmt.Errorf("%s is not the published records: %w", path, err)
	}
	var errs []error
	if len(r.Lifecycles) != 2 || r.Lifecycles[0].Mode != Eager || r.Lifecycles[1].Mode != Compiled {
		errs = append(errs, errors.New("it needs a lifecycle of eager and then one of compiled"))
	}
	eager, compiled := r.Of(Eager), r.Of(Compiled)
	if len(eager) != len(compiled) {
		errs = append(errs, fmt.Errorf("%d requests in eager and %d in compiled", len(eager), len(compiled)))
	}
	for i := range min(len(eager), len(compiled)) {
		if eager[i].Ordinal != i+1 || compiled[i].Ordinal != i+1 || eager[i].InputSHA256 != compiled[i].InputSHA256 {
			errs = append(errs, fmt.Errorf("ordinal %d is missing, or was not asked the same in both", i+1))
		}
	}
	return &r, errors.Join(errs...)
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

// Scopes are an arm's durations. They answer different questions, and none is
// subtracted from another but to say how much of it the other leaves out.
type Scopes struct {
	Initialization time.Duration // initialization started → ready
	ReadyToEnd     time.Duration // ready → the end of the process, what the publication calls its request phase
	RequestPhase   time.Duration // first request sent → last terminal moment
	InvokedToEnd   time.Duration // the host's invocation → the end of the process, not its removal
}

// Scopes are computed from the published moments.
func (r *Run) Scopes(mode string) Scopes {
	l, q := r.Lifecycle(mode), r.Of(mode)
	return Scopes{
		Initialization: l.InitializationReady.Sub(l.InitializationStarted),
		ReadyToEnd:     l.Ended.Sub(l.InitializationReady),
		RequestPhase:   q[len(q)-1].Ended.Sub(q[0].Started),
		InvokedToEnd:   l.Ended.Sub(l.HostInvocationStarted),
	}
}

// LatencySum and TTFTSum are an arm's, of the durations that its author
// measured, in seconds.
func (r *Run) LatencySum(mode string) float64 {
	return r.sum(mode, func(q Request) float64 { return q.LatencySeconds })
}

// TTFTSum is the sum of an arm's times to first token, in seconds.
func (r *Run) TTFTSum(mode string) float64 {
	return r.sum(mode, func(q Request) float64 { return q.TTFTSeconds })
}

func (r *Run) sum(mode string, of func(Request) float64) float64 {
	total := 0.0
	for _, q := range r.Of(mode) {
		total += of(q)
	}
	return total
}

// ByLatencies is the pair with each request beginning when the last has ended,
// as a sum of latencies has it: what lies between two requests is not in it.
func (r *Run) ByLatencies() crossing.Pair {
	return r.pair(func(mode string) []int64 {
		at := float64(r.Scopes(mode).Initialization)
		var out []int64
		for _, q := range r.Of(mode) {
			at += q.LatencySeconds * 1e9
			out = append(out, int64(at))
		}
		return out
	})
}

// ByMoments is the pair by its published moments, everything between two
// requests included: the definition of D(n).
func (r *Run) ByMoments() crossing.Pair {
	return r.pair(func(mode string) []int64 {
		var out []int64
		for _, q := range r.Of(mode) {
			out = append(out, int64(q.Ended.Sub(r.Lifecycle(mode).InitializationStarted)))
		}
		return out
	})
}

func (r *Run) pair(terminals func(mode string) []int64) crossing.Pair {
	side := func(mode string) crossing.Side {
		return crossing.Side{Initialization: int64(r.Scopes(mode).Initialization), Terminals: terminals(mode)}
	}
	return crossing.Pair{Number: 1, Baseline: side(Eager), Candidate: side(Compiled)}
}

// Outside is the time of a sequence that no latency counts, in seconds: from
// readiness to the first request, and between two.
func (r *Run) Outside(mode string) float64 {
	q := r.Of(mode)
	return q[len(q)-1].Ended.Sub(r.Lifecycle(mode).InitializationReady).Seconds() - r.LatencySum(mode)
}

// Divergent are the ordinals at which the arms' token arrays differ.
func (r *Run) Divergent() []int {
	eager, compiled := r.Of(Eager), r.Of(Compiled)
	var out []int
	for i := range eager {
		if _, differ := metric.FirstDivergence(eager[i].OutputTokenIDs, compiled[i].OutputTokenIDs); differ {
			out = append(out, i+1)
		}
	}
	return out
}

// Correct counts an arm's right answers.
func (r *Run) Correct(mode string) int {
	n := 0
	for _, q := range r.Of(mode) {
		if q.Correct {
			n++
		}
	}
	return n
}

// OutputTokens counts an arm's output tokens, by their ids.
func (r *Run) OutputTokens(mode string) int {
	n := 0
	for _, q := range r.Of(mode) {
		n += len(q.OutputTokenIDs)
	}
	return n
}

// InputTokens counts an arm's input tokens.
func (r *Run) InputTokens(mode string) int {
	n := 0
	for _, q := range r.Of(mode) {
		n += q.InputTokens
	}
	return n
}
