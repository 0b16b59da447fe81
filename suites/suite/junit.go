package suite

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// writeJUnit writes the report of the plan's own specs by Ginkgo's own writer,
// with what verification holds against the bundle as properties.
func (e *Experiment) writeJUnit(report ginkgo.Report) error {
	own := report
	own.SpecReports = slices.DeleteFunc(slices.Clone(report.SpecReports), func(s types.SpecReport) bool {
		return !slices.Contains(s.ContainerHierarchyTexts, e.Plan.Name)
	})
	own.SuiteDescription = string(e.Plan.Experiment) + ": " + e.Plan.Name
	own.SuitePath = "" // a path of this machine
	for i := range own.SpecReports {
		own.SpecReports[i] = e.clean(own.SpecReports[i])
	}
	path := filepath.Join(e.dir, reports.JUnitFile)
	if err := reporters.GenerateJUnitReportWithConfig(own, path, reporters.JunitReportConfig{OmitTimelinesForSpecState: types.SpecStatePassed, OmitLeafNodeType: true, OmitCapturedStdOutErr: true}); err != nil {
		return err
	}
	return e.addProperties(path)
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

// addProperties puts the bundle's properties first into the suite's, and takes
// out Ginkgo's own: they say how this process was called, by paths and seeds.
func (e *Experiment) addProperties(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var suites reporters.JUnitTestSuites
	if err := xml.Unmarshal(data, &suites); err != nil {
		return fmt.Errorf("the JUnit report that Ginkgo wrote can't be read back: %w", err)
	}
	for i := range suites.TestSuites {
		suite := &suites.TestSuites[i]
		suite.Package = ""
		kept := []reporters.JUnitProperty{}
		for _, p := range reports.Properties(e.dir, e.bundle.Summary) {
			kept = append(kept, reporters.JUnitProperty{Name: p[0], Value: p[1]})
		}
		for _, p := range suite.Properties.Properties {
			if p.Name == "LabelFilter" {
				kept = append(kept, p)
			}
		}
		suite.Properties.Properties = kept
	}
	data, err = xml.MarshalIndent(suites, "", "  ")
	if err != nil {
		return err
	}
	// The timeline of a failed spec names places in the source.
	data = bytes.ReplaceAll(data, []byte(builtIn()), nil)
	return record.WriteFile(path, append([]byte(xml.Header), append(data, '\n')...))
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
