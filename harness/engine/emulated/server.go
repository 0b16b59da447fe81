package emulated

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// version is what /version says.
const version = "emulated-2"

// maxBody bounds a request's body.
const maxBody = 4 << 20

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, map[string]any{"version": version}) })
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("GET /metrics", s.page)
	mux.HandleFunc("POST /tokenize", s.tokenize)
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.complete(w, r, true) })
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) { s.complete(w, r, false) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			return
		}
		defer s.handlers.Done()
		mux.ServeHTTP(w, r)
	})
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	reply(w, status, map[string]any{"error": map[string]any{"message": fmt.Sprintf(format, args...), "type": "invalid_request_error", "code": status}})
}

// loading answers for a server that has not started up yet; false: it has.
func (s *Server) loading(w http.ResponseWriter) bool {
	if !time.Now().Before(s.healthy) {
		return false
	}
	http.Error(w, "loading", http.StatusServiceUnavailable)
	return true
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) { s.loading(w) }

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	reply(w, 200, map[string]any{"object": "list", "data": []any{map[string]any{
		"id": s.config.Model, "object": "model", "owned_by": "emulated", "max_model_len": s.config.Parameters.ContextTokens,
	}}})
}

// body reads a request's body whole, since the HTTP server notices that a
// client left only once nothing of its request is unread.
func body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "the body could not be read: %s", err)
		return nil, false
	}
	return data, true
}

// tokenize counts a prompt as it is, and messages with the chat template.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	data, ok := body(w, r)
	if !ok {
		return
	}
	var q request
	if err := json.Unmarshal(data, &q); err != nil {
		refuse(w, http.StatusBadRequest, "the body is no request: %s", err)
		return
	}
	tokens := s.config.tokens(q, len(q.Messages) > 0)
	reply(w, 200, map[string]any{"count": len(tokens), "tokens": tokens, "max_model_len": s.config.Parameters.ContextTokens})
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request, chat bool) {
	reached := time.Now()
	if s.loading(w) {
		return
	}
	data, ok := body(w, r)
	if !ok {
		return
	}
	q, wrong := s.config.parse(data, chat)
	if wrong != nil {
		refuse(w, wrong.status, "%s", wrong)
		return
	}
	s.mu.Lock()
	s.arrivals++
	arrival := s.arrivals
	s.mu.Unlock()
	a := newAnswer(s, w, r, q, chat, arrival)
	a.reached = reached
	a.serve()
}
