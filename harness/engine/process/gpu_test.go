//go:build unix

package process_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/engine/process"
	"assay/harness/telemetry"
)

// two is a machine with two GPUs.
type two struct{}

func (two) Devices() (telemetry.GPUs, error) {
	return telemetry.GPUs{Driver: "580", Devices: []telemetry.Device{{Index: 0, UUID: "GPU-a"}, {Index: 1, UUID: "GPU-b"}}}, nil
}

func (two) Look(telemetry.Device, telemetry.Depth) (telemetry.Look, error) {
	return telemetry.Look{}, nil
}

func TestAProcessHasTheGPUsThatCUDALeavesIt(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "1")
	for visible, want := range map[string][]int{"unset": {1}, "0": {0}, "GPU-b": {1}, "1, 0": {1, 0}, "": nil} {
		t.Run(visible, func(t *testing.T) {
			g := NewWithT(t)
			env := map[string]string{"CUDA_VISIBLE_DEVICES": visible}
			if visible == "unset" {
				env = nil // then this process's own counts
			}
			_, devices, err := process.WithGPUs(process.New(process.Config{Command: []string{"serve"}, Env: env}), two{}).Devices()
			g.Expect(err).NotTo(HaveOccurred())
			var got []int
			for _, d := range devices {
				got = append(got, d.Index)
			}
			g.Expect(got).To(Equal(want))
		})
	}
	_, _, err := process.WithGPUs(process.New(process.Config{Env: map[string]string{"CUDA_VISIBLE_DEVICES": "7"}}), two{}).Devices()
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("there is no GPU 7")))
}
