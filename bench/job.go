package main

import (
	"encoding/json"
	"os"
	"time"
)

// job is a load: requests, so many at a time, each the next when the last of
// its slot has ended.
type job struct {
	URLs     []string // of one server; slots take turns
	Clients  int
	Requests int
	Tokens   int           // a request's
	Ramp     time.Duration // over which the slots start
	Stamped  bool          // tokens carry the server's clock: compare it with their arrival
	dir      string        // for what a peer writes
}

// reported is what a load client says about the load that it made.
type reported struct {
	Completed  int
	TTFT, TPOT *times // nil: it does not say
	Arrival    *times `json:",omitempty"` // arrival error, in ms, where tokens are stamped
	Coalesced  float64
}

// report prints what a role of this program has found, for its parent.
func report(r reported) error { return json.NewEncoder(os.Stdout).Encode(r) }

// slots makes a job's requests; each is called with its number and its URL.
func (j job) slots(do func(i int, url string)) {
	done := make(chan struct{})
	for slot := range j.Clients {
		go func() {
			defer func() { done <- struct{}{} }()
			time.Sleep(j.Ramp * time.Duration(slot) / time.Duration(j.Clients))
			for i := slot; i < j.Requests; i += j.Clients {
				do(i, j.URLs[slot%len(j.URLs)])
			}
		}()
	}
	for range j.Clients {
		<-done
	}
}
