package container

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"assay/harness/engine"
)

// deviceRequest is what docker run --gpus sends. The driver is left open, as
// there: Docker picks the one that can give GPUs, which is the NVIDIA
// toolkit's hook or, in newer versions, CDI.
func (c Config) deviceRequest() container.DeviceRequest {
	r := container.DeviceRequest{Capabilities: [][]string{{"gpu"}}, DeviceIDs: c.GPUs}
	if c.AllGPUs {
		r.Count = -1
	}
	return r
}

// noCommand is in no image. A container of it gets as far as looking for it
// once everything that was asked for has been given.
const noCommand = "/assay-gpu-check"

// tryGPU asks Docker for the GPUs with a container of the image that runs
// nothing. What Docker lists of itself would not tell: the toolkit's hook
// works unlisted, and a listed runtime may be without a GPU.
func tryGPU(ctx context.Context, docker client.APIClient, c Config) error {
	host := &container.HostConfig{NetworkMode: "none"}
	host.DeviceRequests = []container.DeviceRequest{c.deviceRequest()}
	created, err := docker.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config: &container.Config{
			Image: c.Image, Entrypoint: []string{noCommand},
			Labels: LabelsOf(engine.Launch{Run: "check", Name: "gpu"}, os.Getpid()),
		},
		HostConfig: host,
	})
	if err == nil {
		_, err = docker.ContainerStart(ctx, created.ID, client.ContainerStartOptions{})
		if _, gone := docker.ContainerRemove(context.WithoutCancel(ctx), created.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}); gone != nil {
			return fmt.Errorf("the container %.12s, which tried whether Docker can give GPUs, is left behind: %w; docker rm -f it", created.ID, gone)
		}
	}
	if err == nil || strings.Contains(err.Error(), noCommand) {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("a container can't be given %s (%s): on a machine with an NVIDIA GPU and its driver, apt-get install nvidia-container-toolkit, nvidia-ctk runtime configure --runtime=docker, restart dockerd; docker run --rm --gpus all %s nvidia-smi then lists it",
		c.gpuText(), short(err), c.Image)
}

func (c Config) gpuText() string {
	if c.AllGPUs {
		return "the GPUs"
	}
	return "the GPUs " + strings.Join(c.GPUs, ", ")
}
