//go:build !cgo || !linux

package telemetry

import "fmt"

// NVML can't be asked by this build.
type NVML struct{}

// Devices says why.
func (NVML) Devices() (GPUs, error) {
	return GPUs{}, fmt.Errorf("%w: this build has no cgo, or this is not Linux; build with CGO_ENABLED=1 and a C compiler", ErrNoNVML)
}
