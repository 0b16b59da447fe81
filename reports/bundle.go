package reports

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"assay/claim"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
)

// The files of a bundle that this package writes, beside package record's.
const (
	PlanFile    = record.PlanFile
	SummaryFile = "summary.json"
	ClaimsFile  = "claims.json"
	ReportFile  = "report.md"
	JUnitFile   = "junit.xml"
	SumsFile    = record.SumsFile
	// TasksFile has the texts of prompts that were made an exact length, by id.
	TasksFile = "tasks.json"
)

// EarlierJUnit is the name of the report of a run's n-th invocation, once a
// later one has gone on with it.
func EarlierJUnit(n int) string { return fmt.Sprintf("junit-%d.xml", n) }

// Bundle is a run's evidence with what is derived from it.
type Bundle struct {
	Plan    *plan.Plan
	Run     record.Run
	Summary metric.Summary
	Claims  claim.Document
}

// Derive computes everything that can be computed from a plan and records.
func Derive(p *plan.Plan, run record.Run) Bundle {
	return derive(p, run, metric.Check(p, run))
}

func derive(p *plan.Plan, run record.Run, findings []metric.Finding) Bundle {
	summary := metric.SummarizeFound(p, run, findings)
	return Bundle{Plan: p, Run: run, Summary: summary, Claims: claim.Judge(p, summary)}
}

// Write writes the derived files into the bundle's directory.
func (b Bundle) Write(dir string) error {
	files, err := b.derived()
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		errs = append(errs, record.WriteFile(filepath.Join(dir, f.name), f.data))
	}
	return errors.Join(errs...)
}

type file struct {
	name string
	data []byte
}

func (b Bundle) derived() ([]file, error) {
	summary, err := json.MarshalIndent(b.Summary, "", " ")
	if err != nil {
		return nil, fmt.Errorf("the summary is no JSON: %w", err)
	}
	claims, err := json.MarshalIndent(b.Claims, "", " ")
	if err != nil {
		return nil, fmt.Errorf("the claims are no JSON: %w", err)
	}
	files := []file{{SummaryFile, append(summary, '\n')}, {ClaimsFile, append(claims, '\n')}, {ReportFile, []byte(Markdown(b))}}
	drawings, err := figures(b)
	if err != nil {
		return nil, err
	}
	page, err := HTML(b)
	return append(append(files, drawings...), file{PageFile, page}), err
}

// Read reads a bundle's plan and records, and derives the rest anew. The error
// holds every fault met; the bundle holds what could be read all the same.
func Read(dir string) (Bundle, error) { return read(dir, new(record.Reader)) }

// ReadCondensed is [Read] for who makes a report of it: the requests lack their
// events, lags and token ids, see [metric.Condenser], so that a large bundle takes
// little memory.
func ReadCondensed(dir string) (Bundle, error) {
	return read(dir, &record.Reader{Request: new(metric.Condenser).Condense})
}

func read(dir string, reader *record.Reader) (Bundle, error) {
	p, err := plan.Load(filepath.Join(dir, PlanFile))
	if err != nil {
		return Bundle{}, err
	}
	if _, err := os.Stat(filepath.Join(dir, record.RequestsFile)); err != nil {
		return Bundle{}, err
	}
	if err := versions(dir); err != nil {
		return Bundle{}, err
	}
	run, err := reader.Read(dir)
	return Derive(p, run), err
}
