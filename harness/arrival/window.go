package arrival

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Windows are the parts of an open-loop run. An attempt belongs to the window
// that its scheduled moment lies in, whenever it is sent and whenever it ends:
// to warm-up before Warmup has passed, to the measurement from then on. Nothing
// is scheduled in the drain, in which attempts under way are waited for. One
// that has not ended when the drain's limit is reached is cancelled, and counts
// as a failure of the window it belongs to; it is never left out, since those
// that take longest are what an overload is made of. Attempts near the end of
// the measurement are served under a load that is going away: the longer it is
// against a response, the less that weighs.
type Windows struct {
	Warmup  time.Duration // 0: none
	Measure time.Duration // at least
	AtLeast int           // measured arrivals; the measurement goes on until it has both
	Drain   time.Duration // limit, from the end of the measurement on
}

// Schedule is the arrivals of one open-loop run.
type Schedule struct {
	Offsets []int64 // ns from the start, never falling
	// Thinks is nil where each arrival comes by itself. Else it has, for an
	// arrival that follows the end of the one before it, how long after that end
	// it comes, in ns, and −1 for one that comes by itself, at its offset.
	Thinks []int64
	Warmup int64 // ns: where the measurement begins
	// End is where the measurement ends, in ns: after Measure, or just behind
	// the last arrival where the least number of them took longer. A
	// measurement that was ended by its own last arrival has a rate that is too
	// high by about one arrival in its number.
	End   int64
	Drain int64 // ns
}

// Schedule draws the arrivals of a seed for the windows, and says everything
// that is wrong with them.
func (w Windows) Schedule(a *Process, seed uint64) (Schedule, error) {
	var faults []error
	for _, d := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{{"warmup", w.Warmup, 0}, {"measure", w.Measure, 1}, {"drain", w.Drain, 0}} {
		if d.value < d.least || d.value > mostDuration {
			faults = append(faults, fmt.Errorf("windows: %s is %s: write %s to %s", d.name, d.value, d.least, mostDuration))
		}
	}
	if w.AtLeast < 0 || w.AtLeast > mostArrivals {
		faults = append(faults, fmt.Errorf("windows: the least number of measured arrivals is %d: write 0 to %d", w.AtLeast, mostArrivals))
	}
	if len(faults) > 0 {
		return Schedule{}, errors.Join(faults...)
	}
	offsets, err := a.Draw(seed, w.Warmup+w.Measure, 0)
	if err != nil {
		return Schedule{}, err
	}
	s := Schedule{Offsets: offsets, Warmup: int64(w.Warmup), End: int64(w.Warmup + w.Measure), Drain: int64(w.Drain)}
	if warm := s.warm(); len(offsets)-warm < w.AtLeast {
		// The longer schedule begins with the shorter one.
		if s.Offsets, err = a.Draw(seed, w.Warmup+w.Measure, warm+w.AtLeast); err != nil {
			return Schedule{}, err
		}
		s.End = max(s.End, s.Offsets[len(s.Offsets)-1]+1)
	}
	return s, nil
}

// warm is how many arrivals are warm-up.
func (s Schedule) warm() int {
	n, _ := slices.BinarySearch(s.Offsets, s.Warmup)
	return n
}

// Measured says whether what comes at a moment, in ns from the start, belongs to
// the measurement. Before it is warm-up, and behind it comes only what follows
// something else.
func (s Schedule) Measured(offset int64) bool { return offset >= s.Warmup && offset < s.End }

// Follows says whether the arrival of an index comes after the end of the one
// before it.
func (s Schedule) Follows(i int) bool { return s.Thinks != nil && s.Thinks[i] >= 0 }

// Digest is the SHA-256 of the offsets, see [Digest], and behind them of the
// thinks, where there are any.
func (s Schedule) Digest() string { return Digest(append(slices.Clone(s.Offsets), s.Thinks...)) }

// Conversations has each arrival begin a conversation of so many turns, each of
// which comes once the answer before it has ended and the user has thought: for
// an exponentially distributed time of this mean, drawn from the seed. It is a
// partly open system: sessions come whatever the server does, and what a session
// goes on to ask waits for its answers (Schroeder, Wierman and Harchol-Balter,
// Open Versus Closed: A Cautionary Tale, NSDI 2006). Turns is 1 or more.
func (s Schedule) Conversations(turns int, think time.Duration, seed uint64) Schedule {
	random := stream(seed, "think")
	out := s
	out.Offsets, out.Thinks = make([]int64, 0, turns*len(s.Offsets)), make([]int64, 0, turns*len(s.Offsets))
	for _, o := range s.Offsets {
		for turn := range turns {
			next := int64(-1)
			if turn > 0 {
				next = nanoseconds(think.Seconds() * expVariate(random))
			}
			out.Offsets, out.Thinks = append(out.Offsets, o), append(out.Thinks, next)
		}
	}
	return out
}
