package load

import "sync"

// place is one arrival's place in the order of sending.
type place struct {
	verdict chan error // nil: send it now; otherwise why it never will be sent
	holds   bool       // it is one of those in flight; the gate's
	gone    bool       // it does not wait any longer; the gate's
}

func newPlace() *place { return &place{verdict: make(chan error, 1)} }

// gate lets arrivals through in their order, so many at a time.
type gate struct {
	limit int // 0: none
	drop  bool

	mu      sync.Mutex
	flying  int
	waiting []*place
}

// arrive is called at an arrival's moment.
func (g *gate) arrive(p *place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case p.gone:
	case g.limit == 0 || g.flying < g.limit:
		g.pass(p)
	case g.drop:
		p.verdict <- ErrDropped
	default:
		g.waiting = append(g.waiting, p)
	}
}

func (g *gate) pass(p *place) {
	g.flying++
	p.holds = true
	p.verdict <- nil
}

// leave is called once for each place, when its attempt has ended: it makes
// room for the first that waits.
func (g *gate) leave(p *place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p.gone = true
	if !p.holds {
		return
	}
	g.flying--
	for len(g.waiting) > 0 && g.flying < g.limit {
		next := g.waiting[0]
		g.waiting = g.waiting[1:]
		if !next.gone {
			g.pass(next)
		}
	}
}

// free says whether one that arrived now would be let through.
func (g *gate) free() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limit == 0 || g.flying < g.limit
}
