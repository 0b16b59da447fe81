// Package telemetry watches what runs beside the load: an engine's own gauges
// from its Prometheus page, and the machine's GPUs through NVML.
package telemetry
