package workloads

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// LengthSpec declares a distribution of whole numbers: of tokens, or of what
// else is drawn with them (turns, milliseconds). Each kind takes its own fields
// and refuses the others.
type LengthSpec struct {
	Kind string // "fixed", "uniform", "lognormal" or "empirical"

	Tokens int     // fixed: the one length
	Median float64 // lognormal: half of what is drawn without bounds lies below it
	Sigma  float64 // lognormal: the standard deviation of the natural logarithm
	Values []int   // empirical: the lengths seen, each as likely as any other, see [ReadLengths]

	// Min and Max are the bounds, both included, of every kind but fixed. What
	// falls outside is drawn again, so that the bounds change the distribution:
	// [Lengths.Outside] says how much.
	Min, Max int
}

// lengthKind is a kind of lengths and the fields that it takes.
type lengthKind struct {
	name   string
	fields []string
}

var lengthKinds = []lengthKind{
	{"fixed", []string{"tokens"}},
	{"uniform", []string{"min", "max"}},
	{"lognormal", []string{"median", "sigma", "min", "max"}},
	{"empirical", []string{"values", "min", "max"}},
}

const (
	// mostSigma is where three quarters of a distribution are already off its
	// median by more than a factor of twenty.
	mostSigma = 10
	// leastInside is the share of a distribution that its bounds have to hold:
	// with less, what is drawn is no longer what was declared.
	leastInside = 0.1
)

// Lengths is a checked distribution of lengths. It can be drawn from by several
// goroutines.
type Lengths struct {
	of     string
	spec   LengthSpec
	values []int   // empirical: those within the bounds
	inside float64 // the share of the distribution within the bounds
}

// NewLengths checks a distribution and says everything that is wrong with it.
// Of is what has these lengths, such as "input" or "output": it is in the
// errors, and each has random numbers of its own, so that two distributions
// drawn from one seed are independent if it differs. Lengths are 1 at least and
// 2097152 at most.
func NewLengths(of string, s LengthSpec) (*Lengths, error) { return newLengths(of, s, 1) }

// newLengths is NewLengths with another least length.
func newLengths(of string, s LengthSpec, least int) (*Lengths, error) {
	l := &Lengths{of: of, spec: s, inside: 1}
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%s: %s", of, fmt.Sprintf(format, args...)))
	}
	if of == "" {
		return nil, errors.New("a distribution of lengths has no name: say what has them, such as input")
	}
	at := slices.IndexFunc(lengthKinds, func(k lengthKind) bool { return k.name == s.Kind })
	if at < 0 {
		var kinds []string
		for _, k := range lengthKinds {
			kinds = append(kinds, k.name)
		}
		fault("there is no kind of lengths %q: there are %s", s.Kind, strings.Join(kinds, ", "))
		return nil, errors.Join(faults...)
	}
	takes := lengthKinds[at].fields
	for _, f := range []struct {
		name string
		set  bool
	}{{"tokens", s.Tokens != 0}, {"median", s.Median != 0}, {"sigma", s.Sigma != 0}, {"values", s.Values != nil}, {"min", s.Min != 0}, {"max", s.Max != 0}} {
		if f.set && !slices.Contains(takes, f.name) {
			fault("%s lengths take no %s: they take %s", s.Kind, f.name, strings.Join(takes, ", "))
		}
	}
	bounded := false
	if s.Kind == "fixed" {
		if s.Tokens < least || s.Tokens > mostTokens {
			fault("tokens is %d: write %d to %d", s.Tokens, least, mostTokens)
		}
	} else {
		bounded = s.Min >= least && s.Max <= mostTokens && s.Min <= s.Max
		if !bounded {
			fault("the bounds are %d to %d: write a min of %d or more and a max of %d or less that is no smaller", s.Min, s.Max, least, mostTokens)
		}
	}
	switch s.Kind {
	case "lognormal":
		parameters := true
		if !(s.Median >= 0.5 && s.Median <= mostTokens) {
			parameters = false
			fault("the median is %v: write 0.5 to %d", s.Median, mostTokens)
		}
		if !(s.Sigma > 0 && s.Sigma <= mostSigma) {
			parameters = false
			fault("sigma is %v: write more than 0 and %d at most; it is the standard deviation of the logarithm, so 0.5 to 1.5 is usual", s.Sigma, mostSigma)
		}
		if bounded && parameters {
			l.inside = s.above(s.Min-1) - s.above(s.Max)
		}
	case "empirical":
		switch {
		case len(s.Values) == 0:
			fault("there are no values: give those of a file")
		case bounded:
			for _, v := range s.Values {
				if v >= s.Min && v <= s.Max {
					l.values = append(l.values, v)
				}
			}
			l.inside = float64(len(l.values)) / float64(len(s.Values))
		}
		l.spec.Values = nil
	}
	if l.inside < leastInside {
		fault("the bounds %d to %d hold %.3g %% of the distribution: widen them to %g %% at least", s.Min, s.Max, 100*l.inside, 100*leastInside)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return l, nil
}

