// Package workloads is what is asked: sets of prompts, each fixed and known by
// its digest.
package workloads
