package telemetry_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/clock"
	"assay/harness/record"
	"assay/harness/telemetry"
)

// recorded stands for a driver: it plays looks one after the other, the last
// one again and again.
type recorded struct {
	devices []telemetry.Device
	looks   []func() (telemetry.Look, error)
	next    atomic.Int64
	depths  [telemetry.Bus + 1]atomic.Int64 // looks of each depth
}

func (r *recorded) Devices() (telemetry.GPUs, error) {
	return telemetry.GPUs{Driver: "580.159.04", CUDA: "13.0", Devices: r.devices}, nil
}

func (r *recorded) Look(_ telemetry.Device, depth telemetry.Depth) (telemetry.Look, error) {
	r.depths[depth].Add(1)
	n := int(r.next.Add(1))
	return r.looks[min(n, len(r.looks))-1]()
}

// saying is a look with everything that an H200 says while it serves.
func saying(energy int64, processes ...telemetry.Process) func() (telemetry.Look, error) {
	return func() (telemetry.Look, error) {
		return telemetry.Look{
			Values: map[record.Reading]int64{
				record.MemoryUsed: 72 << 30, record.GPUUtilization: 98, record.MemoryUtilization: 12, record.SMClock: 1980, record.MemoryClock: 3201,
				record.Power: 251_300, record.Energy: energy, record.Temperature: 41, record.Throttle: 0, record.ECCCorrected: 0, record.ECCUncorrected: 0,
				record.PCIeSent: 1200, record.PCIeReceived: 340,
			},
			Missing: map[record.Reading]string{}, Processes: processes,
		}, nil
	}
}

var h200 = telemetry.Device{Index: 0, UUID: "GPU-5e1e0b04-aaaa-bbbb-cccc-0123456789ab", Name: "NVIDIA H200", MemoryBytes: 150_754_820_096, ComputeCapability: "9.0"}

func begin(t *testing.T, r *recorded) *telemetry.Watch {
	w := telemetry.Begin(telemetry.Config{
		Clock: clock.Start(), Salt: "a-run", GPUs: 10 * time.Millisecond, Prober: r, Devices: r.devices, Engine: 10 * time.Millisecond,
	})
	t.Cleanup(w.Close)
	return w
}

func TestWatchKeepsWhatAGPUSaid(t *testing.T) {
	g := NewWithT(t)
	memory := uint64(1 << 30)
	r := &recorded{devices: []telemetry.Device{h200}, looks: []func() (telemetry.Look, error){
		saying(1000), saying(1500, telemetry.Process{PID: 7, MemoryBytes: &memory}, telemetry.Process{PID: 8}, telemetry.Process{PID: 9}),
	}}
	w := begin(t, r)
	w.Serving(func(pid int) (bool, bool) { return pid == 8, pid != 9 })
	g.Eventually(r.next.Load).Should(BeNumerically(">", 3))
	w.Bound()
	g.Eventually(r.depths[telemetry.Counter].Load).Should(Equal(int64(1)))
	w.Released()
	g.Eventually(r.depths[telemetry.Full].Load).Should(Equal(int64(1)))
	w.Close()
	gpus, engine := w.Cut()
	g.Expect(engine).To(BeNil())
	g.Expect(gpus).To(HaveLen(1))
	line := gpus[0]
	g.Expect(line.Commitment).To(Equal(h200.Commitment("a-run")))
	g.Expect(line.Commitment).NotTo(Equal(h200.Commitment("another-run")))
	g.Expect(line.Interval).To(Equal(int64(10 * time.Millisecond)))
	g.Expect(len(line.At)).To(BeNumerically(">", 2))
	g.Expect(line.Took).To(HaveLen(len(line.At)))
	for _, reading := range record.Readings {
		g.Expect(line.Series[string(reading)]).To(HaveLen(len(line.At)), string(reading))
	}
	g.Expect(*line.Series["energy_mj"][0]).To(Equal(int64(1000)))
	full := slices.IndexFunc(line.Series["other_processes"][1:], func(v *int64) bool { return v != nil }) + 1
	for reading, want := range map[record.Reading]int64{
		record.ServerProcesses: 1, record.OtherProcesses: 1, record.UnknownProcesses: 1, record.OtherProcessMemory: 1 << 30,
	} {
		g.Expect(*line.Series[string(reading)][full]).To(Equal(want), string(reading))
	}
	g.Expect(r.depths[telemetry.Bus].Load()).To(Equal(int64(1)), "everything is looked at every two seconds")
	for _, reading := range record.Readings {
		values := line.Series[string(reading)]
		g.Expect(values[0]).NotTo(BeNil(), string(reading))
		had := 0
		for _, v := range values {
			if v != nil {
				had++
			}
		}
		switch reading {
		case record.Power, record.GPUUtilization, record.MemoryUtilization, record.SMClock, record.MemoryUsed:
			g.Expect(had).To(Equal(len(values)), string(reading))
			g.Expect(line.Nulls).NotTo(HaveKey(string(reading)))
		case record.PCIeSent, record.PCIeReceived:
			g.Expect(had).To(Equal(1), string(reading))
			g.Expect(line.Nulls).To(HaveKeyWithValue(string(reading), record.NotLooked))
		case record.Energy:
			g.Expect(had).To(Equal(2), "every two seconds, and where a wave begins or ends")
			g.Expect(line.Nulls).To(HaveKeyWithValue(string(reading), record.NotLooked))
		default:
			g.Expect(had).To(Equal(3), "%s: once a second, where a wave begins or ends, and at the first look after a release", reading)
			g.Expect(line.Nulls).To(HaveKeyWithValue(string(reading), record.NotLooked))
		}
	}

	gpus, _ = w.Cut()
	g.Expect(gpus[0].At).To(BeEmpty(), "a look is handed out once")
}

