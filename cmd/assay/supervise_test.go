//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestASignalToThisProcessAloneInterruptsTheRun: service managers signal one
// process, and the run is another.
func TestASignalToThisProcessAloneInterruptsTheRun(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	// A shell in a shell, as go tool, ginkgo and the suite are in one another.
	run := exec.Command("sh", "-c", `trap 'echo outer' INT; sh -c 'trap "echo inner; exit 3" INT; echo up; while :; do sleep 0.05; done'; exit 4`)
	run.Stdout = &out
	ended := make(chan error, 1)
	go func() { ended <- supervise(ctx, run) }()
	time.Sleep(300 * time.Millisecond) // the trap is set by then, or the shell ends without a word and the test fails
	cancel()
	var err error
	g.Eventually(ended).WithTimeout(10 * time.Second).Should(Receive(&err))
	var failed *exec.ExitError
	g.Expect(errors.As(err, &failed)).To(BeTrue(), "%v", err)
	g.Expect(failed.ExitCode()).To(Equal(4))
	g.Expect(out.String()).To(And(ContainSubstring("inner"), ContainSubstring("outer")))
}
