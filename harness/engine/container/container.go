package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
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

// Mount is a Docker volume or a folder of the host, seen in the container.
type Mount struct {
	Volume   string // a volume's name, which must exist, or
	Source   string // a folder of the host
	Target   string
	ReadOnly bool
}

// Config declares a server in a container.
type Config struct {
	Image      string
	Build      string // a folder with a Dockerfile from which an absent image is built; empty: it is pulled
	Entrypoint []string
	Args       []string
	Env        map[string]string
	Mounts     []Mount
	ShmSize    int64 // bytes; 0: Docker's default
	Port       int   // the server's, inside
	AllGPUs    bool
	GPUs       []string // indices or UUIDs
}

func (c Config) wantsGPU() bool { return c.AllGPUs || len(c.GPUs) > 0 }

// Engine makes servers in containers.
type Engine struct {
	config Config
	gpus   telemetry.Prober
}

// New makes an engine; every launch is a fresh container.
func New(c Config) *Engine { return &Engine{config: c, gpus: telemetry.NVML{}} }

// Check says everything that is missing here, each with the command that
// brings it, in one error that wraps [engine.ErrUnavailable].
func (e *Engine) Check(ctx context.Context) error {
	var missing []string
	if e.config.wantsGPU() {
		if _, err := e.gpus.Devices(); err != nil {
			missing = append(missing, "no GPU: "+err.Error()+"; run this on a machine with an NVIDIA GPU and its driver")
		}
	}
	provider, err := newProvider()
	if err == nil {
		defer provider.Close()
		_, err = provider.Client().Ping(ctx, client.PingOptions{})
	}
	if err != nil {
		missing = append(missing, "Docker does not answer ("+short(err)+"): apt-get install docker.io iptables, and start dockerd")
		return unavailable(missing)
	}
	missing = append(missing, e.missing(ctx, provider.Client())...)
	return unavailable(missing)
}

// missing is what a Docker that answers lacks.
func (e *Engine) missing(ctx context.Context, docker client.APIClient) []string {
	var missing []string
	if e.config.wantsGPU() {
		info, err := docker.Info(ctx, client.InfoOptions{})
		if _, has := info.Info.Runtimes["nvidia"]; err != nil || !has {
			missing = append(missing, "Docker has no nvidia runtime: install the NVIDIA container toolkit, run nvidia-ctk runtime configure --runtime=docker, restart dockerd")
		}
	}
	for _, m := range e.config.Mounts {
		if m.Volume == "" {
			if _, err := os.Stat(m.Source); err != nil {
				missing = append(missing, fmt.Sprintf("the folder %s, to be mounted at %s, is not there: make it, or correct the plan", m.Source, m.Target))
			}
			continue
		}
		// Docker would make an empty one without a word.
		if _, err := docker.VolumeInspect(ctx, m.Volume, client.VolumeInspectOptions{}); err != nil {
			missing = append(missing, fmt.Sprintf("the volume %s, to be mounted at %s, is not there: make model (or scripts/model.sh REPOSITORY REVISION)", m.Volume, m.Target))
		}
	}
	if e.config.Build != "" {
		if _, err := docker.ImageInspect(ctx, e.config.Image); err != nil {
			if _, err := os.Stat(filepath.Join(e.config.Build, "Dockerfile")); err != nil {
				missing = append(missing, fmt.Sprintf("the image %s is not there, nor is the folder that it is built from: make images", e.config.Image))
			}
		}
	}
	return missing
}

func unavailable(missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", engine.ErrUnavailable, strings.Join(missing, "; "))
}

