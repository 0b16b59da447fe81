package metric_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/metric"
	"assay/harness/record"
	"assay/harness/record/recordtest"
)

// onGPU gives each lifecycle a GPU, that of the last one changed.
func onGPU(change func(facts map[string]any)) record.Run {
	run := recordtest.Sequences(recordtest.Pairs(), recordtest.Options{}, func(record.Request) recordtest.Answered {
		return recordtest.Answered{PromptID: "p", Text: "a b", Reason: "not evaluated"}
	})
	for i := range run.Lifecycles {
		facts := map[string]any{"name": "NVIDIA H200", "compute_capability": "9.0", "commitment": "one"}
		if i == len(run.Lifecycles)-1 {
			change(facts)
		}
		run.Lifecycles[i].Identity["gpu_0"] = record.Fact{Value: facts, Provenance: record.DeviceReported}
		run.Lifecycles[i].Identity["gpu_driver"] = record.Fact{Value: "580.1", Provenance: record.DeviceReported}
	}
	return run
}

func TestACrossoverMayGoOnWithAnotherGPUOfTheSameKindAndWithNoOther(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Pairs()
	another := metric.Summarize(p, onGPU(func(f map[string]any) { f["commitment"] = "two" })).Validity
	g.Expect(another.Reasons).NotTo(ContainElement(ContainSubstring("GPU 0")))
	g.Expect(another.Notes).To(ContainElement(MatchRegexp(`from lifecycle \d+ on GPU 0 is another one than that of lifecycle \d+`)))

	kind := metric.Summarize(p, onGPU(func(f map[string]any) { f["name"] = "NVIDIA H100" })).Validity
	g.Expect(kind.Reasons).To(ContainElement(ContainSubstring("its GPU 0 is NVIDIA H100, compute capability 9.0, and that of lifecycle 1 was NVIDIA H200")))

	run := onGPU(func(map[string]any) {})
	g.Expect(metric.Summarize(p, run).Validity.Notes).NotTo(ContainElement(ContainSubstring("GPU 0")))
	run.Lifecycles[3].Identity["gpu_driver"] = record.Fact{Value: "570.2", Provenance: record.DeviceReported}
	g.Expect(metric.Summarize(p, run).Validity.Reasons).To(ContainElement(ContainSubstring("its gpu_driver is 570.2")))
}
