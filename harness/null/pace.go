package null

import (
	"fmt"
	"time"

	"assay/harness/client"
)

// Pace is how a request is answered: what a server was started with, or what a
// path asks for, /<tokens>/<first, µs>/<gap, µs>/<hold, µs> before the
// API's own. The tokens of a path that asks are stamped.
type Pace struct {
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

// Path asks a server for this pace.
func (p Pace) Path() string {
	return fmt.Sprintf("/%d/%d/%d/%d"+client.ChatPath, p.Tokens, p.First.Microseconds(), p.Gap.Microseconds(), p.Hold.Microseconds())
}

// or is the pace that a path asks for, or this one if it asks for none.
func (p Pace) or(path string) Pace {
	var tokens int
	var first, gap, hold int64
	if _, err := fmt.Sscanf(path, "/%d/%d/%d/%d", &tokens, &first, &gap, &hold); err != nil {
		return p
	}
	return Pace{Tokens: tokens, First: us(first), Gap: us(gap), Hold: us(hold), Stamped: true}
}

func us(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// gap is the gap of the n-th request, from 1. The factors follow the golden
// ratio: any few of them in a row are spread evenly, and every run has the
// same.
func (p Pace) gap(n int64) time.Duration {
	const golden = 0.6180339887498949
	at := float64(n) * golden
	return time.Duration(float64(p.Gap) * (1 + p.Spread*(2*(at-float64(int64(at)))-1)))
}
