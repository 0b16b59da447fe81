package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"assay/harness/record"
)

// memory is what this process tries to stay within, so that a bundle of 100,000
// attempts can be verified beside other work: the collector runs sooner near it,
// and nothing fails beyond it.
const memory = 384 << 20

func main() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memory)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// exit is an error that has said everything, with the code to leave with.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// The codes.
const (
	doesNotHold exit = 1
	unreadable  exit = 2
)

// run is the command without the process around it.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	root := &cobra.Command{
		Use: "assay", Short: "LLM-serving benchmarks as tests: plans, runs, bundles",
		SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(shown(checkCommand()), runCommand(), shown(verifyCommand()), shown(reportCommand()), shown(compareCommand()), bundleCommand(), doctorCommand(), offsetsCommand())
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	var code exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	default:
		fmt.Fprintln(errs, record.Visible(err.Error()))
		return int(unreadable)
	}
}
