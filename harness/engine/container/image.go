package container

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"assay/harness/engine"
	"assay/harness/record"
)

// origin is how an image was had: found on this machine, pulled or built, and
// how long the latter took.
type origin struct {
	how  string
	took time.Duration
}

// facts keep the two ways to spend time on an image apart.
func (o origin) facts(id engine.Identity) {
	seen := string(record.ClientObserved)
	id["image_origin"] = engine.Fact{Value: o.how, Provenance: seen}
	for name, how := range map[string]string{"image_pull_ns": pulled, "image_build_ns": built} {
		if o.how == how {
			id[name] = engine.Fact{Value: o.took.Nanoseconds(), Provenance: seen}
		} else {
			id[name] = engine.Fact{Reason: "the image was " + o.how}
		}
	}
}

const (
	found  = "found on this machine"
	pulled = "pulled"
	built  = "built"
)

// bringImage finds the image, builds it from its folder, or pulls it.
func (s *Server) bringImage(ctx context.Context) (origin, error) {
	name := s.config.Image
	_, err := s.docker.ImageInspect(ctx, name)
	if err != nil && !errdefs.IsNotFound(err) {
		return origin{}, fmt.Errorf("the image %s can't be inspected: %w", name, err)
	}
	absent, from := err != nil, time.Now()
	switch {
	case s.config.Build != "" && absent:
		if err := s.build(ctx); err != nil {
			return origin{}, fmt.Errorf("%w: the image %s is not here and can't be built from %s: %w; make images builds it with what this network needs", engine.ErrUnavailable, name, s.config.Build, err)
		}
		return origin{built, time.Since(from)}, nil
	case s.config.Build == "" && (absent && s.config.Pull != PullNever || s.config.Pull == PullAlways):
		if err := pull(ctx, s.docker, name); err != nil {
			return origin{}, fmt.Errorf("%w: the image %s can't be pulled: %w; check its name and that its registry is reached, or docker load it", engine.ErrUnavailable, name, err)
		}
		return origin{pulled, time.Since(from)}, nil
	case absent:
		return origin{}, fmt.Errorf("%w: the image %s is not there, and the plan says never to pull it: docker pull %s", engine.ErrUnavailable, name, name)
	}
	return origin{how: found}, nil
}

func (s *Server) build(ctx context.Context) error {
	repository, tag := s.config.Image, "latest" // without a tag testcontainers makes one up
	// A colon before the last slash belongs to a registry's port.
	if i := strings.LastIndexByte(repository, ':'); i > strings.LastIndexByte(repository, '/') {
		repository, tag = repository[:i], repository[i+1:]
	}
	lines := engine.NewLines(s.launch.Logs)
	_, err := s.provider.BuildImage(ctx, &testcontainers.ContainerRequest{FromDockerfile: testcontainers.FromDockerfile{
		Context: s.config.Build, Repo: repository, Tag: tag, KeepImage: true, BuildLogWriter: lines,
	}})
	return errors.Join(err, lines.Close())
}

// pull is done here, and once: testcontainers tries for a quarter of an hour,
// and takes a pull for done that failed on its way.
func pull(ctx context.Context, docker client.APIClient, name string) error {
	var options client.ImagePullOptions
	if _, login, err := testcontainers.DockerImageAuth(ctx, name); err == nil { // else: an image for everybody
		if options.RegistryAuth, err = authconfig.Encode(login); err != nil {
			return fmt.Errorf("the login for its registry: %w", err)
		}
	}
	progress, err := docker.ImagePull(ctx, name, options)
	if err != nil {
		return err
	}
	return progress.Wait(ctx)
}
