package container

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"assay/harness/engine"
	"assay/harness/record"
	"assay/harness/telemetry"
)

// Server is one server in a container.
type Server struct {
	config   Config
	docker   client.APIClient
	provider *testcontainers.DockerProvider
	launch   engine.Launch
	url      string

	container testcontainers.Container // nil until it is created
	image     origin
	gpus      telemetry.Prober
	access    gpuAccess   // how it is given its GPUs; zero: it gets none
	gpuSeen   engine.Fact // how many it sees itself
	watched   sync.WaitGroup
	unwatch   context.CancelFunc // nil until it was started
	done      chan struct{}

	mu    sync.Mutex
	asked bool
	exit  engine.Exit

	stop    sync.Once
	stopErr error
}

var _ engine.Server = (*Server)(nil)

func newServer(c Config, p *testcontainers.DockerProvider, l engine.Launch) *Server {
	return &Server{config: c, docker: p.Client(), provider: p, launch: l, done: make(chan struct{})}
}

func (s *Server) mark(p engine.Phase, at time.Time) {
	s.launch.Mark(engine.Moment{Phase: p, At: at, Provenance: string(record.ClientObserved)})
}

// start brings everything up to the started container; missing is what was
// found missing before.
func (s *Server) start(ctx context.Context, missing []string) error {
	if err := errors.Join(RemoveLeftovers(ctx, s.docker), unavailable(missing)); err != nil {
		return err
	}
	var err error
	if s.image, err = s.bringImage(ctx); err != nil {
		return err
	}
	if s.config.wantsGPU() {
		if s.access, err = findAccess(ctx, s.docker, s.config); err != nil {
			return unavailable([]string{err.Error()})
		}
	}
	s.mark(engine.ImageReady, time.Now())
	request, err := s.request()
	if err != nil {
		return err
	}
	if s.container, err = s.provider.CreateContainer(ctx, request); err != nil {
		return fmt.Errorf("the container could not be created: %w", err)
	}
	s.mark(engine.Created, time.Now())
	s.mark(engine.Started, time.Now())
	err = s.container.Start(ctx)
	// One that exits at once must be seen, too, whatever the start said.
	s.watch(ctx)
	if err != nil {
		return fmt.Errorf("the container could not be started: %w", err)
	}
	if s.config.wantsGPU() {
		if err := s.proveGPU(ctx); err != nil {
			return err
		}
	}
	return s.locate(ctx)
}

func (s *Server) request() (testcontainers.ContainerRequest, error) {
	port, err := network.ParsePort(fmt.Sprintf("%d/tcp", s.config.Port))
	if err != nil {
		return testcontainers.ContainerRequest{}, err
	}
	return testcontainers.ContainerRequest{
		Image: s.config.Image, Entrypoint: s.config.Entrypoint, Cmd: s.config.Args, Env: s.config.Env,
		ExposedPorts: []string{port.String()},
		Labels:       LabelsOf(s.launch, os.Getpid()),
		HostConfigModifier: func(h *container.HostConfig) {
			// On the loopback interface alone: nobody else is to add load. Docker
			// picks the port, so that none can be in use.
			h.PortBindings = network.PortMap{port: []network.PortBinding{{HostIP: netip.MustParseAddr("127.0.0.1")}}}
			h.ShmSize = s.config.ShmSize
			for _, m := range s.config.Mounts {
				kind, source := mount.TypeVolume, m.Volume
				if m.Volume == "" {
					kind, source = mount.TypeBind, m.Source
				}
				h.Mounts = append(h.Mounts, mount.Mount{Type: kind, Source: source, Target: m.Target, ReadOnly: m.ReadOnly})
			}
			if s.access.apply != nil {
				s.access.apply(h)
			}
		},
	}, nil
}

// locate finds out when Docker says that it started the container, and where
// it is reached.
func (s *Server) locate(ctx context.Context) error {
	inspected, err := s.container.Inspect(ctx)
	if err != nil {
		return fmt.Errorf("the container can't be inspected: %w", err)
	}
	if at, err := time.Parse(time.RFC3339Nano, inspected.State.StartedAt); err == nil {
		s.launch.Mark(engine.Moment{Phase: engine.EngineStarted, At: at, Provenance: string(record.EngineReported)})
	}
	host, err := s.container.Host(ctx)
	if err != nil {
		return fmt.Errorf("the host of Docker's ports is not known: %w", err)
	}
	port, err := s.container.MappedPort(ctx, fmt.Sprintf("%d/tcp", s.config.Port))
	if err != nil {
		return fmt.Errorf("the container publishes no port %d: %w", s.config.Port, err)
	}
	s.url = "http://" + net.JoinHostPort(host, port.Port())
	return nil
}

// watch follows the container until it has exited, and notes when and how.
func (s *Server) watch(ctx context.Context) {
	ctx, s.unwatch = context.WithCancel(context.WithoutCancel(ctx))
	s.watched.Go(func() {
		var logs sync.WaitGroup
		logs.Go(func() { s.follow(ctx) })
		inspected, err := s.awaitExit(ctx)
		at := time.Now()
		if err != nil {
			// Docker is lost, and with it the log's end.
			s.unwatch()
		}
		logs.Wait()
		exit := engine.Exit{}
		switch {
		case err != nil:
			exit.Reason = "how the container ended is not known: " + short(err)
		case !ran(inspected):
			exit.Reason = "the container never ran: " + inspected.State.Error
		default:
			s.mark(engine.Exited, at)
			exit = engine.Exit{Code: &inspected.State.ExitCode, OOMKilled: inspected.State.OOMKilled, Reason: inspected.State.Error}
			exit.LastLines = s.lastLines(ctx)
		}
		s.mu.Lock()
		exit.Asked = s.asked
		s.exit = exit
		s.mu.Unlock()
		close(s.done)
	})
}

