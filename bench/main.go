//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"assay/harness/null"
)

func main() {
	only := flag.String("only", "", "the cells to measure, by name and separated by commas: "+strings.Join(names(), ", ")+"; all of them by default")
	ownOnly := flag.Bool("own", false, "leave the peers out")
	flag.Parse()
	role, arguments := flag.Arg(0), flag.Arg(1)
	var err error
	switch role {
	case "null":
		err = serveNull(arguments)
	case "busy":
		spin()
	case "client":
		measureItself(os.Stdout, "http://"+arguments)
	case "ours", "plain":
		var j job
		if err = json.Unmarshal([]byte(arguments), &j); err != nil {
			break
		}
		if role == "ours" {
			err = runOurs(j)
		} else {
			err = runPlain(j)
		}
	default:
		err = bench(os.Stdout, os.Stderr, *only, *ownOnly)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// bench makes every measurement and prints the tables to one writer, what is
// under way to another.
func bench(to, progress io.Writer, only string, ownOnly bool) error {
	wanted, err := choose(only)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	m := &matrix{contenders: contenders(ownOnly), runs: map[string]map[string][]measurement{}, progress: progress}
	fmt.Fprintf(to, "%s, %d cores, load average %s. %s. Median of %d rounds, the clients taking turns, and the range; × is the multiple of the plain client's in the same round.\n",
		runtime.Version(), runtime.NumCPU(), loadAverage(), placement(), rounds)
	m.measure(ctx, startUp)
	m.printStart(to)
	for _, c := range cells {
		if !wanted[c.name] {
			continue
		}
		m.measure(ctx, c)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		m.print(to, c)
	}
	heading(to, "Targets of this client", "what", "this client", "beside it, same run", "target", "")
	if wanted[itselfName] {
		if err := itself(to); err != nil {
			return err
		}
	}
	rows := m.targets()
	if wanted[many.name] {
		rows = append(rows, manyStreams(ctx))
	}
	for _, r := range rows {
		r.print(to)
	}
	return ctx.Err()
}

// itself has this client measured from inside its own process.
func itself(to io.Writer) error {
	server, out, err := start(0, "null", "")
	if err != nil {
		return err
	}
	defer server.stop()
	addresses, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the null server did not say its address: %w", err)
	}
	client, rows, err := start(1, "client", strings.Fields(addresses)[0])
	if err != nil {
		return err
	}
	defer client.stop()
	if _, err := io.Copy(to, rows); err != nil {
		return err
	}
	return client.Wait()
}

// loadAverage is how busy the machine is over the last minute, where the system
// says it.
func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "not known"
	}
	return strings.Fields(string(data))[0]
}

// child is this program in another role; it ends when its standard input does.
type child struct {
	*exec.Cmd
	hold io.Closer
	out  io.Reader
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
	if c.out, err = c.StdoutPipe(); err != nil {
		return nil, nil, err
	}
	return c, c.out, startOn(core, c.Cmd)
}

// stop ends the child and takes what it still prints: a null server's log is
// larger than a pipe, and one that nobody reads would never end.
func (c *child) stop() {
	_ = c.hold.Close()
	_, _ = io.Copy(io.Discard, c.out)
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

// measureItself makes the measurements that need to see inside the client.
func measureItself(to io.Writer, url string) {
	b := &suite{url: url}
	b.arrivals(512, null.Pace{Tokens: 150, First: firstToken, Gap: 20 * time.Millisecond}, 200, 100).print(to)
	b.besideABusyOne(func() row {
		return b.arrivals(512, null.Pace{Tokens: 150, First: firstToken, Gap: 20 * time.Millisecond}, 200, 100)
	}).print(to)
	b.arrivals(64, null.Pace{Tokens: 200, First: firstToken, Gap: 10 * time.Millisecond}, 100, 0).print(to)
	b.memory(512, null.Pace{Tokens: 100, First: firstToken, Gap: 20 * time.Millisecond, Hold: time.Second}).print(to)
}
