// Package assay is the module's root: LLM-serving benchmarks as tests. It has
// no code of its own; README.md says where things are, and the tests here keep
// the layout's arrows.
package assay
