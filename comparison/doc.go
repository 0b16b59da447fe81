// Package comparison says what changed between two runs of a plan: a change
// with an interval for each number, over lifecycles, and a verdict on each. It
// knows numbers alone; package reports takes them from bundles.
package comparison
