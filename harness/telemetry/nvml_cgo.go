//go:build cgo && linux

package telemetry

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"assay/harness/record"
)

// NVML asks the NVIDIA driver's management library, which is loaded when it is
// first asked and needs no headers to build. The library counts its
// initialisations, so that each method makes its own.
type NVML struct{}

// Hold keeps the library initialised, which costs 10 ms and more each time.
func (NVML) Hold() (func(), error) {
	if err := initialise(); err != nil {
		return func() {}, err
	}
	return func() { nvml.Shutdown() }, nil
}

// initialise is called before anything else of the library: without a driver
// its other functions crash.
func initialise() error {
	if ret := nvml.Init(); ret != nvml.SUCCESS {
		return fmt.Errorf("%w: %s (is there an NVIDIA GPU, and its driver?)", ErrNoNVML, describe(ret))
	}
	return nil
}

// Devices lists the GPUs.
func (NVML) Devices() (GPUs, error) {
	if err := initialise(); err != nil {
		return GPUs{}, err
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
		handle, ret := nvml.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			return out, fmt.Errorf("%w: GPU %d: %s", ErrNoNVML, i, describe(ret))
		}
		d := Device{Index: i}
		if major, minor, ret := handle.GetCudaComputeCapability(); ret == nvml.SUCCESS {
			d.ComputeCapability = fmt.Sprintf("%d.%d", major, minor)
		}
		if instances := instancesOf(handle); len(instances) > 0 {
			for _, n := range instances {
				if instance, ret := handle.GetMigDeviceHandleByIndex(n); ret == nvml.SUCCESS {
					d.MIG = n + 1
					out.Devices = append(out.Devices, describeDevice(instance, d))
				}
			}
			continue
		}
		out.Devices = append(out.Devices, describeDevice(handle, d))
	}
	return out, nil
}

// instancesOf are the places of a GPU's MIG instances; none where it is whole.
func instancesOf(handle nvml.Device) []int {
	mode, _, ret := handle.GetMigMode()
	if ret != nvml.SUCCESS || mode != nvml.DEVICE_MIG_ENABLE {
		return nil
	}
	most, ret := handle.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		return nil
	}
	var out []int
	for n := range most {
		if _, ret := handle.GetMigDeviceHandleByIndex(n); ret == nvml.SUCCESS {
			out = append(out, n)
		}
	}
	return out
}

func describeDevice(handle nvml.Device, d Device) Device {
	if uuid, ret := handle.GetUUID(); ret == nvml.SUCCESS {
		d.UUID = uuid
	}
	if name, ret := handle.GetName(); ret == nvml.SUCCESS {
		d.Name = name
	}
	if memory, ret := handle.GetMemoryInfo(); ret == nvml.SUCCESS {
		d.MemoryBytes = memory.Total
	}
	return d
}

// handleOf is by what the library knows a device. It must be initialised.
func handleOf(d Device) (nvml.Device, error) {
	handle, ret := nvml.DeviceGetHandleByIndex(d.Index)
	if ret == nvml.SUCCESS && d.MIG > 0 {
		handle, ret = handle.GetMigDeviceHandleByIndex(d.MIG - 1)
	}
	if ret != nvml.SUCCESS {
		return handle, fmt.Errorf("GPU %d can't be asked: %s", d.Index, describe(ret))
	}
	return handle, nil
}

// Look reads one device, call after call as far as the depth goes.
func (NVML) Look(d Device, depth Depth) (Look, error) {
	if err := initialise(); err != nil {
		return Look{}, err
	}
	defer nvml.Shutdown()
	handle, err := handleOf(d)
	if err != nil {
		return Look{}, err
	}
	l := Look{Values: map[record.Reading]int64{}, Missing: map[record.Reading]string{}}
	for _, c := range calls {
		if c.depth <= depth {
			c.ask(handle, &l)
		}
	}
	return l, nil
}

// describe names a return code without asking the library, which may not be
// there.
func describe(ret nvml.Return) string {
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return "libnvidia-ml.so.1 was not found"
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return "the NVIDIA driver is not loaded"
	case nvml.ERROR_NOT_SUPPORTED:
		return "this device does not support it"
	case nvml.ERROR_NO_PERMISSION:
		return "this user may not read it"
	case nvml.ERROR_GPU_IS_LOST:
		return "the GPU has fallen off the bus"
	case nvml.ERROR_NOT_FOUND:
		return "there is no such device"
	default:
		return fmt.Sprintf("NVML return code %d", int(ret))
	}
}
