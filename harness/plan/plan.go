package plan

// Schema is the value of a plan's schema key.
const Schema = "assay.plan/v1"

// Experiment names the kind of comparison that a plan declares.
type Experiment string

// The experiments.
const (
	Concurrency Experiment = "concurrency"
	Crossover   Experiment = "crossover"
	Arrival     Experiment = "arrival"
)

// Role is an arm's side of the comparison.
type Role string

// One arm is the baseline, one the candidate.
const (
	Baseline  Role = "baseline"
	Candidate Role = "candidate"
)

// Lane says how a request's length is decided.
type Lane string

// The lanes: Fixed forces an exact token count, Natural lets the model stop.
const (
	Fixed   Lane = "fixed"
	Natural Lane = "natural"
)

// API is the interface through which a concurrency plan's servers are asked.
type API string

// Chat completions put a prompt into the model's chat template; plain
// completions give it to the model as it is. A plan that says chat is the same
// as one that says nothing, and is frozen without the key.
const (
	Chat        API = "chat"
	Completions API = "completions"
)

// OnDisconnect says what a server does with a request whose client left.
type OnDisconnect string

// A server goes on with an abandoned request, or stops it. Unknown is for an
// endpoint about which nobody can say.
const (
	Finish  OnDisconnect = "finish"
	Cancel  OnDisconnect = "cancel"
	Unknown OnDisconnect = "unknown"
)

// Plan is one experiment's declaration, with every default filled in. Its
// fields stand in the order in which a frozen plan writes them.
type Plan struct {
	Schema     string     `yaml:"schema" json:"schema"`
	Name       string     `yaml:"name" json:"name"`
	Experiment Experiment `yaml:"experiment" json:"experiment"`
	Labels     []string   `yaml:"labels" json:"labels"`
	Seed       uint64     `yaml:"seed" json:"seed"`
	// TimeScale is emulated seconds per second of this machine; 1 unless every
	// arm is emulated. Timeouts are declared in emulated time and shrink with
	// it; gates are in measured time and don't.
	TimeScale float64  `yaml:"time_scale" json:"time_scale"`
	Model     Model    `yaml:"model" json:"model"`
	Arms      []Arm    `yaml:"arms" json:"arms"`
	Workload  Workload `yaml:"workload" json:"workload"`
	Sampling  Sampling `yaml:"sampling" json:"sampling"`
	Sweep     Sweep    `yaml:"schedule" json:"schedule"`
	Timeouts  Timeouts `yaml:"timeouts" json:"timeouts"`
	// Telemetry is what is looked at beside the load; nil: nothing is.
	Telemetry *Telemetry `yaml:"telemetry,omitempty" json:"telemetry,omitempty"`
	Gates     Gates      `yaml:"gates" json:"gates"`
	Claims    []Claim    `yaml:"claims" json:"claims"`
	// Pairing is what a crossover plan has instead of Workload and Sweep; nil in
	// a concurrency plan.
	Pairing *Pairing `yaml:"-" json:"-"`
	// Arrivals is what an arrival plan has instead of tiers, and Search what it
	// looks for besides; nil in the others.
	Arrivals *Arrivals `yaml:"-" json:"-"`
	Search   *Search   `yaml:"-" json:"-"`
}

// Model is what both arms serve.
type Model struct {
	Name     string `yaml:"name" json:"name"`
	Revision string `yaml:"revision" json:"revision"`
	ServedAs string `yaml:"served_as" json:"served_as"` // the name requests carry
}

// Arm is one configuration under comparison.
type Arm struct {
	Name   string `yaml:"name" json:"name"`
	Role   Role   `yaml:"role" json:"role"`
	Engine Engine `yaml:"engine" json:"engine"`
	// OnDisconnect is the declared behaviour towards clients that leave.
	OnDisconnect OnDisconnect `yaml:"on_disconnect" json:"on_disconnect"`
	// TokenIDs asks the engine for the ids of the tokens it returned
	// (return_token_ids, known to vLLM from 0.10 on). It is nil only before the
	// defaults are in.
	TokenIDs *bool `yaml:"token_ids" json:"token_ids"`
}