func TestAProcessIsNobodysBeforeThereIsAServer(t *testing.T) {
	g := NewWithT(t)
	r := &recorded{devices: []telemetry.Device{h200}, looks: []func() (telemetry.Look, error){saying(1, telemetry.Process{PID: 7})}}
	w := begin(t, r)
	g.Eventually(r.next.Load).Should(BeNumerically(">", 1))
	w.Close()
	gpus, _ := w.Cut()
	g.Expect(*gpus[0].Series["unknown_processes"][0]).To(Equal(int64(1)))
	g.Expect(*gpus[0].Series["other_processes"][0]).To(BeZero())
}

// The look that a release asks for is owed until one has been answered.
func TestALookThatFailsIsNoLookIntoAWave(t *testing.T) {
	g := NewWithT(t)
	busy := func() (telemetry.Look, error) { return telemetry.Look{}, errors.New("GPU 0 can't be asked: busy") }
	r := &recorded{devices: []telemetry.Device{h200}, looks: []func() (telemetry.Look, error){saying(1), busy, busy, saying(2)}}
	w := telemetry.Begin(telemetry.Config{Clock: clock.Start(), Salt: "a-run", GPUs: 50 * time.Millisecond, Prober: r, Devices: r.devices})
	t.Cleanup(w.Close)
	g.Eventually(r.next.Load).Should(Equal(int64(1)))
	w.Released()
	g.Eventually(r.next.Load).Should(BeNumerically(">", 3))
	w.Close()
	gpus, _ := w.Cut()
	g.Expect(gpus[0].Failed).To(HaveLen(1))
	g.Expect(gpus[0].Series["throttle_reasons"][1]).NotTo(BeNil())
	g.Expect(r.depths[telemetry.Full].Load()).To(Equal(int64(3)))
}

func TestADeviceThatFallsOff(t *testing.T) {
	g := NewWithT(t)
	lost := func() (telemetry.Look, error) {
		return telemetry.Look{}, errors.New("GPU 0 can't be asked: the GPU has fallen off the bus")
	}
	r := &recorded{devices: []telemetry.Device{h200}, looks: []func() (telemetry.Look, error){saying(1), lost}}
	w := begin(t, r)
	g.Eventually(r.next.Load).Should(BeNumerically(">", 4))
	w.Close()
	gpus, _ := w.Cut()
	g.Expect(gpus[0].At).To(HaveLen(1), "what it said before is kept")
	g.Expect(gpus[0].Failed).To(HaveLen(1), "the same reason over and over is told once")
	g.Expect(gpus[0].Failed[0].Times).To(BeNumerically(">", 2))
	g.Expect(gpus[0].Failed[0].Reason).To(ContainSubstring("fallen off the bus"))
}

func TestAReadingThatIsMissingIsNullWithTheReason(t *testing.T) {
	g := NewWithT(t)
	look := func() (telemetry.Look, error) {
		l, err := saying(1)()
		delete(l.Values, record.Energy)
		l.Missing[record.Energy] = "this device does not support it"
		l.Missing[record.OtherProcesses] = "this user may not read it"
		return l, err
	}
	r := &recorded{devices: []telemetry.Device{h200}, looks: []func() (telemetry.Look, error){look}}
	w := begin(t, r)
	g.Eventually(r.next.Load).Should(BeNumerically(">", 2), "looks that don't ask for processes don't hide why there are none")
	w.Close()
	gpus, _ := w.Cut()
	g.Expect(gpus[0].Series["energy_mj"][0]).To(BeNil())
	g.Expect(gpus[0].Nulls).To(HaveKeyWithValue("energy_mj", "this device does not support it"))
	g.Expect(gpus[0].Series["other_processes"][0]).To(BeNil())
	g.Expect(gpus[0].Nulls).To(HaveKeyWithValue("other_processes", "this user may not read it"))
}

