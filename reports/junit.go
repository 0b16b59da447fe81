package reports

import (
	"fmt"
	"strconv"

	"assay/harness/metric"
	"assay/harness/record"
	"assay/reports/junit"
)

// JUnitVersion is that of junit.xml: which properties it carries, beside those
// that it always did.
const JUnitVersion = "assay.junit/v1"

// JUnit is junit.xml: a suite's specs, with what its bundle holds as properties,
// and after them those of the suite itself.
func JUnit(dir string, b Bundle, s junit.Suite) ([]byte, error) {
	base, cand := names(b)
	s.Name = fmt.Sprintf("%s: %s against %s (%s)", b.Plan.Experiment, cand, base, b.Plan.Name)
	own := s.Properties
	s.Properties = append(Properties(dir, b.Summary), more(b)...)
	s.Properties = append(s.Properties, own...)
	return s.Write()
}

// more are the properties of version 1.
func more(b Bundle) [][2]string {
	s := b.Summary
	out := [][2]string{
		{"assay.junit", JUnitVersion}, {"assay.provenance", string(s.Provenance)}, {"assay.validity_says", record.Line(validity(b))},
		{"assay.claims", record.Line(claimVerdict(b.Claims.Claims))}, {"assay.revision", record.Line(fact(b, "revision"))},
	}
	for _, l := range s.Lifecycles {
		if l.Executed == 0 {
			continue
		}
		at := fmt.Sprintf("assay.lifecycle.%d.", l.Number)
		out = append(out, [2]string{at + "arm", record.Line(l.Arm)}, [2]string{at + "status", l.Status},
			[2]string{at + "initialization_s", thousandths(l.Initialization)}, [2]string{at + "request_phase_s", thousandths(l.RequestPhase)},
			[2]string{at + "host_s", thousandths(l.Host)})
	}
	return out
}

// thousandths are a time's seconds, or why it is null.
func thousandths(v metric.Value) string {
	if v.Value == nil {
		return "null: " + record.Line(v.Reason)
	}
	return strconv.FormatFloat(*v.Value, 'f', 3, 64)
}

// fact is one of the environment, or that it is null with the reason.
func fact(b Bundle, name string) string {
	f, ok := b.Run.Environment.Facts[name]
	if !ok || f.Value == nil {
		return "null (" + f.Reason + ")"
	}
	return fmt.Sprint(f.Value)
}
