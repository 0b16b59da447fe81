package load

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"assay/harness/environment"
	"assay/harness/record"
)

// window is the time over which the client's use of its processors is taken: a
// burst's start may take them all for a moment, and is no saturation.
const window = time.Second

// loadWatch is this process's own use of the machine over a wave.
type loadWatch struct {
	gc         debug.GCStats
	cpu        int64
	goroutines int
	held       *record.Held
	stop       chan struct{}
	busiest    chan *float64
}

// watchLoad begins to watch. held is what the wave's connections hold; nil where
// it opens one after the other.
func watchLoad(held *record.Held) *loadWatch {
	w := &loadWatch{
		cpu: cpuTime(), goroutines: runtime.NumGoroutine(), held: held,
		stop: make(chan struct{}), busiest: make(chan *float64, 1),
	}
	debug.ReadGCStats(&w.gc)
	go func() { w.busiest <- busiest(w.stop) }()
	return w
}

// busiest is the largest share of the processors that this process may use that
// it used over a window, until stop is closed; nil if that came before the first
// window had ended.
func busiest(stop <-chan struct{}) *float64 {
	var most *float64
	tick := time.NewTicker(window)
	defer tick.Stop()
	for before, from := cpuTime(), time.Now(); ; {
		select {
		case <-stop:
			return most
		case <-tick.C:
		}
		used, now := cpuTime(), time.Now()
		share := float64(used-before) / float64(now.Sub(from)) / float64(runtime.GOMAXPROCS(0))
		if most == nil || share > *most {
			most = &share
		}
		before, from = used, now
	}
}

func (w *loadWatch) facts() record.ClientLoad {
	facts := record.ClientLoad{CPU: cpuTime() - w.cpu, Goroutines: w.goroutines, Held: w.held}
	close(w.stop)
	facts.Busiest = <-w.busiest
	var now debug.GCStats
	debug.ReadGCStats(&now)
	facts.GCPauses = now.NumGC - w.gc.NumGC
	// The most recent pause comes first; the runtime keeps the last 256.
	for i := range min(facts.GCPauses, int64(len(now.Pause))) {
		facts.GCMax = max(facts.GCMax, int64(now.Pause[i]))
	}
	return facts
}

// hold counts what this process and this machine's network hold now that a
// wave's connections are open. It is nil where the system does not say, which
// only Linux does.
func hold() *record.Held {
	limit, err := environment.FileDescriptors()
	open, openErr := os.ReadDir("/proc/self/fd")
	sockets, socketsErr := os.ReadFile("/proc/net/sockstat")
	span, spanErr := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil || openErr != nil || socketsErr != nil || spanErr != nil {
		return nil
	}
	used, usedOK := tcpSockets(string(sockets))
	ports, portsOK := width(string(span))
	if !usedOK || !portsOK {
		return nil
	}
	return &record.Held{Files: len(open) - 1, FilesLimit: limit, Sockets: used, Ports: ports} // the folder that was read is one
}

// tcpSockets are the TCP sockets of this network that have a port: those in use
// and those that wait for late packets, by the line "TCP: inuse 5 orphan 0 tw 2
// alloc 8 mem 1" of the kernel's own account (proc_net_sockstat(5)).
func tcpSockets(sockstat string) (int, bool) {
	for line := range strings.Lines(sockstat) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != "TCP:" {
			continue
		}
		total, found := 0, 0
		for i := 1; i+1 < len(words); i += 2 {
			n, err := strconv.Atoi(words[i+1])
			if err == nil && (words[i] == "inuse" || words[i] == "tw") {
				total, found = total+n, found+1
			}
		}
		return total, found == 2
	}
	return 0, false
}

// width is how many ports a range has, both ends included.
func width(span string) (int, bool) {
	words := strings.Fields(span)
	if len(words) != 2 {
		return 0, false
	}
	first, err := strconv.Atoi(words[0])
	last, lastErr := strconv.Atoi(words[1])
	return last - first + 1, err == nil && lastErr == nil && last >= first
}
