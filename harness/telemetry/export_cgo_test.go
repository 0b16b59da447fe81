//go:build cgo && linux

package telemetry

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"assay/harness/record"
)

// Step is one part of a look by itself.
type Step struct {
	Name string
	Do   func()
}

// Steps are the parts of a look at a device, in their order, the library being
// held: coming to the device, and each call.
func Steps(d Device) ([]Step, error) {
	handle, err := handleOf(d)
	if err != nil {
		return nil, err
	}
	steps := []Step{
		{"library", func() {
			if initialise() == nil {
				nvml.Shutdown()
			}
		}},
		{"handle", func() { _, _ = handleOf(d) }},
	}
	for _, c := range calls {
		steps = append(steps, Step{c.name, func() {
			l := Look{Values: map[record.Reading]int64{}, Missing: map[record.Reading]string{}}
			c.ask(handle, &l)
		}})
	}
	return steps, nil
}
