package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v4/disk"
	"github.com/spf13/cobra"

	"assay/harness/environment"
	"assay/harness/plan"
	"assay/harness/telemetry"
)

func doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "say what is here, what each plan would lack, and the command that brings it",
		Long:  "Exit codes: 0 every plan can run here, 1 some can't (each says what it lacks).",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := moduleRoot()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			m := examine(ctx, root)
			m.print(cmd.OutOrStdout())
			return m.plans(ctx, cmd.OutOrStdout(), root)
		},
	}
}

// machine is what a doctor finds.
type machine struct {
	docker    string // its version; empty: none
	dockerWhy string
	runtimes  []string
	gpus      telemetry.GPUs
	gpuWhy    string
	free      uint64 // bytes
	clock     string
	files     uint64
}

func examine(ctx context.Context, root string) machine {
	var m machine
	version, err := exec.CommandContext(ctx, "docker", "info", "--format", `{{.ServerVersion}}{{range $name, $_ := .Runtimes}} {{$name}}{{end}}`).Output()
	if fields := strings.Fields(string(version)); err == nil && len(fields) > 0 {
		m.docker, m.runtimes = fields[0], fields[1:]
	} else {
		m.dockerWhy = "no daemon answers"
		if _, err := exec.LookPath("docker"); err != nil {
			m.dockerWhy = "it is not installed"
		}
	}
	if m.gpus, err = (telemetry.NVML{}).Devices(); err != nil {
		m.gpuWhy = err.Error()
	}
	if usage, err := disk.UsageWithContext(ctx, root); err == nil {
		m.free = usage.Free
	}
	m.clock, _ = environment.ClockSource()
	m.files, _ = environment.FileDescriptors()
	return m
}

func (m machine) print(out io.Writer) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(out, "%-18s %s\n", name, fmt.Sprintf(format, args...))
	}
	if m.docker != "" {
		line("docker", "%s, runtimes: %s", m.docker, strings.Join(m.runtimes, ", "))
	} else {
		line("docker", "none: %s", m.dockerWhy)
	}
	if m.gpuWhy == "" {
		line("gpu driver", "%s, CUDA up to %s", m.gpus.Driver, m.gpus.CUDA)
		for _, d := range m.gpus.Devices {
			line("gpu", "%d: %s, %.0f GiB, compute capability %s", d.Index, d.Name, float64(d.MemoryBytes)/(1<<30), d.ComputeCapability)
		}
	} else {
		line("gpu", "none: %s", m.gpuWhy)
	}
	line("disk", "%.0f GiB free", float64(m.free)/(1<<30))
	if m.clock == "" {
		m.clock = "not known"
	}
	line("clock source", "%s", m.clock)
	line("open files", "%d", m.files)
}

// plans says of each shipped plan what it lacks here.
func (m machine) plans(ctx context.Context, out io.Writer, root string) error {
	files, err := filepath.Glob(filepath.Join(root, "suites", "*", "plans", "*.yaml"))
	if err != nil {
		return err
	}
	slices.Sort(files)
	lacking := 0
	fmt.Fprintln(out)
	for _, file := range files {
		name, _ := filepath.Rel(root, file)
		p, err := plan.Load(file)
		if err != nil {
			return err
		}
		missing := m.missing(ctx, p)
		if len(missing) == 0 {
			fmt.Fprintf(out, "%s: can run\n", name)
			continue
		}
		lacking++
		fmt.Fprintf(out, "%s: can't run here\n", name)
		for _, what := range missing {
			fmt.Fprintf(out, "  %s\n", what)
		}
	}
	if lacking > 0 {
		return doesNotHold
	}
	return nil
}

// room is what the images of the real servers take, with some to spare.
const room = 12 << 30

func (m machine) missing(ctx context.Context, p *plan.Plan) []string {
	var out []string
	add := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	expanded, _, err := p.Expand(os.LookupEnv)
	if err != nil {
		return strings.Split(err.Error(), "\n")
	}
	most := slices.Max(p.Sweep.Tiers)
	if err := environment.Enough(most); err != nil {
		add("%s", err)
	}
	for _, a := range expanded.Arms {
		switch e := a.Engine; {
		case e.Container != nil:
			m.container(ctx, e.Container, add)
		case e.Process != nil:
			if _, err := exec.LookPath(e.Process.Command[0]); err != nil {
				add("the command %s is not here: install it, or correct the plan", e.Process.Command[0])
			}
		case e.Endpoint != nil && e.Endpoint.APIKeyEnv != "" && os.Getenv(e.Endpoint.APIKeyEnv) == "":
			add("the environment variable %s, for the API key, is empty: set it", e.Endpoint.APIKeyEnv)
		}
	}
	return out
}

func (m machine) container(ctx context.Context, c *plan.Container, add func(string, ...any)) {
	if !c.GPUs.None() && m.gpuWhy != "" {
		add("no GPU: %s", m.gpuWhy)
	}
	if m.docker == "" {
		add("Docker: %s: apt-get install docker.io iptables, and start dockerd", m.dockerWhy)
		return
	}
	if !c.GPUs.None() && !slices.Contains(m.runtimes, "nvidia") {
		add("Docker has no nvidia runtime: install the NVIDIA container toolkit, then nvidia-ctk runtime configure --runtime=docker and restart dockerd")
	}
	if exec.CommandContext(ctx, "docker", "image", "inspect", c.Image).Run() != nil {
		how := "docker pull " + c.Image
		if c.Build != "" {
			how = "make images"
			if !c.GPUs.None() {
				how = "scripts/images.sh naive-cuda"
			}
		}
		add("the image %s is missing: %s", c.Image, how)
		if m.free < room {
			add("%.0f GiB of disk are free, and the images need about %d", float64(m.free)/(1<<30), room>>30)
		}
	}
	for _, mount := range c.Mounts {
		if mount.Volume == "" {
			continue
		}
		data, err := exec.CommandContext(ctx, "docker", "volume", "inspect", mount.Volume).Output()
		var found []json.RawMessage
		if err != nil || json.Unmarshal(data, &found) != nil || len(found) == 0 {
			how := "make model"
			if !c.GPUs.None() {
				how = "make run-gpu brings it (scripts/model.sh REPOSITORY REVISION)"
			}
			add("the volume %s, with the model, is missing: %s", mount.Volume, how)
		}
	}
}
