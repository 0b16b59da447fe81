package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// Frozen is a plan as it goes into a bundle: canonical bytes and their
// SHA-256. Comments, order and formatting of the file that it came from are
// not in it, every default is, and ${VAR} stays as it was written.
type Frozen struct {
	Bytes  []byte
	SHA256 string // hex
}

// Freeze writes a plan canonically. A frozen plan, parsed and frozen again,
// gives the same bytes.
func Freeze(p *Plan) (Frozen, error) {
	var document any = p
	switch {
	case p.Pairing != nil:
		document = p.crossover()
	case p.Arrivals != nil:
		document = p.arrival()
	}
	data, err := yaml.MarshalWithOptions(document, yaml.IndentSequence(true))
	if err != nil {
		return Frozen{}, fmt.Errorf("the plan can't be written canonically: %w", err)
	}
	sum := sha256.Sum256(data)
	return Frozen{Bytes: data, SHA256: hex.EncodeToString(sum[:])}, nil
}

// heading is the keys with which every frozen plan begins.
type heading struct {
	Schema     string     `yaml:"schema"`
	Name       string     `yaml:"name"`
	Experiment Experiment `yaml:"experiment"`
	Labels     []string   `yaml:"labels"`
	Seed       uint64     `yaml:"seed"`
	TimeScale  float64    `yaml:"time_scale"`
	Model      Model      `yaml:"model"`
	Arms       []Arm      `yaml:"arms"`
}

func (p *Plan) heading() heading {
	return heading{
		Schema: p.Schema, Name: p.Name, Experiment: p.Experiment, Labels: p.Labels, Seed: p.Seed, TimeScale: p.TimeScale,
		Model: p.Model, Arms: p.Arms,
	}
}

// crossoverDocument is a crossover plan's keys, in the order in which a frozen
// one writes them.
type crossoverDocument struct {
	heading   `yaml:",inline"`
	Sampling  Sampling          `yaml:"sampling"`
	Caches    Caches            `yaml:"caches"`
	Lanes     Lanes             `yaml:"lanes"`
	Schedule  crossoverSchedule `yaml:"schedule"`
	Failure   string            `yaml:"failure"`
	Crossing  Crossing          `yaml:"crossing"`
	Inference Inference         `yaml:"inference"`
	Cost      *Cost             `yaml:"cost,omitempty"`
	Resume    *Resume           `yaml:"resume,omitempty"`
	Timeouts  crossoverTimeouts `yaml:"timeouts"`
	Telemetry *Telemetry        `yaml:"telemetry,omitempty"`
	Gates     crossoverGates    `yaml:"gates"`
	Claims    []Claim           `yaml:"claims"`
}

type crossoverSchedule struct {
	Pairs  int      `yaml:"pairs"`
	Blocks []string `yaml:"blocks"`
	Poll   Duration `yaml:"poll"`
}

type crossoverTimeouts struct {
	Image   Duration `yaml:"image"`
	Ready   Duration `yaml:"ready"`
	Connect Duration `yaml:"connect"`
	Request Duration `yaml:"request"`
	Stop    Duration `yaml:"stop"`
}

type crossoverGates struct {
	ClientLag   Duration `yaml:"client_lag"`
	Coalesced   Percent  `yaml:"coalesced"`
	Correctness string   `yaml:"correctness"`
	Identity    string   `yaml:"identity"`

	Watch WatchGates `yaml:",inline"`
}

func (p *Plan) crossover() crossoverDocument {
	c, t, g := p.Pairing, p.Timeouts, p.Gates
	return crossoverDocument{
		heading: p.heading(), Sampling: p.Sampling, Caches: c.Caches, Lanes: c.Lanes,
		Schedule: crossoverSchedule{Pairs: c.Pairs, Blocks: c.Blocks, Poll: t.Poll},
		Failure:  c.Failure, Crossing: c.Crossing, Inference: c.Inference, Cost: c.Cost, Resume: c.Resume,
		Timeouts:  crossoverTimeouts{Image: t.Image, Ready: t.Ready, Connect: t.Connect, Request: t.Request, Stop: t.Stop},
		Telemetry: p.Telemetry,
		Gates:     crossoverGates{ClientLag: g.ClientLag, Coalesced: g.Coalesced, Correctness: g.Correctness, Identity: g.Identity, Watch: g.Watch},
		Claims:    p.Claims,
	}
}

