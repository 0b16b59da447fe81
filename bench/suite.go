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

	"golang.org/x/sys/unix"

	"assay/harness/client"
	"assay/harness/clock"
	"assay/harness/metric"
	"assay/harness/record"
)

// rounds is how often each measurement is made; the median is shown.
const rounds = 3

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

func (b *suite) setup(p pace) setup {
	request, err := client.NewChatRequest(client.ChatParams{Model: "null", Messages: []client.Message{{Role: "user", Content: "Hi"}}, MaxTokens: p.tokens, TopP: 1, TokenIDs: true})
	check(err)
	clk := clock.Start()
	return setup{client.New(), client.Target{BaseURL: b.url, Path: p.path()}, request, clk, clk.Read()}
}

func (s setup) dial() *client.Conn { return s.client.Dial(context.Background(), s.target) }

func (s setup) do(conn *client.Conn, at int64) *client.Raw {
	return conn.Do(context.Background(), s.clock, at, time.Minute, s.request)
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

// decoded is an attempt's record; one that is not ok would measure something
// else.
func decoded(raw *client.Raw, conv *clock.Conversion) record.Request {
	var r record.Request
	raw.Decode(&r, conv)
	if r.Outcome != record.OK {
		check(fmt.Errorf("an attempt against the null server is %s: %s", r.Outcome, *r.Error))
	}
	return r
}

// stampSize is the length of a wall-clock time in ns, until the year 2286.
const stampSize = 19

// errorsOf is arrival minus the server's write, in µs, over all events.
func errorsOf(raws []*client.Raw, conv clock.Conversion, times *clock.Conversion) []float64 {
	var out []float64
	for _, raw := range raws {
		r := decoded(raw, times)
		stamps := r.OutputText
		for _, e := range r.Events {
			wall, err := strconv.ParseInt(stamps[:stampSize], 10, 64)
			check(err)
			stamps = stamps[stampSize:]
			out = append(out, float64(e.Arrival-conv.Monotonic(wall))/1e3)
		}
	}
	return out
}

// arrivals compares the kernel's times with user space's for the same reads.
// most is the target at p99 in µs, times how much smaller it has to be.
func (b *suite) arrivals(n int, p pace, most, times float64) row {
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
		fmt.Sprintf("arrival error p50 / p99, %d streams, a token every %s", n, p.gap),
		fmt.Sprintf("%.0f / %.0f µs", metric.Median(k50), metric.Median(k99)),
		fmt.Sprintf("user-space times of the same reads: %.0f / %.0f µs, %.0f times", metric.Median(u50), metric.Median(u99), metric.Median(ratio)),
		target, met(metric.Median(k99) < most && metric.Median(ratio) >= times),
	}
}

// besideABusyOne measures while another process wants this one's core: what a
// machine that does other work as well does to a client.
func (b *suite) besideABusyOne(measure func() row) row {
	neighbour, _, err := start(0, "busy") // it inherits the one core that there is here
	check(err)
	defer neighbour.stop()
	r := measure()
	r.what += ", beside a process that wants all of the client's core"
	return r
}

// memory is what a stream holds beyond the bytes that it received, once its
// tokens have come and before it ends.
func (b *suite) memory(n int, p pace) row {
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
			<-time.After(p.first + time.Duration(p.tokens)*p.gap + p.hold/2)
			inside = inUse()
		})
		received := int64(0)
		for _, raw := range raws {
			received += raw.Received() - int64(len(nullEnd))
		}
		each = append(each, float64(inside-before-received)/float64(n)/1024)
	}
	return row{
		fmt.Sprintf("memory a stream beyond the bytes received, %d streams of %d tokens, all open", n, p.tokens),
		fmt.Sprintf("%.1f KiB", metric.Median(each)), "", "under 64 KiB", met(metric.Median(each) < 64),
	}
}

// cpu is this process's user and system time.
func cpu() time.Duration {
	var u unix.Rusage
	check(unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cost is what it took to receive and decode events.
type cost struct {
	events    int
	cpu, wall time.Duration
}

func costOf(work func() int) cost {
	used, from := cpu(), time.Now()
	events := work()
	return cost{events, cpu() - used, time.Since(from)}
}

func (c cost) rate() float64 { return float64(c.events) / c.wall.Seconds() }

// each is processor time an event in µs.
func (c cost) each() float64 { return float64(c.cpu.Nanoseconds()) / float64(c.events) / 1e3 }

// compare makes requests, n at a time, with the plain client and with this one,
// and returns what each round cost.
func (b *suite) compare(n, requests int, p pace) (ours, plain []cost) {
	for range rounds {
		plain = append(plain, costOf(func() int { return b.plain(n, requests, p) }))
		ours = append(ours, costOf(func() int { return b.ours(n, requests, p) }))
	}
	return ours, plain
}

// ours makes requests, n at a time, and decodes everything once all have ended.
func (b *suite) ours(n, requests int, p pace) int {
	s := b.setup(p)
	raws := make([]*client.Raw, requests)
	var all sync.WaitGroup
	for slot := range n {
		all.Go(func() {
			for i := slot; i < requests; i += n {
				raws[i] = s.do(s.dial(), s.clock.Now())
			}
		})
	}
	all.Wait()
	conv, events := s.conversion(), 0
	for i, raw := range raws {
		events += len(decoded(raw, &conv).Events)
		raws[i] = nil
	}
	return events
}

func median(costs []cost, of func(cost) float64) float64 {
	var values []float64
	for _, c := range costs {
		values = append(values, of(c))
	}
	return metric.Median(values)
}

// fullSpeed compares events a second when the server never waits.
func (b *suite) fullSpeed(n, requests int, p pace) row {
	ours, plain := b.compare(n, requests, p)
	us, them := median(ours, cost.rate), median(plain, cost.rate)
	return row{
		fmt.Sprintf("events a second at full speed, %d streams of %d tokens, decoding included", n, p.tokens),
		fmt.Sprintf("%.0f (%.1f µs of processor each)", us, median(ours, cost.each)),
		fmt.Sprintf("plain net/http: %.0f (%.1f µs)", them, median(plain, cost.each)), "at least as many", met(us >= them),
	}
}

// paced compares processor time an event at a rate that both hold.
func (b *suite) paced(n int, p pace) row {
	ours, plain := b.compare(n, n, p)
	us, them := median(ours, cost.each), median(plain, cost.each)
	return row{
		fmt.Sprintf("processor time an event, %d streams, %.0f events a second", n, median(ours, cost.rate)),
		fmt.Sprintf("%.1f µs", us), fmt.Sprintf("plain net/http: %.1f µs", them), "no more", met(us <= them),
	}
}
