package telemetry

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"assay/harness/record"
)

// ErrNoNVML says that this machine's GPUs can't be asked: no NVIDIA driver, or
// a build without cgo. The text says which.
var ErrNoNVML = errors.New("NVML is not available")

// Device is one GPU, or one MIG instance of one, as the driver reports it.
type Device struct {
	Index             int // of the GPU, from 0, in the driver's order
	MIG               int // of the instance within its GPU, from 1; 0: the whole GPU
	UUID              string
	Name              string
	MemoryBytes       uint64
	ComputeCapability string // such as "9.0"
}

// Commitment stands for a GPU where its UUID may not: whoever knows the UUID
// and the salt can show that it is this one, and nobody else can tell which it
// is. It is the SHA-256 of salt, a colon and the UUID, in hex.
func (d Device) Commitment(salt string) string {
	sum := sha256.Sum256([]byte(salt + ":" + d.UUID))
	return hex.EncodeToString(sum[:])
}

// GPUs is what a machine says of its GPUs.
type GPUs struct {
	Driver  string // the driver's version
	CUDA    string // the highest CUDA version that the driver supports
	Devices []Device
}

// Process is one that holds a context on a GPU.
type Process struct {
	PID         int     // the host's
	MemoryBytes *uint64 // nil where the driver does not say
}

// Look is what one GPU said at one moment. A reading that is in Values is not
// in Missing, which says why it is not.
type Look struct {
	Values    map[record.Reading]int64
	Missing   map[record.Reading]string
	Processes []Process
}

// Depth is how much of a GPU a look reads. Each depth holds those before it.
type Depth int

const (
	// Quick is what changes from one look to the next and means something at
	// that rate: power, utilization, the SM clock, memory used.
	Quick Depth = iota
	// Full is what costs little but changes slowly, too: the memory clock,
	// temperature, reasons for a lower clock, ECC errors and processes.
	Full
	// Counter is also the energy counter: reading it costs ten times as much as
	// all before it, and only its growth means something.
	Counter
	// Bus is also what goes over PCIe, which takes NVML 40 ms.
	Bus
)

// depthOf is the least depth at which a reading is taken.
func depthOf(r record.Reading) Depth {
	switch r {
	case record.MemoryUsed, record.GPUUtilization, record.MemoryUtilization, record.SMClock, record.Power:
		return Quick
	case record.Energy:
		return Counter
	case record.PCIeSent, record.PCIeReceived:
		return Bus
	default:
		return Full
	}
}

// Prober reads GPUs. [NVML] is the real one.
type Prober interface {
	// Devices lists the GPUs, or wraps ErrNoNVML. A GPU that is split into MIG
	// instances is listed by those.
	Devices() (GPUs, error)
	// Look reads what one of them says now, so deep. The error says that the
	// device can't be asked at all, such as one that has fallen off the bus.
	Look(d Device, depth Depth) (Look, error)
}

// A Holder is a prober that is cheap to ask only while it is held.
type Holder interface {
	// Hold keeps the driver's library loaded until release is called.
	Hold() (release func(), err error)
}

// Choose asks a prober for a machine's GPUs, and for those of them that are
// named; see [GPUs.Select].
func Choose(p Prober, all bool, ids []string) (GPUs, []Device, error) {
	gpus, err := p.Devices()
	if err != nil {
		return gpus, nil, err
	}
	devices, err := gpus.Select(all, ids)
	return gpus, devices, err
}

// Select picks the devices that a plan names: all, or those with an index or a
// UUID of the list. A GPU that is split into MIG instances is named by an index
// for all of them. The error names what is not there.
func (g GPUs) Select(all bool, ids []string) ([]Device, error) {
	if all {
		return g.Devices, nil
	}
	var out []Device
	var missing []error
	for _, id := range ids {
		before := len(out)
		for _, d := range g.Devices {
			if d.UUID == id || strconv.Itoa(d.Index) == id {
				out = append(out, d)
			}
		}
		if len(out) == before {
			missing = append(missing, fmt.Errorf("there is no GPU %s: there are %d, counted from 0; correct the plan's gpus", id, len(g.Devices)))
		}
	}
	return out, errors.Join(missing...)
}
