package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/shirou/gopsutil/v4/disk"
	"github.com/spf13/cobra"

	"assay/harness/engine/process"
	"assay/harness/environment"
	"assay/harness/plan"
	"assay/harness/telemetry"
	"assay/reports"
)

func doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor [PLAN...]",
		Short: "say what is here, what each plan would lack, and the command that brings it",
		Long: "Looks at this machine, and at what each plan would need of it: the named ones, or all that the suites ship.\n\n" +
			"Exit codes: 0 all of them can run here, 1 some can't (each says what it lacks), 2 one could not be read.",
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := moduleRoot()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			d, unreachable := dialDocker(ctx)
			if d != nil {
				defer d.close()
			}
			m := examine(root)
			m.askDocker(ctx, d, unreachable)
			return report(ctx, cmd.OutOrStdout(), m, root, args)
		},
	}
}

// machine is what a doctor finds.
type machine struct {
	root        string // the project's folder
	docker      daemon // nil: none
	version     string
	runtimes    []string
	unreachable string // why there is no Docker
	images      uint64 // bytes free where Docker keeps images; 0: not known
	free        uint64 // bytes free where bundles are written; 0: not known

	gpus    telemetry.GPUs
	noGPU   string // why there is none
	cpus    int
	clock   string
	files   uint64 // 0: not known
	enough  func(connections int) error
	command func(string) error // whether a program is here
	folder  func(string) bool
	getenv  func(string) (string, bool)
}

// examine looks at everything but Docker.
func examine(root string) *machine {
	m := &machine{root: root, cpus: runtime.NumCPU(), enough: environment.Enough, getenv: os.LookupEnv, free: freeAt(root)}
	var err error
	if m.gpus, err = (telemetry.NVML{}).Devices(); err != nil {
		m.noGPU = err.Error()
	} else if len(m.gpus.Devices) == 0 {
		m.noGPU = "the driver " + m.gpus.Driver + " is here and shows no GPU"
	}
	m.clock, _ = environment.ClockSource()
	m.files, _ = environment.FileDescriptors()
	m.command = func(name string) error { _, err := exec.LookPath(name); return err }
	m.folder = func(name string) bool { _, err := os.Stat(name); return err == nil }
	return m
}

func freeAt(dir string) uint64 {
	usage, err := disk.Usage(dir)
	if err != nil {
		return 0
	}
	return usage.Free
}

func (m *machine) askDocker(ctx context.Context, d daemon, unreachable error) {
	if unreachable == nil {
		about, err := d.about(ctx)
		if err == nil {
			m.docker, m.version, m.runtimes, m.images = d, about.version, about.runtimes, freeAt(about.dir)
			return
		}
		unreachable = err
	}
	m.unreachable, _, _ = strings.Cut(unreachable.Error(), "\n")
	if m.command("dockerd") != nil && m.command("docker") != nil {
		m.unreachable = "it is not installed"
	}
}

// report says what is here and then, plan by plan, what is not.
func report(ctx context.Context, out io.Writer, m *machine, root string, plans []string) error {
	m.print(out)
	fmt.Fprintln(out)
	names := plans
	if len(names) == 0 {
		var err error
		if names, err = shipped(out, root); err != nil {
			return err
		}
	}
	lacking := false
	for _, name := range names {
		p, err := plan.Load(name)
		if err != nil {
			return err
		}
		if shorter, err := filepath.Rel(root, name); err == nil && filepath.IsLocal(shorter) {
			name = shorter
		}
		lacks := m.lacks(ctx, p)
		if len(lacks) == 0 {
			fmt.Fprintf(out, "%s: can run\n", name)
			continue
		}
		lacking = true
		fmt.Fprintf(out, "%s: can't run here yet\n", name)
		for _, l := range lacks {
			fmt.Fprintf(out, "  - %s\n    %s\n", l.what, l.bring)
		}
	}
	if lacking {
		return doesNotHold
	}
	return nil
}

// shipped lists the suites' plans, and says of the suites that have none that
// they need nothing.
func shipped(out io.Writer, root string) ([]string, error) {
	plans, err := filepath.Glob(filepath.Join(root, "suites", "*", "plans", "*.yaml"))
	if err != nil {
		return nil, err
	}
	tests, err := fs.Glob(os.DirFS(root), "suites/*/*_suite_test.go")
	if err != nil {
		return nil, err
	}
	for _, t := range tests {
		suite := path.Dir(t)
		if !slices.ContainsFunc(plans, func(p string) bool {
			return strings.HasPrefix(p, filepath.Join(root, suite)+string(filepath.Separator))
		}) {
			fmt.Fprintf(out, "%s: can run, needs nothing\n", suite)
		}
	}
	return plans, nil
}

// slowClocks are clock sources whose every reading leaves the processor.
var slowClocks = []string{"hpet", "acpi_pm", "jiffies"}