// ran says whether the container's command was ever executed. What Docker
// gives as the exit code of one that was not is Docker's own.
func ran(c *container.InspectResponse) bool {
	at, err := time.Parse(time.RFC3339Nano, c.State.StartedAt)
	return err == nil && !at.IsZero()
}

// awaitExit waits until Docker says that the container no longer runs. A wait
// that breaks is taken up again for as long as Docker knows the container.
func (s *Server) awaitExit(ctx context.Context) (*container.InspectResponse, error) {
	for {
		wait := s.docker.ContainerWait(ctx, s.container.GetContainerID(), client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
		select {
		case <-wait.Result:
		case <-wait.Error:
		}
		inspected, err := s.container.Inspect(ctx)
		if err != nil || !inspected.State.Running {
			return inspected, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond): // Docker answers, and broke the wait
		}
	}
}

// follow passes the container's output on, in whole lines, to its end.
func (s *Server) follow(ctx context.Context) {
	out, errs := engine.NewLines(s.launch.Logs), engine.NewLines(s.launch.Logs)
	logs, err := s.docker.ContainerLogs(ctx, s.container.GetContainerID(), client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Follow: true})
	if err == nil {
		_, err = stdcopy.StdCopy(out, errs, logs)
		err = errors.Join(err, logs.Close(), out.Close(), errs.Close())
	}
	if err != nil {
		fmt.Fprintf(s.launch.Logs, "[the log could not be followed to its end: %s]\n", short(err))
	}
}

func (s *Server) lastLines(ctx context.Context) []string {
	logs, err := s.docker.ContainerLogs(ctx, s.container.GetContainerID(), client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: strconv.Itoa(engine.KeptLines)})
	if err != nil {
		return nil
	}
	defer logs.Close()
	var text strings.Builder
	if _, err := stdcopy.StdCopy(&text, &text, logs); err != nil || text.Len() == 0 {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	return lines[max(0, len(lines)-engine.KeptLines):]
}

// abandon removes what a failed start has made, and adds to its error how the
// server ended, if it ran.
func (s *Server) abandon(ctx context.Context, err error) error {
	if s.unwatch != nil {
		select {
		case <-s.done:
			if exit := s.Exit(); exit.Code != nil {
				err = fmt.Errorf("%w with code %d: %w", engine.ErrExited, *exit.Code, err)
				for _, line := range exit.LastLines {
					err = fmt.Errorf("%w\n  %s", err, record.Visible(line))
				}
			}
		case <-time.After(time.Second): // it is still up: the start failed for another reason
		}
	}
	return errors.Join(err, s.Stop(ctx))
}

// URL is where the server is reached: a port of the loopback interface that
// Docker forwards.
func (s *Server) URL() string { return s.url }

// Done is closed when the container has exited.
func (s *Server) Done() <-chan struct{} { return s.done }

// Exit says how it ended.
func (s *Server) Exit() engine.Exit {
	s.mu.Lock()
	defer s.mu.Unlock()
	exit := s.exit
	exit.LastLines = slices.Clone(s.exit.LastLines)
	return exit
}

// removal is how long Docker gets to kill and remove a container once its stop
// is over, and whatever became of the caller's context: a caller that is
// leaving must leave nothing behind.
const removal = time.Minute

// Stop asks the container to leave, has it killed after the launch's stop
// timeout or when ctx ends, and removes it with its anonymous volumes.
func (s *Server) Stop(ctx context.Context) error {
	s.stop.Do(func() { s.stopErr = s.remove(ctx) })
	return s.stopErr
}

func (s *Server) remove(ctx context.Context) error {
	defer s.provider.Close()
	if s.container == nil {
		close(s.done)
		return nil
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), removal)
	defer cancel()
	id := s.container.GetContainerID()
	if s.unwatch != nil {
		s.ask(ctx, id)
		// Killed first and removed then, so that how it ended can be seen.
		_, err := s.docker.ContainerKill(bounded, id, client.ContainerKillOptions{Signal: "KILL"})
		if err == nil || errdefs.IsConflict(err) { // a conflict: it has exited already
			select {
			case <-s.done:
			case <-bounded.Done():
			}
		}
	}
	_, err := s.docker.ContainerRemove(bounded, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if s.unwatch != nil {
		s.unwatch()
		s.watched.Wait()
	} else {
		close(s.done)
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("the container %.12s is left behind: %w; docker rm -f it", id, err)
	}
	s.mark(engine.Removed, time.Now())
	return nil
}

// ask asks the container to leave and waits for it, no longer than the
// launch's stop timeout.
func (s *Server) ask(ctx context.Context, id string) {
	s.mu.Lock()
	select {
	case <-s.done: // it left by itself
		s.mu.Unlock()
		return
	default:
		s.asked = true
	}
	s.mu.Unlock()
	// Docker counts whole seconds, and 0 would be no time at all.
	seconds := int((s.launch.Stop + time.Second - 1) / time.Second)
	limited, cancel := context.WithTimeout(ctx, s.launch.Stop+time.Second)
	defer cancel()
	// An error leaves the container to be killed, which its caller does next.
	_, _ = s.docker.ContainerStop(limited, id, client.ContainerStopOptions{Timeout: &seconds})
}
