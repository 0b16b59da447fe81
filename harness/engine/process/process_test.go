//go:build unix

package process_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/engine"
	"assay/harness/engine/process"
)

// TestMain lets the test binary be the server that it starts.
func TestMain(m *testing.M) {
	switch os.Getenv("ASSAY_TEST_SERVER") {
	case "":
		os.Exit(m.Run())
	case "dies":
		fmt.Println("no such model")
		os.Exit(3)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "chatty":
		fmt.Println(strings.Repeat("x", 3<<20))
	case "stray":
		select {} // it holds the output open, too
	case "parent":
		stray := self("stray")
		stray.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		stray.Stdout = os.Stdout
		if err := stray.Start(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("stray", stray.Process.Pid)
	case "run":
		e := process.New(process.Config{Command: self("").Args, Env: env("parent")})
		_, err := e.Launch(context.Background(), engine.Launch{Run: "r", Name: "01-x", Logs: os.Stdout, Stop: time.Second, Mark: func(engine.Moment) {}})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		select {} // until it is killed
	}
	http.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"version":"9"}`) })
	fmt.Println("listening as", os.Getpid())
	fmt.Println(http.ListenAndServe("127.0.0.1:"+os.Getenv("SERVER_PORT"), nil))
}

// self is this test binary as one of TestMain's servers.
func self(kind string) *exec.Cmd {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(path, "-test.run=none")
	cmd.Env = append(os.Environ(), "ASSAY_TEST_SERVER="+kind)
	return cmd
}

func env(kind string) map[string]string {
	return map[string]string{"ASSAY_TEST_SERVER": kind, "SERVER_PORT": "${PORT}"}
}

// log is a lifecycle's log: written by the server's watcher, read by the test.
type log struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.out.Write(p) }
func (l *log) String() string              { l.mu.Lock(); defer l.mu.Unlock(); return l.out.String() }

func start(t *testing.T, kind string) (engine.Server, *log, *[]engine.Phase) {
	t.Helper()
	e := process.New(process.Config{Command: self("").Args, Env: env(kind)})
	NewWithT(t).Expect(e.Check(t.Context())).To(Succeed())
	var out log
	var mu sync.Mutex
	var phases []engine.Phase
	s, err := e.Launch(t.Context(), engine.Launch{Run: "r", Name: "01-x", Logs: &out, Stop: 500 * time.Millisecond, Mark: func(m engine.Moment) {
		mu.Lock()
		defer mu.Unlock()
		phases = append(phases, m.Phase)
	}})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s, &out, &phases
}

func TestAProcessIsStartedWatchedAndStopped(t *testing.T) {
	g := NewWithT(t)
	s, out, phases := start(t, "serves")
	g.Expect(engine.AwaitReady(t.Context(), s, engine.ReadyOptions{Poll: 5 * time.Millisecond})).To(Succeed())
	g.Expect(s.Identity(t.Context())["engine_version"].Value).To(Equal("9"))
	g.Expect(s.Stop(t.Context())).To(Succeed())
	exit := s.Exit()
	g.Expect(exit.Asked).To(BeTrue())
	g.Expect(exit.Signal).To(Equal("terminated"))
	g.Expect(out.String()).To(ContainSubstring("listening as "))
	g.Expect(*phases).To(Equal([]engine.Phase{engine.Started, engine.Exited, engine.Removed}))
	g.Expect(s.Stop(t.Context())).To(Succeed(), "twice is once")
}

func TestAStubbornProcessIsKilled(t *testing.T) {
	g := NewWithT(t)
	s, _, _ := start(t, "stubborn")
	g.Expect(engine.AwaitReady(t.Context(), s, engine.ReadyOptions{Poll: 5 * time.Millisecond})).To(Succeed())
	g.Expect(s.Stop(t.Context())).To(Succeed())
	g.Expect(s.Exit().Signal).To(Equal("killed"))
}

func TestAProcessThatDiesIsNotWaitedFor(t *testing.T) {
	g := NewWithT(t)
	s, _, _ := start(t, "dies")
	err := engine.AwaitReady(t.Context(), s, engine.ReadyOptions{Poll: 5 * time.Millisecond})
	g.Expect(err).To(MatchError(engine.ErrExited))
	g.Expect(err).To(MatchError(And(ContainSubstring("code 3"), ContainSubstring("no such model"))))
	g.Expect(s.Exit().Asked).To(BeFalse())
}

func TestWhatIsMissingIsUnavailable(t *testing.T) {
	here := t.TempDir()
	NewWithT(t).Expect(os.WriteFile(filepath.Join(here, "serve"), []byte("#!/bin/sh\n"), 0o755)).To(Succeed())
	for name, c := range map[string]struct {
		config process.Config
		want   string // empty: nothing is missing
	}{
		"no command":              {process.Config{}, "no command"},
		"an unknown command":      {process.Config{Command: []string{"no-such-server"}}, "no-such-server"},
		"an unknown folder":       {process.Config{Command: []string{"true"}, Dir: "/no/such/folder"}, "/no/such/folder"},
		"a command on the path":   {process.Config{Command: []string{"true"}}, ""},
		"one in its own folder":   {process.Config{Command: []string{"./serve"}, Dir: here}, ""},
		"one in another's folder": {process.Config{Command: []string{"./serve"}, Dir: "/"}, "./serve"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := process.New(c.config).Check(t.Context())
			if c.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(engine.ErrUnavailable))
			g.Expect(err).To(MatchError(ContainSubstring(c.want)))
			_, err = process.New(c.config).Launch(t.Context(), engine.Launch{})
			g.Expect(err).To(MatchError(engine.ErrUnavailable))
		})
	}
}

// TestALongLineDoesNotStallTheServer: a pipe that nobody reads would.
func TestALongLineDoesNotStallTheServer(t *testing.T) {
	g := NewWithT(t)
	s, out, _ := start(t, "chatty")
	g.Expect(engine.AwaitReady(t.Context(), s, engine.ReadyOptions{Poll: 5 * time.Millisecond})).To(Succeed())
	g.Expect(s.Stop(t.Context())).To(Succeed())
	g.Expect(strings.Count(out.String(), "x")).To(Equal(3 << 20))
}

func TestWhereAProgramIsLookedFor(t *testing.T) {
	g := NewWithT(t)
	g.Expect(process.Program("venv/bin/python", "/srv/llama")).To(Equal("/srv/llama/venv/bin/python"))
	g.Expect(process.Program("/usr/bin/vllm", "/srv/llama")).To(Equal("/usr/bin/vllm"))
	g.Expect(process.Program("vllm", "/srv/llama")).To(Equal("vllm"), "a bare name is one of PATH's")
}
