package load_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/arrival"
	"assay/harness/client"
	"assay/harness/clock"
	"assay/harness/load"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
)

// open is an open loop at a constant rate against a server whose answers wait
// for hold.
func open(t *testing.T, rate float64, w arrival.Windows, hold func(since time.Duration)) load.Open {
	t.Helper()
	g := NewWithT(t)
	var once sync.Once
	var began time.Time
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		once.Do(func() { began = time.Now() })
		hold(time.Since(began))
		out.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(out, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	request, err := client.NewChatRequest(client.Params{Model: "m", Messages: []client.Message{{Role: "user", Content: "Hi"}}, MaxTokens: 1, TopP: 1})
	g.Expect(err).NotTo(HaveOccurred())
	a, err := arrival.New(arrival.Spec{Process: "constant", Rate: rate})
	g.Expect(err).NotTo(HaveOccurred())
	s, err := w.Schedule(a, 1)
	g.Expect(err).NotTo(HaveOccurred())
	o := load.Open{Schedule: s, DialAhead: 50 * time.Millisecond, Burst: load.Burst{
		Place: plan.Lifecycle{Number: 1, Pair: 1, Position: 1, Arm: "a"}, Wave: plan.Wave{Number: 1, Repeat: 1, Rate: 1, Arrivals: len(s.Offsets), ArrivalsSHA256: s.Digest()}, Executed: 1,
		Client: client.New(), Target: client.Target{BaseURL: server.URL}, Connect: time.Second, Timeout: 20 * time.Second,
		Clock: clock.Start(), Settle: record.Settle{Idle: true},
	}}
	for range s.Offsets {
		o.Items = append(o.Items, load.Item{PromptID: "p", Request: request})
	}
	g.Expect(o.Check()).To(Succeed())
	return o
}

// whole checks that nothing of the schedule is missing and nothing contradicts
// itself.
func whole(t *testing.T, o load.Open, w record.Wave, requests []record.Request) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(metric.Unaccounted(record.Run{Requests: requests}.Of(w))).To(BeEmpty())
	g.Expect(requests).To(HaveLen(len(o.Schedule.Offsets)))
	for i, r := range requests {
		g.Expect(metric.Broken(r)).To(BeEmpty())
		g.Expect(r.ScheduledAt - *w.ReleasedAt).To(Equal(o.Schedule.Offsets[i]))
		g.Expect(r.Warmup).To(Equal(!o.Schedule.Measured(o.Schedule.Offsets[i])))
	}
}

func percentile(requests []record.Request, p float64, of func(record.Request) int64) time.Duration {
	var values []float64
	for _, r := range requests {
		values = append(values, float64(of(r)))
	}
	return time.Duration(metric.Percentile(values, p))
}

func TestAStallIsSeenFromTheScheduledMoment(t *testing.T) {
	g := NewWithT(t)
	// Whatever comes between 0.5 s and 2.5 s is answered at 2.5 s.
	o := open(t, 100, arrival.Windows{Warmup: 200 * time.Millisecond, Measure: 11800 * time.Millisecond, Drain: 10 * time.Second}, func(since time.Duration) {
		if since > 500*time.Millisecond && since < 2500*time.Millisecond {
			<-time.After(2500*time.Millisecond - since)
		}
	})
	o.Limit = 10
	w, requests := o.Release(t.Context())
	whole(t, o, w, requests)
	g.Expect(record.Run{Requests: requests}.Of(w).Counts()[record.OK]).To(Equal(1200))
	scheduled := percentile(requests, 99, metric.EffectiveLatency)
	sent := percentile(requests, 99, func(r record.Request) int64 { return r.EndedAt - *r.SentAt })
	g.Expect(scheduled).To(BeNumerically(">", 1500*time.Millisecond), "a sixth of the arrivals waited")
	g.Expect(sent).To(BeNumerically("<", 500*time.Millisecond), "only ten were under way to see it")
}

