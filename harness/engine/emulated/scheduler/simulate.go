package scheduler

import (
	"slices"
	"time"
)

// Arrival is a job with its time, and when its client leaves.
type Arrival struct {
	Job
	At       time.Duration
	Deadline time.Duration // the client leaves then; 0: never
}

// Served is what became of an arrival.
type Served struct {
	First  time.Duration // its first token; 0: none came
	Ended  time.Duration // its last token, or when its client left
	Tokens int
	OK     bool // all tokens came in time
}

// Simulate serves arrivals on a virtual clock that begins at 0 and returns what
// became of each. Jobs whose client has left are cancelled at once, or go on to
// their end if finish is set. It takes no real time to speak of.
func Simulate(s *Scheduler, arrivals []Arrival, finish bool) []Served {
	served := make([]Served, len(arrivals))
	index := map[int]int{}
	pending := make([]int, len(arrivals))
	for i, a := range arrivals {
		index[a.ID], pending[i] = i, i
	}
	slices.SortStableFunc(pending, func(a, b int) int { return int(arrivals[a].At - arrivals[b].At) })
	left := map[int]bool{}
	now := time.Duration(0)
	for {
		for len(pending) > 0 && arrivals[pending[0]].At <= now {
			s.Add(arrivals[pending[0]].Job)
			pending = pending[1:]
		}
		for i, a := range arrivals {
			if a.Deadline > 0 && a.At <= now && a.Deadline <= now && !served[i].OK && !left[a.ID] {
				left[a.ID] = true
				served[i].Ended = a.Deadline
				if !finish {
					s.Cancel(a.ID)
				}
			}
		}
		step, busy := s.Next()
		if !busy {
			if len(pending) == 0 {
				return served
			}
			now = arrivals[pending[0]].At
			continue
		}
		now += step.Takes
		for _, id := range step.Gives {
			i := index[id]
			if a := arrivals[i]; left[id] || a.Deadline > 0 && now > a.Deadline {
				continue
			}
			if served[i].Tokens++; served[i].Tokens == 1 {
				served[i].First = now
			}
		}
		for _, id := range step.Done {
			i := index[id]
			if a := arrivals[i]; !left[id] && (a.Deadline == 0 || now <= a.Deadline) {
				served[i].OK, served[i].Ended = true, now
			}
		}
	}
}
