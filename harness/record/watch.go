package record

// The schemas of what is sampled beside the load.
const (
	TelemetrySchema     = "assay.telemetry/v1"
	EngineMetricsSchema = "assay.engine-metrics/v1"
)

// Chain is the beginning of a line that a store chains.
type Chain struct {
	Schema         string `json:"schema"`
	PlanSHA256     string `json:"plan_sha256"`
	ScheduleSHA256 string `json:"schedule_sha256"`
	PreviousSHA256 string `json:"previous_sha256"`
}

// Stretch is the part of a lifecycle over which something was looked at again
// and again.
type Stretch struct {
	Lifecycle int    `json:"lifecycle"`
	Arm       string `json:"arm"`
	Wave      int    `json:"wave"` // 0: before, between or after the waves
	// Interval is how far apart the plan wants two looks, in measured ns. At is
	// when each began, on the lifecycle's clock, Took how long it lasted.
	Interval int64   `json:"interval_ns"`
	At       []int64 `json:"at_ns"`
	Took     []int64 `json:"took_ns"`
	// Failed are looks that gave nothing; they are not in At.
	Failed []FailedLook `json:"failed"`
}

// FailedLook is a look that gave nothing, and why. Looks that failed one after
// the other for the same reason are one.
type FailedLook struct {
	At     int64  `json:"at_ns"`
	Times  int    `json:"times"`
	Reason string `json:"reason"`
}

// Telemetry is what one GPU said over a stretch: a line of telemetry.jsonl.
type Telemetry struct {
	Chain
	Stretch
	Device     int    `json:"device"`     // from 0, among those that the plan names
	Commitment string `json:"commitment"` // of its UUID, salted with the run's name
	// Series has one value a look for each quantity, whose name says its unit;
	// null where that look could not read it. Why is in Nulls, by that name.
	Series map[string][]*int64 `json:"series"`
	Nulls  map[string]string   `json:"nulls"`
}

// EngineMetrics is what an engine's Prometheus page said over a stretch: a line
// of engine-metrics.jsonl. Names and units are the engine's own.
type EngineMetrics struct {
	Chain
	Stretch
	Series map[string][]*float64 `json:"series"` // gauges and counters, one value a look
	// Before and After are whole pages read just before the stretch's wave was
	// released, and once it had ended and the engine said that it was idle.
	Before *Page             `json:"before"`
	After  *Page             `json:"after"`
	Nulls  map[string]string `json:"nulls"`
}

// Page is one look at an engine's metrics, as far as they are kept.
type Page struct {
	At int64 `json:"at_ns"`
	// Idle is whether it said that nothing runs or waits; null where it does
	// not say.
	Idle       *bool                `json:"idle,omitempty"`
	Values     map[string]float64   `json:"values"` // gauges and counters, added over their labels
	Histograms map[string]Histogram `json:"histograms"`
}

// Histogram is one, added over its labels.
type Histogram struct {
	Count   float64  `json:"count"`
	Sum     float64  `json:"sum"`
	Buckets []Bucket `json:"buckets"`
}

// Bucket counts all that was at most Upper.
type Bucket struct {
	Upper string  `json:"upper"` // a number, or +Inf
	Count float64 `json:"count"`
}

// Reading names one quantity of a GPU, with its unit.
type Reading string

// The readings of a look, by NVML's own words. Energy counts from when the
// driver was loaded; ECC errors from then on, too. PCIe throughput is what NVML
// saw over its own last 20 ms. Throttle is NVML's bit mask of clocks event
// reasons; package metric names them.
const (
	MemoryUsed         Reading = "memory_used_bytes"
	GPUUtilization     Reading = "gpu_utilization_percent"
	MemoryUtilization  Reading = "memory_utilization_percent"
	SMClock            Reading = "sm_clock_mhz"
	MemoryClock        Reading = "memory_clock_mhz"
	Power              Reading = "power_mw"
	Energy             Reading = "energy_mj"
	Temperature        Reading = "temperature_c"
	Throttle           Reading = "throttle_reasons"
	ECCCorrected       Reading = "ecc_corrected"
	ECCUncorrected     Reading = "ecc_uncorrected"
	PCIeSent           Reading = "pcie_tx_kib_per_s"
	PCIeReceived       Reading = "pcie_rx_kib_per_s"
	ServerProcesses    Reading = "server_processes"
	OtherProcesses     Reading = "other_processes"
	UnknownProcesses   Reading = "unknown_processes" // it could not be told whose
	OtherProcessMemory Reading = "other_process_memory_bytes"
)

// NotLooked is why a reading is null at a look that did not ask for it: another
// look may have it.
const NotLooked = "it is asked for once a second and as a wave begins, not at each look, since it costs more than it tells"

// Readings lists them all, in the order in which they are taken and written.
var Readings = []Reading{
	MemoryUsed, GPUUtilization, MemoryUtilization, SMClock, MemoryClock, Power, Energy, Temperature, Throttle,
	ECCCorrected, ECCUncorrected, PCIeSent, PCIeReceived, ServerProcesses, OtherProcesses, UnknownProcesses, OtherProcessMemory,
}

// Names of an engine's page that results are computed from, as vLLM has them.
// What another engine says under names of its own is kept under these.
const (
	Running       = "vllm:num_requests_running"
	Waiting       = "vllm:num_requests_waiting"
	Generated     = "vllm:generation_tokens_total"
	Preemptions   = "vllm:num_preemptions_total"
	PrefixHits    = "vllm:prefix_cache_hits_total"
	KVCacheUse    = "vllm:kv_cache_usage_perc"
	TTFTHistogram = "vllm:time_to_first_token_seconds"
)
