package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"assay/harness/null"
)

// cell is one load that every contender makes.
type cell struct {
	name string
	job  job
	pace null.Pace
	// ownOnly leaves the peers out.
	ownOnly bool
}

const firstToken = 50 * time.Millisecond

var (
	startUp = cell{name: "start", job: job{Clients: 1, Requests: 1, Tokens: 16}, pace: null.Pace{First: firstToken, Gap: 10 * time.Millisecond}}
	spread  = cell{name: "spread", job: job{Clients: 512, Requests: 2048, Tokens: 64}, pace: null.Pace{First: firstToken, Gap: 20 * time.Millisecond, Spread: 0.5}}
	cells   = []cell{
		{name: "steady", job: job{Clients: 64, Requests: 512, Tokens: 128}, pace: null.Pace{First: firstToken, Gap: 10 * time.Millisecond}},
		{name: "waves", job: job{Clients: 512, Requests: 2048, Tokens: 64}, pace: null.Pace{First: firstToken, Gap: 20 * time.Millisecond}},
		spread,
		{name: "full speed", job: job{Clients: 64, Requests: 2000, Tokens: 128}},
		{name: "fast", job: job{Clients: 64, Requests: 64, Tokens: 1000}, pace: null.Pace{First: firstToken, Gap: 1420 * time.Microsecond}, ownOnly: true},
	}
	// many is for this client alone: streams that each bring an event a second.
	many = cell{name: "many", job: job{Clients: 10_000, Requests: 10_000, Tokens: 20, Ramp: time.Second, Stamped: true}, pace: null.Pace{First: firstToken, Gap: time.Second, Stamped: true}}
)

// paced is the cell's pace with its number of tokens.
func (c cell) paced() null.Pace {
	p := c.pace
	p.Tokens = c.job.Tokens
	return p
}

// itselfName stands for what is measured from inside this client's process.
const itselfName = "itself"

// names are what can be chosen to measure.
func names() []string {
	var out []string
	for _, c := range cells {
		out = append(out, c.name)
	}
	return append(out, itselfName, many.name)
}

// choose takes names that are separated by commas; none means all.
func choose(only string) (map[string]bool, error) {
	chosen, wanted := names(), map[string]bool{}
	if only != "" {
		chosen = strings.Split(only, ",")
	}
	for _, name := range chosen {
		if !slices.Contains(names(), name) {
			return nil, fmt.Errorf("there is no cell %q: there are %s", name, strings.Join(names(), ", "))
		}
		wanted[name] = true
	}
	return wanted, nil
}
