package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"assay/harness/plan"
)

func runCommand() *cobra.Command {
	var tiers []int
	var out, resume, cause string
	c := &cobra.Command{
		Use:   "run PLAN",
		Short: "run a plan: what the Ginkgo line does, without knowing Ginkgo",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			line, err := ginkgoLine(args[0], tiers, out)
			if err == nil && resume != "" {
				if resume, err = filepath.Abs(resume); err == nil {
					line = append(line, "-resume", resume, "-cause", cause)
				}
			}
			if err != nil {
				return err
			}
			root, err := moduleRoot()
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "+", strings.Join(line, " "))
			run := exec.Command(line[0], line[1:]...)
			run.Dir = root
			run.Stdin, run.Stdout, run.Stderr = os.Stdin, cmd.OutOrStdout(), cmd.ErrOrStderr()
			err = supervise(cmd.Context(), run)
			var failed *exec.ExitError
			if errors.As(err, &failed) {
				return doesNotHold
			}
			return err
		},
	}
	c.Flags().IntSliceVar(&tiers, "tier", nil, "run these tiers alone, such as 64; the bundle is then partial")
	c.Flags().StringVar(&resume, "resume", "", "go on with the interrupted run in this directory, after its last complete lifecycle")
	c.Flags().StringVar(&cause, "cause", "operator", "why it was interrupted, one of the plan's resume.causes")
	c.Flags().StringVar(&out, "out", "", "put the bundle here, in a folder of the plan's name")
	return c
}

// supervise runs a command to its end, in a process group of its own. Once ctx
// is done, whatever ended it (Ctrl-C, or a signal to this process alone, as
// service managers send it), the whole group is interrupted once, as a terminal
// would: Ginkgo then ends by itself, with the servers stopped and the bundle
// written.
func supervise(ctx context.Context, run *exec.Cmd) error {
	ownGroup(run)
	if err := run.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return errors.Join(interrupt(run), <-ended)
	}
}

// ginkgoLine is the command that runs a plan: its labels are asked for by
// name, so that an engine that is missing fails and is not skipped.
func ginkgoLine(path string, tiers []int, out string) ([]string, error) {
	p, err := plan.Load(path)
	if err != nil {
		return nil, err
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	filter := strings.Join(p.Labels, " && ")
	if len(tiers) > 0 && p.Pairing != nil {
		return nil, fmt.Errorf("%s is a crossover, which has lanes and no tiers: leave --tier out, or use Ginkgo's --label-filter lane:fixed", p.Name)
	}
	if len(tiers) > 0 && p.Arrivals != nil {
		return nil, fmt.Errorf("%s is an arrival plan, which has rates and no tiers: leave --tier out, or use Ginkgo's --label-filter, such as %s", p.Name, plan.RateLabel(float64(p.HighestRate())))
	}
	if len(tiers) > 0 {
		var any []string
		for _, t := range tiers {
			if !slices.Contains(p.Sweep.Tiers, t) {
				return nil, fmt.Errorf("%s has no tier %d: it has %s", p.Name, t, strings.Trim(fmt.Sprint(p.Sweep.Tiers), "[]"))
			}
			any = append(any, p.TierLabel(t))
		}
		filter += " && (" + strings.Join(any, " || ") + ")"
	}
	timeout := 2*p.WorstCase().Round(1e9) + 5*60*1e9
	line := []string{"go", "tool", "ginkgo", "--fail-on-empty", "--timeout", timeout.String(), "--label-filter", filter, "./suites/" + string(p.Experiment), "--", "-plan", path}
	if out != "" {
		if out, err = filepath.Abs(out); err != nil {
			return nil, err
		}
		line = append(line, "-out", out)
	}
	return line, nil
}

// moduleRoot is the folder with the module's go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(data), "module assay\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("this is not inside the project's checkout, where the suites are: change there first")
		}
	}
}
