package html

import (
	"fmt"
	"strings"

	"assay/harness/metric"
	"assay/harness/record"
)

// seconds are of the plan's time, in which every number of a summary is.
func (p Page) seconds(ns int64) float64 { return float64(float64(ns)*p.scale()) / 1e9 }

func (p Page) scale() float64 {
	if p.Summary.TimeScale > 0 {
		return p.Summary.TimeScale
	}
	return 1
}

// since writes a moment as seconds after another.
func (p Page) since(zero int64, at *int64) string {
	if at == nil {
		return "null"
	}
	return fmt.Sprintf("%.4f s", p.seconds(*at-zero))
}

// The most characters of an answer and of an error that a tip shows.
const (
	answerShown = 60
	errorShown  = 160
)

// tip is what pointing at an attempt shows: its record, in short.
func (p Page) tip(i int, zero int64) string {
	r := &p.Run.Requests[i]
	var out strings.Builder
	fmt.Fprintf(&out, "%s\nscheduled %s, sent %s, first token %s, last token %s, ended %s", p.named(i),
		p.since(zero, &r.ScheduledAt), p.since(zero, r.SentAt), p.since(zero, r.FirstTokenAt), p.since(zero, r.LastTokenAt), p.since(zero, &r.EndedAt))
	if r.OutputTokens != nil {
		fmt.Fprintf(&out, "\n%d output tokens", *r.OutputTokens)
	}
	if r.Error != nil {
		fmt.Fprintf(&out, "\nerror: %s", cut(*r.Error, errorShown))
	}
	if r.OutputText != "" {
		fmt.Fprintf(&out, "\nsaid: %s", cut(r.OutputText, answerShown))
	}
	return out.String()
}

// named says which attempt it is, how it ended and where its record is.
func (p Page) named(i int) string {
	r := &p.Run.Requests[i]
	return fmt.Sprintf("%s, lifecycle %d, wave %d, ordinal %d: %s (requests.jsonl, line %d)", r.Arm, r.Lifecycle, r.Wave, r.Ordinal, r.Outcome, i+1)
}

// delay is a duration of an attempt, in seconds, or that it is known only to be
// longer; ok is false of one that has none.
type delay func(p Page, i int) (v float64, atLeast, ok bool)

// ttft is from the sending on, as the metric contract has it.
func ttft(p Page, i int) (float64, bool, bool) {
	return p.one(metric.CensoredTTFT(p.alone(i)))
}

// latency likewise.
func latency(p Page, i int) (float64, bool, bool) {
	return p.one(metric.CensoredLatency(p.alone(i)))
}

// effectiveTTFT is from the scheduled moment on.
func effectiveTTFT(p Page, i int) (float64, bool, bool) {
	r := p.Run.Requests[i]
	if v, reason := metric.EffectiveTTFT(r); reason == "" {
		return p.seconds(v), false, true
	}
	return p.seconds(metric.EffectiveLatency(r)), true, r.Outcome != record.OK
}

// effectiveLatency likewise.
func effectiveLatency(p Page, i int) (float64, bool, bool) {
	r := p.Run.Requests[i]
	return p.seconds(metric.EffectiveLatency(r)), r.Outcome != record.OK, true
}

func (p Page) alone(i int) record.Population {
	return record.Population{Attempts: p.Run.Requests[i : i+1]}
}

func (p Page) one(values []metric.Censored) (float64, bool, bool) {
	if len(values) == 0 {
		return 0, false, false
	}
	return p.seconds(int64(values[0].Value)), values[0].AtLeast, true
}
