package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"assay/golden"
	"assay/harness/engine/emulated/scheduler"
	"assay/harness/plan"
	"assay/harness/telemetry"
	"assay/workloads"
)

// fake is a Docker that has what it is given.
type fake struct{ has []string }

func (f fake) about(context.Context) (about, error) {
	return about{version: "20.10.24", runtimes: []string{"nvidia", "runc"}}, nil
}
func (f fake) hasImage(_ context.Context, name string) bool  { return slices.Contains(f.has, name) }
func (f fake) hasVolume(_ context.Context, name string) bool { return slices.Contains(f.has, name) }

func (f fake) givesGPU(context.Context, *plan.Container) error {
	if slices.Contains(f.has, "no toolkit") {
		return errors.New("a container can't be given the GPUs (runtime: could not select device driver; devices: /dev has no nvidia0): apt-get install nvidia-container-toolkit")
	}
	return nil
}

// bare is a machine without anything.
func bare() *machine {
	return &machine{
		unreachable: "it is not installed", noGPU: "NVML is not available: libnvidia-ml.so.1 was not found", cpus: 2, clock: "hpet", files: 32,
		enough: func(n int) error {
			return fmt.Errorf("the limit of open files is 32, and a wave of %d connections needs %d: raise it with ulimit -n %d", n, n+64, n+64)
		},
		command: func(string) error { return errors.New("no such program") },
		folder:  func(string) bool { return false },
		getenv:  func(string) (string, bool) { return "", false },
	}
}

// equipped is a machine with a GPU, and what the named plans need.
func equipped(has ...string) *machine {
	return &machine{
		docker: fake{has}, version: "20.10.24", runtimes: []string{"nvidia", "runc"}, images: 100 << 30, free: 50 << 30, cpus: 64, clock: "tsc", files: 1 << 20,
		gpus:    telemetry.GPUs{Driver: "570.1", CUDA: "12.8", Devices: []telemetry.Device{{Name: "Tesla T4", MemoryBytes: 16 << 30, ComputeCapability: "7.5"}}},
		enough:  func(int) error { return nil },
		command: func(string) error { return nil },
		folder:  func(string) bool { return true },
		getenv: func(name string) (string, bool) {
			return map[string]string{"GPU": "0"}[name], name == "GPU" || name == "HF_TOKEN"
		},
	}
}

func diagnosis(t *testing.T, m *machine, plans ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := report(t.Context(), &out, m, "../..", plans)
	return out.String(), err
}

func TestTheDoctorOnABareMachine(t *testing.T) {
	out, err := diagnosis(t, bare())
	NewWithT(t).Expect(err).To(Equal(doesNotHold))
	golden.Hold(t, "doctor-bare.txt", out)
}

