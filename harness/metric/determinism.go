package metric

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"assay/harness/record"
)

// Determinism is whether an input had the same output each time that it was
// answered whole: at temperature 0 it should, whatever else a server worked on.
type Determinism struct {
	By     string    `json:"by"`     // "token_ids", or "text" where any answer has no others
	Inputs int       `json:"inputs"` // answered whole more than once
	Same   int       `json:"same"`   // of those, with one output always
	Varied []Varying `json:"varied"` // the others, by prompt ID
}

// Varying is an input with several outputs.
type Varying struct {
	PromptID string `json:"prompt_id"`
	Answers  int    `json:"answers"`
	Outputs  int    `json:"outputs"`  // different ones
	Frequent int    `json:"frequent"` // answers with the most frequent one
	// Position is the first token, from 1, at which another output parts from
	// the most frequent one; 0 where outputs were compared by text.
	Position int `json:"position"`
}

// DeterminismOf compares the ok attempts of a population at the same input.
func DeterminismOf(p record.Population) Determinism {
	out := Determinism{By: record.SourceTokenIDs}
	inputs := map[string][]*record.Request{}
	for i := range p.Attempts {
		r := &p.Attempts[i]
		if r.Outcome != record.OK {
			continue
		}
		inputs[r.InputSHA256] = append(inputs[r.InputSHA256], r)
		if fromText(*r) {
			out.By = "text"
		}
	}
	for _, input := range slices.Sorted(maps.Keys(inputs)) { // one prompt may have been sent in several bodies
		answers := inputs[input]
		if len(answers) < 2 {
			continue
		}
		out.Inputs++
		if v := out.varying(answers); v.Outputs == 1 {
			out.Same++
		} else {
			out.Varied = append(out.Varied, v)
		}
	}
	slices.SortStableFunc(out.Varied, func(a, b Varying) int { return cmp.Compare(a.PromptID, b.PromptID) })
	return out
}

// output is what an answer says, by token ids or by text.
type output struct {
	ids                    record.Packed
	text, reasoning, calls string
}

func (d Determinism) output(r *record.Request) output {
	if d.By != "text" {
		return output{ids: r.PackedIDs()}
	}
	return output{text: r.OutputText, reasoning: r.ReasoningText, calls: fmt.Sprintf("%q", r.ToolCalls)}
}

// varying groups the answers to one input by what they say.
func (d Determinism) varying(answers []*record.Request) Varying {
	var groups [][]*record.Request
	known := map[output]int{}
	for _, r := range answers {
		key := d.output(r)
		i, is := known[key]
		if !is {
			groups = append(groups, nil)
			i = len(groups) - 1
			known[key] = i
		}
		groups[i] = append(groups[i], r)
	}
	frequent := slices.MaxFunc(groups, func(a, b []*record.Request) int { return cmp.Compare(len(a), len(b)) })
	v := Varying{PromptID: answers[0].PromptID, Answers: len(answers), Outputs: len(groups), Frequent: len(frequent)}
	for _, g := range groups {
		at, differ := FirstDivergence(frequent[0].TokenIDs(), g[0].TokenIDs())
		if d.By != "text" && differ && (v.Position == 0 || at.Position < v.Position) {
			v.Position = at.Position
		}
	}
	return v
}
