//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"assay/harness/null"
)

// longest is how long one run of one client may take.
const longest = 4 * time.Minute

// measurement is one run of one client.
type measurement struct {
	wall, cpu time.Duration // of the process and its descendants, from start to end
	peak      int64         // bytes
	processes int
	server    int64 // the null server's own peak, in bytes
	said      reported
	truth     truth
	err       error
}

// perMillion is processor seconds per million events that the server wrote,
// after taking away what a run of one request needs.
func (m measurement) perMillion(less time.Duration) float64 {
	return max(0, (m.cpu-less).Seconds()) / float64(m.truth.events) * 1e6
}

// run starts a fresh null server on one core and a client on another, and
// measures the client.
func run(ctx context.Context, c contender, j job, p null.Pace) (m measurement) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	dir, err := os.MkdirTemp("", "assay-bench-")
	if err != nil {
		return measurement{err: err}
	}
	defer os.RemoveAll(dir)
	j.dir = dir
	arguments, err := json.Marshal(p)
	if err != nil {
		return measurement{err: err}
	}
	server, out, err := start(0, "null", string(arguments))
	if err != nil {
		return measurement{err: err}
	}
	defer server.stop()
	lines := bufio.NewReader(out)
	addresses, err := lines.ReadString('\n')
	if err != nil {
		return measurement{err: fmt.Errorf("the null server did not say its address: %w", err)}
	}
	for _, address := range strings.Fields(addresses) {
		j.URLs = append(j.URLs, "http://"+address)
	}
	if m = runClient(ctx, c, j); m.err != nil {
		return m
	}
	// The server says what it did once its standard input has closed.
	_ = server.hold.Close()
	var log []null.Served
	if err := json.NewDecoder(lines).Decode(&log); err != nil && !errors.Is(err, io.EOF) {
		m.err = fmt.Errorf("the null server's log: %w", err)
		return m
	}
	m.truth = truthOf(log)
	m.said.TTFT, m.said.TPOT = found(m.said.TTFT, m.truth.ttft), found(m.said.TPOT, m.truth.tpot)
	_ = server.Wait()
	m.server = maxResident(server.ProcessState)
	switch {
	case m.truth.events == 0:
		m.err = errors.New("the null server answered nothing")
	case m.truth.requests < j.Requests || m.said.Completed != j.Requests:
		m.err = fmt.Errorf("%d of %d requests were answered whole, and it says that it completed %d", m.truth.requests, j.Requests, m.said.Completed)
	}
	return m
}

// found is what a client reported, or nil where its answer lacks it: nothing
// took exactly no time that the server waited for.
func found(said *times, truth times) *times {
	if said == nil || *said == (times{}) && truth.P50 > 0 {
		return nil
	}
	return said
}

func runClient(ctx context.Context, c contender, j job) (m measurement) {
	command, err := c.command(j)
	if err != nil {
		return measurement{err: err}
	}
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	// A group of its own, so that all of it can be ended.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	began := time.Now()
	if err := startOn(1, command); err != nil {
		return measurement{err: err}
	}
	t := watch(command.Process.Pid)
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) })
	err = command.Wait()
	m.wall = time.Since(began)
	stop()
	var seen time.Duration
	m.peak, m.processes, seen = t.end()
	// The system has the time of those that were waited for, the looks that of
	// those that were not.
	m.cpu = max(command.ProcessState.UserTime()+command.ProcessState.SystemTime(), seen)
	m.peak = max(m.peak, maxResident(command.ProcessState))
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("ended after %s: %w", m.wall.Round(time.Second), ctx.Err())
		}
		m.err = fmt.Errorf("%w: %s", err, lastLine(said.String()+out.String()))
		return m
	}
	if m.said, m.err = c.read(j, out.Bytes()); m.err != nil {
		m.err = fmt.Errorf("%w: %s", m.err, lastLine(said.String()+out.String()))
	}
	return m
}

// maxResident is the most memory that a process itself had, in bytes.
func maxResident(s *os.ProcessState) int64 {
	usage, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(usage.Maxrss)
	}
	return int64(usage.Maxrss) << 10
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// own is this program in another role, as a contender's command.
func own(role string, j job) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arguments, err := json.Marshal(j)
	return exec.Command(self, role, string(arguments)), err
}
