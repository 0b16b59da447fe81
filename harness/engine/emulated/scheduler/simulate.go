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
	Tokens int           // that its client saw
	OK     bool          // all tokens came in time
}

// event is something that happens to an arrival at its own time.
type event struct {
	at      time.Duration
	arrival int
	leaves  bool
}

// Simulate serves arrivals on a virtual clock that begins at 0, and returns
// what became of each. Jobs whose client has left are cancelled at once, or go
// on to their end if finish is set; it returns when the server is idle again,
// so that the next call's clock can begin anew. It takes no real time to speak
// of.
func Simulate(s *Scheduler, arrivals []Arrival, finish bool) []Served {
	s.free = 0
	served := make([]Served, len(arrivals))
	index := make(map[int]int, len(arrivals))
	var events []event
	for i, a := range arrivals {
		index[a.ID] = i
		events = append(events, event{at: a.At, arrival: i})
		if a.Deadline > 0 {
			events = append(events, event{at: a.Deadline, arrival: i, leaves: true})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
	left := make([]bool, len(arrivals))
	// happen lets everything happen that does before a moment.
	happen := func(before time.Duration) {
		for len(events) > 0 && events[0].at < before {
			e := events[0]
			events = events[1:]
			switch a := arrivals[e.arrival]; {
			case !e.leaves:
				s.Add(a.Job, e.at)
			case !served[e.arrival].OK:
				left[e.arrival], served[e.arrival].Ended = true, e.at
				if !finish {
					s.Cancel(a.ID)
				}
			}
		}
	}
	now := time.Duration(0)
	for {
		happen(now + 1)
		takes, busy := s.Begin(now)
		if !busy {
			if len(events) == 0 {
				return served
			}
			now = events[0].at
			continue
		}
		now += takes
		happen(now) // who leaves in the moment of a token has it still
		for _, t := range s.End() {
			i := index[t.ID]
			if left[i] {
				continue
			}
			if served[i].Tokens++; served[i].Tokens == 1 {
				served[i].First = now
			}
			if t.Last {
				served[i].OK, served[i].Ended = true, now
			}
		}
	}
}
