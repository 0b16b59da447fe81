package telemetry

import "errors"

// ErrNoNVML says that this machine's GPUs can't be asked: no NVIDIA driver, or
// a build without cgo. The text says which.
var ErrNoNVML = errors.New("NVML is not available")

// Device is one GPU as the driver reports it.
type Device struct {
	Index             int
	Name              string
	MemoryBytes       uint64
	ComputeCapability string // such as "9.0"
}

// GPUs is what a machine says of its GPUs.
type GPUs struct {
	Driver  string // the driver's version
	CUDA    string // the highest CUDA version that the driver supports
	Devices []Device
}

// Prober reads GPUs. [NVML] is the real one.
type Prober interface {
	// Devices lists the GPUs, or wraps ErrNoNVML.
	Devices() (GPUs, error)
}
