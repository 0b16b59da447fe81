// Package capacity searches for the highest arrival rate at which objectives
// hold. It runs nothing itself: it says which probe is next, judges each by
// exact bounds of the share of its attempts that were within each limit, and
// answers with a bracket and all that led to it. What it says follows from the
// probes alone, so that it can be gone through again from their records.
//
// The bounds take attempts for independent. Those that stand in one queue one
// after the other are not: a slow spell makes many of them late together, and
// the bounds are then narrower than they should be.
package capacity