func TestTheDoctorOnAMachineWithEverythingForAGPU(t *testing.T) {
	m := equipped("assay/naive-cuda:1", "vllm/vllm-openai:v0.29.0", "assay-model-qwen2.5-1.5b-instruct")
	out, err := diagnosis(t, m, "../../suites/concurrency/plans/gpu.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	golden.Hold(t, "doctor-gpu.txt", out)
}

func TestTheDoctorTriesWhetherDockerGivesAGPU(t *testing.T) {
	g := NewWithT(t)
	m := equipped("assay/naive-cuda:1", "vllm/vllm-openai:v0.29.0", "assay-model-qwen2.5-1.5b-instruct", "no toolkit")
	out, err := diagnosis(t, m, "../../suites/concurrency/plans/gpu.yaml")
	g.Expect(err).To(Equal(doesNotHold))
	g.Expect(out).To(ContainSubstring("a container can't be given the GPUs (runtime: could not select device driver; devices: /dev has no nvidia0)\n    apt-get install nvidia-container-toolkit"))
}

func TestTheDoctorReadsAPersonsOwnPlan(t *testing.T) {
	g := NewWithT(t)
	own := filepath.Join(t.TempDir(), "own.yaml")
	g.Expect(os.WriteFile(own, []byte(`
schema: assay.plan/v1
name: own
experiment: concurrency
labels: [own]
seed: 1
model: {name: org/model, revision: r, served_as: m}
arms:
  - {name: a, role: baseline, on_disconnect: cancel, engine: {container: {image: "mine:1", build: mine, gpus: [3], mounts: [{volume: w, target: /w}, {source: /data, target: /d}]}}}
  - {name: b, role: candidate, engine: {endpoint: {url: "${URL}", api_key_env: GATE}}}
workload: {prompts: eight, max_tokens: 1, lane: natural}
schedule: {tiers: [1], repeats: 1}
timeouts: {ready: 1s, request: 1s, stop: 1s}
claims: []
`), 0o600)).To(Succeed())
	m := equipped()
	m.folder = func(string) bool { return false }
	out, err := diagnosis(t, m, own)
	g.Expect(err).To(Equal(doesNotHold))
	g.Expect(out).To(ContainSubstring("the environment variable URL is not set\n    export URL=…"))
	g.Expect(out).To(ContainSubstring("the environment variable GATE is not set"))

	m.getenv = func(string) (string, bool) { return "http://127.0.0.1:1", true }
	m.images = 1 << 30
	out, err = diagnosis(t, m, own)
	g.Expect(err).To(Equal(doesNotHold))
	for _, says := range []string{
		"there is no GPU 3: there are 1, counted from 0", "the folder /data, to be mounted at /d, is not here",
		"the image mine:1 is missing\n    docker build -t mine:1 harness/engine/images/mine", "1 GiB are free for images",
		"the volume w, to be mounted at /w, is missing\n    docker volume create w",
	} {
		g.Expect(out).To(ContainSubstring(says))
	}
	_, err = diagnosis(t, m, "nothing.yaml")
	g.Expect(err).To(MatchError(ContainSubstring("nothing.yaml")))
	_, err = diagnosis(t, m, "../../harness/plan/testdata/mistakes.yaml")
	g.Expect(err).To(MatchError(ContainSubstring("mistakes.yaml:1:9:")))
}

func TestTheDoctorReadsTheFilesOfASource(t *testing.T) {
	g := NewWithT(t)
	shipped, err := os.ReadFile("../../suites/concurrency/plans/emulated.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	own := filepath.Join(t.TempDir(), "own.yaml")
	text := strings.Replace(string(shipped), "prompts: eight", `source: {kind: jsonl, file: "${OWN}", sha256: 6b0c4d32ac19f47a2e9d95ae2f3b8b30b9ea9df4cbcb2ecf9ecb4c0a6a5b86c6, license: MIT}`, 1)
	g.Expect(os.WriteFile(own, []byte(text), 0o600)).To(Succeed())
	m := bare()
	m.root = "../.."
	m.getenv = func(string) (string, bool) { return "workloads/testdata/own.jsonl", true }
	out, err := diagnosis(t, m, own)
	g.Expect(err).To(Equal(doesNotHold))
	g.Expect(out).To(ContainSubstring("own.jsonl is another file than the plan's: its SHA-256 is "))
	g.Expect(out).To(ContainSubstring("bring the file that the plan names"))
	m.getenv = func(string) (string, bool) { return "nowhere", true }
	out, _ = diagnosis(t, m, own)
	g.Expect(out).To(ContainSubstring("can't be read: open ../../nowhere"))
}

func TestADeadDockerIsToldFromNone(t *testing.T) {
	g := NewWithT(t)
	m := bare()
	m.command = func(string) error { return nil }
	m.askDocker(t.Context(), nil, errors.New("connect: no such file\nand more"))
	g.Expect(m.unreachable).To(Equal("connect: no such file"))
	m.command = func(string) error { return errors.New("no such program") }
	m.askDocker(t.Context(), nil, errors.New("connect: no such file"))
	g.Expect(m.unreachable).To(Equal("it is not installed"))
	m.askDocker(t.Context(), fake{}, nil)
	g.Expect(m.version).To(Equal("20.10.24"))
}

// Plans are validated without the packages that ship what they name: this is
// where both are seen.
func TestPlansKnowWhatIsShipped(t *testing.T) {
	g := NewWithT(t)
	for _, name := range plan.Parameters {
		g.Expect(scheduler.Sets()).To(HaveKey(name))
	}
	g.Expect(scheduler.Sets()).To(HaveLen(len(plan.Parameters)))
	for _, name := range plan.Prompts {
		_, err := workloads.Set(name)
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(plan.Families).To(Equal(workloads.Families()))
}
