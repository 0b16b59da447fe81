package endpoint

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"

	"assay/harness/engine"
	"assay/harness/record"
)

// Engine stands for one endpoint.
type Engine struct {
	url    string
	keyEnv string
}

// An Option says more of an endpoint than its URL.
type Option func(*Engine)

// WithKeyFrom names the environment variable that holds a bearer key. The key
// is read when it is sent, and written nowhere. An empty name is no key.
func WithKeyFrom(env string) Option { return func(e *Engine) { e.keyEnv = env } }

// New makes an engine for a base URL. A slash at its end, and the /v1 that
// other clients want there, are taken off.
func New(url string, options ...Option) *Engine {
	e := &Engine{url: strings.TrimSuffix(strings.TrimSuffix(strings.TrimRight(url, "/"), "/v1"), "/")}
	for _, o := range options {
		o(e)
	}
	return e
}

// Check looks for the key. Whether the endpoint answers is found out by
// waiting for it.
func (e *Engine) Check(context.Context) error {
	if e.keyEnv != "" && os.Getenv(e.keyEnv) == "" {
		return fmt.Errorf("%w: the environment variable %s, which the plan names for the API key, is empty: set it", engine.ErrUnavailable, e.keyEnv)
	}
	return nil
}

// Launch starts nothing. No phase before the first answer can be seen.
func (e *Engine) Launch(ctx context.Context, _ engine.Launch) (engine.Server, error) {
	if err := e.Check(ctx); err != nil {
		return nil, err
	}
	return &Server{url: e.url, keyEnv: e.keyEnv}, nil
}

// Server is the endpoint.
type Server struct {
	url    string
	keyEnv string
}

var (
	_ engine.Server = (*Server)(nil)
	_ engine.Keyed  = (*Server)(nil)
)

// URL is the base that the plan gives.
func (s *Server) URL() string { return s.url }

// Done never closes: nobody here sees the server exit.
func (s *Server) Done() <-chan struct{} { return nil }

// Exit says that nothing is known.
func (s *Server) Exit() engine.Exit {
	return engine.Exit{Reason: "an endpoint is run by somebody else: its exit is not seen"}
}

// Stop leaves the server alone.
func (s *Server) Stop(context.Context) error { return nil }

// Authorize puts the key on a request, if the endpoint wants one.
func (s *Server) Authorize(r *http.Request) {
	if s.keyEnv != "" {
		r.Header.Set("Authorization", "Bearer "+os.Getenv(s.keyEnv))
	}
}

// Identity is what the server says of itself; the rest is null.
func (s *Server) Identity(ctx context.Context) engine.Identity {
	id := engine.Identity{"engine": engine.Fact{Value: "endpoint", Provenance: string(record.Declared)}}
	for _, name := range []string{"image", "image_id", "image_digest", "args", "env_names", "model_digest", "gpu"} {
		id[name] = engine.Fact{Reason: "an endpoint is run by somebody else: this can't be known here"}
	}
	id["attention_backend"] = engine.Fact{Reason: "no stable interface of the engine says it"}
	maps.Copy(id, engine.Ask(ctx, s.url, s.Authorize))
	return id
}
