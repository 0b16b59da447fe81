package process_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"assay/harness/engine"
	"assay/harness/engine/owner"
	"assay/harness/engine/process"
)

// printed waits for a line such as "stray 123" and returns its process.
func printed(t *testing.T, out *log, word string) owner.Owner {
	t.Helper()
	var pid int
	NewWithT(t).Eventually(func(g Gomega) {
		found := regexp.MustCompile(word + ` (\d+)`).FindStringSubmatch(out.String())
		g.Expect(found).NotTo(BeNil(), out.String())
		pid, _ = strconv.Atoi(found[1])
	}).WithTimeout(10 * time.Second).Should(Succeed())
	return owner.Of(pid)
}

// TestWhatLeavesTheGroupIsEndedToo: it also holds the server's output open,
// which must not keep the exit from being seen.
func TestWhatLeavesTheGroupIsEndedToo(t *testing.T) {
	g := NewWithT(t)
	s, out, _ := start(t, "parent")
	g.Expect(engine.AwaitReady(t.Context(), s, engine.ReadyOptions{Poll: 5 * time.Millisecond})).To(Succeed())
	stray := printed(t, out, "stray")
	g.Expect(stray.Gone()).To(BeFalse())
	g.Expect(s.Stop(t.Context())).To(Succeed())
	g.Eventually(stray.Gone).Should(BeTrue())
}

func TestAKilledRunLeavesNoServer(t *testing.T) {
	g := NewWithT(t)
	var out log
	run := self("run")
	run.Stdout = &out
	// It is this test that holds its output until the stray is gone.
	run.WaitDelay = time.Millisecond
	g.Expect(run.Start()).To(Succeed())
	stray, server := printed(t, &out, "stray"), printed(t, &out, "listening as")
	g.Expect(process.RemoveLeftovers()).To(Succeed())
	g.Expect(stray.Gone()).To(BeFalse(), "its run lives")
	g.Expect(server.Gone()).To(BeFalse(), "its run lives")

	g.Expect(run.Process.Kill()).To(Succeed())
	_ = run.Wait()
	g.Eventually(server.Gone).WithTimeout(5*time.Second).Should(BeTrue(), "the kernel ends it with its run")
	g.Expect(stray.Gone()).To(BeFalse(), fmt.Sprintf("%d is what is to be found", stray.PID))
	g.Expect(process.RemoveLeftovers()).To(Succeed())
	g.Eventually(stray.Gone).Should(BeTrue())
}

// TestAServerOutlivesTheThreadThatLaunchedIt: the kernel takes the thread that
// forks for the parent, and a run's threads come and go.
func TestAServerOutlivesTheThreadThatLaunchedIt(t *testing.T) {
	g := NewWithT(t)
	e := process.New(process.Config{Command: self("").Args, Env: env("chatty")})
	var (
		out    log
		server engine.Server
		err    error
		thread int
	)
	launched := make(chan struct{})
	var launch func()
	launch = func() {
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		if thread = unix.Gettid(); thread == os.Getpid() {
			go launch() // the first thread is the only one that would not end
			<-launched
			return
		}
		defer close(launched)
		server, err = e.Launch(context.Background(), engine.Launch{Run: "r", Name: "01-x", Logs: &out, Stop: 500 * time.Millisecond, Mark: func(engine.Moment) {}})
	}
	go launch()
	<-launched
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = server.Stop(context.Background()) })

	g.Eventually(func() string { return fmt.Sprintf("/proc/self/task/%d", thread) }).ShouldNot(BeADirectory())
	g.Expect(engine.AwaitReady(t.Context(), server, engine.ReadyOptions{Poll: 5 * time.Millisecond})).To(Succeed())
	g.Consistently(server.Done()).WithTimeout(100 * time.Millisecond).ShouldNot(BeClosed())
}
