// Package record is the evidence of a run: one record for each attempt, wave
// and lifecycle, and their append-only store. A record holds what was
// observed and, for each thing that was not, a null with the reason. Numbers
// are made from records elsewhere (package metric), never here.
package record
