package load_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/client"
	"assay/harness/clock"
	"assay/harness/load"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/harness/telemetry"
)

func gauges(running, waiting, generated int) telemetry.Gauges {
	return telemetry.Gauges{Running: &running, Waiting: &waiting, Generated: &generated}
}

// script gives out looks one after the other, the last one over and over.
func script(looks ...telemetry.Gauges) func(context.Context) (telemetry.Gauges, error) {
	at := 0
	return func(context.Context) (telemetry.Gauges, error) {
		g := looks[min(at, len(looks)-1)]
		at++
		return g, nil
	}
}

func TestSettlingWaitsUntilTheServerIsIdle(t *testing.T) {
	g := NewWithT(t)
	s := load.Settle(t.Context(), clock.Start(), load.Idleness{
		Limit: time.Minute, Poll: time.Millisecond, Abandoned: 3,
		Gauges: script(gauges(1, 2, 100), gauges(1, 0, 150), gauges(0, 0, 170), gauges(0, 1, 170), gauges(0, 0, 180)),
	})
	g.Expect(s.Idle).To(BeTrue())
	g.Expect(s.Method).To(Equal("metrics"))
	g.Expect(*s.Generated).To(Equal(80), "one idle look alone is not believed")
	g.Expect(s.Abandoned).To(Equal(3))
	g.Expect(s.Until).To(BeNumerically(">", s.From))
}

func TestAServerThatDoesNotGetIdleIsSaidToBeBusy(t *testing.T) {
	g := NewWithT(t)
	s := load.Settle(t.Context(), clock.Start(), load.Idleness{Limit: 20 * time.Millisecond, Poll: time.Millisecond, Gauges: script(gauges(1, 5, 0))})
	g.Expect(s.Idle).To(BeFalse())
	g.Expect([]int{*s.Running, *s.Waiting}).To(Equal([]int{1, 5}))
	g.Expect(s.Detail).To(ContainSubstring("not idle within"))
}

func TestWhyNothingWasSeenOutlastsTheLookThatWasCutOff(t *testing.T) {
	g := NewWithT(t)
	looks := 0
	s := load.Settle(t.Context(), clock.Start(), load.Idleness{Limit: time.Second, Poll: time.Millisecond, Gauges: func(ctx context.Context) (telemetry.Gauges, error) {
		if looks++; looks > 1 {
			<-ctx.Done()
			return telemetry.Gauges{}, ctx.Err()
		}
		return telemetry.Gauges{}, errors.New("/metrics is an HTML page")
	}})
	g.Expect(s.Detail).To(Equal("not idle within 1s: an unknown number running, an unknown number waiting; the last look failed: /metrics is an HTML page"))
}

func TestNobodyWaitsForAServerThatIsGone(t *testing.T) {
	gone := make(chan struct{})
	close(gone)
	s := load.Settle(t.Context(), clock.Start(), load.Idleness{Limit: time.Hour, Poll: time.Millisecond, Gone: gone, Gauges: script(gauges(1, 0, 0))})
	NewWithT(t).Expect(s.Idle).To(BeFalse())
	NewWithT(t).Expect(s.Detail).To(ContainSubstring("exited"))
}

func TestWithoutGaugesAProbeDecides(t *testing.T) {
	g := NewWithT(t)
	s := load.Settle(t.Context(), clock.Start(), load.Idleness{Limit: time.Second, Probe: func(context.Context) error { return nil }})
	g.Expect([]any{s.Method, s.Idle}).To(Equal([]any{"probe", true}))
	s = load.Settle(t.Context(), clock.Start(), load.Idleness{Limit: time.Second, Probe: func(context.Context) error { return errors.New("timeout") }})
	g.Expect(s.Idle).To(BeFalse())
	g.Expect(s.Detail).To(ContainSubstring("timeout"))
	s = load.Settle(t.Context(), clock.Start(), load.Idleness{Limit: time.Second})
	g.Expect([]any{s.Method, s.Idle}).To(Equal([]any{"none", false}))
}

// burst is a wave of four against a server that refuses every other request.
func burst(t *testing.T, settle record.Settle) (load.Burst, *atomic.Int64) {
	t.Helper()
	var arrivals, ended atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if arrivals.Add(1)%2 == 0 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"token_ids\":[1],\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	request, err := client.NewChatRequest(client.Params{Model: "m", Messages: []client.Message{{Role: "user", Content: "Hi"}}, MaxTokens: 1, TopP: 1, TokenIDs: true})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	b := load.Burst{
		Place: plan.Lifecycle{Number: 1, Pair: 1, Position: 1, Arm: "a"}, Wave: plan.Wave{Number: 2, Tier: 4, Repeat: 1}, Executed: 2, Lane: plan.Natural,
		Client: client.New(), Target: client.Target{BaseURL: server.URL}, Connect: time.Second, Timeout: 5 * time.Second,
		Clock: clock.Start(), Settle: settle, OnOutcome: func(record.Outcome) { ended.Add(1) },
	}
	for range 4 {
		b.Items = append(b.Items, load.Item{PromptID: "p", Request: request})
	}
	return b, &ended
}

