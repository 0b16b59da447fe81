package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a time span that a plan writes as Go does: "60s", "1m30s".
type Duration time.Duration

// D is the span as the standard library's type.
func (d Duration) D() time.Duration { return time.Duration(d) }

// String writes the span as a plan does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes the canonical form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a span with its unit; a bare number is refused.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("%q is no duration: write a number with its unit, such as 60s, 50ms or 5m", text)
	}
	*d = Duration(v)
	return nil
}

// Bytes is a size that a plan writes with a binary or decimal unit: "1GiB".
type Bytes int64

var byteUnits = []struct {
	unit string
	size int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}}

// String writes the size in the largest binary unit that divides it.
func (b Bytes) String() string {
	for _, u := range byteUnits[:3] {
		if b != 0 && int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.unit
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// MarshalText writes the canonical form.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText reads a size with its unit; a bare number is refused.
func (b *Bytes) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	for _, u := range byteUnits {
		if number, ok := strings.CutSuffix(s, u.unit); ok {
			v, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
			if err != nil || v < 0 || v > math.MaxInt64/u.size {
				break
			}
			*b = Bytes(v * u.size)
			return nil
		}
	}
	return fmt.Errorf("%q is no size: write a whole number with its unit, such as 1GiB or 512MiB", text)
}

// Percent is a share that a plan writes in hundredths: "5%".
type Percent struct {
	Value   float64 // from 0 to 100
	written bool    // the plan has the key, so that 0% is no default
}

// Share is the value between 0 and 1.
func (p Percent) Share() float64 { return p.Value / 100 }

// String writes the share as a plan does.
func (p Percent) String() string { return strconv.FormatFloat(p.Value, 'g', -1, 64) + "%" }

// MarshalText writes the canonical form.
func (p Percent) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a share between 0% and 100%; a bare number is refused.
func (p *Percent) UnmarshalText(text []byte) error {
	number, ok := strings.CutSuffix(strings.TrimSpace(string(text)), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(v >= 0 && v <= 100) {
		return fmt.Errorf("%q is no share: write it from 0%% to 100%%, such as 5%%", text)
	}
	*p = Percent{Value: v, written: true}
	return nil
}

// GPUs is which GPUs a container gets: "none", "all", or a list of indices or
// UUIDs.
type GPUs struct {
	All bool
	IDs []string
}

// None says that no GPU was asked for.
func (g GPUs) None() bool { return !g.All && len(g.IDs) == 0 }

// String writes the choice as a plan does.
func (g GPUs) String() string {
	switch {
	case g.All:
		return "all"
	case len(g.IDs) > 0:
		return "[" + strings.Join(g.IDs, ", ") + "]"
	default:
		return "none"
	}
}

// UnmarshalYAML reads the word or the list.
func (g *GPUs) UnmarshalYAML(read func(any) error) error {
	var word string
	if err := read(&word); err == nil {
		*g = GPUs{All: word == "all"}
		return nil
	}
	var list []any
	if err := read(&list); err != nil {
		return err
	}
	*g = GPUs{}
	for _, id := range list {
		g.IDs = append(g.IDs, fmt.Sprint(id))
	}
	return nil
}

// MarshalYAML writes the word or the list.
func (g GPUs) MarshalYAML() (any, error) {
	if len(g.IDs) > 0 {
		return g.IDs, nil
	}
	return g.String(), nil
}

// UnmarshalYAML reads "none" or a limit.
func (s *Settle) UnmarshalYAML(read func(any) error) error {
	var word string
	if err := read(&word); err == nil && word == "none" {
		*s = Settle{None: true, written: true}
		return nil
	}
	var limit struct {
		Idle Duration `yaml:"idle"`
	}
	if err := read(&limit); err != nil {
		return err
	}
	*s = Settle{Idle: limit.Idle, written: true}
	return nil
}

// MarshalYAML writes "none" or the limit.
func (s Settle) MarshalYAML() (any, error) {
	if s.None {
		return "none", nil
	}
	return map[string]string{"idle": s.Idle.String()}, nil
}