// Launch brings the image, and a container of it up to the point where it was
// started. Whatever fails, no container is left.
func (e *Engine) Launch(ctx context.Context, l engine.Launch) (engine.Server, error) {
	provider, err := newProvider()
	if err != nil {
		return nil, unavailable([]string{"Docker does not answer (" + short(err) + "): apt-get install docker.io iptables, and start dockerd"})
	}
	s := &Server{config: e.config, docker: provider.Client(), provider: provider, launch: l, done: make(chan struct{})}
	if err := s.start(ctx); err != nil {
		err = s.explain(err)
		// The caller's context may be what ended the launch.
		return nil, errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// Server is one server in a container.
type Server struct {
	config   Config
	docker   client.APIClient
	provider *testcontainers.DockerProvider
	launch   engine.Launch
	url      string

	container testcontainers.Container
	watching  sync.WaitGroup
	done      chan struct{}
	ended     sync.Once

	mu      sync.Mutex
	started bool
	asked   bool
	exit    engine.Exit

	stop    sync.Once
	stopErr error
}

var _ engine.Server = (*Server)(nil)

func (s *Server) mark(p engine.Phase) {
	s.launch.Mark(engine.Moment{Phase: p, At: time.Now(), Provenance: string(record.ClientObserved)})
}

func (s *Server) start(ctx context.Context) error {
	if err := RemoveLeftovers(ctx, s.docker); err != nil {
		return err
	}
	if err := s.bringImage(ctx); err != nil {
		return err
	}
	s.mark(engine.ImageReady)
	request, err := s.request()
	if err != nil {
		return err
	}
	if s.container, err = s.provider.CreateContainer(ctx, request); err != nil {
		return fmt.Errorf("the container could not be created: %w", err)
	}
	s.mark(engine.Created)
	s.mark(engine.Started)
	s.mu.Lock()
	s.started = true
	s.mu.Unlock()
	// The watchers must see a container that exits at once, too, so that they
	// begin whatever start says.
	err = s.container.Start(ctx)
	s.watch(context.WithoutCancel(ctx))
	if err != nil {
		return fmt.Errorf("the container could not be started: %w", err)
	}
	if inspected, err := s.container.Inspect(ctx); err == nil {
		if at, err := time.Parse(time.RFC3339Nano, inspected.State.StartedAt); err == nil {
			s.launch.Mark(engine.Moment{Phase: engine.EngineStarted, At: at, Provenance: string(record.EngineReported)})
		}
	}
	host, err := s.container.Host(ctx)
	if err != nil {
		return err
	}
	port, err := s.container.MappedPort(ctx, fmt.Sprintf("%d/tcp", s.config.Port))
	if err != nil {
		return fmt.Errorf("the container publishes no port %d: %w", s.config.Port, err)
	}
	s.url = "http://" + net.JoinHostPort(host, port.Port())
	return nil
}

// bringImage finds the image, builds it from its folder, or pulls it.
func (s *Server) bringImage(ctx context.Context) error {
	_, err := s.docker.ImageInspect(ctx, s.config.Image)
	if err == nil {
		return nil
	}
	if !errdefs.IsNotFound(err) {
		return fmt.Errorf("the image %s can't be inspected: %w", s.config.Image, err)
	}
	if s.config.Build == "" {
		if err := s.provider.PullImage(ctx, s.config.Image); err != nil {
			return fmt.Errorf("the image %s is not here and can't be pulled: %w; check its name and that a registry is reached, or docker load it", s.config.Image, err)
		}
		return nil
	}
	repository, tag, _ := strings.Cut(s.config.Image, ":")
	_, err = s.provider.BuildImage(ctx, &testcontainers.ContainerRequest{FromDockerfile: testcontainers.FromDockerfile{
		Context: s.config.Build, Repo: repository, Tag: tag, KeepImage: true, BuildLogWriter: s.launch.Logs,
	}})
	if err != nil {
		return fmt.Errorf("the image %s is not here and can't be built from %s: %w; make images builds it with what this network needs", s.config.Image, s.config.Build, err)
	}
	return nil
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
			// On the loopback interface alone: nobody else is to add load.
			h.PortBindings = network.PortMap{port: []network.PortBinding{{HostIP: netip.MustParseAddr("127.0.0.1")}}}
			h.ShmSize = s.config.ShmSize
			for _, m := range s.config.Mounts {
				kind, source := mount.TypeVolume, m.Volume
				if m.Volume == "" {
					kind, source = mount.TypeBind, m.Source
				}
				h.Mounts = append(h.Mounts, mount.Mount{Type: kind, Source: source, Target: m.Target, ReadOnly: m.ReadOnly})
			}
			if s.config.wantsGPU() {
				gpus := container.DeviceRequest{Driver: "nvidia", Capabilities: [][]string{{"gpu"}}, DeviceIDs: s.config.GPUs}
				if s.config.AllGPUs {
					gpus.Count = -1
				}
				h.DeviceRequests = append(h.DeviceRequests, gpus)
			}
		},
	}, nil
}

// watch follows the log to its end, and then notes how the container ended.
func (s *Server) watch(ctx context.Context) {
	id := s.container.GetContainerID()
	s.watching.Go(func() {
		if logs, err := s.docker.ContainerLogs(ctx, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Follow: true}); err == nil {
			_, err = stdcopy.StdCopy(s.launch.Logs, s.launch.Logs, logs)
			if err = errors.Join(err, logs.Close()); err != nil {
				fmt.Fprintf(s.launch.Logs, "[the log could not be followed to its end: %s]\n", short(err))
			}
		}
		wait := s.docker.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
		select {
		case <-wait.Result:
		case <-wait.Error:
		}
		s.finish(ctx)
	})
}

// finish notes the exit, once.
func (s *Server) finish(ctx context.Context) {
	s.ended.Do(func() {
		exit := engine.Exit{Reason: "the container is gone, and with it its exit code"}
		if inspected, err := s.container.Inspect(ctx); err == nil {
			code := inspected.State.ExitCode
			exit = engine.Exit{Code: &code, OOMKilled: inspected.State.OOMKilled, Reason: inspected.State.Error}
		}
		exit.LastLines = s.lastLines(ctx)
		s.mark(engine.Exited)
		s.mu.Lock()
		exit.Asked = s.asked
		s.exit = exit
		s.mu.Unlock()
		close(s.done)
	})
}

const keptLines = 50

