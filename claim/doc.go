// Package claim decides what a run's numbers support: one sentence for each
// claim of the plan at each tier, with a verdict, its reasons, and pointers to
// the records behind it. It decides from a summary alone, so that whoever has
// the bundle decides the same.
package claim