// Engine is what an arm's server is: exactly one of its members is set.
type Engine struct {
	Container *Container `yaml:"container,omitempty" json:"container,omitempty"`
	Process   *Process   `yaml:"process,omitempty" json:"process,omitempty"`
	Endpoint  *Endpoint  `yaml:"endpoint,omitempty" json:"endpoint,omitempty"`
	Emulated  *Emulated  `yaml:"emulated,omitempty" json:"emulated,omitempty"`
	// Health is the path that answers 2xx once the server is ready.
	Health string `yaml:"health" json:"health"`
	// Metrics is the path of a Prometheus page with the gauges of vLLM
	// (vllm:num_requests_running, …_waiting), SGLang, TGI or llama.cpp, empty
	// where there is none. It is nil only before the defaults are in.
	Metrics *string `yaml:"metrics" json:"metrics"`
}

// Kind names the member that is set: "container", "process", "endpoint" or
// "emulated".
func (e Engine) Kind() string {
	switch {
	case e.Container != nil:
		return "container"
	case e.Process != nil:
		return "process"
	case e.Endpoint != nil:
		return "endpoint"
	default:
		return "emulated"
	}
}

// real says that a server of this engine takes the time it takes.
func (e Engine) real() bool {
	return e.Emulated == nil && (e.Container != nil || e.Process != nil || e.Endpoint != nil)
}

// Container is a server in a container of this machine's Docker.
type Container struct {
	Image string `yaml:"image" json:"image"`
	// Build names a folder under harness/engine/images from which the image is
	// built where it is absent; empty: it is pulled.
	Build      string            `yaml:"build,omitempty" json:"build,omitempty"`
	Entrypoint []string          `yaml:"entrypoint,omitempty" json:"entrypoint,omitempty"`
	Args       []string          `yaml:"args,omitempty" json:"args,omitempty"`
	Env        map[string]string `yaml:"env,omitempty" json:"env,omitempty"`
	Mounts     []Mount           `yaml:"mounts,omitempty" json:"mounts,omitempty"`
	ShmSize    Bytes             `yaml:"shm_size,omitempty" json:"shm_size,omitempty"`
	Port       int               `yaml:"port" json:"port"` // inside the container
	GPUs       GPUs              `yaml:"gpus" json:"gpus"`
	// GPUAccess is how Docker gives it the GPUs: "auto", "runtime", "cdi" or
	// "devices". It is empty where it gets none.
	GPUAccess string `yaml:"gpu_access,omitempty" json:"gpu_access,omitempty"`
}

// Writable is where something is mounted that the container may write to, which
// outlives it; empty: nowhere.
func (c *Container) Writable() string {
	for _, m := range c.Mounts {
		if !m.ReadOnly {
			return m.Target
		}
	}
	return ""
}

// Mount is a volume or a folder of the host, seen in a container.
type Mount struct {
	Volume   string `yaml:"volume,omitempty" json:"volume,omitempty"` // a Docker volume's name, or
	Source   string `yaml:"source,omitempty" json:"source,omitempty"` // a folder of the host
	Target   string `yaml:"target" json:"target"`
	ReadOnly bool   `yaml:"read_only" json:"read_only"`
}

// Process is a server started as a child of this process. ${PORT} in Command
// and Env stands for the free port that the harness picked.
type Process struct {
	Command []string          `yaml:"command" json:"command"`
	Env     map[string]string `yaml:"env,omitempty" json:"env,omitempty"`
	Dir     string            `yaml:"dir,omitempty" json:"dir,omitempty"`
}

// Endpoint is a server that somebody else runs.
type Endpoint struct {
	URL string `yaml:"url" json:"url"`
	// APIKeyEnv names the environment variable that holds a bearer key; the
	// key itself is written nowhere.
	APIKeyEnv string `yaml:"api_key_env,omitempty" json:"api_key_env,omitempty"`
}

// Emulated is a server in this process that a scheduler model drives. Times
// are emulated.
type Emulated struct {
	Parameters string   `yaml:"parameters" json:"parameters"` // a shipped set, one of [Parameters]
	Startup    Duration `yaml:"startup,omitempty" json:"startup,omitempty"`
	Faults     []Fault  `yaml:"faults,omitempty" json:"faults,omitempty"`
}

