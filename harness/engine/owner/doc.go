// Package owner names the process that must clean up what a run makes outside
// itself, for good and across reboots, so that what a killed run left behind
// is told apart from what a living one still needs.
package owner