// arrivalDocument is an arrival plan's keys, in the order in which a frozen one
// writes them.
type arrivalDocument struct {
	heading   `yaml:",inline"`
	Workload  Workload        `yaml:"workload"`
	Sampling  Sampling        `yaml:"sampling"`
	Arrivals  *Arrivals       `yaml:"arrivals"`
	Search    *Search         `yaml:"search,omitempty"`
	Schedule  arrivalSchedule `yaml:"schedule"`
	Timeouts  Timeouts        `yaml:"timeouts"`
	Telemetry *Telemetry      `yaml:"telemetry,omitempty"`
	Gates     arrivalGates    `yaml:"gates"`
	Claims    []Claim         `yaml:"claims"`
}

type arrivalSchedule struct {
	Lifecycles int    `yaml:"lifecycles"`
	Warmup     int    `yaml:"warmup"`
	Settle     Settle `yaml:"settle"`
}

type arrivalGates struct {
	ClientLag     Duration `yaml:"client_lag"`
	Coalesced     Percent  `yaml:"coalesced"`
	ScheduleDelay Duration `yaml:"schedule_delay"`
	CarryOver     string   `yaml:"carry_over"`
	Correctness   string   `yaml:"correctness"`
	Identity      string   `yaml:"identity"`

	Watch WatchGates `yaml:",inline"`
}

func (p *Plan) arrival() arrivalDocument {
	g := p.Gates
	return arrivalDocument{
		heading: p.heading(), Workload: p.Workload, Sampling: p.Sampling, Arrivals: p.Arrivals, Search: p.Search,
		Schedule: arrivalSchedule{Lifecycles: p.Sweep.Lifecycles, Warmup: p.Sweep.Warmup, Settle: p.Sweep.Settle},
		Timeouts: p.Timeouts, Telemetry: p.Telemetry,
		Gates: arrivalGates{
			ClientLag: g.ClientLag, Coalesced: g.Coalesced, ScheduleDelay: *g.ScheduleDelay, CarryOver: g.CarryOver,
			Correctness: g.Correctness, Identity: g.Identity, Watch: g.Watch,
		},
		Claims: p.Claims,
	}
}

// secretName matches the names of variables that hold secrets.
var secretName = regexp.MustCompile(`(?i)(key|token|secret|password|credential)s?$`)

// reservedPort is for the harness to fill in, once it has picked a free port.
const reservedPort = "PORT"

// blackedOut stands for a secret in what is recorded.
const blackedOut = "[redacted secret]"

// Expand returns the plan with what each ${VAR} stands for on this machine,
// and what that was, by name: secrets blacked out, the home folder as ~. As in
// a shell, the default of ${VAR:-default} also stands for an empty variable.
// The error has every variable that is not set and has no default, and every
// value that can't be used.
func (p *Plan) Expand(lookup func(string) (string, bool)) (*Plan, map[string]string, error) {
	out, e, err := p.expand(lookup)
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(e.missing)
	var errs []error
	for _, name := range slices.Compact(e.missing) {
		errs = append(errs, fmt.Errorf("the plan needs the environment variable %s: set it", name))
	}
	errs = append(errs, e.unusable...)
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	return out, e.said, nil
}

// Secrets are the values on this machine that must not be written anywhere: of
// variables whose names, or the names that they are given to, end like a
// secret's, and of the endpoints' keys.
func (p *Plan) Secrets(lookup func(string) (string, bool)) []string {
	_, e, err := p.expand(lookup)
	if err != nil {
		return nil
	}
	for _, a := range p.Arms {
		if a.Engine.Endpoint != nil {
			if key, _ := lookup(a.Engine.Endpoint.APIKeyEnv); key != "" {
				e.secrets = append(e.secrets, key)
			}
		}
	}
	slices.Sort(e.secrets)
	return slices.Compact(e.secrets)
}

// Variables are the names of the variables that have to be set where the plan
// runs: those without a default, and those of the endpoints' keys.
func (p *Plan) Variables() []string {
	_, e, err := p.expand(func(string) (string, bool) { return "", false })
	if err != nil {
		return nil
	}
	for _, a := range p.Arms {
		if a.Engine.Endpoint != nil && a.Engine.Endpoint.APIKeyEnv != "" {
			e.missing = append(e.missing, a.Engine.Endpoint.APIKeyEnv)
		}
	}
	slices.Sort(e.missing)
	return slices.Compact(e.missing)
}

