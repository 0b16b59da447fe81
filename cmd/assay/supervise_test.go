//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
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
	// A shell in a shell, as go tool, ginkgo and the suite are in one another.
	run := exec.Command("sh", "-c", `trap 'echo outer' INT; sh -c 'trap "echo inner; exit 3" INT; echo up; while :; do sleep 0.05; done'; exit 4`)
	out, in, err := os.Pipe()
	g.Expect(err).NotTo(HaveOccurred())
	defer out.Close()
	run.Stdout = in
	said := bufio.NewScanner(out)
	ended := make(chan error, 1)
	go func() { ended <- supervise(ctx, run) }()
	g.Expect(said.Scan()).To(BeTrue())
	g.Expect(said.Text()).To(Equal("up"), "both traps are set by then")
	cancel()
	g.Eventually(ended).WithTimeout(10 * time.Second).Should(Receive(&err))
	var failed *exec.ExitError
	g.Expect(errors.As(err, &failed)).To(BeTrue(), "%v", err)
	g.Expect(failed.ExitCode()).To(Equal(4))
	g.Expect(in.Close()).To(Succeed())
	var last strings.Builder
	for said.Scan() {
		last.WriteString(said.Text() + "\n")
	}
	g.Expect(last.String()).To(And(ContainSubstring("inner"), ContainSubstring("outer")))
}
