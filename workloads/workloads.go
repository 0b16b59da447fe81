package workloads

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Prompt is one user turn.
type Prompt struct {
	ID   string // such as "eight/3"; stable for ever, since records carry it
	Text string
}

// eight are the fixed prompts of the concurrency experiment: short, of
// different kinds, each with more to say than 128 tokens hold for most models.
var eight = []string{
	"Explain to a curious ten-year-old why the sky is blue and sunsets are red.",
	"Write the opening paragraph of a detective story that is set on a night train.",
	"Compare a stack with a queue, and give one everyday use of each.",
	"Plan three days in a small seaside town for a family with two children.",
	"Describe step by step how to change a flat bicycle tyre.",
	"What were the main causes of the French Revolution?",
	"Write a short poem about the first snow of the year.",
	"Give five tips for speaking in front of a large audience.",
}

// Set is a named set of prompts.
func Set(name string) ([]Prompt, error) {
	if name != "eight" {
		return nil, fmt.Errorf("there is no set of prompts %q: there is eight", name)
	}
	prompts := make([]Prompt, len(eight))
	for i, text := range eight {
		prompts[i] = Prompt{ID: fmt.Sprintf("%s/%d", name, i+1), Text: text}
	}
	return prompts, nil
}

// For is the prompt of an ordinal, from 1: the set over and over.
func For(set []Prompt, ordinal int) Prompt { return set[(ordinal-1)%len(set)] }

// Digest is the SHA-256 of a set, in hex: of each prompt's id and text.
func Digest(set []Prompt) string {
	h := sha256.New()
	for _, p := range set {
		fmt.Fprintf(h, "%s\x00%s\x00", p.ID, p.Text)
	}
	return hex.EncodeToString(h.Sum(nil))
}
