package endpoint

import (
	"context"
	"maps"

	"assay/harness/engine"
	"assay/harness/record"
)

// Engine stands for one endpoint.
type Engine struct{ url string }

// New makes an engine for a base URL without a trailing slash.
func New(url string) *Engine { return &Engine{url: url} }

// Check always succeeds: whether it answers is found out by waiting for it.
func (e *Engine) Check(context.Context) error { return nil }

// Launch starts nothing. No phase before the first answer can be seen.
func (e *Engine) Launch(context.Context, engine.Launch) (engine.Server, error) {
	return &Server{url: e.url}, nil
}

// Server is the endpoint.
type Server struct{ url string }

var _ engine.Server = (*Server)(nil)

// URL is the base that the plan gives.
func (s *Server) URL() string { return s.url }

// Done never closes: nobody here sees the server exit.
func (s *Server) Done() <-chan struct{} { return nil }

// Exit says that nothing is known.
func (s *Server) Exit() engine.Exit {
	return engine.Exit{Asked: true, Reason: "an endpoint is run by somebody else: its exit is not seen"}
}

// Stop leaves the server alone.
func (s *Server) Stop(context.Context) error { return nil }

// Identity is what the server says of itself; the rest is null.
func (s *Server) Identity(ctx context.Context) engine.Identity {
	others := engine.Fact{Reason: "an endpoint is run by somebody else: this can't be known here"}
	id := engine.Identity{
		"engine": engine.Fact{Value: "endpoint", Provenance: string(record.Declared)},
		"image":  others, "image_id": others, "args": others, "model_digest": others, "gpu": others, "attention_backend": others,
	}
	maps.Copy(id, engine.Ask(ctx, s.url))
	return id
}
