package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"assay/harness/engine"
	"assay/harness/telemetry"
)

// Mount is a Docker volume or a folder of the host, seen in the container.
type Mount struct {
	Volume   string // a volume's name, which must exist, or
	Source   string // a folder of the host
	Target   string
	ReadOnly bool
}

// PullPolicy says when an image is pulled. What is built here never is.
type PullPolicy string

// The policies.
const (
	PullMissing PullPolicy = ""       // if it is not there
	PullAlways  PullPolicy = "always" // at each launch, so that a tag that moves is followed
	PullNever   PullPolicy = "never"
)

// Config declares a server in a container.
type Config struct {
	Image      string
	Build      string // a folder with a Dockerfile from which an absent image is built; empty: it is pulled
	Pull       PullPolicy
	Entrypoint []string
	Args       []string
	Env        map[string]string
	Mounts     []Mount
	ShmSize    int64 // bytes; 0: Docker's default
	Port       int   // the server's, inside
	AllGPUs    bool
	GPUs       []string // indices or UUIDs
	GPUAccess  Access   // empty: Auto
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
// brings it, in one error that wraps [engine.ErrUnavailable]. Whether Docker
// can give a GPU is tried out where the image is there already; a launch tries
// it in any case.
func (e *Engine) Check(ctx context.Context) error {
	provider, err := connect(ctx)
	if err != nil {
		return errors.Join(unavailable(e.noGPU()), err)
	}
	defer provider.Close()
	docker := provider.Client()
	missing := append(e.missingMounts(ctx, docker), e.missingImage(ctx, docker)...)
	if e.config.wantsGPU() {
		if _, err := docker.ImageInspect(ctx, e.config.Image); err != nil {
			missing = append(missing, e.noGPU()...)
		} else if _, err := findAccess(ctx, docker, e.config); err != nil {
			missing = append(missing, err.Error())
		}
	}
	return unavailable(missing)
}

// Launch brings the image, and a container of it up to the point where it was
// started. Whatever fails, no container is left.
func (e *Engine) Launch(ctx context.Context, l engine.Launch) (engine.Server, error) {
	provider, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	s := newServer(e.config, provider, l)
	s.gpus = e.gpus
	if err := s.start(ctx, e.missingMounts(ctx, provider.Client())); err != nil {
		return nil, s.abandon(ctx, err)
	}
	return s, nil
}

// noGPU says why this machine seems to have none, by the driver's own library.
func (e *Engine) noGPU() []string {
	if !e.config.wantsGPU() {
		return nil
	}
	if _, err := e.gpus.Devices(); err != nil {
		return []string{"no GPU: " + err.Error() + "; run this on a machine with an NVIDIA GPU and its driver"}
	}
	return nil
}

// missingMounts looks for what is to be mounted: Docker would make an empty
// volume, or an empty folder, without a word.
func (e *Engine) missingMounts(ctx context.Context, docker client.APIClient) []string {
	var missing []string
	for _, m := range e.config.Mounts {
		if m.Volume == "" {
			if _, err := os.Stat(m.Source); err != nil {
				missing = append(missing, fmt.Sprintf("the folder %s, to be mounted at %s, is not there: make it, or correct the plan", m.Source, m.Target))
			}
			continue
		}
		if _, err := docker.VolumeInspect(ctx, m.Volume, client.VolumeInspectOptions{}); err != nil {
			missing = append(missing, fmt.Sprintf("the volume %s, to be mounted at %s, is not there: make model (or scripts/model.sh REPOSITORY REVISION)", m.Volume, m.Target))
		}
	}
	return missing
}

// missingImage says why an absent image could not even be tried to be had.
func (e *Engine) missingImage(ctx context.Context, docker client.APIClient) []string {
	if _, err := docker.ImageInspect(ctx, e.config.Image); err == nil {
		return nil
	}
	switch {
	case e.config.Build != "":
		if _, err := os.Stat(filepath.Join(e.config.Build, "Dockerfile")); err != nil {
			return []string{fmt.Sprintf("the image %s is not there, nor is the folder that it is built from: make images", e.config.Image)}
		}
	case e.config.Pull == PullNever:
		return []string{fmt.Sprintf("the image %s is not there, and the plan says never to pull it: docker pull %s", e.config.Image, e.config.Image)}
	}
	return nil
}

func unavailable(missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", engine.ErrUnavailable, strings.Join(missing, "; "))
}

// quiet takes what testcontainers says of its own work: the lifecycle's record
// says the same, and a terminal has room for one live line.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// connect finds a Docker that answers.
func connect(ctx context.Context) (*testcontainers.DockerProvider, error) {
	provider, err := testcontainers.NewDockerProvider(testcontainers.Generic2DockerOptions(testcontainers.WithLogger(quiet{}))...)
	if err == nil {
		if _, err = provider.Client().Ping(ctx, client.PingOptions{}); err == nil {
			return provider, nil
		}
		_ = provider.Close()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err() // it was not given the time
	}
	return nil, fmt.Errorf("%w: Docker does not answer (%s): apt-get install docker.io iptables, start dockerd, and see that this user may speak to it", engine.ErrUnavailable, short(err))
}

func short(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
