package lifecycle

import (
	"fmt"
	"path/filepath"

	"assay/harness/engine"
	"assay/harness/engine/container"
	"assay/harness/engine/emulated"
	"assay/harness/engine/emulated/scheduler"
	"assay/harness/engine/endpoint"
	"assay/harness/engine/process"
	"assay/harness/plan"
)

// Launcher is an engine that also says beforehand whether it can launch here.
type Launcher interface {
	engine.Engine
	engine.Checker
}

// NewEngine makes the engine that an arm of an expanded plan declares, for one
// place of the schedule. prompts are the workload's, in order: an emulated
// model has a declared length for each. root is the project's folder, below
// which images are built from and relative folders of processes lie.
func NewEngine(p *plan.Plan, arm plan.Arm, place plan.Lifecycle, prompts []string, root string, options ...Option) (Launcher, error) {
	switch e := arm.Engine; {
	case e.Emulated != nil:
		return newEmulated(p, arm, place, prompts, options)
	case e.Container != nil:
		return newContainer(e.Container, root), nil
	case e.Process != nil:
		return process.New(process.Config{Command: e.Process.Command, Env: e.Process.Env, Dir: under(root, e.Process.Dir)}), nil
	case e.Endpoint != nil:
		return endpoint.New(e.Endpoint.URL, endpoint.WithKeyFrom(e.Endpoint.APIKeyEnv)), nil
	default:
		return nil, fmt.Errorf("%s has no engine", arm.Name)
	}
}

func newContainer(c *plan.Container, root string) Launcher {
	config := container.Config{
		Image: c.Image, Entrypoint: c.Entrypoint, Args: c.Args, Env: c.Env, ShmSize: int64(c.ShmSize), Port: c.Port,
		AllGPUs: c.GPUs.All, GPUs: c.GPUs.IDs, GPUAccess: container.Access(c.GPUAccess),
	}
	if c.Build != "" {
		config.Build = filepath.Join(root, "harness", "engine", "images", c.Build)
	}
	for _, m := range c.Mounts {
		config.Mounts = append(config.Mounts, container.Mount(m))
	}
	return container.New(config)
}

func newEmulated(p *plan.Plan, arm plan.Arm, place plan.Lifecycle, prompts []string, options []Option) (Launcher, error) {
	parameters, ok := scheduler.Sets()[arm.Engine.Emulated.Parameters]
	if !ok {
		return nil, fmt.Errorf("there is no parameter set %q", arm.Engine.Emulated.Parameters)
	}
	c := emulated.Config{
		Parameters: parameters, Name: arm.Engine.Emulated.Parameters, Model: p.Model.ServedAs,
		Seed: p.Seed + uint64(place.Number), Scale: p.TimeScale, Startup: arm.Engine.Emulated.Startup.D(),
		Finish: arm.OnDisconnect == plan.Finish, Prompts: prompts,
	}
	for _, f := range arm.Engine.Emulated.Faults {
		c.Finish = c.Finish || f.Kind == plan.FaultIgnoreDisconnect
		c.Faults = append(c.Faults, emulated.Fault{Kind: f.Kind, Requests: f.Requests, After: f.After, For: f.For.D(), Status: f.Status})
	}
	for _, o := range options {
		o(&c)
	}
	return emulated.New(c), nil
}

// Option changes an emulated server; other engines are what they are.
type Option func(*emulated.Config)

// WithAnswers makes an emulated server know the right answers to the prompts,
// in their order.
func WithAnswers(answers []string) Option {
	return func(c *emulated.Config) { c.Answers = answers }
}

// under is a path that starts at a folder, unless it is absolute or empty.
func under(root, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(root, path)
}
