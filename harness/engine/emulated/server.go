package emulated

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"assay/harness/plan"
)

// version is what /version says.
const version = "emulated-1"

// maxBody bounds a request's body.
const maxBody = 4 << 20

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, map[string]any{"version": version}) })
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("POST /tokenize", s.tokenize)
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.complete(w, r, true) })
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) { s.complete(w, r, false) })
	return mux
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	reply(w, status, map[string]any{"error": map[string]any{"message": fmt.Sprintf(format, args...), "code": status}})
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if time.Now().Before(s.healthy) {
		http.Error(w, "loading", http.StatusServiceUnavailable)
	}
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	reply(w, 200, map[string]any{"object": "list", "data": []any{map[string]any{"id": s.config.Model, "object": "model", "owned_by": "emulated"}}})
}

// metrics is a Prometheus page with vLLM's names.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	l := s.driver.gauges()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	for _, m := range []struct {
		name, kind string
		value      float64
	}{
		{"vllm:num_requests_running", "gauge", float64(l.Running)},
		{"vllm:num_requests_waiting", "gauge", float64(l.Waiting)},
		{"vllm:kv_cache_usage_perc", "gauge", l.KVUsage},
		{"vllm:num_preemptions_total", "counter", float64(l.Preemptions)},
		{"vllm:prompt_tokens_total", "counter", float64(l.PromptTokens)},
		{"vllm:generation_tokens_total", "counter", float64(l.GeneratedTokens)},
	} {
		fmt.Fprintf(w, "# TYPE %s %s\n%s{model_name=%q} %g\n", m.name, m.kind, m.name, s.config.Model, m.value)
	}
}

// request is a body as both endpoints take it.
type request struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	Prompt              string `json:"prompt"`
	MaxTokens           *int   `json:"max_tokens"`
	MaxCompletionTokens *int   `json:"max_completion_tokens"`
	MinTokens           int    `json:"min_tokens"`
	IgnoreEOS           bool   `json:"ignore_eos"`
	Stream              bool   `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	ReturnTokenIDs bool `json:"return_token_ids"`
}

// parse reads a body and says everything that is wrong with it.
func parse(body io.Reader, model string, chat bool) (request, error) {
	var q request
	if err := json.NewDecoder(io.LimitReader(body, maxBody)).Decode(&q); err != nil {
		return q, fmt.Errorf("the body is no request: %w", err)
	}
	var errs []error
	if q.Model != model {
		errs = append(errs, fmt.Errorf("the model %q does not exist: this server has %q", q.Model, model))
	}
	if chat && len(q.Messages) == 0 {
		errs = append(errs, errors.New("messages: at least one is needed"))
	}
	if n := q.limit(); n < 1 {
		errs = append(errs, fmt.Errorf("max_tokens must be at least 1, not %d", n))
	}
	return q, errors.Join(errs...)
}

func (q request) limit() int {
	switch {
	case q.MaxCompletionTokens != nil:
		return *q.MaxCompletionTokens
	case q.MaxTokens != nil:
		return *q.MaxTokens
	default:
		return 16
	}
}

// text is what the model reads.
func (q request) text() string {
	parts := make([]string, 0, len(q.Messages)+1)
	for _, m := range q.Messages {
		parts = append(parts, m.Content)
	}
	return strings.Join(append(parts, q.Prompt), "\n")
}

func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	var q request
	if err := json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(&q); err != nil {
		refuse(w, http.StatusBadRequest, "the body is no request: %s", err)
		return
	}
	tokens := tokenize(q.text())
	reply(w, 200, map[string]any{"count": len(tokens), "tokens": tokens, "max_model_len": 1 << 20})
}

// fault is the first fault that befalls an arrival, or none.
func (s *Server) fault(arrival int) Fault {
	for _, f := range s.config.Faults {
		if f.Kind == plan.FaultExit {
			if arrival > f.After {
				return f
			}
			continue
		}
		if len(f.Requests) == 0 || slices.Contains(f.Requests, arrival) {
			return f
		}
	}
	return Fault{}
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request, chat bool) {
	q, err := parse(r.Body, s.config.Model, chat)
	if err != nil {
		refuse(w, http.StatusBadRequest, "%s", err)
		return
	}
	s.mu.Lock()
	s.arrivals++
	arrival := s.arrivals
	s.mu.Unlock()
	prompt := strings.TrimSpace(q.text())
	want := min(s.config.natural(prompt), q.limit())
	if q.IgnoreEOS {
		want = q.limit()
	}
	want = max(want, min(q.MinTokens, q.limit()))
	a := &answering{
		server: s, w: w, r: r, request: q, chat: chat, fault: s.fault(arrival), prompt: tokenize(prompt), tokens: answer(prompt, want),
		reason: "stop", id: fmt.Sprintf("emulated-%d", arrival),
	}
	if want == q.limit() {
		a.reason = "length"
	}
	if a.fault.Kind == plan.FaultOtherText {
		a.tokens = answer(prompt+" otherwise", want)
	}
	a.serve()
}

// answering is one request being answered.
type answering struct {
	server  *Server
	w       http.ResponseWriter
	r       *http.Request
	flush   func() error
	request request
	chat    bool
	fault   Fault
	prompt  []int
	tokens  []int
	reason  string
	id      string
	line    []byte
}

// serve does what the fault says before an answer, then streams or replies.
func (a *answering) serve() {
	switch a.fault.Kind {
	case plan.FaultRefuse:
		a.hangUp(false)
		return
	case plan.FaultExit:
		a.server.die()
		<-a.r.Context().Done()
		return
	case plan.FaultHTTPStatus:
		refuse(a.w, a.fault.Status, "a declared fault")
		return
	case plan.FaultSlowHeaders:
		if !a.pause(a.fault.For) {
			return
		}
	}
	t := a.server.driver.submit(len(a.prompt)+a.server.config.Parameters.TemplateTokens, len(a.tokens))
	defer a.server.driver.abandon(t)
	if !a.request.Stream {
		a.whole(t)
		return
	}
	a.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	a.flush = http.NewResponseController(a.w).Flush
	a.stream(t)
}

// pause waits a declared time, for good if it is 0, and is false if the client
// left meanwhile.
func (a *answering) pause(d time.Duration) bool {
	if d <= 0 {
		<-a.r.Context().Done()
		return false
	}
	timer := time.NewTimer(a.server.config.real(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.r.Context().Done():
		return false
	}
}

// hangUp closes the connection under the response, with a reset or politely.
func (a *answering) hangUp(reset bool) {
	conn, _, err := http.NewResponseController(a.w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// await waits until the request has more than n tokens; false: its client left.
func (a *answering) await(t *ticket, n int) (int, bool) {
	for {
		if given := a.server.driver.given(t); given > n {
			return given, true
		}
		select {
		case <-t.signal:
		case <-a.r.Context().Done():
			return 0, false
		}
	}
}

func (a *answering) whole(t *ticket) {
	if _, ok := a.await(t, len(a.tokens)-1); !ok {
		return
	}
	choice := map[string]any{"index": 0, "finish_reason": a.reason}
	if a.chat {
		choice["message"] = map[string]any{"role": "assistant", "content": text(a.tokens)}
	} else {
		choice["text"] = text(a.tokens)
	}
	if a.request.ReturnTokenIDs {
		choice["token_ids"] = a.tokens
	}
	reply(a.w, 200, map[string]any{"id": a.id, "model": a.server.config.Model, "choices": []any{choice}, "usage": a.usage()})
}

func text(tokens []int) string {
	words := make([]string, len(tokens))
	for i, id := range tokens {
		words[i] = word(id)
	}
	return strings.Join(words, " ")
}

func (a *answering) usage() map[string]int {
	n := len(a.tokens)
	if a.fault.Kind == plan.FaultWrongUsage {
		n += 7
	}
	p := len(a.prompt)
	return map[string]int{"prompt_tokens": p, "completion_tokens": n, "total_tokens": p + n}
}

// stream sends the answer as vLLM does: the role first, an event for each
// token, usage if it was asked for, [DONE].
func (a *answering) stream(t *ticket) {
	if a.chat {
		ids := ""
		if a.request.ReturnTokenIDs {
			ids = `,"prompt_token_ids":` + string(must(json.Marshal(a.prompt)))
		}
		if !a.send(`"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]` + ids) {
			return
		}
	}
	sent := 0
	for sent < len(a.tokens) {
		given, ok := a.await(t, sent)
		if !ok {
			return
		}
		for ; sent < min(given, len(a.tokens)); sent++ {
			if a.interrupted(sent) || !a.token(sent) {
				return
			}
		}
	}
	if a.fault.Kind == plan.FaultNoDone {
		return
	}
	if a.request.StreamOptions.IncludeUsage && !a.send(`"choices":[],"usage":`+string(must(json.Marshal(a.usage())))) {
		return
	}
	_, _ = io.WriteString(a.w, "data: [DONE]\n\n")
	_ = a.flush()
}

