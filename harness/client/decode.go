package client

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"sort"
	"strings"

	"assay/harness/clock"
	"assay/harness/record"
)

// decoding is the state of one response's decoding.
type decoding struct {
	raw   *Raw
	conv  *clock.Conversion // nil: user-space times
	bytes []byte            // as they came
	body  body
	out   *record.Request

	chunks            chunks
	text, reasoning   strings.Builder
	calls             calls
	counts            []int // of the tokens of each event that said their ids
	allIDs            bool  // every event with a token did
	promptIDs         *int
	usageIn, usageOut *int
	finish            *string
	done              bool
	doneAt            int64
	failure           error
	failedAt          int64
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
		d.bytes = r.capture.bytes()
		if r.status != nil {
			d.body = bodyOf(d.bytes, r.start, r.chunked, r.length)
		}
	}
	if r.status != nil && *r.status == http.StatusOK && d.isStream() {
		d.expect(bytes.Count(d.body.data, []byte("data:")))
		for e := range events(d.body.data) {
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

// expect makes room for so many events.
func (d *decoding) expect(n int) {
	d.out.Events, d.counts = make([]record.Event, 0, n), make([]int, 0, n)
	d.out.OutputTokenIDs = make([]int, 0, n)
	if d.conv != nil {
		d.out.ClientLag = make([]int64, 0, n)
	}
}

// isStream says whether a 200 is an event stream; some servers leave the type
// out, and some answer with a JSON error.
func (d *decoding) isStream() bool {
	kind := d.raw.header.Get("Content-Type")
	media, _, err := mime.ParseMediaType(kind)
	if errors.Is(err, mime.ErrInvalidMediaParameter) {
		err = nil // the type itself is well formed
	}
	switch encoding := d.raw.header.Get("Content-Encoding"); {
	case encoding != "" && encoding != "identity":
		d.fail(fmt.Errorf("the answer is encoded as %s, which was not asked for", encoding), d.raw.ended)
	case kind == "" || err == nil && media == "text/event-stream":
		return true
	default:
		d.fail(fmt.Errorf("the answer is %s, not an event stream: %s", kind, excerpt(d.body.data)), d.raw.ended)
	}
	return false
}

// arrival is the place in time of bytes that end at an offset of the capture.
type arrival struct {
	at       int64 // ns on the lifecycle's clock: they had arrived by then
	earliest int64 // ns: and not before
	lag      int64 // ns: how late they were read, at most; only with the kernel's times
	// open: their read brought more behind them, and its time may be that of
	// the last of it.
	open bool
}

// arrivalOf dates bytes by the read that completed them. TCP keeps one receive
// time for what it joined, its last packet's, and recvmsg gives the last of
// all. So that time is the bytes' own if nothing came behind them in the same
// read; line ends alone count as nothing, since they are written with the
// event that they end. Otherwise they came between the last packet of the read
// before and this read's; and if that one may have left something (its buffer
// was full), of the last that did not.
func (d *decoding) arrivalOf(end int) arrival {
	marks := d.raw.capture.marks
	i := sort.Search(len(marks), func(i int) bool { return marks[i].end >= end })
	m := marks[i]
	last := i
	for last+1 < len(marks) && marks[last+1].read == m.read {
		last++
	}
	a := arrival{at: m.at, open: marks[last].more || len(bytes.Trim(d.bytes[end:marks[last].end], "\r\n")) > 0}
	for i > 0 && (marks[i-1].read == m.read || marks[i-1].more) {
		i--
	}
	sent := *d.raw.sent
	if d.conv == nil {
		// Nothing says when they came after the last read.
		if a.earliest = sent; i > 0 {
			a.earliest = marks[i-1].at
		}
		return a
	}
	// A conversion is good to its bound: a time after the read, or before the
	// request was sent, is that bound showing.
	a.at = max(min(d.conv.Monotonic(m.kernel), m.at), sent)
	a.earliest, a.lag = a.at, m.at-a.at
	if !a.open {
		return a
	}
	a.earliest, a.lag = sent, m.at-sent
	if i > 0 {
		a.earliest = min(max(d.conv.Monotonic(marks[i-1].kernel), sent), a.at)
		a.lag = m.at - min(marks[i-1].at, a.at)
	}
	return a
}

func (d *decoding) event(e event) {
	if d.done {
		d.out.AfterDone++
		return
	}
	came := d.arrivalOf(d.body.raw(e.end))
	data := bytes.TrimSpace(e.data)
	if string(data) == "[DONE]" {
		d.done, d.doneAt = true, came.at
		return
	}
	c, err := d.chunks.read(data)
	if err != nil && !e.open { // a cut stream's last event is not malformed, it is cut
		d.fail(fmt.Errorf("an event is no JSON of a completion: %w: %s", err, excerpt(data)), came.at)
	}
	if c.wrong != nil {
		d.fail(fmt.Errorf("an event is no JSON of a completion: %w: %s", c.wrong, excerpt(data)), came.at)
	}
	if e.kind == "error" || c.failed {
		d.fail(fmt.Errorf("the stream carried an error: %s", excerpt(data)), came.at)
	}
	if c.promptIDs != nil && d.promptIDs == nil {
		d.promptIDs = c.promptIDs
	}
	if c.usageIn != nil {
		d.usageIn = c.usageIn
	}
	if c.usageOut != nil {
		d.usageOut = c.usageOut
	}
	if c.finish != nil {
		d.finish = c.finish
	}
	d.text.Write(c.text)
	d.reasoning.Write(c.reasoning)
	for _, part := range c.calls {
		d.calls.add(part)
	}
	if c.carries {
		d.carried(came, c.ids)
	}
}

// carried keeps an event that carried a token.
func (d *decoding) carried(came arrival, ids []int) {
	out := d.out
	ev := record.Event{Earliest: came.earliest, Arrival: came.at}
	if len(ids) > 0 {
		d.counts = append(d.counts, len(ids))
		ev.Tokens = &d.counts[len(d.counts)-1]
		out.OutputTokenIDs = append(out.OutputTokenIDs, ids...)
	} else {
		d.allIDs = false
	}
	out.Events = append(out.Events, ev)
	if d.conv != nil {
		out.ClientLag = append(out.ClientLag, came.lag)
	}
	if came.open {
		out.Coalesced++
	}
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
	if r.framed && len(r.capture.marks) > 0 {
		out.EndedAt = d.arrivalOf(r.capture.size).at
	}
	if n := len(out.Events); n > 0 {
		first, last := out.Events[0].Arrival, out.Events[n-1].Arrival
		out.FirstTokenAt, out.LastTokenAt = &first, &last
	}
	switch {
	case r.status == nil:
	case *r.status != http.StatusOK:
		out.Outcome = record.HTTPError
		err = fmt.Errorf("HTTP %d: %s", *r.status, excerpt(d.body.data))
	case d.failure != nil:
		out.Outcome, out.EndedAt, err = record.StreamError, max(d.failedAt, deref(out.LastTokenAt)), d.failure
	case d.done:
		out.Outcome, out.EndedAt, err = record.OK, d.doneAt, nil
	case r.outcome == record.OK && d.finish == nil:
		out.Outcome = record.Truncated
		err = fmt.Errorf("the stream ended after %d events with a token, without [DONE] and without a finish reason", len(out.Events))
	}
	if err != nil {
		text := d.withoutKey(err.Error())
		out.Error = &text
	}
	out.FinishReason = d.finish
	out.OutputText, out.ReasoningText = d.withoutKey(d.text.String()), d.withoutKey(d.reasoning.String())
	out.ToolCalls = d.calls.all(d.withoutKey)
	out.UsageOutputTokens = d.usageOut
	out.InputTokens, out.InputTokensSource = count(d.promptIDs, d.usageIn)
	var fromIDs *int
	if d.raw.request.TokenIDs && d.allIDs && (len(out.Events) > 0 || d.usageOut != nil && *d.usageOut == 0) {
		n := len(out.OutputTokenIDs)
		fromIDs = &n
	}
	out.OutputTokens, out.OutputTokensSource = count(fromIDs, d.usageOut)
}

// withoutKey takes the API key out of what a server said: some repeat it when
// they refuse it. A key of a few letters is none, and stands in other words.
func (d *decoding) withoutKey(text string) string {
	const shortest = 8
	if len(d.raw.key) < shortest {
		return text
	}
	return strings.ReplaceAll(text, d.raw.key, "[the API key]")
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