func TestWhatFindsNoPlaceIsDroppedAndCounted(t *testing.T) {
	g := NewWithT(t)
	o := open(t, 100, arrival.Windows{Measure: 500 * time.Millisecond, Drain: 10 * time.Second}, func(time.Duration) { <-time.After(time.Second) })
	o.Limit, o.Drop = 3, true
	w, requests := o.Release(t.Context())
	whole(t, o, w, requests)
	dropped := 0
	for _, r := range requests {
		if r.Dropped() {
			dropped++
			g.Expect(r.SentAt).To(BeNil())
		}
	}
	g.Expect(dropped).To(Equal(47))
	g.Expect(record.Run{Requests: requests}.Of(w).Counts()).To(And(HaveKeyWithValue(record.OK, 3), HaveKeyWithValue(record.Cancelled, 47)))
}

func TestTheDrainEndsWhatHasNotEnded(t *testing.T) {
	g := NewWithT(t)
	stop := make(chan struct{})
	o := open(t, 50, arrival.Windows{Measure: 200 * time.Millisecond, Drain: 300 * time.Millisecond}, func(time.Duration) { <-stop })
	defer close(stop)
	o.Limit = 4
	w, requests := o.Release(t.Context())
	whole(t, o, w, requests)
	for i, r := range requests {
		g.Expect(r.Drained()).To(BeTrue())
		g.Expect(r.SentAt != nil).To(Equal(i < 4))
	}
}

func TestATimeoutCountsWhileHeldBack(t *testing.T) {
	g := NewWithT(t)
	stop := make(chan struct{})
	o := open(t, 50, arrival.Windows{Measure: 200 * time.Millisecond, Drain: 10 * time.Second}, func(time.Duration) { <-stop })
	defer close(stop)
	// The second has its own timeout, while the first is under way.
	o.Limit, o.Timeout = 1, 300*time.Millisecond
	w, requests := o.Release(t.Context())
	whole(t, o, w, requests)
	for _, r := range requests {
		g.Expect(r.Outcome).To(Equal(record.Timeout))
		g.Expect(r.EndedAt - r.ScheduledAt).To(BeNumerically(">=", int64(o.Timeout)))
	}
}

func TestAStoppedOpenLoopKeepsItsSchedule(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	o := open(t, 10, arrival.Windows{Measure: time.Hour / 60, Drain: time.Second}, func(time.Duration) {})
	o.OnOutcome = func(record.Outcome) { cancel() }
	w, requests := o.Release(ctx)
	whole(t, o, w, requests)
	g.Expect(w.Status).To(Equal("interrupted"))
	g.Expect(*requests[len(requests)-1].Error).To(HavePrefix("the run was stopped before its moment"))
}

func TestAnOpenLoopSaysAllThatIsWrongWithIt(t *testing.T) {
	g := NewWithT(t)
	err := load.Open{Schedule: arrival.Schedule{Offsets: []int64{1}}, DialAhead: -1, Limit: -1, Drop: true}.Check()
	g.Expect(err).To(MatchError(And(ContainSubstring("0 requests for 1 arrivals"), ContainSubstring("-1ns ahead"), ContainSubstring("in flight is -1"))))
	g.Expect(load.Open{Drop: true}.Check()).To(MatchError(ContainSubstring("there is none")))
}

func TestWhatDiallingAheadSaves(t *testing.T) {
	for _, ahead := range []time.Duration{0, 50 * time.Millisecond} {
		o := open(t, 200, arrival.Windows{Measure: 2 * time.Second, Drain: time.Second}, func(time.Duration) {})
		o.DialAhead = ahead
		w, requests := o.Release(t.Context())
		whole(t, o, w, requests)
		delay := func(r record.Request) int64 { return *r.SentAt - r.ScheduledAt }
		t.Logf("opened %s ahead: schedule_delay %s median, %s p99", ahead, percentile(requests, 50, delay), percentile(requests, 99, delay))
		NewWithT(t).Expect(percentile(requests, 50, delay)).To(BeNumerically("<", 20*time.Millisecond))
	}
}

// talks makes conversations of an open loop's arrivals.
func talks(o load.Open, turns int, think time.Duration) load.Open {
	item := o.Items[0]
	o.Schedule = o.Schedule.Conversations(turns, think, 3)
	o.Items = nil
	for range o.Schedule.Offsets {
		o.Items = append(o.Items, item)
	}
	o.Wave.Arrivals, o.Wave.ArrivalsSHA256 = len(o.Items), o.Schedule.Digest()
	return o
}

