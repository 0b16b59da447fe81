package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"assay/harness/engine/container"
	"assay/harness/plan"
)

// daemon is what is asked of Docker.
type daemon interface {
	about(ctx context.Context) (about, error)
	hasImage(ctx context.Context, name string) bool
	hasVolume(ctx context.Context, name string) bool
	// givesGPU tries it out with the container's image, which must be there;
	// the error says why not, and what to do.
	givesGPU(ctx context.Context, c *plan.Container) error
}

// about is what a daemon says of itself.
type about struct {
	version  string
	runtimes []string // sorted
	dir      string   // where it keeps images
}

// docker is the daemon that the container engine would use: it is found the
// same way, so that both see the same one.
type docker struct {
	provider *testcontainers.DockerProvider
}

// dialDocker finds the daemon, or says why there is none.
func dialDocker(ctx context.Context) (*docker, error) {
	log.SetDefault(silent{})
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return nil, err
	}
	d := &docker{provider}
	if _, err := provider.Client().Ping(ctx, client.PingOptions{}); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *docker) close() { _ = d.provider.Close() }

func (d *docker) about(ctx context.Context) (about, error) {
	found, err := d.provider.Client().Info(ctx, client.InfoOptions{})
	if err != nil {
		return about{}, fmt.Errorf("it says nothing of itself: %w", err)
	}
	return about{version: found.Info.ServerVersion, runtimes: slices.Sorted(maps.Keys(found.Info.Runtimes)), dir: found.Info.DockerRootDir}, nil
}

func (d *docker) hasImage(ctx context.Context, name string) bool {
	_, err := d.provider.Client().ImageInspect(ctx, name)
	return err == nil
}

func (d *docker) hasVolume(ctx context.Context, name string) bool {
	_, err := d.provider.Client().VolumeInspect(ctx, name, client.VolumeInspectOptions{})
	return err == nil
}

func (d *docker) givesGPU(ctx context.Context, c *plan.Container) error {
	_, err := container.FindAccess(ctx, d.provider.Client(), container.Config{
		Image: c.Image, AllGPUs: c.GPUs.All, GPUs: c.GPUs.IDs, GPUAccess: container.Access(c.GPUAccess),
	})
	return err
}

// silent keeps the container library's own lines out of the doctor's.
type silent struct{}

func (silent) Printf(string, ...any) {}
