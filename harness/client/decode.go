package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"sort"
	"strings"

	"assay/harness/clock"
	"assay/harness/record"
)

// chunk is what an event of a stream may hold: chat completions, completions,
// and an error in place of either.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content          *string `json:"content"`
			Reasoning        *string `json:"reasoning"`
			ReasoningContent *string `json:"reasoning_content"`
			ToolCalls        []struct {
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
		Text         *string `json:"text"`
		TokenIDs     []int   `json:"token_ids"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	PromptTokenIDs []int `json:"prompt_token_ids"`
	Usage          *struct {
		PromptTokens     *int `json:"prompt_tokens"`
		CompletionTokens *int `json:"completion_tokens"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// decoding is the state of one response's decoding.
type decoding struct {
	raw  *Raw
	conv *clock.Conversion // nil: user-space times
	body body
	out  *record.Request

	text                strings.Builder
	ids                 []int
	allIDs              bool // every event with a token said its ids
	promptIDs           *int
	usageIn, usageOut   *int
	finish              *string
	done                bool
	failure             error
	failedAt            int64
	carrying, afterDone int
	doneAt              int64
}

// Decode says what the attempt was: it fills in everything of the record that
// the client saw, and gives each null its reason. conv brings the kernel's
// times to the lifecycle's clock; without one, or if the wall clock was
// stepped, the times are those of user space. It is called after the wave has
// ended, never while one is timed.
func (r *Raw) Decode(out *record.Request, conv *clock.Conversion) {
	out.InputSHA256 = r.request.SHA256()
	out.ScheduledAt, out.SentAt, out.EndedAt = r.scheduled, r.sent, r.ended
	out.Dial, out.TLS, out.HTTPStatus = r.dial, r.tls, r.status
	out.Outcome = r.outcome
	out.Events, out.ClientLag, out.OutputTokenIDs = []record.Event{}, []int64{}, []int{}
	if out.Nulls == nil {
		out.Nulls = map[string]string{}
	}
	d := &decoding{raw: r, out: out, allIDs: true}
	d.chooseClock(conv)
	if r.capture != nil {
		out.ReceivedBytes = int64(r.capture.size)
		d.body = bodyOf(r.capture.bytes())
	}
	if r.status != nil && *r.status == http.StatusOK && d.isStream() {
		for _, e := range events(d.body.data) {
			d.event(e)
		}
	}
	d.conclude()
	d.explain()
}

// chooseClock decides between the kernel's times and user space's for the
// whole attempt: a mixture would compare two clocks.
func (d *decoding) chooseClock(conv *clock.Conversion) {
	reason := d.raw.why
	switch {
	case d.raw.capture == nil || len(d.raw.capture.marks) == 0:
		reason = "nothing was received"
	case reason != "":
	case conv == nil:
		reason = "no readings of both clocks around the wave"
	case conv.Stepped():
		reason = "the wall clock was stepped inside the wave"
	default:
		for _, m := range d.raw.capture.marks {
			if m.kernel == 0 {
				reason = "the kernel gave no receive time for at least one read"
				break
			}
		}
	}
	if reason == "" {
		d.conv = conv
		d.out.Clock = record.TimeSource{Provenance: record.KernelObserved, BoundNS: conv.Bound()}
		return
	}
	d.out.Clock = record.TimeSource{Provenance: record.ClientObserved, Reason: reason}
}

// isStream says whether a 200 is an event stream; some servers leave the type
// out, and some answer with a JSON error.
func (d *decoding) isStream() bool {
	kind := d.raw.header.Get("Content-Type")
	media, _, err := mime.ParseMediaType(kind)
	if kind == "" || err == nil && media == "text/event-stream" {
		return true
	}
	d.fail(fmt.Errorf("the answer is %s, not an event stream: %s", kind, excerpt(d.body.data)), d.raw.ended)
	return false
}

// arrival is an event's place in time: when its bytes had arrived, the
// earliest that they can have, how late the reader was at most, and whether
// its read brought more behind it, which leaves the bracket open.
func (d *decoding) arrival(end int) (a, earliest, lag int64, open bool) {
	marks := d.raw.capture.marks
	at := d.body.raw(end)
	i := sort.Search(len(marks), func(i int) bool { return marks[i].end >= at })
	m := marks[min(i, len(marks)-1)]
	open = end < len(d.body.data) && d.body.raw(end+1) <= m.end
	if d.conv == nil {
		earliest = m.read
		if open {
			earliest = m.began
		}
		return m.read, earliest, 0, open
	}
	a = d.conv.Monotonic(m.kernel)
	// A conversion is good to its bound: a time after the read, or before the
	// request was sent, is that bound showing.
	a = max(min(a, m.read), *d.raw.sent)
	if !open {
		return a, a, m.read - a, false
	}
	earliest = m.began
	if i > 0 {
		earliest = min(d.conv.Monotonic(marks[i-1].kernel), m.began)
	}
	earliest = min(max(earliest, *d.raw.sent), a)
	return a, earliest, m.read - min(m.began, a), true
}

func (d *decoding) event(e event) {
	if d.done {
		d.afterDone++
		return
	}
	arrival, earliest, lag, open := d.arrival(e.end)
	data := bytes.TrimSpace(e.data)
	if string(data) == "[DONE]" {
		d.done, d.doneAt = true, arrival
		return
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		if !e.open { // a cut stream's last event is not malformed, it is cut
			d.fail(fmt.Errorf("an event is no JSON: %w: %s", err, excerpt(data)), arrival)
		}
		return
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		d.fail(fmt.Errorf("the stream carried an error: %s", excerpt(c.Error)), arrival)
	}
	if c.PromptTokenIDs != nil && d.promptIDs == nil {
		n := len(c.PromptTokenIDs)
		d.promptIDs = &n
	}
	if c.Usage != nil {
		d.usageIn, d.usageOut = c.Usage.PromptTokens, c.Usage.CompletionTokens
	}
	carries, ids := d.content(&c)
	if !carries {
		return
	}
	d.carrying++
	ev := record.Event{Earliest: earliest, Arrival: arrival}
	if n := len(ids); n > 0 {
		ev.Tokens = &n
		d.ids = append(d.ids, ids...)
	} else {
		d.allIDs = false
	}
	if d.out.FirstTokenAt == nil {
		d.out.FirstTokenAt = &arrival
	}
	d.out.LastTokenAt = &arrival
	d.out.Events = append(d.out.Events, ev)
	if d.conv != nil {
		d.out.ClientLag = append(d.out.ClientLag, lag)
	}
	if open {
		d.out.Coalesced++
	}
}

// content takes an event's text and ids. It carries a token if it has a
// non-empty text, reasoning text, tool-call argument or token id.
func (d *decoding) content(c *chunk) (bool, []int) {
	carries := false
	var ids []int
	add := func(text *string) {
		if text != nil && *text != "" {
			carries = true
			d.text.WriteString(*text)
		}
	}
	for _, choice := range c.Choices {
		add(choice.Delta.Reasoning)
		add(choice.Delta.ReasoningContent)
		add(choice.Delta.Content)
		add(choice.Text)
		for _, call := range choice.Delta.ToolCalls {
			add(&call.Function.Name)
			add(&call.Function.Arguments)
		}
		if len(choice.TokenIDs) > 0 {
			carries = true
			ids = append(ids, choice.TokenIDs...)
		}
		if choice.FinishReason != nil && *choice.FinishReason != "" {
			d.finish = choice.FinishReason
		}
	}
	return carries, ids
}

// fail keeps the first failure.
func (d *decoding) fail(err error, at int64) {
	if d.failure == nil {
		d.failure, d.failedAt = err, at
	}
}

// conclude decides the outcome.
func (d *decoding) conclude() {
	r, out := d.raw, d.out
	err := r.err
	switch {
	case r.outcome == record.Cancelled || r.outcome == record.ConnectError:
	case r.status != nil && *r.status != http.StatusOK:
		out.Outcome = record.HTTPError
		err = fmt.Errorf("HTTP %d: %s", *r.status, excerpt(d.body.data))
	case d.failure != nil:
		out.Outcome, out.EndedAt, err = record.StreamError, max(d.failedAt, deref(out.LastTokenAt)), d.failure
	case d.done:
		out.Outcome, out.EndedAt, err = record.OK, d.doneAt, nil
	case r.outcome == record.OK && d.finish == nil:
		out.Outcome = record.Truncated
		err = fmt.Errorf("the stream ended after %d events with a token, without [DONE] and without a finish reason", d.carrying)
	}
	if err != nil {
		text := err.Error()
		out.Error = &text
	}
	out.FinishReason = d.finish
	out.OutputText = d.text.String()
	out.OutputTokenIDs = append(out.OutputTokenIDs, d.ids...)
	out.AfterDone = d.afterDone
	out.UsageOutputTokens = d.usageOut
	out.InputTokens, out.InputTokensSource = count(d.promptIDs, d.usageIn)
	var fromIDs *int
	if d.raw.request.TokenIDs && d.allIDs && (d.carrying > 0 || d.usageOut != nil && *d.usageOut == 0) {
		n := len(d.ids)
		fromIDs = &n
	}
	out.OutputTokens, out.OutputTokensSource = count(fromIDs, d.usageOut)
}

// count takes the better of two counts, with its source.
func count(ids, usage *int) (*int, *string) {
	source := record.SourceTokenIDs
	if ids != nil {
		return ids, &source
	}
	source = record.SourceUsage
	if usage != nil {
		return usage, &source
	}
	return nil, nil
}

// explain gives each null its reason.
func (d *decoding) explain() {
	out := d.out
	null := func(missing bool, field, reason string) {
		if missing {
			out.Nulls[field] = reason
		}
	}
	unsent := "the connection could not be opened"
	if d.raw.outcome == record.Cancelled {
		unsent = "cancelled before it was sent"
	}
	null(out.Error == nil, "error", "none")
	null(out.SentAt == nil, "sent_at_ns", unsent)
	null(out.Dial == nil, "dial_ns", unsent)
	null(out.TLS == nil, "tls_ns", "no TLS")
	null(out.HTTPStatus == nil, "http_status", "no HTTP answer")
	noToken := "no event with a token arrived"
	if out.Outcome == record.OK {
		noToken = "the completion is empty"
	}
	null(out.FirstTokenAt == nil, "first_token_at_ns", noToken)
	null(out.LastTokenAt == nil, "last_token_at_ns", noToken)
	null(out.FinishReason == nil, "finish_reason", "no event said one")
	null(out.InputTokens == nil, "input_tokens", "neither prompt_token_ids nor usage arrived")
	null(out.InputTokensSource == nil, "input_tokens_source", "there is no count")
	null(out.OutputTokens == nil, "output_tokens", "neither ids for every token nor usage arrived; events are not tokens")
	null(out.OutputTokensSource == nil, "output_tokens_source", "there is no count")
	null(out.UsageOutputTokens == nil, "usage_output_tokens", "no usage arrived")
	null(out.Correct == nil, "correct", "this experiment has no evaluator")
	null(d.conv == nil, "client_lag_ns", "lag is the reader's delay after the kernel's time, and there is none")
}

func deref(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// excerpt is the beginning of what a server said, for an error's text.
func excerpt(data []byte) string {
	const most = 500
	text := strings.ToValidUTF8(string(bytes.TrimSpace(data)), "\uFFFD")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	if text == "" {
		return "nothing"
	}
	return text
}
