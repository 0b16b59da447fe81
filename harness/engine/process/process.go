//go:build unix

package process

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"assay/harness/engine"
	"assay/harness/engine/owner"
	"assay/harness/record"
	"assay/harness/telemetry"
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
type Engine struct {
	config Config
	gpus   telemetry.Prober
}

// New makes an engine; every launch is a fresh process.
func New(c Config) *Engine { return &Engine{config: c, gpus: telemetry.NVML{}} }

// Devices are this machine's GPUs, and those that CUDA_VISIBLE_DEVICES leaves
// the process, by index or UUID; without it, all. A process need not use any.
func (e *Engine) Devices() (telemetry.GPUs, []telemetry.Device, error) {
	visible, set := e.config.Env["CUDA_VISIBLE_DEVICES"]
	if !set {
		visible, set = os.LookupEnv("CUDA_VISIBLE_DEVICES")
	}
	var ids []string
	for _, id := range strings.Split(visible, ",") {
		if id = strings.TrimSpace(id); id != "" {
			ids = append(ids, id)
		}
	}
	return telemetry.Choose(e.gpus, !set, ids)
}

// Check looks for the command and its folder.
func (e *Engine) Check(context.Context) error {
	if len(e.config.Command) == 0 {
		return fmt.Errorf("%w: the process has no command: name one in the plan", engine.ErrUnavailable)
	}
	if e.config.Dir != "" {
		if info, err := os.Stat(e.config.Dir); err != nil || !info.IsDir() {
			return fmt.Errorf("%w: the folder %s, in which %s is to run, is not there: make it, or correct the plan", engine.ErrUnavailable, e.config.Dir, e.config.Command[0])
		}
	}
	if _, err := exec.LookPath(Program(e.config.Command[0], e.config.Dir)); err != nil {
		return fmt.Errorf("%w: the command %s is not here: install it, or correct the plan", engine.ErrUnavailable, e.config.Command[0])
	}
	return nil
}

// Program is where a command is looked for that runs in a folder: a path that
// is not absolute starts there, a bare name is one of PATH's.
func Program(command, dir string) string {
	if strings.Contains(command, "/") && !filepath.IsAbs(command) {
		return filepath.Join(dir, command)
	}
	return command
}

// markVariable goes into a server's environment, and so into that of all that
// it starts: owner#launch. By it strays are found wherever they have gone.
const markVariable = "ASSAY_SERVER"

// Launch starts the process. It is killed with this one, should this one be
// killed (on Linux), and what dead runs' servers left is ended first.
func (e *Engine) Launch(ctx context.Context, l engine.Launch) (engine.Server, error) {
	if err := errors.Join(e.Check(ctx), RemoveLeftovers()); err != nil {
		return nil, err
	}
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
	mark := owner.Self().String() + "#" + rand.Text()
	cmd.Env = append(cmd.Env, markVariable+"="+mark)
	cmd.SysProcAttr = group()
	output, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("no pipe for the server's output: %w", err)
	}
	cmd.Stdout, cmd.Stderr = writer, writer
	s := &Server{
		config: e.config, url: "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		launch: l, cmd: cmd, mark: mark, done: make(chan struct{}),
	}
	s.pass(engine.Started)
	started := make(chan error)
	go func() {
		// The kernel takes the thread that forks for the parent whose death is
		// the child's: this one lives as long as the server.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			s.watch(output)
		}
	}()
	err = <-started
	_ = writer.Close() // the child has it
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s could not be started: %w", args[0], err), output.Close())
	}
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
	mark   string
	done   chan struct{}

	mu    sync.Mutex
	asked bool
	exit  engine.Exit
	left  error // what could not be ended
}

var _ engine.Server = (*Server)(nil)

func (s *Server) pass(p engine.Phase) { s.passed(p, time.Now()) }

func (s *Server) passed(p engine.Phase, at time.Time) {
	s.launch.Mark(engine.Moment{Phase: p, At: at, Provenance: string(record.ClientObserved)})
}

// drain is how long output may still come once the server and its strays are
// gone: what is in the pipe takes no time, and somebody who holds the pipe
// open all the same must not keep the exit from being seen.
const drain = time.Second

// watch passes the output on until the process has exited, ends what is left
// of it, and then notes how it exited.
func (s *Server) watch(output *os.File) {
	lines := engine.NewLines(s.launch.Logs)
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(lines, output)
	}()
	waited := s.cmd.Wait()
	s.passed(engine.Exited, time.Now())
	s.kill()
	left := removeStrays(s.mark)
	_ = output.SetReadDeadline(time.Now().Add(drain))
	<-copied
	_ = output.Close()
	_ = lines.Close()
	exit := engine.Exit{LastLines: lines.Last()}
	state := s.cmd.ProcessState
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit.Signal, exit.Reason = status.Signal().String(), "ended by a signal: there is no exit code"
	} else {
		code := state.ExitCode()
		exit.Code = &code
	}
	if waited != nil && exit.Reason == "" {
		exit.Reason = waited.Error()
	}
	if left == nil {
		s.pass(engine.Removed)
	}
	s.mu.Lock()
	exit.Asked = s.asked
	s.exit, s.left = exit, left
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
	exit := s.exit
	exit.LastLines = slices.Clone(s.exit.LastLines)
	return exit
}

// Stop sends TERM to the process group, and KILL after the launch's stop
// timeout or when ctx ends. Its error is what of the server could not be ended.
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
	case <-patience.C:
		s.kill()
	case <-ctx.Done():
		s.kill()
	}
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// Identity is what was started, and what the server says of itself.
func (s *Server) Identity(ctx context.Context) engine.Identity {
	none := engine.Fact{Reason: "a process has none"}
	id := engine.Identity{
		"engine":    engine.Fact{Value: "process", Provenance: string(record.Declared)},
		"args":      engine.Fact{Value: engine.HideSecrets(s.config.Command), Provenance: string(record.Declared)},
		"env_names": engine.Fact{Value: append([]string{}, slices.Sorted(maps.Keys(s.config.Env))...), Provenance: string(record.Declared)},
		"image":     none, "image_id": none, "image_digest": none,
		"model_digest":      engine.Fact{Reason: "where the process has its model from is not known"},
		"attention_backend": engine.Fact{Reason: "no stable interface of the engine says it"},
	}
	maps.Copy(id, engine.Ask(ctx, s.url))
	return id
}

// Owns says whether a process of this machine is the server's: itself, or one
// that it started, which carries its mark. ok is false where the process can't
// be looked at.
func (s *Server) Owns(pid int) (owns, ok bool) {
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false, false
	}
	return strings.Contains(string(environment), markVariable+"="+s.mark), true
}
