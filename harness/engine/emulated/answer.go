package emulated

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"assay/harness/engine/emulated/scheduler"
)

// answering is one request being answered.
type answering struct {
	server  *Server
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	request request
	chat    bool
	reached time.Time // the server
	faults  map[string]Fault
	prompt  []int
	tokens  []int
	reason  string
	id      string
	created int64
	// An event is head, what it says, and its end. Both are made once: at a
	// thousand tokens a second and stream, JSON encoding would be most of the
	// server's work.
	head, line []byte
}

func newAnswer(s *Server, w http.ResponseWriter, r *http.Request, q request, chat bool, arrival int) *answering {
	a := &answering{
		server: s, w: w, r: r, control: http.NewResponseController(w), request: q, chat: chat,
		prompt: s.config.tokens(q, chat), id: "emulated-" + strconv.Itoa(arrival), created: time.Now().Unix(),
	}
	for i, f := range s.config.Faults {
		if _, declared := a.faults[f.Kind]; !declared && f.befalls(arrival, chat, s.config.Seed, i) {
			if a.faults == nil {
				a.faults = map[string]Fault{}
			}
			a.faults[f.Kind] = f
		}
	}
	said := q.text()
	n, reason := s.config.length(q, chat)
	a.reason = reason
	if a.has(ShortAnswer) && n > 1 {
		n--
	}
	if a.has(OtherText) {
		said += " otherwise"
	}
	a.tokens = answer(said, n)
	if id, ok := s.config.rightID(q.text()); ok && n > 0 && !a.has(WrongAnswer) {
		a.tokens[0] = id
	}
	object := "text_completion"
	if chat {
		object = "chat.completion.chunk"
	}
	a.head = fmt.Appendf(nil, `data: {"id":"%s","object":"%s","created":%d,"model":%s,`, a.id, object, a.created, must(s.config.Model))
	return a
}

func (a *answering) has(kind string) bool { _, ok := a.faults[kind]; return ok }

// serve does what faults say before an answer, then streams or replies.
func (a *answering) serve() {
	if a.has(Exit) {
		a.server.die()
		<-a.server.quit
		return
	}
	if a.has(Refuse) {
		a.hangUp(false)
		return
	}
	if f, ok := a.faults[SlowHeaders]; ok {
		if !a.pause(f.For) {
			return
		}
		a.reached = time.Now()
	}
	if f, ok := a.faults[HTTPStatus]; ok {
		refuse(a.w, f.status(), "a declared fault")
		return
	}
	t := a.submit()
	whole := false
	if a.request.Stream {
		a.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		whole = a.stream(t)
	} else {
		whole = a.whole(t)
	}
	a.server.runner.Abandon(t, a.server.config.Finish)
	reason := a.reason
	if !whole {
		reason = "abort"
	}
	a.server.metrics.ended(t, len(a.tokens), reason)
}

// submit queues the request. A replay's times are those of the whole request,
// so they hold what reading and tokenizing took, which two hundred times as fast
// as real time is a hundredth of the answer.
func (a *answering) submit() *scheduler.Ticket {
	p := a.server.config.Parameters
	j := scheduler.Job{PromptTokens: len(a.prompt), OutputTokens: len(a.tokens), Sample: a.server.config.sample(a.request.text(), len(p.Answers))}
	if p.Mode == scheduler.Replay {
		return a.server.runner.SubmitAt(j, a.reached)
	}
	return a.server.runner.Submit(j)
}

// pause waits a declared time, for good if it is 0, and is false if the client
// left meanwhile.
func (a *answering) pause(d time.Duration) bool {
	var over <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(a.server.config.real(d))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
		return true
	case <-a.r.Context().Done():
	case <-a.server.quit:
	}
	return false
}

