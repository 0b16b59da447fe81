package alarm_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/engine/emulated/alarm"
)

var kinds = map[string]func() alarm.Alarm{"this system's": alarm.New, "the runtime's": alarm.Timer}

func TestItNeverWakesTooEarly(t *testing.T) {
	for name, make := range kinds {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a := make()
			defer a.Close()
			for _, d := range []time.Duration{-time.Hour, 0, 1, 50 * time.Microsecond, 3 * time.Millisecond} {
				at := time.Now().Add(d)
				g.Expect(a.Wait(at)).To(BeTrue())
				g.Expect(time.Now().Before(at)).To(BeFalse(), "%s", d)
			}
		})
	}
}

func TestClosingEndsAWait(t *testing.T) {
	for name, make := range kinds {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a := make()
			ended := false
			woken := promise(func() { ended = !a.Wait(time.Now().Add(time.Hour)) })
			a.Close()
			g.Eventually(woken).Should(BeClosed())
			g.Expect(ended).To(BeTrue())
			a.Close()
			g.Expect(a.Wait(time.Now().Add(time.Hour))).To(BeFalse())
		})
	}
}

func promise(do func()) <-chan struct{} {
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	return done
}

func TestARuntimeTimerFollowsABubblesClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := alarm.Timer()
		defer a.Close()
		at := time.Now().Add(time.Hour)
		NewWithT(t).Expect(a.Wait(at)).To(BeTrue())
		NewWithT(t).Expect(time.Now()).To(Equal(at))
	})
}

// How late each kind wakes, over waits of about a scaled step.
func BenchmarkLateness(b *testing.B) {
	for name, make := range kinds {
		b.Run(name, func(b *testing.B) {
			a := make()
			defer a.Close()
			var late []time.Duration
			for b.Loop() {
				at := time.Now().Add(1200 * time.Microsecond)
				a.Wait(at)
				late = append(late, time.Since(at))
			}
			slices.Sort(late)
			b.ReportMetric(float64(late[len(late)/2].Nanoseconds()), "p50-ns")
			b.ReportMetric(float64(late[len(late)*99/100].Nanoseconds()), "p99-ns")
		})
	}
}