func TestATurnComesOnceTheAnswerBeforeItHasBeenThoughtAbout(t *testing.T) {
	g := NewWithT(t)
	o := talks(open(t, 20, arrival.Windows{Measure: time.Second, Drain: 10 * time.Second}, func(time.Duration) { <-time.After(30 * time.Millisecond) }), 3, 50*time.Millisecond)
	w, requests := o.Release(t.Context())
	g.Expect(metric.Unaccounted(record.Run{Requests: requests}.Of(w))).To(BeEmpty())
	g.Expect(requests).To(HaveLen(60))
	asked, late := 0, 0
	for i, r := range requests {
		g.Expect(metric.Broken(r)).To(BeEmpty())
		if !o.Schedule.Follows(i) {
			g.Expect(r.ScheduledAt - *w.ReleasedAt).To(Equal(o.Schedule.Offsets[i]))
			continue
		}
		before := requests[i-1]
		g.Expect(r.ScheduledAt).To(BeNumerically("~", before.EndedAt+o.Schedule.Thinks[i], 100*time.Millisecond))
		g.Expect(r.ScheduledAt).To(BeNumerically(">=", before.EndedAt+o.Schedule.Thinks[i]-before.Clock.BoundNS))
		switch {
		case r.Outcome == record.OK:
			asked++
			g.Expect(*r.SentAt).To(BeNumerically(">=", r.ScheduledAt))
			g.Expect(r.Warmup).To(BeFalse())
		default:
			late++
			g.Expect(*r.Error).To(ContainSubstring("its moment came after the end of the measurement"))
			g.Expect(r.Warmup).To(BeTrue(), "it is in no result")
		}
	}
	g.Expect(asked).To(BeNumerically(">", 20))
	g.Expect(late).To(BeNumerically(">", 0))
}

func TestAConversationEndsWithTheTurnThatFails(t *testing.T) {
	g := NewWithT(t)
	o := talks(open(t, 10, arrival.Windows{Measure: 500 * time.Millisecond, Drain: 2 * time.Second}, func(time.Duration) { <-time.After(400 * time.Millisecond) }), 3, time.Millisecond)
	o.Timeout = 100 * time.Millisecond
	w, requests := o.Release(t.Context())
	g.Expect(metric.Unaccounted(record.Run{Requests: requests}.Of(w))).To(BeEmpty())
	broken := 0
	for i, r := range requests {
		g.Expect(metric.Broken(r)).To(BeEmpty())
		if i%3 == 0 {
			g.Expect(r.Outcome).To(Equal(record.Timeout))
			continue
		}
		g.Expect(r.Outcome).To(Equal(record.Cancelled))
		g.Expect(r.SentAt).To(BeNil())
		want := "not asked: the turn before it was not answered"
		if r.ScheduledAt-*w.ReleasedAt >= o.Schedule.End {
			want = "not asked: its moment came after the end of the measurement"
		} else {
			broken++
		}
		g.Expect(*r.Error).To(Equal(want))
		g.Expect(r.EndedAt).To(Equal(r.ScheduledAt))
	}
	g.Expect(broken).To(BeNumerically(">=", 4))
}

// A response that was read to its end is no answer if it says nothing.
func TestAnErrorInTheStreamEndsAConversationToo(t *testing.T) {
	g := NewWithT(t)
	o := talks(open(t, 10, arrival.Windows{Measure: 500 * time.Millisecond, Drain: 2 * time.Second}, func(time.Duration) {}), 2, time.Millisecond)
	broken := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		out.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(out, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
	}))
	t.Cleanup(broken.Close)
	o.Target.BaseURL = broken.URL
	_, requests := o.Release(t.Context())
	for i, r := range requests {
		g.Expect(metric.Broken(r)).To(BeEmpty())
		if i%2 == 0 {
			g.Expect(r.Outcome).To(Equal(record.Truncated))
			continue
		}
		g.Expect(r.SentAt).To(BeNil())
		g.Expect(*r.Error).To(Equal("not asked: the turn before it was not answered"))
	}
}
