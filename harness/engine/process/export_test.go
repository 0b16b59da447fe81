//go:build unix

package process

import "assay/harness/telemetry"

// WithGPUs makes an engine see a machine's GPUs that a test invents.
func WithGPUs(e *Engine, p telemetry.Prober) *Engine {
	e.gpus = p
	return e
}
