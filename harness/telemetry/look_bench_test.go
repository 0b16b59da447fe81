//go:build cgo && linux

package telemetry_test

import (
	"testing"
	"time"

	"assay/harness/telemetry"
)

// BenchmarkLook is looks at a real GPU. Most of a deep one waits for the bus
// counters, so that the processor's time is what is reported: of each part of a
// look by itself, of a look of each depth, and of what a watch at 10 Hz makes in
// two seconds, one look at everything, one that is full and eighteen quick ones,
// without the waiting between them. At most 1 % of a core is asked of the last.
func BenchmarkLook(b *testing.B) {
	gpus, err := telemetry.NVML{}.Devices()
	if err != nil || len(gpus.Devices) == 0 {
		b.Skip("no GPU here")
	}
	release, err := telemetry.NVML{}.Hold()
	if err != nil {
		b.Fatal(err)
	}
	defer release()
	steps, err := telemetry.Steps(gpus.Devices[0])
	if err != nil {
		b.Fatal(err)
	}
	for _, step := range steps {
		b.Run("call="+step.Name, func(b *testing.B) {
			before := cpu(b)
			for b.Loop() {
				step.Do()
			}
			b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/1e3/float64(b.N), "cpu-us/call")
		})
	}
	look := func(b *testing.B, depth telemetry.Depth) {
		if _, err := (telemetry.NVML{}).Look(gpus.Devices[0], depth); err != nil {
			b.Fatal(err)
		}
	}
	for _, d := range []struct {
		name  string
		depth telemetry.Depth
	}{{"quick", telemetry.Quick}, {"full", telemetry.Full}, {"counter", telemetry.Counter}, {"bus", telemetry.Bus}} {
		b.Run("depth="+d.name, func(b *testing.B) {
			before := cpu(b)
			for b.Loop() {
				look(b, d.depth)
			}
			b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-us/look")
		})
	}
	b.Run("two seconds at 10 Hz", func(b *testing.B) {
		before := cpu(b)
		for b.Loop() {
			look(b, telemetry.Bus)
			look(b, telemetry.Full)
			for range 18 {
				look(b, telemetry.Quick)
			}
		}
		b.ReportMetric(float64(cpu(b)-before)/float64(b.N)/float64(2*time.Second)*100, "%core-at-10Hz")
	})
}
