package scheduler_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/engine/emulated/alarm"
	"assay/harness/engine/emulated/scheduler"
)

func TestARunnerGivesTheTokensOfTheVirtualClockAtItsTimes(t *testing.T) {
	for set, p := range scheduler.Sets() {
		t.Run(set, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				const scale, spacing = 20, 100 * time.Microsecond
				var arrivals []scheduler.Arrival
				for i := range 12 {
					arrivals = append(arrivals, scheduler.Arrival{Job: scheduler.Job{ID: i, PromptTokens: 30, OutputTokens: 10 + 7*i, Sample: i}, At: time.Duration(i) * spacing * scale})
				}
				want := scheduler.Simulate(scheduler.New(p, 3), arrivals, true)

				r := scheduler.NewRunner(scheduler.New(p, 3), scale, alarm.Timer())
				var running, all sync.WaitGroup
				running.Go(r.Run)
				for i, a := range arrivals {
					all.Go(func() {
						time.Sleep(time.Duration(i) * spacing) // the bubble's clock
						ticket := r.Submit(scheduler.Job{PromptTokens: a.PromptTokens, OutputTokens: a.OutputTokens, Sample: a.Sample})
						for ticket.Given() < a.OutputTokens {
							<-ticket.Tokens()
						}
						g.Expect(ticket.First()).To(BeNumerically("~", want[i].First-a.At, time.Microsecond))
						g.Expect(ticket.Newest()).To(BeNumerically("~", want[i].Ended-a.At, time.Microsecond))
						r.Abandon(ticket, false)
					})
				}
				all.Wait()
				g.Expect(r.Load().Running).To(Equal(0))
				r.Close()
				running.Wait()
			})
		})
	}
}

func TestLatenessIsNotAddedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		p := scheduler.Parameters{Mode: scheduler.Serial, Step: time.Second, Prefill: time.Second}
		late := lateAlarm{alarm.Timer()}
		r := scheduler.NewRunner(scheduler.New(p, 1), 1, late)
		var running sync.WaitGroup
		running.Go(r.Run)
		began := time.Now()
		ticket := r.Submit(scheduler.Job{PromptTokens: 1, OutputTokens: 100})
		for ticket.Given() < 100 {
			<-ticket.Tokens()
		}
		g.Expect(ticket.Newest()).To(Equal(100 * time.Second))
		g.Expect(time.Since(began)).To(Equal(100*time.Second + lateness))
		r.Close()
		running.Wait()
	})
}

func TestARequestsTimeCountsFromWhenItReachedTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		p := scheduler.Parameters{Mode: scheduler.Replay, Answers: []scheduler.Answer{{FirstToken: 4 * time.Second, Total: 4 * time.Second, Tokens: 1}}}
		r := scheduler.NewRunner(scheduler.New(p, 1), 1, alarm.Timer())
		var running sync.WaitGroup
		running.Go(r.Run)
		began := time.Now()
		time.Sleep(3 * time.Second)
		first := r.SubmitAt(scheduler.Job{PromptTokens: 1, OutputTokens: 1}, began.Add(2*time.Second))
		// It reached the server earlier, and was submitted later.
		second := r.SubmitAt(scheduler.Job{PromptTokens: 1, OutputTokens: 1}, began.Add(time.Second))
		<-second.Tokens()
		g.Expect(time.Since(began)).To(Equal(10*time.Second), "two answers after the second 2")
		g.Expect(first.Newest()).To(Equal(4 * time.Second))
		g.Expect(second.Newest()).To(Equal(8 * time.Second))
		r.Close()
		running.Wait()
	})
}

const lateness = 300 * time.Millisecond

type lateAlarm struct{ alarm.Alarm }

func (a lateAlarm) Wait(at time.Time) bool { return a.Alarm.Wait(at.Add(lateness)) }

func TestAbandonedRequestsLeaveARunnerOrGoOn(t *testing.T) {
	for _, finish := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			p := scheduler.Parameters{Mode: scheduler.Serial, Step: time.Second, Prefill: time.Second}
			r := scheduler.NewRunner(scheduler.New(p, 1), 1, alarm.Timer())
			var running sync.WaitGroup
			running.Go(r.Run)
			ticket := r.Submit(scheduler.Job{PromptTokens: 1, OutputTokens: 10})
			for ticket.Given() < 3 {
				<-ticket.Tokens()
			}
			r.Abandon(ticket, finish)
			next := r.Submit(scheduler.Job{PromptTokens: 1, OutputTokens: 1})
			<-next.Tokens()
			if finish {
				g.Expect(next.First()).To(Equal(8 * time.Second))
				g.Expect(r.Load().GeneratedTokens).To(Equal(11))
			} else {
				g.Expect(next.First()).To(Equal(2*time.Second), "the step under way, then its own")
				g.Expect(r.Load().GeneratedTokens).To(Equal(4))
			}
			r.Close()
			running.Wait()
		})
	}
}
