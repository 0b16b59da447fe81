package workloads

import (
	"errors"
	"fmt"
	"math"
)

// PrefixSpec declares requests of so many prefix families: those of a family
// begin with the same text, and end each with its own. A family is drawn for
// each request, all being equally likely.
type PrefixSpec struct {
	Families int
	Prefix   int        // tokens that a family has in common, the chat template included
	Suffix   LengthSpec // tokens of what is a request's own
	Output   LengthSpec // tokens to be generated
}

// mostFamilies is more than anyone has, and few enough to count with.
const mostFamilies = 1 << 20

// PrefixFamilies draws requests of prefix families.
type PrefixFamilies struct {
	Suffix, Output *Lengths
	families       int
	prefix         int
}

// NewPrefixFamilies checks a declaration and says everything that is wrong with
// it.
func NewPrefixFamilies(s PrefixSpec) (*PrefixFamilies, error) {
	var faults []error
	if s.Families < 1 || s.Families > mostFamilies {
		faults = append(faults, fmt.Errorf("families is %d: write 1 to %d", s.Families, mostFamilies))
	}
	if s.Prefix < 1 || s.Prefix > mostTokens {
		faults = append(faults, fmt.Errorf("prefix is %d tokens: write 1 to %d", s.Prefix, mostTokens))
	}
	suffix, suffixErr := NewLengths("suffix", s.Suffix)
	output, outputErr := NewLengths("output", s.Output)
	if err := errors.Join(append(faults, suffixErr, outputErr)...); err != nil {
		return nil, err
	}
	return &PrefixFamilies{Suffix: suffix, Output: output, families: s.Families, prefix: s.Prefix}, nil
}

// Draw is n requests from a seed: the same always, and more begin with fewer.
// [Shared] counts what these very requests have in common.
func (p *PrefixFamilies) Draw(n int, seed uint64) []Entry {
	r := stream(seed, "prefix families")
	suffix, output := p.Suffix.Draw(n, seed), p.Output.Draw(n, seed)
	out := make([]Entry, len(suffix))
	for i := range out {
		family := fmt.Sprintf("prefix/%d", 1+r.IntN(p.families))
		id := fmt.Sprintf("%s/%d", family, i+1)
		out[i] = Entry{ID: id, Segments: []Segment{{Key: family, Tokens: p.prefix}, {Key: id, Tokens: suffix[i]}}, Output: output[i]}
	}
	return out
}

// Share is the share of input tokens that a request has in common with its
// family: prefix / (prefix + mean suffix), 0 to 1. It is the expected hit rate
// of an engine's prefix cache, by tokens, over requests whose family has been
// asked before; a family's first request has none of it.
func (p *PrefixFamilies) Share() float64 {
	return float64(p.prefix) / (float64(p.prefix) + p.Suffix.Mean())
}

// ShareOf is the expected hit rate over the first n requests, each family's
// first among them: it grows from 0 towards [PrefixFamilies.Share]. With F
// families, n requests are expected to ask F·(1 − (1 − 1/F)^n) of them.
func (p *PrefixFamilies) ShareOf(n int) float64 {
	if n < 1 {
		return 0
	}
	families := float64(p.families)
	// expm1 and log1p, since 1 − 1/F is nearly 1 where there are many.
	asked := -families * math.Expm1(float64(n)*math.Log1p(-1/families))
	return p.Share() * (1 - asked/float64(n))
}
