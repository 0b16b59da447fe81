// Package workloads is what is asked: sets of prompts, each fixed and known by
// its digest, and tasks, which are prompts whose answers an evaluator checks.
// Tasks are drawn from a seed, the same on every machine, and can be padded to
// an exact number of tokens. It imports nothing of the project.
package workloads
