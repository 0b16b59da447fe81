package arrival

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Spec declares when requests arrive, whatever the server does. Each
// process takes its own fields and refuses the others. Rates are requests a
// second.
type Spec struct {
	Process string // one of [Processes]

	Rate float64 // constant, poisson, gamma
	// Burstiness is the shape of gamma's gaps, whose mean stays 1/Rate: 1 is
	// Poisson, less is burstier, more is steadier; the gaps' coefficient of
	// variation is 1/√Burstiness. It is what `vllm bench serve` calls so.
	Burstiness float64

	From, To float64       // ramp: the rate at the start, and at the end of Over and after it
	Over     time.Duration // ramp

	Steps []RateStep // step, in their order; the last one's rate goes on after it

	Offsets []int64 // trace: ns from the start, never falling
	Scale   float64 // trace: what each offset is multiplied by: 0.5 is twice as fast
}

// RateStep is a rate that holds for a while.
type RateStep struct {
	Rate float64 // requests a second; 0 is a pause
	For  time.Duration
}

// kind is a process by its name and the fields that it takes.
type kind struct {
	name   string
	fields []string
}

var kinds = []kind{
	{"constant", []string{"rate"}},
	{"poisson", []string{"rate"}},
	{"gamma", []string{"rate", "burstiness"}},
	{"ramp", []string{"from", "to", "over"}},
	{"step", []string{"steps"}},
	{"trace", []string{"offsets", "scale"}},
}

// Processes are the names of the processes that there are.
func Processes() []string {
	var names []string
	for _, p := range kinds {
		names = append(names, p.name)
	}
	return names
}

const (
	leastRate, mostRate             = 1e-6, 1e6
	leastBurstiness, mostBurstiness = 0.01, 1e4
	leastScale, mostScale           = 1e-6, 1e6
	// mostArrivals is how many arrivals one schedule can have.
	mostArrivals = 10_000_000
	// mostDuration is the longest that a schedule can be.
	mostDuration = 30 * 24 * time.Hour
)

// Process is a checked arrival process. It can be drawn from by several
// goroutines.
type Process struct{ spec Spec }

// New checks a process and says everything that is wrong with it.
func New(s Spec) (*Process, error) {
	at := slices.IndexFunc(kinds, func(p kind) bool { return p.name == s.Process })
	if at < 0 {
		return nil, fmt.Errorf("arrivals: there is no process %q: there are %s", s.Process, strings.Join(Processes(), ", "))
	}
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("arrivals: "+format, args...))
	}
	takes := kinds[at].fields
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"rate", s.Rate != 0}, {"burstiness", s.Burstiness != 0}, {"from", s.From != 0}, {"to", s.To != 0}, {"over", s.Over != 0},
		{"steps", s.Steps != nil}, {"offsets", s.Offsets != nil}, {"scale", s.Scale != 0},
	} {
		if f.set && !slices.Contains(takes, f.name) {
			fault("a %s process takes no %s: it takes %s", s.Process, f.name, strings.Join(takes, ", "))
		}
	}
	between := func(name string, v, least, most float64, why string) {
		if !(v >= least && v <= most) {
			fault("%s is %v: write %v to %v%s", name, v, least, most, why)
		}
	}
	// rate checks one that may be zero where others carry the schedule on.
	rate := func(name string, v float64, last bool) {
		if v != 0 || last {
			between(name, v, leastRate, mostRate, " requests a second")
		}
	}
	within := func(name string, d time.Duration) {
		if d <= 0 || d > mostDuration {
			fault("%s is %s: write more than 0 and %s at most", name, d, mostDuration)
		}
	}
	switch s.Process {
	case "constant", "poisson":
		rate("rate", s.Rate, true)
	case "gamma":
		rate("rate", s.Rate, true)
		between("burstiness", s.Burstiness, leastBurstiness, mostBurstiness, "; 1 is Poisson")
	case "ramp":
		rate("from", s.From, false)
		rate("to", s.To, true)
		within("over", s.Over)
	case "step":
		if len(s.Steps) == 0 {
			fault("there are no steps: write one at least")
		}
		for i, step := range s.Steps {
			rate(fmt.Sprintf("the rate of step %d", i+1), step.Rate, i == len(s.Steps)-1)
			within(fmt.Sprintf("the duration of step %d", i+1), step.For)
		}
	case "trace":
		between("scale", s.Scale, leastScale, mostScale, "; 1 leaves the trace as it is")
		s.offsets(fault)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	s.Steps, s.Offsets = slices.Clone(s.Steps), slices.Clone(s.Offsets)
	return &Process{spec: s}, nil
}

// offsets checks those of a trace.
func (s Spec) offsets(fault func(string, ...any)) {
	if len(s.Offsets) == 0 {
		fault("the trace has no offsets: give those of a file")
	}
	last := int64(0)
	for i, o := range s.Offsets {
		if o < last {
			fault("offset %d of the trace is %d ns, after %d ns: offsets count from the start and never fall", i+1, o, last)
			break // what follows is measured against a wrong one
		}
		last = o
	}
	if scaled := float64(last) * s.Scale; scaled > float64(mostDuration) {
		fault("the trace lasts %.0f s once it is scaled: %s is the most", scaled/1e9, mostDuration)
	}
}

