package capacity

import (
	"fmt"
	"math"
	"slices"
)

// mostParts keeps the probability of every pattern of signs a number that
// float64 holds exactly.
const mostParts = 50

// Growth says whether a server kept up with its arrivals. One that does not
// has a backlog that grows for as long as it is offered the rate, and its
// latencies say only how long that was.
type Growth struct {
	PerPart *float64 `json:"per_part"` // requests by which the backlog grew in a part, on average; nil: there is no part
	P       *float64 `json:"p"`        // one-sided, of a backlog that does not grow; nil: it was not tested
	// Unstable: the server did not keep up, at the confidence asked for. That it
	// is not says only that it was not seen.
	Unstable bool   `json:"unstable"`
	Reason   string `json:"reason"` // why nothing could be shown; empty if it could
}

// Grows tests whether a backlog grows: the number of requests that had arrived
// and not ended, at the start of a measurement and at the end of each of its
// equal parts, in their order. Ten parts are usual; so few as can't show
// anything at the confidence (above 0.5, below 1) are not tested, nor are more
// than 50.
//
// The test is the exact one of sign flips (Fisher, The Design of Experiments,
// 1935, section 21): the share of the patterns of signs of the parts'
// increments whose sum is no less than the one seen. In a stationary queue the
// increments have mean 0. Where it is reversible, as one of Poisson arrivals
// and exponential service is (Kelly, Reversibility and Stochastic Networks,
// 1979), each is as likely to be up as down by as much; in others they are not
// quite. In both a part's rise makes the next one's fall likelier, so that
// their sum is smaller than that of flips, and the test errs on the safe side:
// the package says how often. A queue that has not filled yet grows too. The
// warm-up has to be longer than that takes, which near the capacity is long.
func Grows(backlog []int, confidence float64) Growth {
	parts := len(backlog) - 1
	if parts < 1 {
		return Growth{Reason: fmt.Sprintf("%d backlogs have no part between them: give the one at the start, and one at each part's end", len(backlog))}
	}
	perPart := float64(backlog[parts]-backlog[0]) / float64(parts)
	g := Growth{PerPart: &perPart}
	fewest := int(math.Ceil(-math.Log2(1 - confidence)))
	switch {
	case !(confidence > 0.5 && confidence < 1):
		g.Reason = fmt.Sprintf("the confidence is %v: write more than 0.5 and less than 1", confidence)
		return g
	case parts < fewest || parts > mostParts:
		g.Reason = fmt.Sprintf("%d parts can't be tested at a confidence of %v: give %d to %d", parts, confidence, fewest, mostParts)
		return g
	}
	// Probabilities of the sums that the flips so far can give, from the lowest
	// possible one on.
	sums, lowest := []float64{1}, 0
	for i := range parts {
		by := backlog[i+1] - backlog[i]
		if by < 0 {
			by = -by
		}
		next := make([]float64, len(sums)+2*by)
		for at, p := range sums {
			next[at] += p / 2
			next[at+2*by] += p / 2
		}
		sums, lowest = next, lowest-by
	}
	p := 0.0
	for _, of := range slices.Backward(sums[backlog[parts]-backlog[0]-lowest:]) {
		p += of
	}
	g.P, g.Unstable = &p, p <= 1-confidence
	return g
}
