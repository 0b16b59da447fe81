package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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
	data, err := yaml.MarshalWithOptions(p, yaml.IndentSequence(true))
	if err != nil {
		return Frozen{}, fmt.Errorf("the plan can't be written canonically: %w", err)
	}
	sum := sha256.Sum256(data)
	return Frozen{Bytes: data, SHA256: hex.EncodeToString(sum[:])}, nil
}

var secretName = regexp.MustCompile(`(?i)(key|token|secret|password|credential)s?$`)

// reservedPort is for the harness to fill in, once it has picked a free port.
const reservedPort = "PORT"

// Expand returns the plan with what each ${VAR} stands for on this machine,
// and what that was, with secrets blacked out. It reports every variable that
// is not set and has no default.
func (p *Plan) Expand(lookup func(string) (string, bool)) (*Plan, map[string]string, error) {
	frozen, err := Freeze(p)
	if err != nil {
		return nil, nil, err
	}
	var out Plan
	if err := yaml.Unmarshal(frozen.Bytes, &out); err != nil {
		return nil, nil, fmt.Errorf("a frozen plan that can't be read again: %w", err)
	}
	e := &expansion{lookup: lookup, said: map[string]string{}}
	for i := range out.Arms {
		e.engine(&out.Arms[i].Engine)
	}
	slices.Sort(e.missing)
	var errs []error
	for _, name := range slices.Compact(e.missing) {
		errs = append(errs, fmt.Errorf("the plan needs the environment variable %s: set it", name))
	}
	return &out, e.said, errors.Join(errs...)
}

type expansion struct {
	lookup  func(string) (string, bool)
	said    map[string]string
	missing []string
	process bool
}

func (e *expansion) engine(g *Engine) {
	if c := g.Container; c != nil {
		e.text(&c.Image)
		e.all(c.Args)
		e.values(c.Env)
		for i := range c.Mounts {
			e.text(&c.Mounts[i].Volume)
			e.text(&c.Mounts[i].Source)
		}
	}
	if c := g.Process; c != nil {
		e.process = true
		e.all(c.Command)
		e.values(c.Env)
		e.text(&c.Dir)
		e.process = false
	}
	if c := g.Endpoint; c != nil {
		e.text(&c.URL)
		c.URL = strings.TrimSuffix(c.URL, "/")
	}
}

func (e *expansion) all(list []string) {
	for i := range list {
		e.text(&list[i])
	}
}

func (e *expansion) values(m map[string]string) {
	for k, v := range m {
		e.text(&v)
		m[k] = v
	}
}

func (e *expansion) text(s *string) {
	*s = variable.ReplaceAllStringFunc(*s, func(use string) string {
		m := variable.FindStringSubmatch(use)
		name := m[1]
		if e.process && name == reservedPort {
			return use
		}
		value, ok := e.lookup(name)
		switch {
		case !ok && m[2] == "":
			e.missing = append(e.missing, name)
			return use
		case !ok:
			value = m[3]
		}
		e.said[name] = value
		if secretName.MatchString(name) {
			e.said[name] = "[redacted secret]"
		}
		return value
	})
}