func (s *Server) lastLines(ctx context.Context) []string {
	logs, err := s.docker.ContainerLogs(ctx, s.container.GetContainerID(), client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: strconv.Itoa(keptLines)})
	if err != nil {
		return nil
	}
	defer logs.Close()
	var text strings.Builder
	if _, err := stdcopy.StdCopy(&text, &text, logs); err != nil || text.Len() == 0 {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	return lines[max(0, len(lines)-keptLines):]
}

// explain adds how a container ended that did not come up.
func (s *Server) explain(err error) error {
	if !s.wasStarted() {
		return err
	}
	select {
	case <-s.done:
	case <-time.After(time.Second): // it is still up: the start failed for another reason
		return err
	}
	exit := s.Exit()
	text := "with no exit code known"
	if exit.Code != nil {
		text = fmt.Sprintf("with code %d", *exit.Code)
	}
	for _, line := range exit.LastLines {
		text += "\n  " + line
	}
	return fmt.Errorf("%w %s: %w", engine.ErrExited, text, err)
}

func (s *Server) wasStarted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
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

// Stop asks the container to leave, kills it after the launch's stop timeout,
// and removes it with its anonymous volumes.
func (s *Server) Stop(ctx context.Context) error {
	s.stop.Do(func() { s.stopErr = s.remove(ctx) })
	return s.stopErr
}

func (s *Server) remove(ctx context.Context) error {
	defer s.provider.Close()
	if s.container == nil {
		return nil
	}
	s.mu.Lock()
	select {
	case <-s.done: // it left by itself
	default:
		s.asked = true
	}
	s.mu.Unlock()
	err := s.container.Stop(ctx, &s.launch.Stop)
	if s.wasStarted() {
		s.watching.Wait()
	} else {
		close(s.done)
	}
	if removeErr := s.container.Terminate(ctx, testcontainers.StopTimeout(0)); removeErr != nil && !errdefs.IsNotFound(removeErr) {
		return errors.Join(err, fmt.Errorf("the container %.12s is left behind: %w; docker rm -f it", s.container.GetContainerID(), removeErr))
	}
	s.mark(engine.Removed)
	return nil // a stop that failed no longer matters once it is removed
}

// Identity is what Docker says of the container, and what the model's
// inventory says of the model.
func (s *Server) Identity(ctx context.Context) engine.Identity {
	reported := func(v any) engine.Fact { return engine.Fact{Value: v, Provenance: string(record.EngineReported)} }
	id := engine.Identity{
		"engine": engine.Fact{Value: "container", Provenance: string(record.Declared)},
		"image":  engine.Fact{Value: s.config.Image, Provenance: string(record.Declared)},
		"args":   engine.Fact{Value: append([]string{}, s.config.Args...), Provenance: string(record.Declared)},
		// The values may be secrets.
		"env_names":         engine.Fact{Value: append([]string{}, slices.Sorted(maps.Keys(s.config.Env))...), Provenance: string(record.Declared)},
		"path":              engine.Fact{Value: "a port of the loopback interface, forwarded by Docker", Provenance: string(record.Declared)},
		"attention_backend": engine.Fact{Reason: "no stable interface of the engine says it"},
	}
	if image, err := s.docker.ImageInspect(ctx, s.config.Image); err == nil {
		id["image_id"] = reported(image.ID)
		id["image_created"] = reported(image.Created)
		id["image_digest"] = engine.Fact{Reason: "the image was built here: no registry has given it a digest"}
		if len(image.RepoDigests) > 0 {
			id["image_digest"] = reported(image.RepoDigests[0])
		}
	} else {
		id["image_id"] = engine.Fact{Reason: short(err)}
	}
	if version, err := s.docker.ServerVersion(ctx, client.ServerVersionOptions{}); err == nil {
		id["docker_version"] = reported(version.Version)
	}
	id["model_digest"] = s.modelDigest(ctx)
	maps.Copy(id, engine.Ask(ctx, s.url))
	return id
}

// modelDigest reads the digest that scripts/model.sh computed over the model's
// files when it made them.
func (s *Server) modelDigest(ctx context.Context) engine.Fact {
	for _, m := range s.config.Mounts {
		file, err := s.container.CopyFileFromContainer(ctx, m.Target+"/inventory.json")
		if err != nil {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(file, 1<<20))
		_ = file.Close()
		var inventory struct {
			Digest string `json:"digest"`
		}
		if err == nil && json.Unmarshal(data, &inventory) == nil && inventory.Digest != "" {
			return engine.Fact{Value: inventory.Digest, Provenance: string(record.Attested)}
		}
	}
	return engine.Fact{Reason: "no mount has an inventory.json with a digest"}
}

// quiet takes what testcontainers says of its own work: the lifecycle's record
// says the same, and a terminal has room for one live line.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

func newProvider() (*testcontainers.DockerProvider, error) {
	return testcontainers.NewDockerProvider(testcontainers.Generic2DockerOptions(testcontainers.WithLogger(quiet{}))...)
}

func short(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
