package metric

import (
	"cmp"
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
	inputs := map[string][]record.Request{}
	for _, r := range p.OK().Attempts {
		inputs[r.InputSHA256] = append(inputs[r.InputSHA256], r)
		if fromText(r) {
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

// varying groups the answers to one input by what they say.
func (d Determinism) varying(answers []record.Request) Varying {
	var groups [][]record.Request
	for _, r := range answers {
		i := slices.IndexFunc(groups, func(g []record.Request) bool {
			if d.By == "text" {
				return g[0].SaysTheSame(r)
			}
			return slices.Equal(g[0].OutputTokenIDs, r.OutputTokenIDs)
		})
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], r)
	}
	frequent := slices.MaxFunc(groups, func(a, b []record.Request) int { return cmp.Compare(len(a), len(b)) })
	v := Varying{PromptID: answers[0].PromptID, Answers: len(answers), Outputs: len(groups), Frequent: len(frequent)}
	for _, g := range groups {
		at, differ := FirstDivergence(frequent[0].OutputTokenIDs, g[0].OutputTokenIDs)
		if d.By != "text" && differ && (v.Position == 0 || at.Position < v.Position) {
			v.Position = at.Position
		}
	}
	return v
}
