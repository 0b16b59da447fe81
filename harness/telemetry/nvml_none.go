//go:build !cgo || !linux

package telemetry

import "fmt"

// NVML can't be asked by this build.
type NVML struct{}

func (NVML) none() error {
	return fmt.Errorf("%w: this build has no cgo, or this is not Linux; build with CGO_ENABLED=1 and a C compiler", ErrNoNVML)
}

// Devices says why.
func (n NVML) Devices() (GPUs, error) { return GPUs{}, n.none() }

// Look says why.
func (n NVML) Look(Device, Depth) (Look, error) { return Look{}, n.none() }
