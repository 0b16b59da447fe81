package lifecycle_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/engine"
	"assay/harness/lifecycle"
	"assay/harness/plan"
	"assay/harness/record"
)

func TestALogIsWholeButForSecretsAndIdentities(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	l, err := lifecycle.OpenLog(dir, "01-x.log", lifecycle.NewRedactor("hunter22", ""))
	g.Expect(err).NotTo(HaveOccurred())
	for _, piece := range []string{"loading mo", "del\r\n", "key hunter22 on GPU-01234567-89ab-cdef-0123-456789abcdef\n", "Authorization: Bearer abcdefghijk\n", "ready\n"} {
		_, err := l.Write([]byte(piece))
		g.Expect(err).NotTo(HaveOccurred())
	}
	l.Stopping()
	_, _ = l.Write([]byte("Traceback: cancelled\nlast words"))
	facts, err := l.Close()
	g.Expect(err).NotTo(HaveOccurred())
	data, err := os.ReadFile(filepath.Join(dir, "01-x.log"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(data)).To(Equal("loading model\nkey [redacted secret] on [redacted]\nAuthorization: [redacted]\nready\n[after stop] Traceback: cancelled\n[after stop] last words\n"))
	g.Expect(facts.Lines).To(Equal(6))
	g.Expect(facts.Redacted).To(Equal(2))
	g.Expect(facts.AfterStop).To(Equal(2))
	g.Expect(facts.SHA256).To(HaveLen(64))
}

func emulated(t *testing.T, startup plan.Duration) lifecycle.Config {
	t.Helper()
	g := NewWithT(t)
	p, err := plan.Load("../../suites/concurrency/plans/emulated.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	p.Arms[0].Engine.Emulated.Startup = startup
	place := p.Schedule().Lifecycles[0]
	made, err := lifecycle.NewEngine(p, p.Arms[0], place, nil, ".")
	g.Expect(err).NotTo(HaveOccurred())
	timeouts := p.Timeouts
	timeouts.Ready = plan.Duration(300 * time.Millisecond)
	return lifecycle.Config{
		Run: "r", Place: place, Executed: 1, Arm: p.Arms[0], Engine: made, Timeouts: timeouts, Scale: p.TimeScale,
		LogDir: t.TempDir(), Redact: lifecycle.NewRedactor(),
	}
}

func moments(r record.Lifecycle) (seen []string, unseen []string) {
	for _, m := range r.Moments {
		if m.At != nil {
			seen = append(seen, m.Phase)
		} else {
			unseen = append(unseen, m.Phase+": "+m.Reason)
		}
	}
	return seen, unseen
}

func TestALifecyclePassesItsPhases(t *testing.T) {
	g := NewWithT(t)
	l, err := lifecycle.Start(t.Context(), emulated(t, 0))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(l.Died()).To(Succeed())
	l.Served(l.Clock().Now(), l.Clock().Now()+1)
	r, err := l.Stop(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Status).To(Equal("ran"))
	seen, unseen := moments(r)
	g.Expect(seen).To(Equal([]string{"invoked", "started", "first_listening", "ready", "first_sent", "last_terminal", "stop_requested", "exited", "removed"}))
	for _, u := range unseen {
		g.Expect(strings.SplitN(u, ": ", 2)[1]).NotTo(BeEmpty(), u)
	}
	last := int64(-1)
	for _, m := range r.Moments {
		if m.At != nil {
			g.Expect(*m.At).To(BeNumerically(">=", last), m.Phase)
			last = *m.At
		}
	}
	again, err := l.Stop(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(r), "twice is once")
}

func TestAServerThatIsNeverReadyIsStoppedAndRecorded(t *testing.T) {
	g := NewWithT(t)
	l, err := lifecycle.Start(t.Context(), emulated(t, plan.Duration(time.Hour)))
	g.Expect(err).To(MatchError(engine.ErrNotReady))
	g.Expect(err).To(MatchError(And(ContainSubstring("300ms"), ContainSubstring("503 loading"))))
	r, err := l.Stop(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Status).To(Equal("failed"))
	g.Expect(r.Exit.Asked).To(BeTrue())
}

func TestAStoppedStartIsInterrupted(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l, err := lifecycle.Start(ctx, emulated(t, 0))
	g.Expect(err).To(HaveOccurred())
	r, err := l.Stop(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Status).To(Equal("interrupted"))
}

func TestAnEmulatedServerKnowsTheAnswersThatItIsGiven(t *testing.T) {
	g := NewWithT(t)
	p, err := plan.Load("../../suites/concurrency/plans/emulated.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	p.Arms[0].Engine.Emulated.Startup = 0
	place := p.Schedule().Lifecycles[0]
	said := func(answers []string) string {
		made, err := lifecycle.NewEngine(p, p.Arms[0], place, []string{"Which?", "What?"}, ".", lifecycle.WithAnswers(answers))
		g.Expect(err).NotTo(HaveOccurred())
		c := emulated(t, 0)
		c.Engine = made
		l, err := lifecycle.Start(t.Context(), c)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := http.Post(l.Server().URL()+"/v1/completions", "application/json", strings.NewReader(`{"model":"`+p.Model.ServedAs+`","prompt":"What?","max_tokens":2}`))
		g.Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = l.Stop(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		return string(body)
	}
	g.Expect(said([]string{"this", "that"})).To(ContainSubstring(`"text":"that `))
	g.Expect(said(nil)).NotTo(ContainSubstring("that"))
}

// TestALineWithoutAnEndIsNotHeld: some servers draw a bar and never end its
// line.
func TestALineWithoutAnEndIsNotHeld(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	log, err := lifecycle.OpenLog(dir, "01-a.log", lifecycle.NewRedactor("a-secret-of-the-plan"))
	g.Expect(err).NotTo(HaveOccurred())
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, "01-a.log"))
		g.Expect(err).NotTo(HaveOccurred())
		return info.Size()
	}
	const mib = 1 << 20
	before, written := heap(), int64(0)
	bar := strings.Repeat("\r 42 % [=====>     ]", 1000)
	for written < 16*mib {
		n, err := io.WriteString(log, bar)
		g.Expect(err).NotTo(HaveOccurred())
		written += int64(n)
	}
	g.Expect(size()).To(BeNumerically(">", written-2*mib), "it is on disk, but for the last of it")
	g.Expect(heap()).To(BeNumerically("<", before+8*mib))
	// Wherever such a line is cut, no secret is cut with it.
	for range 800 {
		_, err := io.WriteString(log, "\r"+strings.Repeat("x", 2048)+" a-secret-of-the-plan Bearer abcdefghijklmnop ")
		g.Expect(err).NotTo(HaveOccurred())
	}
	facts, err := log.Close()
	g.Expect(err).NotTo(HaveOccurred())
	kept, err := os.ReadFile(filepath.Join(dir, "01-a.log"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(facts.Lines).To(Equal(bytes.Count(kept, []byte("\n"))))
	for _, secret := range []string{"secret-of", "of-the-plan", "abcdefgh", "ijklmnop"} {
		g.Expect(bytes.Contains(kept, []byte(secret))).To(BeFalse(), secret)
	}
}
