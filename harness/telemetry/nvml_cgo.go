//go:build cgo && linux

package telemetry

import (
	"fmt"
	"math"

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

// Look reads one device.
func (NVML) Look(d Device, bus bool) (Look, error) {
	if err := initialise(); err != nil {
		return Look{}, err
	}
	defer nvml.Shutdown()
	handle, ret := nvml.DeviceGetHandleByIndex(d.Index)
	if ret == nvml.SUCCESS && d.MIG > 0 {
		handle, ret = handle.GetMigDeviceHandleByIndex(d.MIG - 1)
	}
	if ret != nvml.SUCCESS {
		return Look{}, fmt.Errorf("GPU %d can't be asked: %s", d.Index, describe(ret))
	}
	l := Look{Values: map[record.Reading]int64{}, Missing: map[record.Reading]string{}}
	keep := func(r record.Reading, value uint64, ret nvml.Return) {
		switch {
		case ret != nvml.SUCCESS:
			l.Missing[r] = describe(ret)
		case value > math.MaxInt64:
			l.Missing[r] = "the driver gave a number that is none"
		default:
			l.Values[r] = int64(value)
		}
	}
	memory, ret := handle.GetMemoryInfo()
	keep(record.MemoryUsed, memory.Used, ret)
	use, ret := handle.GetUtilizationRates()
	keep(record.GPUUtilization, uint64(use.Gpu), ret)
	keep(record.MemoryUtilization, uint64(use.Memory), ret)
	clock, ret := handle.GetClockInfo(nvml.CLOCK_SM)
	keep(record.SMClock, uint64(clock), ret)
	clock, ret = handle.GetClockInfo(nvml.CLOCK_MEM)
	keep(record.MemoryClock, uint64(clock), ret)
	power, ret := handle.GetPowerUsage()
	keep(record.Power, uint64(power), ret)
	energy, ret := handle.GetTotalEnergyConsumption()
	keep(record.Energy, energy, ret)
	temperature, ret := handle.GetTemperature(nvml.TEMPERATURE_GPU)
	keep(record.Temperature, uint64(temperature), ret)
	// The older name of the two, which every driver knows.
	reasons, ret := handle.GetCurrentClocksThrottleReasons()
	keep(record.Throttle, reasons, ret)
	errors, ret := handle.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC)
	keep(record.ECCCorrected, errors, ret)
	errors, ret = handle.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	keep(record.ECCUncorrected, errors, ret)
	processes, ret := handle.GetComputeRunningProcesses()
	if ret == nvml.SUCCESS {
		for _, p := range processes {
			process := Process{PID: int(p.Pid)}
			if p.UsedGpuMemory <= math.MaxInt64 { // else NVML's mark for "not available"
				process.MemoryBytes = &p.UsedGpuMemory
			}
			l.Processes = append(l.Processes, process)
		}
	} else {
		for _, r := range []record.Reading{record.ServerProcesses, record.OtherProcesses, record.UnknownProcesses, record.OtherProcessMemory} {
			l.Missing[r] = describe(ret)
		}
	}
	if !bus {
		return l, nil
	}
	// Last, since each takes the 20 ms over which it counts.
	sent, ret := handle.GetPcieThroughput(nvml.PCIE_UTIL_TX_BYTES)
	keep(record.PCIeSent, uint64(sent), ret)
	received, ret := handle.GetPcieThroughput(nvml.PCIE_UTIL_RX_BYTES)
	keep(record.PCIeReceived, uint64(received), ret)
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