// Fault is one declared misbehaviour of an emulated server.
type Fault struct {
	Kind string `yaml:"kind" json:"kind"`
	// Requests are the arrival numbers, from 1, that it befalls; empty: all.
	Requests []int `yaml:"requests,omitempty" json:"requests,omitempty"`
	// After is the number of tokens, or for "exit" of requests, before it.
	After int `yaml:"after,omitempty" json:"after,omitempty"`
	// For is how long a stall lasts, in emulated time; 0: for good.
	For Duration `yaml:"for,omitempty" json:"for,omitempty"`
	// Status is the HTTP status of an "http_status" fault.
	Status int `yaml:"status,omitempty" json:"status,omitempty"`
}

// Workload is what is asked.
type Workload struct {
	// Prompts is a shipped set, "eight"; empty where there is a source.
	Prompts string  `yaml:"prompts,omitempty" json:"prompts,omitempty"`
	Source  *Source `yaml:"source,omitempty" json:"source,omitempty"`
	// API is how it is asked, empty for chat completions.
	API API `yaml:"api,omitempty" json:"api,omitempty"`
	// MaxTokens is for a request that has no number of its own; 0 where each has.
	MaxTokens   int     `yaml:"max_tokens,omitempty" json:"max_tokens,omitempty"`
	Temperature float64 `yaml:"temperature" json:"temperature"`
	Lane        Lane    `yaml:"lane" json:"lane"`
}

// Sampling pins the parameters whose defaults differ between engines.
type Sampling struct {
	TopP              float64 `yaml:"top_p" json:"top_p"`
	RepetitionPenalty float64 `yaml:"repetition_penalty" json:"repetition_penalty"`
	// Temperature is a crossover plan's; a concurrency plan has it in its
	// workload, and nil here.
	Temperature *float64 `yaml:"temperature,omitempty" json:"temperature,omitempty"`
}

// Sweep is what runs, how often and in what order (the key schedule).
type Sweep struct {
	Tiers      []int  `yaml:"tiers" json:"tiers"`           // clients of a wave
	Repeats    int    `yaml:"repeats" json:"repeats"`       // recorded waves a tier
	Lifecycles int    `yaml:"lifecycles" json:"lifecycles"` // of each arm
	Warmup     int    `yaml:"warmup" json:"warmup"`         // unrecorded-in-results requests before the first wave, one after the other
	Settle     Settle `yaml:"settle" json:"settle"`
}

// Settle is how a server gets idle again before the next wave.
type Settle struct {
	Idle    Duration // how long to wait for it
	None    bool     // release the wave onto whatever the last one left
	written bool     // the plan has the key; defaults go where it does not
}

// Timeouts are every deadline of a run.
type Timeouts struct {
	Image   Duration `yaml:"image" json:"image"`     // pull or build
	Ready   Duration `yaml:"ready" json:"ready"`     // started → healthy
	Poll    Duration `yaml:"poll" json:"poll"`       // between two health polls
	Connect Duration `yaml:"connect" json:"connect"` // dial and TLS of one attempt
	Request Duration `yaml:"request" json:"request"` // sent → terminal of one attempt
	Stop    Duration `yaml:"stop" json:"stop"`       // asked → killed
}

// Telemetry says how often a run looks at what its servers run on. A rate is
// the time between two looks, in measured time; 0 looks never.
type Telemetry struct {
	GPU    Duration `yaml:"gpu" json:"gpu"`       // at each GPU that the containers are given
	Engine Duration `yaml:"engine" json:"engine"` // at the engine's metrics page
	// Mechanism adds a wave to each lifecycle of a concurrency plan's candidate,
	// in no record and no result: is the largest tier worked on all at once, by
	// the engine's own gauge?
	Mechanism bool `yaml:"mechanism,omitempty" json:"mechanism,omitempty"`
}

