//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

func main() {
	role, address := "", ""
	if len(os.Args) > 1 {
		role = os.Args[1]
	}
	if len(os.Args) > 2 {
		address = os.Args[2]
	}
	var err error
	switch role {
	case "null":
		err = serveNull()
	case "busy":
		spin()
	case "client":
		measure(os.Stdout, "http://"+address)
	default:
		err = bench()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// bench starts the null server and the measuring client, each on a core of its
// own.
func bench() error {
	server, out, err := start(0, "null")
	if err != nil {
		return err
	}
	defer server.stop()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the null server did not say its address: %w", err)
	}
	fmt.Printf("%s, %d cores%s. %s. Median of %d rounds.\n\n", runtime.Version(), runtime.NumCPU(), loadAverage(), placement(), rounds)
	client, table, err := start(1, "client", strings.TrimSpace(address))
	if err != nil {
		return err
	}
	defer client.stop()
	if _, err := io.Copy(os.Stdout, table); err != nil {
		return err
	}
	return client.Wait()
}

// loadAverage is how busy the machine is besides, where the system says it.
func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	return ", load average " + strings.Fields(string(data))[0]
}

// child is this program in another role; it ends when its standard input does.
type child struct {
	*exec.Cmd
	hold io.Closer
}

func start(core int, args ...string) (*child, io.Reader, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	c := &child{Cmd: exec.Command(self, args...)}
	c.Stderr = os.Stderr
	if c.hold, err = c.StdinPipe(); err != nil {
		return nil, nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return c, out, startOn(core, c.Cmd)
}

func (c *child) stop() {
	_ = c.hold.Close()
	_ = c.Wait()
}

// spin uses all of a core until its standard input closes.
func spin() {
	go exitWithParent()
	for {
		runtime.Gosched()
	}
}

// exitWithParent ends this process when its standard input closes, which is
// when its parent has gone.
func exitWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// row is a line of the table.
type row struct{ what, ours, beside, target, met string }

func (r row) print(to io.Writer) {
	fmt.Fprintf(to, "| %s | %s | %s | %s | %s |\n", r.what, r.ours, r.beside, r.target, r.met)
}

func met(ok bool) string {
	if ok {
		return "met"
	}
	return "not met"
}

// measure makes every measurement and prints the table.
func measure(to io.Writer, url string) {
	b := &suite{url: url}
	row{"what", "this client", "beside it, same run", "target", ""}.print(to)
	row{"---", "---:", "---:", "---", "---"}.print(to)
	b.arrivals(512, pace{tokens: 150, first: 50 * time.Millisecond, gap: 20 * time.Millisecond}, 200, 100).print(to)
	b.besideABusyOne(func() row {
		return b.arrivals(512, pace{tokens: 150, first: 50 * time.Millisecond, gap: 20 * time.Millisecond}, 200, 100)
	}).print(to)
	b.arrivals(64, pace{tokens: 200, first: 50 * time.Millisecond, gap: 10 * time.Millisecond}, 100, 0).print(to)
	b.memory(512, pace{tokens: 100, first: 50 * time.Millisecond, gap: 20 * time.Millisecond, hold: time.Second}).print(to)
	b.fullSpeed(64, 2000, pace{tokens: 128}).print(to)
	b.paced(64, pace{tokens: 1000, first: 20 * time.Millisecond, gap: 1420 * time.Microsecond}).print(to)
	b.peer(512, pace{tokens: 64, first: 50 * time.Millisecond, gap: 20 * time.Millisecond}).print(to)
}