func TestAWaveAccountsForEachOfItsRequests(t *testing.T) {
	g := NewWithT(t)
	b, ended := burst(t, record.Settle{Idle: true})
	var released []int64
	b.OnRelease = func() { released = append(released, b.Clock.Now()) }
	w, requests := b.Release(t.Context())
	g.Expect(released).To(ConsistOf(And(BeNumerically(">=", *w.ReleasedAt), BeNumerically("<", requests[0].EndedAt))))
	run := record.Run{Waves: []record.Wave{w}, Requests: requests}
	p := run.Of(w)
	g.Expect(metric.Unaccounted(p)).To(BeEmpty())
	g.Expect(p.Counts()).To(And(HaveKeyWithValue(record.OK, 2), HaveKeyWithValue(record.HTTPError, 2)))
	g.Expect(ended.Load()).To(Equal(int64(4)))
	g.Expect(*w.CarryOver).To(BeFalse())
	for _, r := range requests {
		g.Expect(r.ScheduledAt).To(Equal(*w.ReleasedAt), "all are released at one moment")
		g.Expect(metric.Broken(r)).To(BeEmpty())
	}
	g.Expect(w.Client.Busiest).To(BeNil(), "the wave was over within a second")
	if runtime.GOOS == "linux" {
		g.Expect(w.Client.Held.Files).To(BeNumerically(">=", 4), "its four connections were open at release")
		g.Expect(w.Client.Held.Sockets).To(BeNumerically(">=", 4))
		g.Expect(w.Client.Held.Files).To(BeNumerically("<", w.Client.Held.FilesLimit))
	}
	lag, ok := load.ReleaseLag(requests)
	g.Expect(ok).To(BeTrue())
	g.Expect(*w.ReleaseLag).To(Equal(lag))
}

func TestASequenceSendsTheNextWhenTheLastHasEnded(t *testing.T) {
	g := NewWithT(t)
	b, ended := burst(t, record.Settle{Rule: "none", Method: "none", Detail: "a fresh server"})
	b.Wave = plan.Wave{Number: 1, Tier: 1, Repeat: 1, Requests: 4}
	b.Place.Lane = plan.Fixed
	w, requests := load.Sequence{Burst: b}.Release(t.Context())
	g.Expect([]any{w.Status, w.Attempts, w.Requests, w.Lane}).To(Equal([]any{"ran", 4, 4, "fixed"}))
	g.Expect(w.ReleaseLag).To(BeNil())
	g.Expect(w.Nulls).To(HaveKey("release_lag_ns"))
	p := record.Run{Requests: requests}.Of(w)
	g.Expect(metric.Unaccounted(p)).To(BeEmpty())
	g.Expect(p.Name).To(Equal("lifecycle 1 (a), fixed sequence"))
	g.Expect(ended.Load()).To(Equal(int64(4)))
	g.Expect(requests[0].ScheduledAt).To(Equal(*w.ReleasedAt))
	for i, r := range requests {
		g.Expect(metric.Broken(r)).To(BeEmpty())
		g.Expect(r.Outcome).To(Equal([]record.Outcome{record.OK, record.HTTPError}[i%2]), "a failure ends nothing but itself")
		if i > 0 {
			g.Expect(r.ScheduledAt).To(BeNumerically(">=", requests[i-1].EndedAt))
		}
	}
}

func TestAStoppedSequenceKeepsItsAttempts(t *testing.T) {
	g := NewWithT(t)
	b, _ := burst(t, record.Settle{})
	b.Wave = plan.Wave{Number: 1, Tier: 1, Repeat: 1, Requests: 4}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	b.OnOutcome = func(record.Outcome) {
		if n++; n == 2 {
			cancel()
		}
	}
	w, requests := load.Sequence{Burst: b}.Release(ctx)
	g.Expect(w.Status).To(Equal("interrupted"))
	g.Expect(requests).To(HaveLen(4))
	g.Expect(requests[0].Outcome).To(Equal(record.OK))
	for _, r := range requests[2:] {
		g.Expect(r.Outcome).To(Equal(record.Cancelled))
		g.Expect(metric.Broken(r)).To(BeEmpty())
	}
}

func TestAWaveOntoABacklogIsMarked(t *testing.T) {
	g := NewWithT(t)
	one, zero := 1, 0
	b, _ := burst(t, record.Settle{Running: &one, Waiting: &zero})
	w, _ := b.Release(t.Context())
	g.Expect(*w.CarryOver).To(BeTrue())
	b, _ = burst(t, record.Settle{Detail: "no gauges"})
	w, _ = b.Release(t.Context())
	g.Expect(w.CarryOver).To(BeNil())
	g.Expect(w.Nulls["carry_over"]).To(ContainSubstring("no gauges"))
}

func TestAStoppedWaveKeepsItsAttempts(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b, _ := burst(t, record.Settle{Idle: true})
	w, requests := b.Release(ctx)
	g.Expect(w.Status).To(Equal("interrupted"))
	g.Expect(requests).To(HaveLen(4))
	for _, r := range requests {
		g.Expect(r.Outcome).To(Equal(record.Cancelled))
	}
}
