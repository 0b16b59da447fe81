package metric

import (
	"fmt"

	"assay/harness/record"
)

// Contract is the version of the definitions in this package.
const Contract = 3

// A duration of one attempt is in ns of measured time, and has the reason
// where it is null.

// Latency is ended_at − sent_at: the complete response.
func Latency(r record.Request) (int64, string) {
	if r.SentAt == nil {
		return 0, "it was not sent: " + r.Nulls["sent_at_ns"]
	}
	return r.EndedAt - *r.SentAt, ""
}

// EffectiveLatency is ended_at − scheduled_at: what a user who came at the
// scheduled moment waited.
func EffectiveLatency(r record.Request) int64 { return r.EndedAt - r.ScheduledAt }

// ScheduleDelay is sent_at − scheduled_at: how late this side was.
func ScheduleDelay(r record.Request) (int64, string) {
	if r.SentAt == nil {
		return 0, "it was not sent: " + r.Nulls["sent_at_ns"]
	}
	return *r.SentAt - r.ScheduledAt, ""
}

// TTFT is first_token_at − sent_at.
func TTFT(r record.Request) (int64, string) {
	if r.SentAt == nil || r.FirstTokenAt == nil {
		return 0, "no first token: " + r.Nulls["first_token_at_ns"]
	}
	return *r.FirstTokenAt - *r.SentAt, ""
}

// TPOT is (last_token_at − first_token_at) / (output_tokens − 1), in ns.
func TPOT(r record.Request) (float64, string) {
	switch {
	case r.FirstTokenAt == nil || r.LastTokenAt == nil:
		return 0, "no first token: " + r.Nulls["first_token_at_ns"]
	case r.OutputTokens == nil:
		return 0, "no token count: " + r.Nulls["output_tokens"]
	case *r.OutputTokens < 2:
		return 0, fmt.Sprintf("%d output tokens: it takes two to have time between them", *r.OutputTokens)
	}
	return float64(*r.LastTokenAt-*r.FirstTokenAt) / float64(*r.OutputTokens-1), ""
}

// OutputRate is output_tokens / latency, in tokens a second of measured time.
// Its mean over requests is not throughput.
func OutputRate(r record.Request) (float64, string) {
	latency, reason := Latency(r)
	switch {
	case reason != "":
		return 0, reason
	case r.OutputTokens == nil:
		return 0, "no token count: " + r.Nulls["output_tokens"]
	case latency <= 0:
		return 0, "no time passed"
	}
	return float64(*r.OutputTokens) / (float64(latency) / 1e9), ""
}

// Gap is the time between two events that followed one another, with the
// number of tokens that the later one carried; nil where the engine does not
// say.
type Gap struct {
	NS     int64
	Tokens *int
}

// Gaps are the inter-token gaps of an attempt, an event each: a server that
// sends several tokens in one event has fewer gaps, not shorter ones. An attempt
// that was condensed has lost them: it must not be asked.
func Gaps(r record.Request) []Gap {
	if r.Condensed != nil {
		panic("the gaps of an attempt whose events were condensed")
	}
	var out []Gap
	for i := 1; i < len(r.Events); i++ {
		out = append(out, Gap{NS: r.Events[i].Arrival - r.Events[i-1].Arrival, Tokens: r.Events[i].Tokens})
	}
	return out
}