// hangUp closes the connection under the response, with a reset or politely.
func (a *answering) hangUp(reset bool) {
	conn, _, err := a.control.Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// await waits until the request has more than n tokens, and says how many; it
// is false if the client left.
func (a *answering) await(t *scheduler.Ticket, n int) (int, bool) {
	for {
		given := t.Given()
		if given > n {
			return given, true
		}
		select {
		case <-t.Tokens():
		case <-a.r.Context().Done():
			return given, false
		case <-a.server.quit:
			return given, false
		}
	}
}

// whole replies without streaming, and is true if it could.
func (a *answering) whole(t *scheduler.Ticket) bool {
	if _, ok := a.await(t, len(a.tokens)-1); !ok {
		return false
	}
	for n := range len(a.tokens) {
		if a.interrupted(n, "") {
			return false
		}
	}
	object := "text_completion"
	choice := map[string]any{"index": 0, "finish_reason": a.finish()}
	said := a.server.config.text(a.tokens)
	out := map[string]any{"id": a.id, "created": a.created, "model": a.server.config.Model, "choices": []any{choice}, "usage": a.usage()}
	if a.chat {
		object = "chat.completion"
		choice["message"] = map[string]any{"role": "assistant", "content": said}
	} else {
		choice["text"] = said
	}
	out["object"] = object
	if a.request.ReturnTokenIDs {
		choice["token_ids"] = a.tokens
		if a.chat {
			out["prompt_token_ids"] = a.prompt
		} else {
			choice["prompt_token_ids"] = a.prompt
		}
	}
	reply(a.w, 200, out)
	return true
}

// finish is the finish reason, nil if a fault keeps it back.
func (a *answering) finish() any {
	if a.has(NoDone) || a.has(NoFinish) {
		return nil
	}
	return a.reason
}

func (a *answering) usage() map[string]int {
	n := len(a.tokens)
	if a.has(WrongUsage) {
		n += 7
	}
	p := len(a.prompt)
	return map[string]int{"prompt_tokens": p, "completion_tokens": n, "total_tokens": p + n}
}

// stream sends the answer as vLLM does: a chat's role first, an event for each
// token, usage if it was asked for, [DONE]. It is true if all of it went out.
func (a *answering) stream(t *scheduler.Ticket) bool {
	if a.chat {
		line := append(a.begin(), `"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
		if a.request.ReturnTokenIDs {
			line = append(append(line, `,"prompt_token_ids":`...), must(a.prompt)...)
		}
		if !a.send(line) {
			return false
		}
	}
	repeat, repeats := a.faults[RepeatToken]
	for n := 0; n < len(a.tokens); {
		given, ok := a.await(t, n)
		if !ok {
			return false
		}
		for ; n < min(given, len(a.tokens)); n++ {
			if a.interrupted(n, "data: ") || !a.token(n) || repeats && n == repeat.After && !a.token(n) {
				return false
			}
		}
	}
	if a.has(NoDone) {
		return true
	}
	if a.request.StreamOptions.IncludeUsage && !a.send(append(append(a.begin(), `"choices":[],"usage":`...), must(a.usage())...)) {
		return false
	}
	return a.has(MissingDone) || a.raw("data: [DONE]\n\n")
}

// interrupted does what faults say before token n, and is true if that was the
// end. event stands before what is sent.
func (a *answering) interrupted(n int, event string) bool {
	if len(a.faults) == 0 {
		return false
	}
	at := func(kind string) (Fault, bool) {
		f, ok := a.faults[kind]
		return f, ok && f.After == n
	}
	if f, ok := a.faults[StallBefore]; ok && n == 0 && !a.pause(f.For) {
		return true
	}
	if f, ok := at(StallAfter); ok && !a.pause(f.For) {
		return true
	}
	if _, ok := at(Cut); ok {
		a.hangUp(false)
		return true
	}
	if _, ok := at(Reset); ok {
		a.hangUp(true)
		return true
	}
	if _, ok := at(ErrorEvent); ok {
		a.raw(event + `{"error":{"message":"a declared fault","type":"server_error","code":500}}` + "\n\n")
		return true
	}
	if _, ok := at(Malformed); ok {
		a.raw(event + `{"choices":[{"delta":{"content":"a decl` + "\n\n")
		return true
	}
	return false
}

// token sends one token in one write, so that it is one packet.
func (a *answering) token(n int) bool {
	b := append(a.begin(), `"choices":[{"index":0,`...)
	if a.chat {
		b = append(b, `"delta":{"content":"`...)
	} else {
		b = append(b, `"text":"`...)
	}
	if n > 0 {
		b = append(b, ' ')
	}
	b = append(b, a.server.config.escaped(a.tokens[n])...)
	b = append(b, '"')
	if a.chat {
		b = append(b, '}')
	}
	b = append(b, `,"logprobs":null,"finish_reason":`...)
	if finish, ok := a.finish().(string); ok && n == len(a.tokens)-1 {
		b = strconv.AppendQuote(b, finish)
	} else {
		b = append(b, "null"...)
	}
	if a.request.ReturnTokenIDs {
		b = append(b, `,"token_ids":[`...)
		b = append(strconv.AppendInt(b, int64(a.tokens[n]), 10), ']')
		if n == 0 && !a.chat {
			b = append(append(b, `,"prompt_token_ids":`...), must(a.prompt)...)
		}
	}
	return a.send(append(b, `}]`...))
}

// begin is the beginning of an event, in a buffer that the next event reuses.
func (a *answering) begin() []byte { return append(a.line[:0], a.head...) }

// send ends an event and sends it.
func (a *answering) send(line []byte) bool {
	a.line = append(line, "}\n\n"...)
	if _, err := a.w.Write(a.line); err != nil {
		return false
	}
	return a.control.Flush() == nil
}

// raw sends text as it is.
func (a *answering) raw(text string) bool {
	if _, err := io.WriteString(a.w, text); err != nil {
		return false
	}
	return a.control.Flush() == nil
}

// must encodes what can't fail to be encoded.
func must(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("strings and integers that are no JSON: " + err.Error())
	}
	return data
}
