// Package comparison says what changed between two runs of a plan: a change
// with an interval for each number, over lifecycles, and a verdict on each. It
// needs a run's plan and records alone; package reports shows what it says.
package comparison
