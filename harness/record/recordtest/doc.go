// Package recordtest makes honest runs for tests: records as a run would leave
// them, the same every time, from a plan and a few knobs.
package recordtest
