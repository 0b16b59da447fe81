package load

import (
	"sort"
	"sync"
	"time"

	"assay/harness/clock"
)

// keeperPoll is how often both clocks are read over a long run: the wall clock
// is slewed by half a millisecond a second at most, and a conversion is as good
// as the readings around it are near.
const keeperPoll = time.Second

// keeper reads both clocks over a run that lasts.
type keeper struct {
	clock    clock.Clock
	readings []clock.Reading
	done     chan struct{}
	all      sync.WaitGroup
}

func keepTime(c clock.Clock) *keeper {
	k := &keeper{clock: c, readings: []clock.Reading{c.Read()}, done: make(chan struct{})}
	k.all.Go(func() {
		tick := time.NewTicker(keeperPoll)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				k.readings = append(k.readings, c.Read())
			case <-k.done:
				return
			}
		}
	})
	return k
}

// stop takes the last reading and returns all of them, two at least.
func (k *keeper) stop() []clock.Reading {
	close(k.done)
	k.all.Wait()
	return append(k.readings, k.clock.Read())
}

// around is the narrowest conversion whose readings are around what happened
// from and to these moments; the whole one if the wall clock was stepped, over
// which no time can be brought.
func around(readings []clock.Reading, whole clock.Conversion, from, to int64) *clock.Conversion {
	if whole.Stepped() {
		return &whole
	}
	first := sort.Search(len(readings), func(i int) bool { return readings[i].After > from }) - 1
	last := sort.Search(len(readings), func(i int) bool { return readings[i].Before >= to })
	return &clock.Conversion{First: readings[max(first, 0)], Last: readings[min(last, len(readings)-1)]}
}
