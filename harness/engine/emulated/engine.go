package emulated

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"assay/harness/engine"
	"assay/harness/engine/emulated/scheduler"
	"assay/harness/record"
)

// Fault is one declared misbehaviour; its kinds are plan's.
type Fault struct {
	Kind     string
	Requests []int         // the arrival numbers, from 1, that it befalls; empty: all
	After    int           // tokens, or requests for "exit", before it
	For      time.Duration // how long a delay lasts, emulated; 0: for good
	Status   int           // of "http_status"
}

// Config declares an emulated server.
type Config struct {
	Parameters scheduler.Parameters
	Name       string        // of the parameter set, for the record
	Model      string        // the name that requests must carry
	Seed       uint64        // of the noise
	Scale      float64       // emulated seconds per second; 0: 1
	Startup    time.Duration // emulated, until it is healthy
	Finish     bool          // go on with requests whose client has left
	Prompts    []string      // the prompts that Parameters.OutputTokens belong to
	Faults     []Fault
}

// Engine makes emulated servers.
type Engine struct{ config Config }

// New makes an engine; every launch is a fresh server.
func New(c Config) *Engine {
	if c.Scale <= 0 {
		c.Scale = 1
	}
	return &Engine{config: c}
}

// Check always succeeds: an emulated server needs nothing.
func (e *Engine) Check(context.Context) error { return nil }

// Launch starts a server on a free port of the loopback interface.
func (e *Engine) Launch(ctx context.Context, l engine.Launch) (engine.Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("no port on the loopback interface: %w", err)
	}
	now := time.Now()
	l.Mark(engine.Moment{Phase: engine.Started, At: now, Provenance: string(record.Emulated)})
	s := &Server{
		config: e.config, url: "http://" + listener.Addr().String(), log: l.Logs, mark: l.Mark,
		done: make(chan struct{}), healthy: now.Add(e.config.real(e.config.Startup)),
	}
	s.driver = newDriver(e.config)
	s.http = &http.Server{Handler: s.routes(), ReadHeaderTimeout: time.Minute}
	s.serving.Go(func() { _ = s.http.Serve(listener) })
	s.serving.Go(s.driver.run)
	fmt.Fprintf(l.Logs, "emulated server %q on %s\n", e.config.Name, s.url)
	return s, nil
}

// real is an emulated time in this machine's.
func (c Config) real(d time.Duration) time.Duration {
	return time.Duration(float64(d) / c.Scale)
}

// Server is one emulated server.
type Server struct {
	config  Config
	url     string
	log     interface{ Write([]byte) (int, error) }
	mark    func(engine.Moment)
	http    *http.Server
	driver  *driver
	healthy time.Time
	serving sync.WaitGroup

	end      sync.Once
	done     chan struct{}
	mu       sync.Mutex
	arrivals int
	exit     engine.Exit
}

var _ engine.Server = (*Server)(nil)

// URL is the server's base.
func (s *Server) URL() string { return s.url }

// Done is closed when the server has stopped, or died of a declared fault.
func (s *Server) Done() <-chan struct{} { return s.done }

// Exit says how it ended.
func (s *Server) Exit() engine.Exit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exit
}

// Identity says that everything here is emulated, and by which parameters.
func (s *Server) Identity(context.Context) engine.Identity {
	emulated := func(v any) engine.Fact { return engine.Fact{Value: v, Provenance: string(record.Emulated)} }
	none := engine.Fact{Reason: "an emulated server has none"}
	return engine.Identity{
		"engine":         emulated("emulated"),
		"engine_version": emulated(version),
		"parameters":     emulated(s.config.Name),
		"mode":           emulated(string(s.config.Parameters.Mode)),
		"image":          none, "model_digest": none, "attention_backend": none, "gpu": none,
	}
}

// Stop ends the server: connections that are open are cut.
func (s *Server) Stop(context.Context) error {
	code := 0
	s.leave(engine.Exit{Code: &code, Asked: true})
	return nil
}

// leave ends everything once, and waits until it has ended.
func (s *Server) leave(exit engine.Exit) {
	s.end.Do(func() {
		s.mu.Lock()
		s.exit = exit
		s.mu.Unlock()
		_ = s.http.Close()
		s.driver.stop()
		s.serving.Wait()
		now := time.Now()
		for _, p := range []engine.Phase{engine.Exited, engine.Removed} {
			s.mark(engine.Moment{Phase: p, At: now, Provenance: string(record.Emulated)})
		}
		close(s.done)
	})
	<-s.done
}

// die is a declared exit in the middle of work.
func (s *Server) die() {
	code := 1
	fmt.Fprintln(s.log, "a declared fault: the server exits")
	// Not from the handler's own goroutine: closing waits for handlers to see
	// that their connection is gone.
	go s.leave(engine.Exit{Code: &code, LastLines: []string{"a declared fault: the server exits"}})
}
