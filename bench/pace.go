package main

import (
	"fmt"
	"time"

	"assay/harness/client"
)

// pace is how a request is answered: what a null server was started with, or
// what a path asks for, /<tokens>/<first, µs>/<gap, µs>/<hold, µs> before the
// API's own. The tokens of a path that asks are stamped.
type pace struct {
	Tokens int
	First  time.Duration // before the first token
	Gap    time.Duration // between two tokens; 0: they leave together
	Hold   time.Duration // after the last token, before the end
	// Spread is how much of its gap a request may gain or lose: its factor is
	// its own, evenly distributed in 1 ± Spread. Requests of one length that
	// start together would end together, wave after wave.
	Spread float64
	// Stamped tokens have the wall clock, in ns, just before they were written
	// as their text. Others are a word of one token.
	Stamped bool
}

func (p pace) path() string {
	return fmt.Sprintf("/%d/%d/%d/%d"+client.ChatPath, p.Tokens, p.First.Microseconds(), p.Gap.Microseconds(), p.Hold.Microseconds())
}

// or is the pace that a path asks for, or this one if it asks for none.
func (p pace) or(path string) pace {
	var tokens int
	var first, gap, hold int64
	if _, err := fmt.Sscanf(path, "/%d/%d/%d/%d", &tokens, &first, &gap, &hold); err != nil {
		return p
	}
	return pace{Tokens: tokens, First: us(first), Gap: us(gap), Hold: us(hold), Stamped: true}
}

func us(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// gap is the gap of the n-th request, from 1. The factors follow the golden
// ratio: any few of them in a row are spread evenly, and every run has the
// same.
func (p pace) gap(n int64) time.Duration {
	const golden = 0.6180339887498949
	at := float64(n) * golden
	return time.Duration(float64(p.Gap) * (1 + p.Spread*(2*(at-float64(int64(at)))-1)))
}