// above is the share of the lognormal distribution that, rounded to the nearest
// whole number, is more than length.
func (s LengthSpec) above(length int) float64 {
	if length < 0 {
		return 1
	}
	return math.Erfc((math.Log(float64(length)+0.5)-math.Log(s.Median))/s.Sigma/math.Sqrt2) / 2
}

// Draw is n lengths from a seed: the same always, and a longer draw begins with
// a shorter one. On machines whose exponential differs in its last bit, one
// length in about 10^12 of a lognormal distribution differs by one. It is empty
// where n is below 1.
func (l *Lengths) Draw(n int, seed uint64) []int {
	r := stream(seed, "lengths/"+l.of)
	out := make([]int, max(n, 0))
	for i := range out {
		out[i] = l.draw(r)
	}
	return out
}

func (l *Lengths) draw(r *rand.Rand) int {
	s := l.spec
	switch s.Kind {
	case "fixed":
		return s.Tokens
	case "uniform":
		return s.Min + r.IntN(s.Max-s.Min+1)
	case "empirical":
		return pick(r, l.values)
	}
	for {
		length := math.Floor(s.Median*math.Exp(s.Sigma*r.NormFloat64()) + 0.5)
		if length >= float64(s.Min) && length <= float64(s.Max) {
			return int(length)
		}
	}
}

// Mean is the mean of what is drawn: whole numbers within the bounds. A
// lognormal distribution's is not exp(mu + sigma²/2), since the bounds cut its
// long tail.
func (l *Lengths) Mean() float64 {
	s := l.spec
	switch s.Kind {
	case "fixed":
		return float64(s.Tokens)
	case "uniform":
		return float64(s.Min+s.Max) / 2
	case "empirical":
		sum := 0
		for _, v := range l.values {
			sum += v
		}
		return float64(sum) / float64(len(l.values))
	}
	// The mean of whole numbers from min on is min and, for each, the share
	// above it.
	beyond, sum := s.above(s.Max), 0.0
	for length := s.Min; length < s.Max; length++ {
		sum += s.above(length) - beyond
	}
	return float64(s.Min) + sum/l.inside
}

// Outside is the share of the declared distribution that lies outside its
// bounds, and so is drawn again: 0 to 0.9.
func (l *Lengths) Outside() float64 { return 1 - l.inside }

// String says what is drawn, such as "lognormal, median 512, sigma 0.8, 16 to
// 4096 (0.474 % redrawn)".
func (l *Lengths) String() string {
	s := l.spec
	redrawn := ""
	if l.inside < 1 {
		redrawn = fmt.Sprintf(" (%.3g %% redrawn)", 100*l.Outside())
	}
	switch s.Kind {
	case "fixed":
		return fmt.Sprintf("fixed, %d", s.Tokens)
	case "uniform":
		return fmt.Sprintf("uniform, %d to %d", s.Min, s.Max)
	case "empirical":
		return fmt.Sprintf("empirical, %d values, %d to %d%s", len(l.values), s.Min, s.Max, redrawn)
	}
	return fmt.Sprintf("lognormal, median %g, sigma %g, %d to %d%s", s.Median, s.Sigma, s.Min, s.Max, redrawn)
}
