package workloads

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
)

// mooncakeBlock is the tokens of a block whose hash a Mooncake trace gives
// (github.com/kvcache-ai/Mooncake, FAST25-release/traces). A prompt's last
// block may have fewer.
const mooncakeBlock = 512

// mostMilliseconds is thirty years: beyond it a unit was mistaken for another.
const mostMilliseconds = 1e12

// mooncakeLine is one request of the trace.
type mooncakeLine struct {
	Timestamp    *float64 `json:"timestamp"` // ms
	InputLength  *int     `json:"input_length"`
	OutputLength *int     `json:"output_length"`
	HashIDs      []int64  `json:"hash_ids"`
}

// readMooncake reads a Mooncake trace, one JSON object a line. Equal ids at the
// beginning of two prompts are equal text. What no id covers is the request's
// own. Other members are left alone.
func readMooncake(r io.Reader, in *intake) error {
	return eachLine(r, func(n int, text []byte) {
		var l mooncakeLine
		if err := json.Unmarshal(text, &l); err != nil {
			in.faults.add(n, fmt.Sprintf("it is no request of a trace: %s", err))
			return
		}
		if why := l.check(); len(why) > 0 {
			in.faults.add(n, why...)
			return
		}
		at := time.Duration(math.Round(*l.Timestamp * float64(time.Millisecond)))
		in.timedEntry(n, at, *l.InputLength, *l.OutputLength, l.segments(fmt.Sprintf("mooncake/line/%d", n)))
	})
}

func (l mooncakeLine) check() (why []string) {
	switch {
	case l.Timestamp == nil:
		why = append(why, "timestamp is missing: write it in ms")
	case *l.Timestamp < 0 || *l.Timestamp > mostMilliseconds:
		why = append(why, fmt.Sprintf("timestamp is %v ms: write 0 to %g", *l.Timestamp, mostMilliseconds))
	}
	for _, t := range []struct {
		name string
		said *int
	}{{"input_length", l.InputLength}, {"output_length", l.OutputLength}} {
		if t.said == nil {
			why = append(why, t.name+" is missing: write it in tokens")
			continue
		}
		why = slices.Concat(why, checkCount(t.name, *t.said))
	}
	if l.InputLength != nil {
		if blocks := (*l.InputLength + mooncakeBlock - 1) / mooncakeBlock; len(l.HashIDs) > max(blocks, 0) {
			why = append(why, fmt.Sprintf("it has %d hash_ids for %d tokens, which are %d blocks of %d", len(l.HashIDs), *l.InputLength, blocks, mooncakeBlock))
		}
	}
	return why
}

// segments are the blocks of the prompt, and under the request's own key the
// tokens after them.
func (l mooncakeLine) segments(own string) []Segment {
	left := *l.InputLength
	var out []Segment
	for _, id := range l.HashIDs {
		out = append(out, Segment{Key: fmt.Sprintf("mooncake/%d", id), Tokens: min(left, mooncakeBlock)})
		left -= out[len(out)-1].Tokens
	}
	if left > 0 {
		out = append(out, Segment{Key: own, Tokens: left})
	}
	return out
}