func (p *Plan) expand(lookup func(string) (string, bool)) (*Plan, *expansion, error) {
	data, err := yaml.Marshal(p.Arms)
	if err != nil {
		return nil, nil, fmt.Errorf("the arms can't be written canonically: %w", err)
	}
	out := *p
	out.Arms = nil // what is expanded must not be the plan's own
	if err := yaml.Unmarshal(data, &out.Arms); err != nil {
		return nil, nil, fmt.Errorf("canonical arms that can't be read again: %w", err)
	}
	e := &expansion{lookup: lookup, said: map[string]string{}}
	for i := range out.Arms {
		e.engine(&out.Arms[i])
	}
	out.Workload.Source = e.source(p.Workload.Source)
	return &out, e, nil
}

type expansion struct {
	lookup   func(string) (string, bool)
	said     map[string]string
	secrets  []string
	missing  []string
	unusable []error
	process  bool // ${PORT} is the harness's
	secret   bool // whatever it is, it is given to a secret's name
}

func (e *expansion) engine(a *Arm) {
	g := &a.Engine
	if c := g.Container; c != nil {
		e.needed(a.Name, "image", &c.Image)
		e.values(c.Env)
		for i := range c.Mounts {
			m := &c.Mounts[i]
			if m.Volume != "" {
				e.needed(a.Name, "volume", &m.Volume)
			} else {
				e.needed(a.Name, "source", &m.Source)
			}
		}
		for i := range c.GPUs.IDs {
			e.needed(a.Name, "gpus", &c.GPUs.IDs[i])
		}
	}
	if c := g.Process; c != nil {
		e.process = true
		e.needed(a.Name, "command", &c.Command[0])
		for i := range c.Command[1:] {
			e.text(&c.Command[1+i])
		}
		e.values(c.Env)
		e.text(&c.Dir)
		e.process = false
	}
	if c := g.Endpoint; c != nil {
		missing := len(e.missing)
		e.text(&c.URL)
		if why := urlFault(c.URL); why != "" && len(e.missing) == missing {
			e.unusable = append(e.unusable, fmt.Errorf("the url of %s: %s", a.Name, why))
		}
		c.URL = strings.TrimRight(c.URL, "/")
	}
}

// needed expands a value that must not end up empty.
func (e *expansion) needed(arm, key string, s *string) {
	before := *s
	if e.text(s); *s == "" {
		e.unusable = append(e.unusable, fmt.Errorf("the %s of %s, %s, is empty: set the variable", key, arm, before))
	}
}

func (e *expansion) values(m map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		v := m[k]
		e.secret = secretName.MatchString(k)
		e.text(&v)
		e.secret = false
		m[k] = v
	}
}

func (e *expansion) text(s *string) {
	*s = variable.ReplaceAllStringFunc(*s, func(use string) string {
		m := variable.FindStringSubmatch(use)
		name, hasDefault := m[1], m[2] != ""
		if e.process && name == reservedPort {
			return use
		}
		value, ok := e.lookup(name)
		switch {
		case hasDefault && value == "":
			value = m[3]
		case !ok:
			e.missing = append(e.missing, name)
			return use
		}
		e.say(name, value)
		return value
	})
}

// say notes what a variable stood for.
func (e *expansion) say(name, value string) {
	if e.secret || secretName.MatchString(name) {
		if value != "" {
			e.secrets = append(e.secrets, value)
		}
		e.said[name] = blackedOut
		return
	}
	if e.said[name] == blackedOut {
		return // it was given to a secret's name elsewhere
	}
	if u, err := url.Parse(value); err == nil && u.User != nil {
		value = strings.Replace(value, u.User.String()+"@", blackedOut+"@", 1)
	}
	if home, ok := e.lookup("HOME"); ok && len(home) > 1 {
		home = strings.TrimRight(home, "/")
		if value == home || strings.HasPrefix(value, home+"/") {
			value = "~" + strings.TrimPrefix(value, home)
		}
	}
	e.said[name] = value
}
