package recordtest

import (
	"fmt"
	"strings"

	"assay/harness/plan"
	"assay/harness/record"
)

// PairsText is a small crossover plan: two lanes of six pairs, in containers.
const PairsText = `
schema: assay.plan/v1
name: pairs
experiment: crossover
labels: [cpu]
seed: 7
model: {name: fixture, revision: none, served_as: fixture}
arms:
  - {name: eager, role: baseline, on_disconnect: cancel, engine: {container: {image: engine, args: [--enforce-eager]}}}
  - {name: compiled, role: candidate, on_disconnect: cancel, engine: {container: {image: engine}}}
lanes:
  fixed:   {tasks: mixed, requests: 24, cycle: 12, output_tokens: 8}
  natural: {tasks: mixed, requests: 12, cycle: 12, max_tokens: 8}
schedule: {pairs: 6}
failure: exclude_pair
crossing: {dwell: 4}
inference: {resamples: 1000}
cost: {list_rate_per_hour: 0.39, currency: USD, source: a list, boundary: boot to termination}
timeouts: {ready: 1m, request: 10s, stop: 10s}
claims: [output_identical, equal_token_count, natural_quality]
`

// Pairs parses PairsText as [Plan] does PlanText.
func Pairs(oldnew ...string) *plan.Plan { return parse("pairs.yaml", PairsText, oldnew) }

// Answered is what an attempt of a sequence was asked, and what it said.
type Answered struct {
	PromptID string
	Text     string
	Correct  *bool
	Reason   string // why Correct is null
}

// Sequences makes the records of an honest crossover. The baseline is ready
// after 2 s and takes 20 ms a token, the candidate after 3 s and 10 ms, each a
// little longer or shorter by its number. Answers says what each attempt was
// asked and said. Fails and Partial of the options count.
func Sequences(p *plan.Plan, o Options, answers func(r record.Request) Answered) record.Run {
	run := record.Run{Environment: environment("pairs-20260101T000000Z")}
	for _, place := range p.Schedule().Lifecycles {
		b := builder{plan: p, options: o, place: place}
		wave, requests, ready := b.sequence(answers)
		run.Waves = append(run.Waves, wave)
		run.Requests = append(run.Requests, requests...)
		l := b.lifecycle([]record.Wave{wave}, requests)
		l.Lane = string(place.Lane)
		for i := range l.Moments {
			if l.Moments[i].Phase == "ready" {
				l.Moments[i].At = &ready
			}
		}
		for name, value := range map[string]string{"image_id": "sha256:1", "engine_version": "1", "model_digest": "d"} {
			l.Identity[name] = record.Fact{Value: value, Provenance: record.EngineReported}
		}
		l.Identity["compilation_seconds"] = record.Fact{Reason: "no stable interface of the engine says it"}
		run.Lifecycles = append(run.Lifecycles, l)
	}
	return run
}

// wobble is a few thousandths more or less, by a number.
func wobble(v int64, number int) int64 { return v + v*int64(number*7%11-5)/1000 }

func (b *builder) sequence(answers func(record.Request) Answered) (record.Wave, []record.Request, int64) {
	w := b.place.Waves[0]
	ready, step := wobble(2*second, b.place.Number), wobble(20*ms, b.place.Number)
	if b.plan.Arm(b.place.Arm).Role == plan.Candidate {
		ready, step = wobble(3*second, b.place.Number), wobble(10*ms, b.place.Number)
	}
	ready += 100 * ms // after the start
	release := ready + ms
	at := release
	var out []record.Request
	for ordinal := 1; ordinal <= w.Requests; ordinal++ {
		r := record.Request{
			Lifecycle: b.place.Number, Pair: b.place.Pair, Position: b.place.Position, Arm: b.place.Arm, Lane: string(b.place.Lane),
			Wave: 1, Tier: 1, Repeat: 1, Ordinal: ordinal, InputSHA256: strings.Repeat(fmt.Sprintf("%x", ordinal%16), 64),
			ScheduledAt: at, Clock: record.TimeSource{Provenance: record.KernelObserved, BoundNS: 30},
			Events: []record.Event{}, ClientLag: []int64{}, OutputTokenIDs: []int{}, Nulls: map[string]string{},
		}
		said := answers(r)
		r.PromptID = said.PromptID
		sent, dial := at+100_000, int64(90_000)
		r.SentAt, r.Dial = &sent, &dial
		if b.options.Fails != nil && b.options.Fails(r) {
			if b.options.Partial != nil {
				b.tokens(&r, b.options.Partial(r), sent, step)
			}
			fail(&r, record.StreamError, "the stream was reset", sent+10*step)
		} else {
			b.answer(&r, sent, step)
			r.Correct = said.Correct
			r.OutputText = said.Text
		}
		explain(&r)
		if r.Correct == nil {
			r.Nulls["correct"] = said.Reason
			if r.Outcome != record.OK && b.place.Lane == plan.Natural {
				r.Nulls["correct"] = "the attempt failed, so there is no whole answer"
			}
		}
		at = r.EndedAt + 50_000
		out = append(out, r)
	}
	end := out[len(out)-1].EndedAt
	b.now = end + 10*ms
	wall := int64(1_767_225_600) * second
	wave := record.Wave{
		Lifecycle: b.place.Number, Arm: b.place.Arm, Number: 1, Executed: 1, Tier: 1, Repeat: 1, Lane: string(b.place.Lane), Requests: w.Requests, Status: "ran",
		Settle:     &record.Settle{Rule: "none", Method: "none", From: release, Until: release, Detail: "a fresh server"},
		ReleasedAt: &release, Attempts: len(out), Client: &record.ClientLoad{CPU: ms, Goroutines: 2},
		ClockReadings: &record.ClockReadings{
			Before: record.ClockReading{Before: release - 60, Wall: wall + release - 30, After: release},
			After:  record.ClockReading{Before: end, Wall: wall + end + 30, After: end + 60},
		},
		Nulls: map[string]string{"carry_over": "a fresh server", "release_lag_ns": "the requests of a sequence are not released together"},
	}
	return wave, out, ready
}
