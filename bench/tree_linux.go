package main

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// tree watches a process and all that descend from it.
type tree struct {
	root int
	once sync.Once
	stop chan struct{}
	gone chan struct{}

	peak      int64           // bytes resident, the most that was seen at one look; shared pages count in each
	processes int             // the most that there were at one look
	ticks     map[int64]int64 // processor time of each that was seen, as last seen
}

// look is how often a tree is looked at: each takes about a millisecond of the
// core that it runs on, which is the server's.
const look = 100 * time.Millisecond

// ticksASecond is USER_HZ, which is 100 on every Linux that Go runs on.
const ticksASecond = 100

func watch(root int) *tree {
	t := &tree{root: root, stop: make(chan struct{}), gone: make(chan struct{}), ticks: map[int64]int64{}}
	go func() {
		defer close(t.gone)
		for next := time.NewTicker(look); ; {
			t.look()
			select {
			case <-next.C:
			case <-t.stop:
				next.Stop()
				return
			}
		}
	}()
	return t
}

// end stops watching and says the most memory, the most processes and the
// processor time that were seen.
func (t *tree) end() (peak int64, processes int, cpu time.Duration) {
	t.once.Do(func() { close(t.stop) })
	<-t.gone
	for _, ticks := range t.ticks {
		cpu += time.Duration(ticks) * time.Second / ticksASecond
	}
	return t.peak, t.processes, cpu
}

func (t *tree) look() {
	names, err := readNames("/proc")
	if err != nil {
		return
	}
	parents, stats := map[int]int{}, map[int][]string{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		data, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it has ended
		}
		// The name, in brackets, may hold anything.
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		if len(fields) < 22 {
			continue
		}
		parents[pid], _ = strconv.Atoi(fields[1])
		stats[pid] = fields
	}
	resident, processes := int64(0), 0
	for pid, fields := range stats {
		if !t.has(pid, parents) {
			continue
		}
		number := func(i int) int64 { n, _ := strconv.ParseInt(fields[i], 10, 64); return n }
		processes++
		resident += number(21) * int64(os.Getpagesize())
		t.ticks[number(19)<<22|int64(pid)] = number(11) + number(12) // a number may come again: with its start it is one process
	}
	t.peak, t.processes = max(t.peak, resident), max(t.processes, processes)
}

func (t *tree) has(pid int, parents map[int]int) bool {
	for ; pid > 1; pid = parents[pid] {
		if pid == t.root {
			return true
		}
	}
	return false
}

func readNames(folder string) ([]string, error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
