//go:build cgo && linux

package telemetry

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// NVML asks the NVIDIA driver's management library, which is loaded when it is
// first asked and needs no headers to build.
type NVML struct{}

// Devices lists the GPUs. Nothing of the library is called before it was
// initialised well: without a driver its other functions crash.
func (NVML) Devices() (GPUs, error) {
	if ret := nvml.Init(); ret != nvml.SUCCESS {
		return GPUs{}, fmt.Errorf("%w: %s (is there an NVIDIA GPU, and its driver?)", ErrNoNVML, describe(ret))
	}
	defer nvml.Shutdown()
	var out GPUs
	driver, ret := nvml.SystemGetDriverVersion()
	if ret != nvml.SUCCESS {
		return out, fmt.Errorf("%w: the driver's version: %s", ErrNoNVML, describe(ret))
	}
	out.Driver = driver
	if cuda, ret := nvml.SystemGetCudaDriverVersion(); ret == nvml.SUCCESS {
		out.CUDA = fmt.Sprintf("%d.%d", cuda/1000, cuda%1000/10)
	}
	count, ret := nvml.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return out, fmt.Errorf("%w: the number of GPUs: %s", ErrNoNVML, describe(ret))
	}
	for i := range count {
		device, ret := nvml.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			return out, fmt.Errorf("%w: GPU %d: %s", ErrNoNVML, i, describe(ret))
		}
		d := Device{Index: i}
		if name, ret := device.GetName(); ret == nvml.SUCCESS {
			d.Name = name
		}
		if memory, ret := device.GetMemoryInfo(); ret == nvml.SUCCESS {
			d.MemoryBytes = memory.Total
		}
		if major, minor, ret := device.GetCudaComputeCapability(); ret == nvml.SUCCESS {
			d.ComputeCapability = fmt.Sprintf("%d.%d", major, minor)
		}
		out.Devices = append(out.Devices, d)
	}
	return out, nil
}

// describe names a return code without asking the library, which may not be
// there.
func describe(ret nvml.Return) string {
	if ret == nvml.ERROR_LIBRARY_NOT_FOUND {
		return "libnvidia-ml.so.1 was not found"
	}
	return fmt.Sprintf("NVML return code %d", int(ret))
}
