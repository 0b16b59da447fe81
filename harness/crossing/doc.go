// Package crossing says when a lead that was lost at the start is won back:
// the difference of two cumulative curves, pair by pair, the request at which
// it crosses zero, and what pairs of lifecycles allow to be inferred from it.
package crossing