func TestWatchFollowsAnEnginesPage(t *testing.T) {
	g := NewWithT(t)
	var asked, busyUntil atomic.Int64
	busyUntil.Store(math.MaxInt64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < busyUntil.Load() {
			_, _ = w.Write(busy)
		} else {
			_, _ = w.Write(idle)
		}
	}))
	t.Cleanup(server.Close)
	w := begin(t, &recorded{})
	if page, why := w.Page(context.Background(), false); page != nil || why == "" {
		t.Fatal("there is a page before the engine is followed")
	}
	w.Follow(telemetry.NewScraper(server.URL))
	g.Eventually(asked.Load).Should(BeNumerically(">", 2))
	page, _ := w.Page(context.Background(), false)
	g.Expect(*page.Idle).To(BeFalse())
	busyUntil.Store(asked.Load() + 5) // the server gets idle while it is waited for
	page, why := w.Page(context.Background(), true)
	g.Expect(why).To(BeEmpty())
	g.Expect(*page.Idle).To(BeTrue())
	g.Expect(page.Values).To(HaveKeyWithValue(record.Running, 0.0), "it waited until the engine was idle")
	w.Close()
	_, engine := w.Cut()
	g.Expect(engine.Failed).To(BeEmpty())
	g.Expect(*engine.Series[record.Running][0]).To(Equal(3.0))
	for name, values := range engine.Series {
		g.Expect(values).To(HaveLen(len(engine.At)), name)
	}
}

func TestAPageWithoutGaugesSaysNothingOfIdleness(t *testing.T) {
	g := NewWithT(t)
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, "# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total 7\n")
	}))
	t.Cleanup(server.Close)
	w := telemetry.Begin(telemetry.Config{Clock: clock.Start(), Engine: time.Hour})
	t.Cleanup(w.Close)
	w.Follow(telemetry.NewScraper(server.URL))
	page, why := w.Page(context.Background(), true)
	g.Expect(why).To(BeEmpty())
	g.Expect(page.Idle).To(BeNil())
	g.Expect(asked.Load()).To(Equal(int64(1)), "it would never say")
}

func TestAPageThatIsNone(t *testing.T) {
	for name, answer := range map[string]struct {
		handler http.HandlerFunc
		reason  string
	}{
		"missing": {http.NotFound, "404"},
		"malformed": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("vllm:num_requests_running many\n"))
		}, "no Prometheus page"},
		"huge": {func(w http.ResponseWriter, _ *http.Request) {
			line := make([]byte, 1<<20)
			for range 17 {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		}, "larger than 16 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := httptest.NewServer(answer.handler)
			t.Cleanup(server.Close)
			w := begin(t, &recorded{})
			w.Follow(telemetry.NewScraper(server.URL))
			page, why := w.Page(context.Background(), false)
			g.Expect(page).To(BeNil())
			g.Expect(why).To(ContainSubstring(answer.reason))
			g.Eventually(func() []record.FailedLook {
				_, engine := w.Cut()
				return engine.Failed
			}).ShouldNot(BeEmpty())
		})
	}
}

func TestASlowPageIsGivenUp(t *testing.T) {
	g := NewWithT(t)
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(hang) })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := telemetry.NewScraper(server.URL).Page(ctx)
	g.Expect(err).To(MatchError(ContainSubstring("did not answer in time")))
}

func TestSelectNamesWhatIsNotThere(t *testing.T) {
	g := NewWithT(t)
	second := h200
	second.Index, second.UUID = 1, "GPU-second"
	gpus := telemetry.GPUs{Devices: []telemetry.Device{h200, second}}
	all, err := gpus.Select(true, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(HaveLen(2))
	one, err := gpus.Select(false, []string{"1"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(one).To(ConsistOf(second))
	one, err = gpus.Select(false, []string{h200.UUID})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(one).To(ConsistOf(h200))
	_, err = gpus.Select(false, []string{"2", "GPU-none"})
	g.Expect(err).To(MatchError(And(ContainSubstring("no GPU 2"), ContainSubstring("no GPU GPU-none"))))
}
