package plan_test

import (
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/plan"
)

// arrivalPlan is the shipped one, changed.
func arrivalPlan(t *testing.T, oldnew ...string) (*plan.Plan, error) {
	t.Helper()
	shipped, err := os.ReadFile("../../suites/arrival/plans/emulated.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	text := string(shipped)
	for i := 0; i < len(oldnew); i += 2 {
		NewWithT(t).Expect(text).To(ContainSubstring(oldnew[i]))
		text = strings.Replace(text, oldnew[i], oldnew[i+1], 1)
	}
	return plan.Parse("plan.yaml", []byte(text))
}

func TestMistakesOfAnArrivalPlanSayWhatWouldBeRight(t *testing.T) {
	const rates, swept = "rates: [0.2rps, 0.4rps, 0.6rps, 0.9rps]", "process: poisson, rates: [0.2rps, 0.4rps, 0.6rps, 0.9rps]"
	for _, m := range []struct{ old, new, says string }{
		{rates, "rates: [2]", "arrivals.rates[0]: 2 is wrong: write requests a second with the unit"},
		{rates, "rates: [2rps, 2rps]", "arrivals.rates[1]: 2rps stands there already, as rates[0]"},
		{rates, "rates: [0rps]", "arrivals.rates[0]: 0rps brings nothing"},
		{rates, "rates: []", "arrivals.rates: 0 of them are too few"},
		{", " + rates, "", "arrivals.rates: missing: a poisson process needs rates"},
		{"process: poisson", "process: weibull", `arrivals.process: "weibull" is not known: write constant, poisson`},
		{"process: poisson", "process: poisson, burstiness: 2", "arrivals.burstiness: a poisson process has none: it is for gamma"},
		{swept, "process: ramp, from: 1rps, to: 2rps", "arrivals.over: missing: a ramp process needs over"},
		{swept, "process: step, steps: [{rate: 1rps, for: 0s}]", "arrivals.steps[0].for: 0s leaves no time"},
		{swept, "process: ramp, from: 1rps, to: 2rps, over: 1m", "search: a ramp process has no single rate to look for"},
		{swept, "process: trace, offsets: [2s, 1s]", "arrivals.offsets[1]: 1s comes after 2s: offsets count from the trace's beginning"},
		{"measure: 3m", "measure: 0s", "arrivals.measure: 0s leaves no time"},
		{"measure: 3m, ", "", "arrivals.measure: missing: write a time with its unit"},
		{"measure: 3m, drain: 2m, min_requests: 200", "measure: 1ms, drain: 2m, min_requests: 0", "arrivals.rates[0]: no request comes in the measurement"},
		{"order: shuffled", "order: random", `arrivals.order: "random" is not known: write shuffled`},
		{"order: shuffled", "order: shuffled, beyond: drop", "arrivals.beyond: there is no limit to go beyond: write in_flight too"},
		{"measure: 3m, drain: 2m, min_requests: 200", "measure: 1m, drain: 2m, min_requests: 20", "arrivals.min_requests: 20 measured requests, which is what a probe at 0.25rps has, can't show the SLO at 90%"},
		{"failure_rate: 5%", "failure_rate: 1%", "it takes 230; write min_requests: 230 or more"},
		{"failure_rate: 5%", "failure_rate: 0%", "search.slo.failure_rate: 0% can be shown by no number of requests"},
		{"ttft_p95: 6s", "ttft_p96: 6s", "search.slo.ttft_p96: unknown key; did you mean ttft_p95?"},
		{"ttft_p95: 6s", "ttft_p95: 0s", "search.slo.ttft_p95: 0s leaves no time"},
		{"to: 2rps", "to: 0.2rps", "search.to: 0.2rps is not above from, 0.25rps"},
		{"confidence: 90%", "confidence: 50%", "search.confidence: 50% is no confidence"},
		{"within: 25%", "within: 0%", "search.within: 0% is narrower than a search can show"},
		{"claims: [slo_rate, ttft]", "claims: [goodput]", `claims[0]: "goodput" is not known: write slo_rate`},
		{"schedule: {lifecycles: 1,", "schedule: {lifecycles: 1, tiers: [8],", "schedule.tiers: unknown key"},
		{rates, "rates: [900000rps]", "stay at or below 10000000"},
		{"schedule_delay: 50ms", "release_lag: 1s", "gates.release_lag: unknown key"},
	} {
		t.Run(m.says, func(t *testing.T) {
			_, err := arrivalPlan(t, m.old, m.new)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(m.says)))
		})
	}
	_, err := arrivalPlan(t, "max_tokens: 128", "max_tokens: 1", "ttft_p95: 6s", "tpot_p95: 6s")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("search.slo.tpot_p95: with max_tokens: 1 no answer has a TPOT")))
	const eight, talk = "{prompts: eight, max_tokens: 128, temperature: 0, lane: natural}", "{source: {kind: conversations, turns: 3, user: {fixed: 50}, output: {fixed: 20}}, temperature: 0, lane: natural}"
	_, err = arrivalPlan(t, eight, talk)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("arrivals.think: missing: write how long the user of a conversation thinks")))
	_, err = arrivalPlan(t, "warmup: 30s", "think: 8s, warmup: 30s")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("arrivals.think: nobody thinks between requests that stand alone")))
	_, err = arrivalPlan(t, eight, strings.Replace(talk, "turns: 3", "turns: 0", 1), "warmup: 30s", "think: 0s, warmup: 30s")
	NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("workload.source.turns: 0 is too small"), ContainSubstring("arrivals.think: 0s leaves no time"))))
	_, err = arrivalPlan(t, eight, talk, swept, "process: ramp, from: 1rps, to: 2rps, over: 1m, think: 8s")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("arrivals.process: conversations begin at one rate")))
	_, err = arrivalPlan(t, "search: {slo: {ttft_p95: 6s, failure_rate: 5%}, from: 0.25rps, to: 2rps, within: 25%, confidence: 90%}\n", "")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("claims[0]: slo_rate is what a search finds, and the plan has none")))
}

