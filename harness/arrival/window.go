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
	Warmup  int64   // ns: where the measurement begins
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

// Measured says whether the arrival of an index belongs to the measurement.
func (s Schedule) Measured(i int) bool { return s.Offsets[i] >= s.Warmup }

// Digest is the SHA-256 of the offsets, see [Digest].
func (s Schedule) Digest() string { return Digest(s.Offsets) }