// interrupted does what the fault says before token n, and is true if that was
// the end.
func (a *answering) interrupted(n int) bool {
	f := a.fault
	if n != f.After && !(f.Kind == plan.FaultStallBefore && n == 0) {
		return false
	}
	switch f.Kind {
	case plan.FaultStallBefore, plan.FaultStallAfter:
		return !a.pause(f.For)
	case plan.FaultCut:
		a.hangUp(false)
		return true
	case plan.FaultReset:
		a.hangUp(true)
		return true
	case plan.FaultErrorEvent:
		_, _ = io.WriteString(a.w, `data: {"error":{"message":"a declared fault","type":"server_error","code":500}}`+"\n\n")
		_ = a.flush()
		return true
	case plan.FaultMalformed:
		_, _ = io.WriteString(a.w, `data: {"choices":[{"delta":{"content":"a decl`+"\n\n")
		_ = a.flush()
		return true
	}
	return false
}

// token sends one token in one write, so that it is one packet.
func (a *answering) token(n int) bool {
	id := a.tokens[n]
	said := word(id)
	if n > 0 {
		said = " " + said
	}
	finish := "null"
	if n == len(a.tokens)-1 && a.fault.Kind != plan.FaultNoDone {
		finish = `"` + a.reason + `"`
	}
	b := append(a.line[:0], `"choices":[{"index":0,`...)
	if a.chat {
		b = fmt.Appendf(b, `"delta":{"content":"%s"}`, said)
	} else {
		b = fmt.Appendf(b, `"text":"%s"`, said)
	}
	if a.request.ReturnTokenIDs {
		b = fmt.Appendf(b, `,"token_ids":[%d]`, id)
	}
	a.line = fmt.Appendf(b, `,"finish_reason":%s}]`, finish)
	return a.send(string(a.line))
}

// send writes one event with the fields that every event has.
func (a *answering) send(fields string) bool {
	object := "text_completion"
	if a.chat {
		object = "chat.completion.chunk"
	}
	_, err := io.WriteString(a.w, `data: {"id":"`+a.id+`","object":"`+object+`","model":"`+a.server.config.Model+`",`+fields+"}\n\n")
	if err == nil {
		err = a.flush()
	}
	return err == nil
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic("integers that are no JSON: " + err.Error())
	}
	return data
}
