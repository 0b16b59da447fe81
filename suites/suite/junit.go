package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/reporters"
	"github.com/onsi/ginkgo/v2/types"

	"assay/claim"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/reports"
	"assay/reports/junit"
)

// close completes the plan's bundle: junit.xml holds the plan's own specs, and
// the sums come last of all.
func (e *Experiment) close(_ context.Context, report ginkgo.Report) error {
	e.progress.close()
	if e.store == nil {
		return nil
	}
	if len(report.SpecialSuiteFailureReasons) > 0 {
		e.stopped = report.SpecialSuiteFailureReasons[0]
	}
	_, err := e.Finish()
	err = errors.Join(err, e.writeJUnit(report), e.Seal())
	if e.started == 0 {
		// What is missing is in the failures, and there is nothing to show.
		fmt.Fprintf(os.Stdout, "%s: no server was started; what was found is in %s\n", e.Plan.Name, relative(e.dir))
		return err
	}
	fmt.Fprintln(os.Stdout, reports.Terminal(e.bundle))
	fmt.Fprintf(os.Stdout, "The evidence: %s\nVerify it:    go tool assay verify %s\n", relative(e.dir), relative(e.dir))
	if c := e.Plan.Pairing; c != nil && c.Resume != nil && e.bundle.Summary.Status == "interrupted" {
		fmt.Fprintf(os.Stdout, "Go on with:   go tool assay run %s --resume %s --cause %s\n", relative(e.file), relative(e.dir), c.Resume.Causes[0])
	}
	return err
}

// relative is how a person at the module's root would write a path.
func relative(dir string) string {
	root, err := moduleRoot()
	if err != nil {
		return dir
	}
	if short, err := filepath.Rel(root, dir); err == nil && filepath.IsLocal(short) {
		return short
	}
	return dir
}

// writeJUnit writes the report of the plan's own specs, with what verification
// holds against the bundle as properties.
func (e *Experiment) writeJUnit(report ginkgo.Report) error {
	s := junit.Suite{
		Start: report.StartTime, Took: report.RunTime,
		Properties: [][2]string{{"assay.bundle", inCheckout(e.dir)}, {"assay.label_filter", report.SuiteConfig.LabelFilter}},
	}
	for _, spec := range report.SpecReports {
		if slices.Contains(spec.ContainerHierarchyTexts, e.Plan.Name) {
			s.Cases = append(s.Cases, e.junitCase(spec))
		}
	}
	data, err := reports.JUnit(e.dir, e.bundle, s)
	if err != nil {
		return err
	}
	return record.WriteFile(filepath.Join(e.dir, reports.JUnitFile), data)
}

// inCheckout is where a bundle is, from the module's root on; one that lies
// elsewhere has its name alone, since other paths are this machine's.
func inCheckout(dir string) string {
	if short := relative(dir); !filepath.IsAbs(short) {
		return filepath.ToSlash(short)
	}
	return filepath.Base(dir)
}

// junitCase is a spec as JUnit has it, without what must not enter a bundle.
func (e *Experiment) junitCase(spec types.SpecReport) junit.Case {
	spec = e.clean(spec)
	// Readers take dots for the ends of packages.
	c := junit.Case{
		Name: sentence(spec.ContainerHierarchyTexts, spec.LeafNodeText), Class: string(e.Plan.Experiment) + "." + strings.ReplaceAll(e.Plan.Name, ".", "_"),
		Took: spec.RunTime, Message: spec.Failure.Message, Kind: spec.State.String(),
	}
	var said []string
	for _, entry := range spec.ReportEntries {
		said = append(said, e.redact.Redact(entry.Name+": "+entry.StringRepresentation()))
	}
	c.Output = strings.Join(said, "\n")
	switch spec.State {
	case types.SpecStatePassed:
		return c
	case types.SpecStateSkipped, types.SpecStatePending:
		c.Outcome, c.Kind, c.Message = junit.Skipped, "", strings.TrimSuffix(c.Kind+": "+c.Message, ": ")
		return c
	case types.SpecStateFailed, types.SpecStateTimedout:
		c.Outcome = junit.Failed
	default: // it panicked, or was interrupted or given up
		c.Outcome = junit.Errored
		if spec.Failure.ForwardedPanic != "" {
			c.Message = spec.Failure.ForwardedPanic
		}
	}
	// The timeline names places in the source.
	c.Trace = strings.ReplaceAll(reporters.RenderTimeline(spec, true), builtIn(), "")
	return c
}

var lifecycleText = regexp.MustCompile(`^0*([0-9]+ of [0-9]+): ([^,]+)(?:, (.*))?$`)

// sentence is what a spec says, as a sentence: "vllm serves 8 clients, repeat 2 of
// 3 (lifecycle 1 of 6)".
func sentence(containers []string, text string) string {
	if len(containers) < 3 { // of the experiment, the plan, and what it is in
		return strings.TrimSpace(strings.Join(containers, " ") + " " + text)
	}
	in := strings.Join(containers[2:], " ")
	of := lifecycleText.FindStringSubmatch(in)
	if of == nil {
		return in + " " + text
	}
	where := "lifecycle " + of[1]
	if of[3] != "" {
		where += ", " + of[3]
	}
	return fmt.Sprintf("%s %s (%s)", of[2], text, where)
}

// clean blacks out of a spec's texts what must not enter a bundle.
func (e *Experiment) clean(s types.SpecReport) types.SpecReport {
	s.Failure.Message = e.redact.Redact(s.Failure.Message)
	s.Failure.Location, s.LeafNodeLocation = types.CodeLocation{}, types.CodeLocation{}
	s.Failure.ForwardedPanic = e.redact.Redact(s.Failure.ForwardedPanic)
	s.Failure.FailureNodeLocation = types.CodeLocation{}
	s.CapturedGinkgoWriterOutput = e.redact.Redact(s.CapturedGinkgoWriterOutput)
	s.AdditionalFailures = nil
	return s
}

// builtIn is the folder of the module where this suite was compiled, which may
// be on another machine, with a slash at its end.
func builtIn() string {
	_, here, _, _ := runtime.Caller(0)
	return strings.TrimSuffix(here, "suites/suite/junit.go")
}

// LaneVerdicts are [Experiment.Verdicts] of a lane.
func (e *Experiment) LaneVerdicts(lane plan.Lane) []string {
	var lines []string
	for _, c := range e.Evidence().Claims.InLane(lane) {
		lines = append(lines, fmt.Sprintf("%s: %s: %s", c.Claim, c.Verdict, c.Observation))
	}
	return lines
}

// Verdicts are short lines for the report entries of the judging specs, which
// JUnit keeps as properties.
func (e *Experiment) Verdicts(tier Tier) []string {
	return e.verdicts(func(c claim.Claim) bool { return c.Tier == tier.Clients })
}

func (e *Experiment) verdicts(of func(claim.Claim) bool) []string {
	var lines []string
	for _, c := range e.Evidence().Claims.Claims {
		if of(c) && c.Verdict != claim.NotApplicable {
			lines = append(lines, fmt.Sprintf("%s: %s", c.Verdict, c.Observation))
		}
	}
	return lines
}
