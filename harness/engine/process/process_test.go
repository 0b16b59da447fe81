//go:build unix

package process_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/signal"
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
	}
	http.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"version":"9"}`) })
	fmt.Println("listening")
	fmt.Println(http.ListenAndServe("127.0.0.1:"+os.Getenv("SERVER_PORT"), nil))
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
	self, err := os.Executable()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	e := process.New(process.Config{Command: []string{self, "-test.run=none"}, Env: map[string]string{"ASSAY_TEST_SERVER": kind, "SERVER_PORT": "${PORT}"}})
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
	t.Cleanup(func() { _ = s.Stop(t.Context()) })
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
	g.Expect(out.String()).To(ContainSubstring("listening\n"))
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

func TestACommandThatIsNotHereIsUnavailable(t *testing.T) {
	err := process.New(process.Config{Command: []string{"no-such-server"}}).Check(t.Context())
	NewWithT(t).Expect(err).To(MatchError(engine.ErrUnavailable))
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no-such-server")))
}
