package suite

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/reporters"
	"github.com/onsi/ginkgo/v2/types"

	"assay/claim"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/reports"
)

// Run is the run's evidence with everything that is derived from it. The first
// call closes the records: what has not run by then is written down as such.
func (e *Experiment) Run() reports.Bundle {
	ginkgo.GinkgoHelper()
	if e.store == nil {
		ginkgo.Skip("no lifecycle was started, so there is nothing to judge")
	}
	if err := e.finish(); err != nil {
		ginkgo.Fail(err.Error())
	}
	return e.bundle
}

// At is the population of an arm at a tier, over all repeats.
func (e *Experiment) At(role plan.Role, tier Tier) record.Population {
	ginkgo.GinkgoHelper()
	return e.Run().Run.At(e.Plan.WithRole(role).Name, tier.Clients)
}

// finish writes down what did not run, derives the rest and writes it, once.
func (e *Experiment) finish() error {
	if e.finished {
		return e.finishErr
	}
	e.finished = true
	have := map[int]bool{}
	for _, l := range e.kept.Lifecycles {
		have[l.Number] = true
	}
	for _, place := range e.Schedule.Lifecycles {
		if !have[place.Number] {
			e.finishErr = errors.Join(e.finishErr, e.absent(place))
		}
	}
	e.bundle = reports.Derive(e.Plan, e.kept)
	e.finishErr = errors.Join(e.finishErr, e.bundle.Write(e.dir))
	return e.finishErr
}

// absent writes down a lifecycle that was never started.
func (e *Experiment) absent(place plan.Lifecycle) error {
	status, reason := "not_selected", fmt.Sprintf("the label filter %q did not select it", e.filter)
	if e.stopped != "" || e.filter == "" {
		status, reason = "not_run", "the run was stopped before it"
		if why, ok := e.unstarted[place.Number]; ok {
			reason = why
		}
	} else if why, ok := e.unstarted[place.Number]; ok {
		status, reason = "not_run", why
	}
	err := e.keepAbsent(place, status, reason)
	r := record.Lifecycle{
		Number: place.Number, Pair: place.Pair, Position: place.Position, Arm: place.Arm, Engine: e.Plan.Arm(place.Arm).Engine.Kind(),
		Status: status, Error: reason, TimeScale: e.Plan.TimeScale, Waves: len(place.Waves),
		Moments: []record.Moment{}, Identity: map[string]record.Fact{}, Caches: map[string]record.Fact{},
		Nulls: map[string]string{"exit": reason, "log": reason, "identity": reason},
	}
	r, appendErr := e.store.AppendLifecycle(r)
	e.kept.Lifecycles = append(e.kept.Lifecycles, r)
	return errors.Join(err, appendErr)
}

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
	err := errors.Join(e.finish(), e.writeJUnit(report), e.store.Close())
	// A bundle is sealed whatever happened: what is in it is evidence too.
	err = errors.Join(err, reports.Seal(e.dir))
	fmt.Fprintln(os.Stdout, reports.Terminal(e.bundle))
	fmt.Fprintf(os.Stdout, "The evidence: %s\nVerify it:    go tool assay verify %s\n", relative(e.dir), relative(e.dir))
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
		return fmt.Errorf("Ginkgo's JUnit report can't be read back: %w", err)
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
	return record.WriteFile(path, append([]byte(xml.Header), append(data, '\n')...))
}

// Verdicts are short lines for the report entries of the judging specs, which
// JUnit keeps as properties.
func (e *Experiment) Verdicts(tier Tier) []string {
	var lines []string
	for _, c := range e.Run().Claims.Claims {
		if c.Tier == tier.Clients && c.Verdict != claim.NotApplicable {
			lines = append(lines, fmt.Sprintf("%s: %s", c.Verdict, c.Observation))
		}
	}
	return lines
}
