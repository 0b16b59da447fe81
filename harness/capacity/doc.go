// Package capacity searches for the highest arrival rate at which an objective
// holds. It runs nothing itself: it is given a probe, judges each one's counts
// by exact bounds, and answers with a bracket and all that led to it.
package capacity