func TestBothArmsOfAPairGetTheSameArrivalsAndPairsOthers(t *testing.T) {
	g := NewWithT(t)
	p, err := arrivalPlan(t, "lifecycles: 1", "lifecycles: 6")
	g.Expect(err).NotTo(HaveOccurred())
	s := p.Schedule()
	g.Expect(s.Lifecycles).To(HaveLen(12))
	orders, digests := map[string]bool{}, map[string]bool{}
	for i := 0; i < len(s.Lifecycles); i += 2 {
		g.Expect(s.Lifecycles[i].Waves).To(Equal(s.Lifecycles[i+1].Waves))
		order := ""
		for _, w := range s.Lifecycles[i].Waves {
			order += plan.Rate(w.Rate).String() + " "
			g.Expect(digests).NotTo(HaveKey(w.ArrivalsSHA256))
			digests[w.ArrivalsSHA256] = true
		}
		orders[order] = true
	}
	g.Expect(len(orders)).To(BeNumerically(">", 1), "the order of the rates is shuffled for each pair")
	again, err := arrivalPlan(t, "lifecycles: 1", "lifecycles: 6")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.Schedule().SHA256()).To(Equal(s.SHA256()))
	other, err := arrivalPlan(t, "lifecycles: 1", "lifecycles: 6", "seed: 20261204", "seed: 1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(other.Schedule().SHA256()).NotTo(Equal(s.SHA256()))
}

func TestAScaledPlansArrivalsAreScaledAndItsDigestsAreNot(t *testing.T) {
	g := NewWithT(t)
	p, err := arrivalPlan(t)
	g.Expect(err).NotTo(HaveOccurred())
	w := p.Schedule().Lifecycles[0].Waves[0]
	s, err := p.ArrivalsOf(w)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Offsets).To(HaveLen(w.Arrivals))
	g.Expect(time.Duration(s.Warmup)).To(Equal(300*time.Millisecond), "30 s at a hundred times")
	unscaled, err := arrivalPlan(t, "time_scale: 100", "time_scale: 1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unscaled.Schedule().Lifecycles[0].Waves[0].ArrivalsSHA256).To(Equal(w.ArrivalsSHA256))
}

func TestConversationsBringTheirTurnsAtTheRate(t *testing.T) {
	g := NewWithT(t)
	p, err := arrivalPlan(t, "{prompts: eight, max_tokens: 128, temperature: 0, lane: natural}",
		"{source: {kind: conversations, turns: 3, user: {fixed: 50}, output: {fixed: 20}}, temperature: 0, lane: natural}",
		"rates: [0.2rps, 0.4rps, 0.6rps, 0.9rps]", "rates: [2rps]", "process: poisson", "process: constant", "warmup: 30s", "think: 8s, warmup: 30s", "min_requests: 200", "min_requests: 700")
	g.Expect(err).NotTo(HaveOccurred())
	w := p.Schedule().Lifecycles[0].Waves[0]
	s, err := p.ArrivalsOf(w)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.Arrivals).To(Equal(len(s.Offsets)))
	// 20 conversations in 30 s of warm-up, and 234 of three turns make 702.
	g.Expect(len(s.Offsets)).To(Equal(3 * (20 + 234)))
	g.Expect(s.Offsets[3]).To(Equal(int64(15*time.Millisecond)), "a conversation each 1.5 s, a hundred times faster")
	sum := time.Duration(0)
	for i := range s.Thinks {
		if s.Follows(i) {
			sum += time.Duration(s.Thinks[i])
		}
	}
	g.Expect((sum / (2 * 254)).Seconds()).To(BeNumerically("~", 0.08, 0.012))
	g.Expect(w.ArrivalsSHA256).To(HaveLen(64))
	g.Expect(p.Turns()).To(Equal(3))
}
