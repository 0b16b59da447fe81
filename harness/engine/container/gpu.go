package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go/exec"

	"assay/harness/engine"
	"assay/harness/record"
	"assay/harness/telemetry"
)

// Access is how Docker gives a container its GPUs.
type Access string

// The ways, in the order in which Auto tries them.
const (
	Auto Access = "auto"
	// Runtime is what docker run --gpus does: a device request, which the
	// NVIDIA container toolkit's hook or runtime fulfils.
	Runtime Access = "runtime"
	// CDI asks for nvidia.com/gpu=… of a Container Device Interface
	// specification that the daemon has read.
	CDI Access = "cdi"
	// Devices mounts the device files and the driver's libraries by hand, for a
	// machine that has a driver and no toolkit.
	Devices Access = "devices"
)

// gpuAccess is one way, as it goes into a container's host configuration.
type gpuAccess struct {
	name  Access
	apply func(*container.HostConfig)
}

// noCommand is in no image. A container of it gets as far as looking for it
// once everything that was asked for has been given.
const noCommand = "/assay-gpu-check"

// findAccess tries the ways that the plan allows, each with a container of the
// image that runs nothing, and takes the first that Docker can do. What Docker
// lists of itself would not tell: the toolkit's hook works unlisted, and a
// listed runtime may be without a GPU. The error says what was tried, what each
// answered, and how to get it.
func findAccess(ctx context.Context, docker client.APIClient, c Config) (gpuAccess, error) {
	names := []Access{c.GPUAccess}
	if c.GPUAccess == Auto || c.GPUAccess == "" {
		names = []Access{Runtime, CDI, Devices}
	}
	var answers []string
	for _, name := range names {
		way, err := c.access(name)
		if err == nil {
			err = tryGPU(ctx, docker, c, way)
		}
		if err == nil {
			return way, nil
		}
		if ctx.Err() != nil {
			return gpuAccess{}, ctx.Err()
		}
		answers = append(answers, fmt.Sprintf("%s: %s", name, short(err)))
	}
	return gpuAccess{}, fmt.Errorf("a container can't be given %s (%s): on a machine with an NVIDIA GPU and its driver, apt-get install nvidia-container-toolkit, nvidia-ctk runtime configure --runtime=docker, restart dockerd; docker run --rm --gpus all %s nvidia-smi then lists it; docs/gpu.md has each step",
		c.gpuText(), strings.Join(answers, "; "), c.Image)
}

// FindAccess says in which way Docker can give containers of an image, which
// must be there, their GPUs. The error is that of a launch.
func FindAccess(ctx context.Context, docker client.APIClient, c Config) (Access, error) {
	way, err := findAccess(ctx, docker, c)
	return way.name, err
}

// access is one way for this configuration; the error says why this machine
// has nothing to do it with.
func (c Config) access(name Access) (gpuAccess, error) {
	way := gpuAccess{name: name}
	switch name {
	case Runtime:
		// The driver is left open, as docker run --gpus leaves it: Docker picks
		// the one that can give GPUs.
		request := container.DeviceRequest{Capabilities: [][]string{{"gpu"}}, DeviceIDs: c.GPUs}
		if c.AllGPUs {
			request.Count = -1
		}
		way.apply = requesting(request)
	case CDI:
		request := container.DeviceRequest{Driver: "cdi"}
		for _, id := range c.GPUs {
			request.DeviceIDs = append(request.DeviceIDs, "nvidia.com/gpu="+id)
		}
		if c.AllGPUs {
			request.DeviceIDs = []string{"nvidia.com/gpu=all"}
		}
		way.apply = requesting(request)
	case Devices:
		nodes, err := deviceFiles("/dev", c)
		if err != nil {
			return way, err
		}
		mounts := c.driverMounts()
		if len(mounts) == 0 {
			return way, errors.New("libcuda.so.1 is in none of the folders where a driver is installed")
		}
		way.apply = func(h *container.HostConfig) {
			for _, node := range nodes {
				h.Devices = append(h.Devices, container.DeviceMapping{PathOnHost: node, PathInContainer: node, CgroupPermissions: "rwm"})
			}
			h.Mounts = append(h.Mounts, mounts...)
		}
	default:
		return way, fmt.Errorf("%q is no way to give a container a GPU: write auto, runtime, cdi or devices", name)
	}
	return way, nil
}

func requesting(r container.DeviceRequest) func(*container.HostConfig) {
	return func(h *container.HostConfig) { h.DeviceRequests = append(h.DeviceRequests, r) }
}

// deviceFiles are the GPUs' device files under a folder: those of the GPUs that
// are named, and those that all GPUs share.
func deviceFiles(dev string, c Config) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(dev, "nvidia*"))
	if err != nil {
		return nil, err
	}
	var nodes []string
	gpus := map[string]bool{}
	for _, path := range found {
		if info, err := os.Stat(path); err != nil || info.Mode()&os.ModeDevice == 0 {
			continue
		}
		index := strings.TrimPrefix(filepath.Base(path), "nvidia")
		if _, err := strconv.Atoi(index); err == nil {
			gpus[index] = true
			if !c.AllGPUs && !slices.Contains(c.GPUs, index) {
				continue
			}
		}
		nodes = append(nodes, path)
	}
	if len(gpus) == 0 {
		return nil, fmt.Errorf("%s has no nvidia0: no driver has made its device files", dev)
	}
	for _, id := range c.GPUs {
		if !gpus[id] {
			return nil, fmt.Errorf("%s has no nvidia%s: by hand, a GPU is named by its index", dev, id)
		}
	}
	return nodes, nil
}

