//go:build unix

package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"assay/harness/engine"
	"assay/harness/record"
)

// Config declares a server's process.
type Config struct {
	// Command and Env may hold ${PORT}, for a free port that is picked at the
	// launch.
	Command []string
	Env     map[string]string
	Dir     string
}

// Engine makes servers that are processes.
type Engine struct{ config Config }

// New makes an engine; every launch is a fresh process.
func New(c Config) *Engine { return &Engine{config: c} }

// Check looks for the command.
func (e *Engine) Check(context.Context) error {
	if _, err := exec.LookPath(e.config.Command[0]); err != nil {
		return fmt.Errorf("%w: the command %s is not here: install it, or correct the plan", engine.ErrUnavailable, e.config.Command[0])
	}
	return nil
}

// Launch starts the process. It is killed with this one, should this one be
// killed (on Linux).
func (e *Engine) Launch(ctx context.Context, l engine.Launch) (engine.Server, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	fill := strings.NewReplacer("${PORT}", strconv.Itoa(port))
	args := make([]string, len(e.config.Command))
	for i, a := range e.config.Command {
		args[i] = fill.Replace(a)
	}
	// Not CommandContext: the context of the start is not the server's.
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = e.config.Dir
	cmd.Env = os.Environ()
	for _, name := range slices.Sorted(maps.Keys(e.config.Env)) {
		cmd.Env = append(cmd.Env, name+"="+fill.Replace(e.config.Env[name]))
	}
	cmd.SysProcAttr = group()
	output, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = writer, writer
	s := &Server{config: e.config, url: "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), launch: l, cmd: cmd, done: make(chan struct{})}
	s.mark(engine.Started)
	err = s.cmd.Start()
	_ = writer.Close() // the child has it
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s could not be started: %w", args[0], err), output.Close())
	}
	go s.watch(output)
	return s, nil
}

func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no port on the loopback interface: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// Server is one process.
type Server struct {
	config Config
	url    string
	launch engine.Launch
	cmd    *exec.Cmd
	done   chan struct{}

	mu    sync.Mutex
	asked bool
	exit  engine.Exit
}

var _ engine.Server = (*Server)(nil)

func (s *Server) mark(p engine.Phase) {
	s.launch.Mark(engine.Moment{Phase: p, At: time.Now(), Provenance: string(record.ClientObserved)})
}

const keptLines = 50

// watch copies the output line by line until the process has exited, and then
// notes how. A grandchild that keeps the pipe open does not keep the exit from
// being seen.
func (s *Server) watch(output io.ReadCloser) {
	var tail []string
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		lines := bufio.NewScanner(output)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			_, _ = s.launch.Logs.Write(append(lines.Bytes(), '\n'))
			if tail = append(tail, lines.Text()); len(tail) > keptLines {
				tail = tail[1:]
			}
		}
	}()
	err := s.cmd.Wait()
	s.kill() // what it left of its group
	<-copied
	_ = output.Close()
	exit := engine.Exit{LastLines: tail}
	state := s.cmd.ProcessState
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit.Signal, exit.Reason = status.Signal().String(), "ended by a signal: there is no exit code"
	} else {
		code := state.ExitCode()
		exit.Code = &code
	}
	if err != nil && exit.Reason == "" {
		exit.Reason = err.Error()
	}
	s.mark(engine.Exited)
	s.mark(engine.Removed)
	s.mu.Lock()
	exit.Asked = s.asked
	s.exit = exit
	s.mu.Unlock()
	close(s.done)
}

func (s *Server) kill() { _ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) }

// URL is the loopback address with the port that was picked.
func (s *Server) URL() string { return s.url }

// Done is closed when the process has exited.
func (s *Server) Done() <-chan struct{} { return s.done }

// Exit says how it ended.
func (s *Server) Exit() engine.Exit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exit
}

// Stop sends TERM to the process group, and KILL after the launch's stop
// timeout or when ctx ends.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	select {
	case <-s.done:
	default:
		s.asked = true
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGTERM)
	}
	s.mu.Unlock()
	patience := time.NewTimer(s.launch.Stop)
	defer patience.Stop()
	select {
	case <-s.done:
		return nil
	case <-patience.C:
	case <-ctx.Done():
	}
	s.kill()
	<-s.done
	return nil
}

// Identity is what was started, and what the server says of itself.
func (s *Server) Identity(ctx context.Context) engine.Identity {
	none := engine.Fact{Reason: "a process has none"}
	id := engine.Identity{
		"engine":    engine.Fact{Value: "process", Provenance: string(record.Declared)},
		"args":      engine.Fact{Value: s.config.Command, Provenance: string(record.Declared)},
		"env_names": engine.Fact{Value: append([]string{}, slices.Sorted(maps.Keys(s.config.Env))...), Provenance: string(record.Declared)},
		"image":     none, "image_id": none,
		"model_digest":      engine.Fact{Reason: "where the process has its model from is not known"},
		"attention_backend": engine.Fact{Reason: "no stable interface of the engine says it"},
	}
	maps.Copy(id, engine.Ask(ctx, s.url))
	return id
}
