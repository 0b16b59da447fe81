package comparison

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
)

// Run is one of two runs that are compared.
type Run struct {
	Bundle  string // as it was named; empty: it lies in no bundle yet
	Sums    string // SHA-256 of its SHA256SUMS; empty: it has none
	Plan    *plan.Plan
	Records record.Run
	Summary metric.Summary
	// Against is what a verification of its bundle found; none: it holds, or
	// nobody looked.
	Against []string
}

// Open reads a bundle's plan and records. It checks the chains of the records
// and no more: whether the bundle holds is for assay verify to say. The error
// says everything that could not be read.
func Open(dir string) (Run, error) {
	r := Run{Bundle: dir}
	p, planErr := plan.Load(filepath.Join(dir, record.PlanFile))
	var missing []error
	for _, name := range []string{record.RequestsFile, record.WavesFile, record.LifecyclesFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			missing = append(missing, err)
		}
	}
	if err := errors.Join(append(missing, planErr)...); err != nil {
		return r, fmt.Errorf("%s is no bundle that can be compared: %w; name the directory of one", dir, err)
	}
	// The numbers need no single event.
	records, err := (&record.Reader{Request: new(metric.Condenser).Condense}).Read(dir)
	if err != nil {
		return r, fmt.Errorf("%s can't be read whole: %w; go tool assay verify says more", dir, err)
	}
	sums, err := os.ReadFile(filepath.Join(dir, record.SumsFile))
	if err == nil {
		sum := sha256.Sum256(sums)
		r.Sums = hex.EncodeToString(sum[:])
	} else if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	r.Plan, r.Records, r.Summary = p, records, metric.Summarize(p, records)
	return r, nil
}

func (r Run) subject() Subject {
	s := Subject{Bundle: r.Bundle, Run: record.Line(r.Summary.Run), Plan: record.Line(r.Plan.Name), PlanSHA256: r.Summary.PlanSHA256, SumsSHA256: r.Sums}
	if v := r.Records.Environment.Facts["revision"].Value; v != nil {
		s.Revision = record.Line(fmt.Sprint(v))
	}
	return s
}

// Metrics are the numbers that are compared, by the names that a person chooses
// them with. TTFT is over all attempts, failures right-censored, TPOT over ok
// attempts.
var Metrics = []string{"goodput", "ttft_p50", "ttft_p95", "tpot_p50", "failure_rate"}

// titles are what tables call them.
var titles = map[string]string{
	"goodput": "goodput", "ttft_p50": "p50 TTFT", "ttft_p95": "p95 TTFT", "tpot_p50": "p50 TPOT", "failure_rate": "failure rate",
}

func valueOf(a metric.AtTier, name string) metric.Value {
	switch name {
	case "goodput":
		return a.Goodput
	case "ttft_p50":
		return a.TTFT50
	case "ttft_p95":
		return a.TTFT95
	case "tpot_p50":
		return a.TPOT50
	default:
		return a.FailureRate
	}
}

// CheckMetrics says each name that is none of [Metrics], or stands twice.
func CheckMetrics(names []string) error {
	var errs []error
	for i, name := range names {
		if !slices.Contains(Metrics, name) {
			errs = append(errs, fmt.Errorf("there is no metric %q to compare: there are %s", name, strings.Join(Metrics, ", ")))
		} else if slices.Contains(names[:i], name) {
			errs = append(errs, fmt.Errorf("the metric %s is named twice", name))
		}
	}
	return errors.Join(errs...)
}

// Runs compares two runs by the metrics that are named, or all of [Metrics] if
// none is. Runs that can't be compared give a comparison that says so, with
// every reason; the error is of options that can't be meant.
func Runs(old, later Run, metrics []string, o Options) (Comparison, error) {
	if len(metrics) == 0 {
		metrics = Metrics
	}
	if err := errors.Join(o.Check(), CheckMetrics(metrics)); err != nil {
		return Comparison{}, err
	}
	against := slices.Concat(unfit("old", old), unfit("new", later), apart(old, later))
	var c Comparison
	if len(against) > 0 {
		c = Refused(against, o)
	} else {
		var err error
		if c, err = Of(seriesOf(old, later, metrics), o); err != nil {
			return Comparison{}, err
		}
	}
	c.Old, c.New = old.subject(), later.subject()
	c.Differences = differences(old, later)
	return c, nil
}

