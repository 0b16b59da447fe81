//go:build cgo && linux

package telemetry

import (
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"assay/harness/record"
)

// call is one question to the library. What each costs differs by driver and by
// machine: BenchmarkLook has it.
type call struct {
	name  string
	depth Depth
	ask   func(nvml.Device, *Look)
}

// calls are all of them, in the order in which they are made: the energy counter
// first, which is read for the sake of a moment, then the quick ones, so that
// they are of one moment too, and PCIe last, since each of its two takes the
// 20 ms over which it counts.
var calls = []call{
	{"energy", Counter, func(d nvml.Device, l *Look) {
		energy, ret := d.GetTotalEnergyConsumption()
		l.keep(record.Energy, energy, ret)
	}},
	{"power", Quick, func(d nvml.Device, l *Look) {
		power, ret := d.GetPowerUsage()
		l.keep(record.Power, uint64(power), ret)
	}},
	{"utilization", Quick, func(d nvml.Device, l *Look) {
		use, ret := d.GetUtilizationRates()
		l.keep(record.GPUUtilization, uint64(use.Gpu), ret)
		l.keep(record.MemoryUtilization, uint64(use.Memory), ret)
	}},
	{"sm clock", Quick, func(d nvml.Device, l *Look) {
		clock, ret := d.GetClockInfo(nvml.CLOCK_SM)
		l.keep(record.SMClock, uint64(clock), ret)
	}},
	{"memory", Quick, func(d nvml.Device, l *Look) {
		memory, ret := d.GetMemoryInfo()
		l.keep(record.MemoryUsed, memory.Used, ret)
	}},
	{"memory clock", Full, func(d nvml.Device, l *Look) {
		clock, ret := d.GetClockInfo(nvml.CLOCK_MEM)
		l.keep(record.MemoryClock, uint64(clock), ret)
	}},
	{"temperature", Full, func(d nvml.Device, l *Look) {
		temperature, ret := d.GetTemperature(nvml.TEMPERATURE_GPU)
		l.keep(record.Temperature, uint64(temperature), ret)
	}},
	{"throttle reasons", Full, func(d nvml.Device, l *Look) {
		// The older name of the two, which every driver knows.
		reasons, ret := d.GetCurrentClocksThrottleReasons()
		l.keep(record.Throttle, reasons, ret)
	}},
	{"ecc corrected", Full, func(d nvml.Device, l *Look) {
		errors, ret := d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC)
		l.keep(record.ECCCorrected, errors, ret)
	}},
	{"ecc uncorrected", Full, func(d nvml.Device, l *Look) {
		errors, ret := d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
		l.keep(record.ECCUncorrected, errors, ret)
	}},
	{"processes", Full, processes},
	{"pcie sent", Bus, func(d nvml.Device, l *Look) {
		sent, ret := d.GetPcieThroughput(nvml.PCIE_UTIL_TX_BYTES)
		l.keep(record.PCIeSent, uint64(sent), ret)
	}},
	{"pcie received", Bus, func(d nvml.Device, l *Look) {
		received, ret := d.GetPcieThroughput(nvml.PCIE_UTIL_RX_BYTES)
		l.keep(record.PCIeReceived, uint64(received), ret)
	}},
}

func (l *Look) keep(r record.Reading, value uint64, ret nvml.Return) {
	switch {
	case ret != nvml.SUCCESS:
		l.Missing[r] = describe(ret)
	case value > math.MaxInt64:
		l.Missing[r] = "the driver gave a number that is none"
	default:
		l.Values[r] = int64(value)
	}
}

func processes(d nvml.Device, l *Look) {
	running, ret := d.GetComputeRunningProcesses()
	if ret != nvml.SUCCESS {
		for _, r := range []record.Reading{record.ServerProcesses, record.OtherProcesses, record.UnknownProcesses, record.OtherProcessMemory} {
			l.Missing[r] = describe(ret)
		}
		return
	}
	for _, p := range running {
		process := Process{PID: int(p.Pid)}
		if p.UsedGpuMemory <= math.MaxInt64 { // else NVML's mark for "not available"
			process.MemoryBytes = &p.UsedGpuMemory
		}
		l.Processes = append(l.Processes, process)
	}
}