// driverFolders are where distributions and NVIDIA's own installer put the
// driver's libraries.
var driverFolders = []string{"/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"}

// driverLibraries are what a program needs that computes on a GPU; the names
// that hold a version follow the driver's.
var driverLibraries = []string{"libcuda.so*", "libnvidia-ml.so*", "libnvidia-ptxjitcompiler.so*", "libnvidia-nvvm*.so*", "libnvidia-gpucomp.so*"}

// driverMounts are the driver's libraries, each mounted read-only where the
// container's loader looks: under the place that NVIDIA's images search.
func (c Config) driverMounts() []mount.Mount {
	for _, folder := range driverFolders {
		if _, err := os.Stat(filepath.Join(folder, "libcuda.so.1")); err != nil {
			continue
		}
		var out []mount.Mount
		for _, pattern := range driverLibraries {
			files, _ := filepath.Glob(filepath.Join(folder, pattern)) // the pattern is ours
			for _, file := range files {
				out = append(out, mount.Mount{Type: mount.TypeBind, Source: file, Target: "/usr/local/nvidia/lib64/" + filepath.Base(file), ReadOnly: true})
			}
		}
		for _, tool := range []string{"/usr/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi"} {
			if _, err := os.Stat(tool); err == nil {
				return append(out, mount.Mount{Type: mount.TypeBind, Source: tool, Target: "/usr/local/nvidia/bin/nvidia-smi", ReadOnly: true})
			}
		}
		return out
	}
	return nil
}

// tryGPU asks Docker for a container with the GPUs, which runs nothing.
func tryGPU(ctx context.Context, docker client.APIClient, c Config, way gpuAccess) error {
	host := &container.HostConfig{NetworkMode: "none"}
	way.apply(host)
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
	return err
}

func (c Config) gpuText() string {
	if c.AllGPUs {
		return "the GPUs"
	}
	return "the GPUs " + strings.Join(c.GPUs, ", ")
}

// askGPU asks the driver's own tool, inside the container that has just been
// started, which GPUs it sees.
var askGPU = []string{"nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"}

// proveGPU holds what the lifecycle's own container sees against what the plan
// names. It is asked once, while the server has hardly begun to start. A
// container that sees none of them fails here, and not by serving from the
// processor; one that can't say is taken at its devices' word, and the record
// says so.
func (s *Server) proveGPU(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	code, out, err := s.container.Exec(ctx, askGPU, exec.Multiplexed())
	if err == nil && code == 126 || code == 127 {
		err = errors.New("the image has no nvidia-smi")
	}
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(out, 1<<20))
	}
	if err != nil {
		s.gpuSeen = engine.Fact{Reason: "what the container sees was not asked: " + short(err)}
		return nil
	}
	if code != 0 {
		return fmt.Errorf("%w: the container was given %s by %s and sees none: nvidia-smi in it says %q; nothing was timed", engine.ErrUnavailable, s.config.gpuText(), s.access.name, strings.TrimSpace(string(text)))
	}
	seen := strings.Fields(string(text))
	want := len(s.config.GPUs)
	if len(seen) == 0 || want > 0 && len(seen) != want {
		return fmt.Errorf("%w: the container was given %s by %s and sees %d: nothing was timed", engine.ErrUnavailable, s.config.gpuText(), s.access.name, len(seen))
	}
	// The driver's order and the container's may differ, its UUIDs do not.
	gpus, err := s.gpus.Devices()
	if err == nil {
		devices, err := gpus.Select(s.config.AllGPUs, s.config.GPUs)
		if err != nil {
			return fmt.Errorf("%w: %w", engine.ErrUnavailable, err)
		}
		for _, d := range devices {
			if d.MIG == 0 && !slices.Contains(seen, d.UUID) {
				return fmt.Errorf("%w: the container was given %s by %s and does not see GPU %d: nothing was timed", engine.ErrUnavailable, s.config.gpuText(), s.access.name, d.Index)
			}
		}
	}
	s.gpuSeen = engine.Fact{Value: len(seen), Provenance: string(record.DeviceReported)}
	return nil
}

// Devices are the GPUs that the container is given, as this machine's driver
// lists them.
func (e *Engine) Devices() (telemetry.GPUs, []telemetry.Device, error) {
	if !e.config.wantsGPU() {
		return telemetry.GPUs{}, nil, nil
	}
	return telemetry.Choose(e.gpus, e.config.AllGPUs, e.config.GPUs)
}

// Owns says whether a process of this machine is one of the container's: the
// kernel names the container in the process's control group. ok is false where
// the process can't be looked at, such as under a daemon on another machine.
func (s *Server) Owns(pid int) (owns, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return false, false
	}
	return strings.Contains(string(text), s.container.GetContainerID()), true
}
