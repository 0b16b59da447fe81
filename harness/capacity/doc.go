// Package capacity searches for the highest arrival rate at which an objective
// holds. It runs nothing itself: it is given a probe, judges each one's counts
// by exact bounds, and answers with a bracket and all that led to it.
//
// The bounds take attempts for independent. Those that stand in one queue one
// after the other are not: a slow spell makes many of them late together, and
// the bounds are then narrower than they should be. Whoever counts decides what
// is counted: attempts that lie far enough apart, or batches of them.
package capacity