// Draw draws the schedule of a seed: offsets from its start, in ns, never
// falling. It goes on until both are there: everything before until, and
// atLeast arrivals. The same seed gives the same on every machine, and a longer
// schedule begins with a shorter one. A constant process has its first arrival
// at 0, one with random gaps after the first gap. Constant processes and traces
// have nothing that a seed would change.
//
// A trace that has ended brings nothing more: it is silent to the end of until,
// and one with fewer than atLeast offsets is an error, as are more than ten
// million arrivals.
func (a *Process) Draw(seed uint64, until time.Duration, atLeast int) ([]int64, error) {
	if until < 0 || until > mostDuration || atLeast < 0 || atLeast > mostArrivals {
		return nil, fmt.Errorf("arrivals: %s and %d arrivals were asked for: ask for 0 to %s and 0 to %d", until, atLeast, mostDuration, mostArrivals)
	}
	next := a.moments(seed)
	var offsets []int64
	for {
		at, ok := next()
		switch {
		case !ok && len(offsets) < atLeast:
			return nil, fmt.Errorf("arrivals: the trace has %d arrivals, and %d are needed: give a longer one, or ask for fewer", len(offsets), atLeast)
		case !ok || at >= int64(until) && len(offsets) >= atLeast:
			return offsets, nil
		case len(offsets) == mostArrivals:
			return nil, fmt.Errorf("arrivals: more than %d arrivals within %s: lower the rate, or shorten the schedule", mostArrivals, until)
		case at > int64(mostDuration):
			return nil, fmt.Errorf("arrivals: only %d of %d arrivals within %s: raise the rate, or ask for fewer", len(offsets), atLeast, mostDuration)
		}
		offsets = append(offsets, at)
	}
}

// moments gives out the process's moments one after the other, in ns; false
// once there are no more.
func (a *Process) moments(seed uint64) func() (int64, bool) {
	s := a.spec
	random := stream(seed, s.Process)
	switch s.Process {
	case "constant":
		k := -1
		return func() (int64, bool) { k++; return nanoseconds(float64(k) / s.Rate), true }
	case "trace":
		k := -1
		return func() (int64, bool) {
			if k++; k >= len(s.Offsets) {
				return 0, false
			}
			return int64(math.Round(float64(s.Offsets[k]) * s.Scale)), true
		}
	case "gamma":
		sum := 0.0
		return func() (int64, bool) {
			sum += float64(gammaVariate(random, s.Burstiness))
			return nanoseconds(sum / s.Burstiness / s.Rate), true
		}
	default:
		// Inversion: if T is an arrival of the Poisson process of rate 1, Λ⁻¹(T)
		// is one of the process whose cumulative rate is Λ; exact, for Λ⁻¹ has a
		// closed form in each (Çinlar, Introduction to Stochastic Processes,
		// 1975, chapter 4.7; Devroye, Non-Uniform Random Variate Generation,
		// 1986, section VI.1.3).
		sum := 0.0
		return func() (int64, bool) { sum += expVariate(random); return nanoseconds(s.inverse(sum)), true }
	}
}

// inverse is the moment, in seconds, at which the process's cumulative rate
// reaches y.
func (s Spec) inverse(y float64) float64 {
	switch s.Process {
	case "ramp":
		over := s.Over.Seconds()
		if whole := float64((s.From + s.To) / 2 * over); y > whole {
			return over + (y-whole)/s.To
		}
		// Λ(t) = from·t + (to−from)·t²/(2·over), solved so that nothing cancels.
		root := math.Sqrt(max(0, float64(s.From*s.From)+float64(2*(s.To-s.From)*y)/over))
		return 2 * y / (s.From + root)
	case "step":
		start := 0.0
		for _, step := range s.Steps[:len(s.Steps)-1] {
			of := float64(step.Rate * step.For.Seconds())
			if y <= of {
				return start + y/step.Rate
			}
			y -= of
			start += step.For.Seconds()
		}
		return start + y/s.Steps[len(s.Steps)-1].Rate
	default:
		return y / s.Rate
	}
}

// nanoseconds is the nearest whole number of them, 2^62 at most.
func nanoseconds(seconds float64) int64 {
	return int64(math.Round(min(seconds*1e9, 1<<62)))
}

// stream is the random numbers of one process: ChaCha8 keyed by the
// SHA-256 of the seed and the purpose, so that streams of neighbouring seeds
// have nothing in common.
func stream(seed uint64, process string) *rand.Rand {
	return rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "%d/arrivals/%s", seed, process))))
}

// expVariate is exponential with mean 1, by inversion.
func expVariate(r *rand.Rand) float64 { return -naturalLog(1 - r.Float64()) }

// normalVariate is standard normal, by Marsaglia and Bray's polar method (SIAM
// Review 6, 1964); the second of its two is left.
func normalVariate(r *rand.Rand) float64 {
	for {
		x, y := float64(2*r.Float64())-1, float64(2*r.Float64())-1
		if s := float64(x*x) + float64(y*y); s > 0 && s < 1 {
			return x * math.Sqrt(-2*naturalLog(s)/s)
		}
	}
}

// gammaVariate has the gamma distribution of a shape with scale 1, by Marsaglia
// and Tsang (A Simple Method for Generating Gamma Variables, ACM Transactions
// on Mathematical Software 26, 2000); a shape below 1 by their section 6: that
// of shape + 1, times a uniform to the power 1/shape.
func gammaVariate(r *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gammaVariate(r, shape+1) * exponential(naturalLog(1-r.Float64())/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := normalVariate(r)
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v = float64(float64(v*v) * v)
		bound := float64(x*x)/2 + d - float64(d*v) + float64(d*naturalLog(v))
		if naturalLog(1-r.Float64()) < bound {
			return float64(d * v)
		}
	}
}

// Digest is a schedule's SHA-256, in hex: of its offsets in decimal, each
// followed by a line feed.
func Digest(offsets []int64) string {
	h := sha256.New()
	var line []byte
	for _, o := range offsets {
		line = append(strconv.AppendInt(line[:0], o, 10), '\n')
		h.Write(line)
	}
	return hex.EncodeToString(h.Sum(nil))
}
