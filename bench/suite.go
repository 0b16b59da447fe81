//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"assay/harness/client"
	"assay/harness/clock"
	"assay/harness/metric"
	"assay/harness/null"
	"assay/harness/record"
)

// suite is the measurements against one null server.
type suite struct{ url string }

// check ends the program where nothing sensible can be measured.
func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// setup is one round's client, with a request for a pace.
type setup struct {
	client  *client.Client
	target  client.Target
	request client.Request
	clock   clock.Clock
	before  clock.Reading
}

func (b *suite) setup(p null.Pace) setup {
	clk := clock.Start()
	return setup{client.New(), client.Target{BaseURL: b.url, Path: p.Path()}, chat(p.Tokens), clk, clk.Read()}
}

func (s setup) dial() *client.Conn { return s.client.Dial(context.Background(), s.target) }

func (s setup) do(conn *client.Conn, at int64) *client.Raw {
	return conn.Do(context.Background(), s.clock, at, patience, s.request)
}

func (s setup) conversion() clock.Conversion {
	return clock.Conversion{First: s.before, Last: s.clock.Read()}
}

// wave opens n connections, releases n requests together, calls inside while
// they are answered, and waits for all, as a wave of an experiment does.
func (s setup) wave(n int, inside func()) []*client.Raw {
	conns := make([]*client.Conn, n)
	for i := range conns {
		conns[i] = s.dial()
	}
	runtime.GC()
	raws := make([]*client.Raw, n)
	var all sync.WaitGroup
	at := s.clock.Now()
	for i := range conns {
		all.Go(func() { raws[i] = s.do(conns[i], at) })
	}
	inside()
	all.Wait()
	return raws
}

func nothing() {}

// stampSize is the length of a wall-clock time in ns, until the year 2286.
const stampSize = 19

// arrivalErrors are an attempt's, in ms: arrival minus the server's write, for
// each event of tokens that are stamped.
func arrivalErrors(r record.Request, conv clock.Conversion) []float64 {
	out, stamps := make([]float64, 0, len(r.Events)), r.OutputText
	for _, e := range r.Events {
		wall, err := strconv.ParseInt(stamps[:stampSize], 10, 64)
		check(err)
		stamps = stamps[stampSize:]
		out = append(out, float64(e.Arrival-conv.Monotonic(wall))/1e6)
	}
	return out
}

// errorsOf is the arrival errors of all events, in µs. times decides whose
// times they are.
func errorsOf(raws []*client.Raw, conv clock.Conversion, times *clock.Conversion) []float64 {
	var out []float64
	for _, raw := range raws {
		for _, ms := range arrivalErrors(decoded(raw, times), conv) {
			out = append(out, ms*1e3)
		}
	}
	return out
}

// arrivals compares the kernel's times with user space's for the same reads.
// most is the target at p99 in µs, times how much smaller it has to be.
func (b *suite) arrivals(n int, p null.Pace, most, times float64) row {
	var k50, k99, u50, u99, ratio []float64
	for range rounds {
		s := b.setup(p)
		raws := s.wave(n, nothing)
		conv := s.conversion()
		kernel, user := errorsOf(raws, conv, &conv), errorsOf(raws, conv, nil)
		k50, k99 = append(k50, metric.Percentile(kernel, 50)), append(k99, metric.Percentile(kernel, 99))
		u50, u99 = append(u50, metric.Percentile(user, 50)), append(u99, metric.Percentile(user, 99))
		ratio = append(ratio, u99[len(u99)-1]/k99[len(k99)-1])
	}
	target := fmt.Sprintf("p99 under %.0f µs", most)
	if times > 0 {
		target += fmt.Sprintf(", and %.0f times smaller", times)
	}
	return row{
		fmt.Sprintf("arrival error p50 / p99, %d streams, a token every %s", n, p.Gap),
		fmt.Sprintf("%.0f / %.0f µs", metric.Median(k50), metric.Median(k99)),
		fmt.Sprintf("user-space times of the same reads: %.0f / %.0f µs, %.0f times", metric.Median(u50), metric.Median(u99), metric.Median(ratio)),
		target, met(metric.Median(k99) < most && metric.Median(ratio) >= times),
	}
}

// besideABusyOne measures while another process wants this one's core: what a
// machine that does other work as well does to a client.
func (b *suite) besideABusyOne(measure func() row) row {
	neighbour, _, err := start(0, "busy", "") // it inherits the one core that there is here
	check(err)
	defer neighbour.stop()
	r := measure()
	r.what += ", beside a process that wants all of the client's core"
	return r
}

// memory is what a stream holds beyond the bytes that it received, once its
// tokens have come and before it ends.
func (b *suite) memory(n int, p null.Pace) row {
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse + m.StackInuse)
	}
	var each []float64
	for range rounds {
		s := b.setup(p)
		before, inside := inUse(), int64(0)
		raws := s.wave(n, func() {
			<-time.After(p.First + time.Duration(p.Tokens)*p.Gap + p.Hold/2)
			inside = inUse()
		})
		received := int64(0)
		for _, raw := range raws {
			received += raw.Received() - int64(null.EndSize(p.Tokens))
		}
		each = append(each, float64(inside-before-received)/float64(n)/1024)
	}
	return row{
		fmt.Sprintf("memory a stream beyond the bytes received, %d streams of %d tokens, all open", n, p.Tokens),
		fmt.Sprintf("%.1f KiB", metric.Median(each)), "", "under 64 KiB", met(metric.Median(each) < 64),
	}
}
