package workloads

import (
	"errors"
	"fmt"
)

// IndependentSpec declares requests that have nothing in common but the chat
// template.
type IndependentSpec struct {
	Input  LengthSpec // tokens of the prompt, the chat template included
	Output LengthSpec // tokens to be generated
}

// Independent draws such requests.
type Independent struct{ Input, Output *Lengths }

// NewIndependent checks a declaration and says everything that is wrong with it.
func NewIndependent(s IndependentSpec) (*Independent, error) {
	input, inputErr := NewLengths("input", s.Input)
	output, outputErr := NewLengths("output", s.Output)
	if err := errors.Join(inputErr, outputErr); err != nil {
		return nil, err
	}
	return &Independent{Input: input, Output: output}, nil
}

// Draw is n requests from a seed: the same always, and more begin with fewer.
func (i *Independent) Draw(n int, seed uint64) []Entry {
	input, output := i.Input.Draw(n, seed), i.Output.Draw(n, seed)
	out := make([]Entry, len(input))
	for k := range out {
		id := fmt.Sprintf("independent/%d", k+1)
		out[k] = Entry{ID: id, Segments: []Segment{{Key: id, Tokens: input[k]}}, Output: output[k]}
	}
	return out
}