// mostReasons is how many reasons of one kind are told; the rest are counted.
const mostReasons = 8

func few(all []string) []string {
	if more := len(all) - mostReasons; more > 0 {
		return append(slices.Clone(all[:mostReasons]), fmt.Sprintf("and %d more", more))
	}
	return all
}

// unfit is why a run can't be compared with any other.
func unfit(which string, r Run) []string {
	var out []string
	say := func(format string, args ...any) {
		out = append(out, record.Line(which+": "+fmt.Sprintf(format, args...)))
	}
	if r.Plan.Experiment != plan.Concurrency {
		say("it is of a %s experiment: only concurrency is compared yet", r.Plan.Experiment)
		return out
	}
	for _, reason := range few(r.Against) {
		say("it does not hold: %s", reason)
	}
	switch r.Summary.Status {
	case "complete":
	case "partial":
		say("it is partial: a label filter selected a part of the plan; run all of it")
	default:
		say("it is %s: run it to its end", r.Summary.Status)
	}
	if !r.Summary.Validity.Valid {
		for _, reason := range few(r.Summary.Validity.Reasons) {
			say("it is invalid: %s", reason)
		}
	}
	return out
}

// apart is why two runs can't be compared with each other.
func apart(old, later Run) []string {
	var out []string
	if a, b := old.Summary.Provenance, later.Summary.Provenance; a != b {
		out = append(out, fmt.Sprintf("one of the two is emulated and the other is not: old is %s, new is %s", a, b))
	}
	if a, b := old.Records.EntriesSHA256, later.Records.EntriesSHA256; a != b {
		out = append(out, fmt.Sprintf("they were asked other entries: the SHA-256 of old's is %s, that of new's %s", short(a), short(b)))
	}
	for _, d := range planDifferences(old.Plan, later.Plan) {
		if d.decides() {
			out = append(out, "the plans ask for other things: "+d.String())
		}
	}
	return few(out)
}

func seriesOf(old, later Run, metrics []string) []Series {
	type key struct {
		arm  string
		tier int
	}
	by := func(r Run) map[key][]metric.AtTier {
		out := map[key][]metric.AtTier{}
		for _, a := range metric.ByLifecycle(r.Plan, r.Records) {
			k := key{a.Arm, a.Tier}
			out[k] = append(out[k], a)
		}
		return out
	}
	before, after := by(old), by(later)
	var out []Series
	for _, tier := range old.Plan.Sweep.Tiers {
		for _, arm := range old.Plan.Arms {
			k := key{arm.Name, tier}
			for _, name := range metrics {
				out = append(out, Series{
					Where: record.Clients(tier), Arm: arm.Name, Metric: titles[name], Unit: valueOf(metric.AtTier{}, name).Unit,
					Old: sample(before[k], name), New: sample(after[k], name),
				})
				s := &out[len(out)-1]
				for _, a := range slices.Concat(before[k], after[k]) {
					s.Unit = valueOf(a, name).Unit
				}
			}
		}
	}
	return out
}

// sample is a metric of each lifecycle, or the first reason for which it can't
// be compared: one lifecycle without it would leave the better ones.
func sample(of []metric.AtTier, name string) Sample {
	var s Sample
	for _, a := range of {
		v := valueOf(a, name)
		switch {
		case v.Value == nil:
			return Sample{Reason: fmt.Sprintf("lifecycle %d has none: %s", a.Lifecycle, record.Line(v.Reason))}
		case v.AtLeast:
			return Sample{Reason: fmt.Sprintf("in lifecycle %d it is only known to be at least %s s, since %d of %d attempts were cut short", a.Lifecycle, digits(*v.Value), v.Censored, v.N)}
		}
		s.Values = append(s.Values, *v.Value)
	}
	return s
}

func short(hash string) string {
	if hash == "" {
		return "none"
	}
	return fmt.Sprintf("%.12s…", hash)
}