func (m *machine) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	if m.docker != nil {
		row("docker", "%s, runtimes %s", m.version, strings.Join(m.runtimes, ", "))
	} else {
		row("docker", "none: %s", m.unreachable)
	}
	if m.noGPU != "" {
		row("gpu", "none: %s", m.noGPU)
	} else {
		row("gpu driver", "%s, CUDA up to %s", m.gpus.Driver, m.gpus.CUDA)
		for _, d := range m.gpus.Devices {
			row("gpu "+strconv.Itoa(d.Index), "%s, %s, compute capability %s", d.Name, gib(d.MemoryBytes), d.ComputeCapability)
		}
	}
	row("processors", "%d", m.cpus)
	if m.free == 0 {
		row("disk", "not known")
	} else {
		row("disk", "%s free for bundles", gib(m.free))
	}
	if m.images > 0 {
		row("", "%s free for images", gib(m.images))
	}
	switch {
	case m.clock == "":
		row("clock source", "not known")
	case slices.Contains(slowClocks, m.clock):
		row("clock source", "%s: each reading takes microseconds, and many clients read it often; tsc or kvm-clock is better", m.clock)
	default:
		row("clock source", "%s", m.clock)
	}
	if m.files == 0 {
		row("open files", "not known")
	} else {
		row("open files", "%d at most", m.files)
	}
	_ = w.Flush()
}

func gib(bytes uint64) string {
	return fmt.Sprintf("%.0f GiB", float64(bytes)/(1<<30))
}

// lack is one thing that is not here, and what brings it.
type lack struct{ what, bring string }

// room is what the images of the real servers take, with some to spare.
const room = 12 << 30

// lacks is everything that a plan would miss here.
func (m *machine) lacks(ctx context.Context, p *plan.Plan) []lack {
	var out []lack
	add := func(bring, format string, args ...any) {
		if l := (lack{fmt.Sprintf(format, args...), bring}); !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	for _, name := range p.Variables() {
		if value, _ := m.getenv(name); value == "" {
			add("export "+name+"=…", "the environment variable %s is not set", name)
		}
	}
	if err := m.enough(slices.Max(append([]int{1}, p.Sweep.Tiers...))); err != nil {
		what, how, _ := strings.Cut(err.Error(), ": raise it with ")
		add(how, "%s", what)
	}
	expanded, _, err := p.Expand(m.getenv)
	if err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			if !strings.Contains(line, "needs the environment variable") { // said above
				add("correct the variable", "%s", line)
			}
		}
		return out
	}
	if expanded.Workload.Source != nil {
		if _, _, err := reports.Entries(expanded, m.root); err != nil {
			for _, line := range strings.Split(err.Error(), "\n") {
				add("bring the file that the plan names, or correct the plan", "%s", line)
			}
		}
	}
	for _, a := range expanded.Arms {
		switch e := a.Engine; {
		case e.Container != nil:
			m.container(ctx, expanded, e.Container, add)
		case e.Process != nil:
			if name := process.Program(e.Process.Command[0], e.Process.Dir); m.command(name) != nil {
				add("install it, or correct the plan", "the command %s is not here", name)
			}
		}
	}
	return out
}

func (m *machine) container(ctx context.Context, p *plan.Plan, c *plan.Container, add func(string, string, ...any)) {
	gpu := !c.GPUs.None()
	if gpu && m.noGPU != "" {
		add("run it on a machine with an NVIDIA GPU and its driver", "no GPU: %s", m.noGPU)
	} else {
		for _, id := range c.GPUs.IDs {
			if n, err := strconv.Atoi(id); err == nil && n >= len(m.gpus.Devices) {
				add("correct the plan's gpus", "there is no GPU %d: there are %d, counted from 0", n, len(m.gpus.Devices))
			}
		}
	}
	for _, mount := range c.Mounts {
		if mount.Source != "" && !m.folder(mount.Source) {
			add("mkdir it and fill it, or correct the plan", "the folder %s, to be mounted at %s, is not here", mount.Source, mount.Target)
		}
	}
	if m.docker == nil {
		add("apt-get install docker.io iptables, and start dockerd", "no Docker: %s", m.unreachable)
		return
	}
	here := m.docker.hasImage(ctx, c.Image)
	if gpu && m.noGPU == "" && here {
		// What Docker lists of itself would not tell; a try does.
		if err := m.docker.givesGPU(ctx, c); err != nil {
			what, how, _ := strings.Cut(err.Error(), "): ")
			add(how, "%s)", what)
		}
	}
	if !here {
		add(imageCommand(c), "the image %s is missing", c.Image)
		if m.images > 0 && m.images < room {
			add("docker system df shows what takes it", "%s are free for images, and those of the real servers take up to %s", gib(m.images), gib(room))
		}
	}
	for _, mount := range c.Mounts {
		if mount.Volume != "" && !m.docker.hasVolume(ctx, mount.Volume) {
			add(volumeCommand(p, mount.Volume), "the volume %s, to be mounted at %s, is missing", mount.Volume, mount.Target)
		}
	}
}

// imageCommand brings an image, by the project's scripts where it is theirs.
func imageCommand(c *plan.Container) string {
	switch {
	case c.Image == "assay/naive-cuda:1":
		return "scripts/images.sh naive-cuda"
	case c.Image == "assay/naive:1" || c.Image == "assay/vllm-cpu:0.22.1":
		return "make images"
	case c.Build != "":
		return "docker build -t " + c.Image + " harness/engine/images/" + c.Build
	default:
		return "docker pull " + c.Image
	}
}

// volumeCommand brings a model, by the project's scripts where the volume's
// name is the one that they give it.
func volumeCommand(p *plan.Plan, volume string) string {
	switch volume {
	case "assay-model-smollm2":
		return "make model"
	case "assay-model-" + strings.ToLower(path.Base(p.Model.Name)):
		return fmt.Sprintf("scripts/model.sh %s %s", p.Model.Name, p.Model.Revision)
	default:
		return "docker volume create " + volume + ", and fill it"
	}
}