// Gates are eligibility rules decided before the run.
type Gates struct {
	// ClientLag is the most that the p99 of client lag over a wave's events
	// may be, in measured time.
	ClientLag Duration `yaml:"client_lag" json:"client_lag"`
	// Coalesced is the largest share of a wave's events that may have come in
	// a read with others.
	Coalesced Percent `yaml:"coalesced" json:"coalesced"`
	// ReleaseLag is the most that may lie between a wave's first and last
	// sent_at, in measured time.
	ReleaseLag Duration `yaml:"release_lag" json:"release_lag"`
	// ScheduleDelay is the most that the p99 of schedule_delay over an open
	// loop's attempts may be, in measured time, where no limit on requests in
	// flight holds any back. It is an arrival plan's; nil in the others.
	ScheduleDelay *Duration `yaml:"schedule_delay,omitempty" json:"schedule_delay,omitempty"`
	// CarryOver says what a wave released onto a backlog is worth: "invalid"
	// or "report".
	CarryOver string `yaml:"carry_over" json:"carry_over"`
	// Correctness: "none" in a concurrency plan. In a crossover plan "report"
	// evaluates answers, and "require" makes a pair with a wrong one ineligible
	// for claims.
	Correctness string `yaml:"correctness" json:"correctness"`
	// Identity: "report" compares outputs and says what it found, "require"
	// makes unequal outputs ineligible, "none" does not compare.
	Identity string `yaml:"identity" json:"identity"`
	// The gates on what is looked at beside the load. They are absent from a
	// plan without telemetry.
	Watch WatchGates `yaml:",inline" json:",inline"`
}

// WatchGates hold the client's account of a wave against the engine's and the
// GPUs'. Zero values check nothing.
type WatchGates struct {
	// EngineTTFT is the most by which the mean TTFT of a wave may differ
	// between the client and the engine's own histogram. The engine's clock
	// starts later, when it has read the request, and ends earlier.
	EngineTTFT Duration `yaml:"engine_ttft,omitempty" json:"engine_ttft,omitempty"`
	// EngineTokens is the largest share by which a wave's output tokens may
	// differ between the two.
	EngineTokens *Percent `yaml:"engine_tokens,omitempty" json:"engine_tokens,omitempty"`
	// Throttled says what a wave is worth in which a GPU slowed down for power
	// or heat: "invalid" or "report".
	Throttled string `yaml:"throttled,omitempty" json:"throttled,omitempty"`
	// SharedGPU: likewise for one in which another process was on a GPU.
	SharedGPU string `yaml:"shared_gpu,omitempty" json:"shared_gpu,omitempty"`
}

// Claim names a sentence that the experiment may support.
type Claim string

// The claims of a concurrency plan.
const (
	ClaimGoodput  Claim = "goodput"
	ClaimFailures Claim = "failures"
	ClaimTTFT     Claim = "ttft"
)

// ClaimSLORate is an arrival plan's: that the candidate keeps the objective up
// to a higher rate. Beside it such a plan has [ClaimFailures] and [ClaimTTFT], at
// each rate, the latter from the scheduled moment.
const ClaimSLORate Claim = "slo_rate"

// The claims of a crossover plan, which are never mixed: that the candidate
// ends the sequence sooner where every ordinal's tokens are the baseline's,
// where every ordinal has the same exact number of tokens, and where its
// answers are no worse.
const (
	ClaimOutputIdentical Claim = "output_identical"
	ClaimEqualTokenCount Claim = "equal_token_count"
	ClaimNaturalQuality  Claim = "natural_quality"
)

// Arm is the arm of that name, or nil.
func (p *Plan) Arm(name string) *Arm {
	for i := range p.Arms {
		if p.Arms[i].Name == name {
			return &p.Arms[i]
		}
	}
	return nil
}

// WithRole is the arm that plays the role; every valid plan has one of each.
func (p *Plan) WithRole(r Role) *Arm {
	for i := range p.Arms {
		if p.Arms[i].Role == r {
			return &p.Arms[i]
		}
	}
	return nil
}

// Emulated says whether an arm's server is emulated: then every number is.
func (p *Plan) Emulated() bool {
	for _, a := range p.Arms {
		if a.Engine.Emulated != nil {
			return true
		}
	}
	return false
}
