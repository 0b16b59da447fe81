package emulated

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"assay/harness/engine"
	"assay/harness/engine/emulated/alarm"
	"assay/harness/engine/emulated/scheduler"
	"assay/harness/record"
)

// maxScale is far beyond what any machine keeps up with.
const maxScale = 1e9

// Config declares an emulated server.
type Config struct {
	Parameters scheduler.Parameters // one of scheduler.Sets, or the caller's own
	Name       string               // of the parameter set, for the record
	Model      string               // the name that requests must carry
	Seed       uint64               // of the noise, and of the share that a fault befalls
	Scale      float64              // emulated seconds per second; 0: 1
	Startup    time.Duration        // emulated, until it is healthy
	Finish     bool                 // go on with requests whose client has left
	Prompts    []string             // the prompts that Parameters.OutputTokens or Answers belong to
	Answers    []string             // the right answers to Prompts, which the server gives; empty: none is known
	Faults     []Fault
}

// Validate says everything that is wrong with a configuration at once, or
// returns nil.
func (c Config) Validate() error {
	errs := []error{c.Parameters.Validate()}
	if !(c.Scale >= 0 && c.Scale <= maxScale) {
		errs = append(errs, fmt.Errorf("a time scale of %g: write more than 0, and at most %g", c.Scale, maxScale))
	}
	if c.Startup < 0 {
		errs = append(errs, fmt.Errorf("a start-up of %s: write 0 or more", c.Startup))
	}
	if c.Model == "" {
		errs = append(errs, errors.New("the model has no name for requests to carry: set model.served_as"))
	}
	if len(c.Answers) > 0 && len(c.Answers) != len(c.Prompts) {
		errs = append(errs, fmt.Errorf("%d right answers to %d prompts: write one for each, or none", len(c.Answers), len(c.Prompts)))
	}
	for _, f := range c.Faults {
		errs = append(errs, f.Validate())
	}
	return errors.Join(errs...)
}

// real is an emulated time in this machine's.
func (c Config) real(d time.Duration) time.Duration {
	return time.Duration(float64(d) / c.Scale)
}

// Engine makes emulated servers.
type Engine struct{ config Config }

// New makes an engine; every launch is a fresh server.
func New(c Config) *Engine {
	if c.Scale == 0 {
		c.Scale = 1
	}
	for _, f := range c.Faults {
		c.Finish = c.Finish || f.Kind == IgnoreDisconnect
	}
	return &Engine{config: c}
}

// Check says what is wrong with the configuration: an emulated server needs
// nothing else.
func (e *Engine) Check(context.Context) error {
	if err := e.config.Validate(); err != nil {
		return fmt.Errorf("%w: emulated server %q: %w", engine.ErrUnavailable, e.config.Name, err)
	}
	return nil
}

// Launch starts a server on a free port of the loopback interface. It fails on
// a configuration that Check refuses.
func (e *Engine) Launch(ctx context.Context, l engine.Launch) (engine.Server, error) {
	if err := e.Check(ctx); err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("emulated server %q was not started: %w", e.config.Name, err)
	}
	now := time.Now()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("no port on the loopback interface: %w", err)
	}
	l.Mark(engine.Moment{Phase: engine.Started, At: now, Provenance: string(record.Emulated)})
	s := &Server{
		config: e.config, url: "http://" + listener.Addr().String(), log: l.Logs, mark: l.Mark,
		done: make(chan struct{}), quit: make(chan struct{}), healthy: now.Add(e.config.real(e.config.Startup)),
		runner: scheduler.NewRunner(scheduler.New(e.config.Parameters, e.config.Seed), e.config.Scale, alarm.New()),
	}
	s.metrics = newMetrics(e.config.Model, s.runner.Load)
	s.http = &http.Server{Handler: s.routes(), ReadHeaderTimeout: time.Minute, ErrorLog: log.New(l.Logs, "http: ", 0)}
	s.serving.Go(func() { _ = s.http.Serve(listener) })
	s.serving.Go(s.runner.Run)
	fmt.Fprintf(l.Logs, "emulated server %q on %s\n", e.config.Name, s.url)
	return s, nil
}

// Server is one emulated server.
type Server struct {
	config  Config
	url     string
	log     io.Writer
	mark    func(engine.Moment)
	http    *http.Server
	runner  *scheduler.Runner
	metrics *metrics
	healthy time.Time
	serving sync.WaitGroup

	end      sync.Once
	done     chan struct{}
	quit     chan struct{} // handlers leave
	mu       sync.Mutex
	leaving  bool
	handlers sync.WaitGroup
	arrivals int
	exit     engine.Exit
}

var (
	_ engine.Server  = (*Server)(nil)
	_ engine.Checker = (*Engine)(nil)
)

// URL is the server's base.
func (s *Server) URL() string { return s.url }

// Done is closed when the server has stopped, or died of a declared fault, and
// nothing of it is left.
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
	part := engine.Fact{Reason: "no stable interface of the engine says it, and an emulated server has no such part"}
	disconnect := "cancel"
	if s.config.Finish {
		disconnect = "finish"
	}
	return engine.Identity{
		"engine":                emulated("emulated"),
		"engine_version":        emulated(version),
		"parameters":            emulated(s.config.Name),
		"parameter_values":      emulated(fmt.Sprintf("%+v", s.config.Parameters)),
		"mode":                  emulated(string(s.config.Parameters.Mode)),
		"seed":                  emulated(s.config.Seed),
		"time_scale":            emulated(s.config.Scale),
		"on_disconnect":         emulated(disconnect),
		"faults":                emulated(len(s.config.Faults)),
		"image":                 none,
		"model_digest":          none,
		"attention_backend":     none,
		"compilation_seconds":   part,
		"graph_capture_seconds": part,
		"weight_load_seconds":   part,
	}
}

// Stop ends the server at once: connections that are open are cut. It returns
// when nothing of it is left.
func (s *Server) Stop(context.Context) error {
	code := 0
	s.leave(engine.Exit{Code: &code, Asked: true})
	return nil
}

// leave ends everything once, and waits until it has ended.
func (s *Server) leave(exit engine.Exit) {
	s.end.Do(func() {
		s.mu.Lock()
		s.exit, s.leaving = exit, true
		s.mu.Unlock()
		_ = s.http.Close()
		close(s.quit)
		s.runner.Close()
		s.handlers.Wait()
		s.serving.Wait()
		now := time.Now()
		for _, p := range []engine.Phase{engine.Exited, engine.Removed} {
			s.mark(engine.Moment{Phase: p, At: now, Provenance: string(record.Emulated)})
		}
		close(s.done)
	})
	<-s.done
}

// enter counts a handler in; it is false when the server is on its way out.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving {
		return false
	}
	s.handlers.Add(1)
	return true
}

// die is a declared exit in the middle of work. It doesn't wait: the handler
// that calls it is among what has to end.
func (s *Server) die() {
	code := 1
	last := "a declared fault: the server exits"
	fmt.Fprintln(s.log, last)
	go s.leave(engine.Exit{Code: &code, LastLines: []string{last}})
}
