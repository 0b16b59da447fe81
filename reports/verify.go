package reports

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/reports/html"
	"assay/reports/junit"
	"assay/reports/signature"
	"assay/workloads"
)

// Verdict is what verification found: nothing, or each reason for which a
// bundle does not hold.
type Verdict struct {
	Reasons  []string
	Status   string // complete, partial, interrupted
	Validity metric.Validity
	// FailedSpecs are the specs of its JUnit report that did not pass, by name.
	// They take nothing from a bundle: it holds what they judged.
	FailedSpecs []string
	Signature   Signature
}

// Holds says that nothing was found.
func (v Verdict) Holds() bool { return len(v.Reasons) == 0 }

// Verify checks a bundle without any hardware: its sums, the schemas of its
// documents, the chains of its records and their heads, that every scheduled
// attempt is accounted for, what no honest run can break, that the summary, the
// claims and the report are those that its plan and records give, and that the
// logs are those that the records name. A file of it that is missing is a
// reason; the error says that the bundle could not be read at all. A signature of
// the sums is checked where there is one; whose it should be, an option says.
func Verify(dir string, options ...Option) (Verdict, error) {
	if info, err := os.Stat(dir); err != nil {
		return Verdict{}, fmt.Errorf("there is no bundle: %w", err)
	} else if !info.IsDir() {
		return Verdict{}, fmt.Errorf("%s is a file: name the bundle's directory", dir)
	}
	v := &verification{dir: dir, said: map[string]bool{}}
	for _, option := range options {
		option(v)
	}
	p, err := plan.Load(filepath.Join(dir, PlanFile))
	if err != nil {
		return Verdict{}, fmt.Errorf("the bundle has no plan that can be read: %w", err)
	}
	if err := versions(dir); err != nil {
		return Verdict{}, err
	}
	v.frozen(p)
	forms, err := newConformity()
	if err != nil {
		return Verdict{}, err
	}
	var sums []string
	var sumsErr error
	summed := make(chan struct{}) // meanwhile the records are read
	go func() {
		defer close(summed)
		sums, sumsErr = checkSums(dir)
	}()
	reader := record.Reader{Line: forms.hold, Request: new(metric.Condenser).Condense}
	run, err := v.records(&reader)
	if <-summed; sumsErr != nil || err != nil {
		return Verdict{}, cmp.Or(sumsErr, err)
	}
	v.first(sums)
	v.signed()
	v.schemas(forms)
	v.heads(run, reader.Sums)
	findings := metric.Check(p, run)
	v.invariants(findings)
	v.answers(p, run)
	v.entries(p, run)
	b := derive(p, run, findings)
	v.derived(b)
	v.junit(b)
	v.logs(run)
	if err := v.strangers(p, run); err != nil {
		return Verdict{}, err
	}
	return Verdict{Reasons: v.reasons, Status: b.Summary.Status, Validity: b.Summary.Validity, FailedSpecs: v.failedSpecs, Signature: v.signature}, nil
}

type verification struct {
	dir         string
	reasons     []string
	said        map[string]bool // of the reasons
	failedSpecs []string
	who         *signature.Who // nil: anybody, or nobody
	signature   Signature
}

func (v *verification) add(reasons ...string) {
	for _, r := range reasons {
		if r != "" && !v.said[r] {
			v.reasons, v.said[r] = append(v.reasons, r), true
		}
	}
}

// first puts reasons before those that were found already.
func (v *verification) first(reasons []string) {
	later := v.reasons
	v.reasons, v.said = nil, map[string]bool{}
	v.add(reasons...)
	v.add(later...)
}

func (v *verification) found(format string, args ...any) { v.add(fmt.Sprintf(format, args...)) }

func (v *verification) frozen(p *plan.Plan) {
	frozen, err := plan.Freeze(p)
	data, readErr := os.ReadFile(filepath.Join(v.dir, PlanFile))
	if err = errors.Join(err, readErr); err != nil {
		v.found("%s: %s", PlanFile, err)
	} else if !bytes.Equal(frozen.Bytes, data) {
		v.found("%s: it is not frozen: frozen, it would be other bytes", PlanFile)
	}
}

// evidence are the files that can't be computed anew.
var evidence = []string{record.EnvironmentFile, record.RequestsFile, record.WavesFile, record.LifecyclesFile}

// records reads the evidence. What is missing or no record is a reason; what
// the file system refuses is an error.
func (v *verification) records(reader *record.Reader) (record.Run, error) {
	for _, name := range evidence {
		if _, err := os.Stat(filepath.Join(v.dir, name)); errors.Is(err, fs.ErrNotExist) {
			v.found("%s: it is missing", name)
		}
	}
	run, err := reader.Read(v.dir)
	for _, fault := range parts(err) {
		var path *fs.PathError
		switch {
		case errors.Is(fault, fs.ErrNotExist): // said above
		case errors.As(fault, &path):
			return run, fmt.Errorf("the bundle can't be read: %w", fault)
		default:
			v.add(fault.Error())
		}
	}
	return run, nil
}

// parts are the errors that were joined, however deep.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, parts(e)...)
	}
	return out
}

// invariants are what no honest run can break. A run may say of itself that it
// is invalid, and its bundle holds: but never with records that contradict
// themselves.
func (v *verification) invariants(findings []metric.Finding) {
	more := map[string]int{}
	for _, f := range findings {
		if !f.ByServer && strange[f.Code] {
			more[f.Text]++
		}
	}
	for _, f := range findings {
		switch n := more[f.Text]; {
		case f.ByServer:
		case strange[f.Code] && n == 0: // said
		case strange[f.Code] && n > 1:
			v.found("%s (and so are %d more of the records)", f, n-1)
			more[f.Text] = 0
		default:
			v.add(f.String())
		}
	}
}

// strange are the findings that the records of another run have each, of which
// one says it all.
var strange = map[string]bool{"plan_sha256": true, "schedule_sha256": true, "schema": true}

// answers evaluates each answer of a crossover anew, and holds what each
// ordinal was asked against the tasks that the plan draws.
func (v *verification) answers(p *plan.Plan, run record.Run) {
	tasks, err := Tasks(p)
	if err != nil {
		v.found("the plan's tasks can't be drawn: %s", err)
		return
	}
	for _, r := range run.Requests {
		cycle := tasks[plan.Lane(r.Lane)]
		if len(cycle) == 0 || r.Ordinal < 1 {
			continue // no crossover, or told by the invariants
		}
		where := fmt.Sprintf("lifecycle %d, ordinal %d", r.Lifecycle, r.Ordinal)
		if want := workloads.Of(cycle, r.Ordinal).ID; r.PromptID != want {
			v.found("%s: it was asked %s, and the plan's task there is %s", where, r.PromptID, want)
		}
		correct, reason := Evaluate(p, tasks, r)
		if got, want := verdictOn(r.Correct), verdictOn(correct); got != want {
			v.found("%s: its answer is called %s, and its evaluator says %s", where, got, want)
		} else if correct == nil && r.Nulls["correct"] != reason {
			v.found("%s: correct is null since %q, and the reason is %q", where, r.Nulls["correct"], reason)
		}
	}
}

func verdictOn(correct *bool) string {
	switch {
	case correct == nil:
		return "null"
	case *correct:
		return "right"
	default:
		return "wrong"
	}
}

// heads checks that each lifecycle names the last lines that stood in the other
// two files when it ended, and how many of them were its own.
func (v *verification) heads(run record.Run, sums map[string][]record.Sum) {
	requests, waves := trailOf(sums[record.RequestsFile]), trailOf(sums[record.WavesFile])
	lastRequests, lastWaves := 0, 0
	ownRequests, ownWaves := map[int]int{}, map[int]int{} // by lifecycle
	for i := range run.Requests {
		ownRequests[run.Requests[i].Lifecycle]++
	}
	for i := range run.Waves {
		ownWaves[run.Waves[i].Lifecycle]++
	}
	for _, l := range run.Lifecycles {
		where := fmt.Sprintf("lifecycle %d", l.Number)
		at, ok := requests.at(l.RequestsHead)
		if !ok || at < lastRequests {
			v.found("%s: its requests_head is no line of %s that could have been the last then", where, record.RequestsFile)
		}
		lastRequests = at
		if at, ok = waves.at(l.WavesHead); !ok || at < lastWaves {
			v.found("%s: its waves_head is no line of %s that could have been the last then", where, record.WavesFile)
		}
		lastWaves = at
		if requests, waves := ownRequests[l.Number], ownWaves[l.Number]; l.Requests != requests || l.Waves != waves {
			v.found("%s: it had %d attempts and %d waves, and there are %d and %d", where, l.Requests, l.Waves, requests, waves)
		}
	}
	v.sampled(run, sums)
	if len(run.Lifecycles) > 0 && (lastRequests != len(requests) || lastWaves != len(waves)) {
		v.found("%s: the last lifecycle does not stand behind the last line of %s and %s", record.LifecyclesFile, record.RequestsFile, record.WavesFile)
	}
}

// sampled checks the same of what was looked at beside the load, where there is
// any: then the last lifecycle has the head of it.
func (v *verification) sampled(run record.Run, sums map[string][]record.Sum) {
	for _, f := range []struct {
		name string
		head func(record.Lifecycle) string
		any  bool
	}{
		{record.TelemetryFile, func(l record.Lifecycle) string { return l.TelemetryHead }, len(run.Telemetry) > 0},
		{record.EngineMetricsFile, func(l record.Lifecycle) string { return l.EngineMetricsHead }, len(run.EngineMetrics) > 0},
	} {
		lines, last := trailOf(sums[f.name]), 0
		for _, l := range run.Lifecycles {
			head := f.head(l)
			if head == "" && last == 0 {
				continue // nothing had been looked at yet
			}
			at, ok := lines.at(head)
			if !ok || at < last {
				v.found("lifecycle %d: its head of %s is no line of it that could have been the last then", l.Number, f.name)
			}
			last = max(last, at)
		}
		if f.any && len(run.Lifecycles) > 0 && last != len(lines) {
			v.found("%s: the last lifecycle does not stand behind the last line of %s", record.LifecyclesFile, f.name)
		}
	}
}

// trail maps the SHA-256 of each line of a file to its number, from 1.
type trail map[record.Sum]int

func trailOf(sums []record.Sum) trail {
	t := make(trail, len(sums))
	for i, sum := range sums {
		t[sum] = i + 1
	}
	return t
}

// at is the number of the line that a head names; that of the chain's beginning
// is 0.
func (t trail) at(head string) (int, bool) {
	if head == record.Genesis {
		return 0, true
	}
	var sum record.Sum
	if data, err := hex.DecodeString(head); err != nil || copy(sum[:], data) != len(sum) || sum.String() != head {
		return 0, false
	}
	number, is := t[sum]
	return number, is
}

// headOf is the SHA-256 of the last line of a chained file, and the chain's
// beginning where there is none.
func headOf(dir, name string) string {
	file, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return record.Genesis
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	for length := int64(1 << 16); err == nil; length *= 4 {
		from := max(0, size-length)
		tail := make([]byte, size-from)
		if _, err = file.ReadAt(tail, from); err != nil {
			break
		}
		tail = bytes.TrimRight(tail, "\n")
		at := bytes.LastIndexByte(tail, '\n')
		if at < 0 && from > 0 {
			continue
		}
		if len(tail) > 0 {
			return record.LineSHA256(tail[at+1:])
		}
		break
	}
	return record.Genesis
}

// derived computes summary, claims and report anew and compares every value.
func (v *verification) derived(b Bundle) {
	files, err := b.derived()
	if err != nil {
		v.found("the summary can't be computed anew: %s", err)
		return
	}
	said := saidOf(v.dir)
	if n := said.Contract; n != nil && *n != metric.Contract {
		v.found("%s: its numbers are by version %d of the metric contract, and this program computes version %d: verify it with a program of that version", SummaryFile, *n, metric.Contract)
		return
	}
	if said.Environment != "" && said.Environment != b.Summary.EnvironmentSHA256 {
		v.found("%s: it is not the one that %s was computed with", record.EnvironmentFile, SummaryFile)
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(v.dir, f.name))
		switch {
		case errors.Is(err, fs.ErrNotExist) && f.name == PageFile: // from before there was one
		case errors.Is(err, fs.ErrNotExist):
			v.found("%s: it is missing", f.name)
		case err != nil:
			v.found("%s: %s", f.name, err)
		case bytes.Equal(data, f.data):
		case f.name == PageFile:
			v.add(pageDifference(f.name, data, f.data))
		case strings.HasSuffix(f.name, ".json"):
			v.add(jsonDifference(f.name, data, f.data))
		case strings.HasSuffix(f.name, ".svg"):
			v.add(figureDifference(f.name, data, f.data, figureTolerance))
		default:
			v.add(textDifference(f.name, data, f.data))
		}
	}
}

// said is what a bundle's summary says of its own making.
type said struct {
	Contract    *int   `json:"metric_contract"`
	Environment string `json:"environment_sha256"`
}

// saidOf is empty where there is no summary that could say it: then the
// comparison of the whole says so.
func saidOf(dir string) said {
	var s said
	data, err := os.ReadFile(filepath.Join(dir, SummaryFile))
	if err != nil || json.Unmarshal(data, &s) != nil {
		return said{}
	}
	return s
}

func jsonDifference(name string, got, want []byte) string {
	var g, w any
	if err := json.Unmarshal(got, &g); err != nil {
		return fmt.Sprintf("%s: no JSON: %s", name, err)
	}
	if err := json.Unmarshal(want, &w); err != nil {
		return fmt.Sprintf("%s: computed anew, it is no JSON: %s", name, err)
	}
	if path, a, b, ok := diverge("", g, w); ok {
		return fmt.Sprintf("%s: %s is %s, and the records give %s", name, path, a, b)
	}
	return "" // the same values, written otherwise
}

// diverge finds the first place at which two JSON values differ.
func diverge(path string, got, want any) (string, string, string, bool) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return path, compact(got), compact(want), true
		}
		keys := map[string]bool{}
		for k := range w {
			keys[k] = true
		}
		for k := range g {
			keys[k] = true
		}
		sorted := make([]string, 0, len(keys))
		for k := range keys {
			sorted = append(sorted, k)
		}
		slices.Sort(sorted)
		for _, k := range sorted {
			gv, inG := g[k]
			wv, inW := w[k]
			if !inG || !inW {
				return path + "." + k, presence(gv, inG), presence(wv, inW), true
			}
			if p, a, b, ok := diverge(path+"."+k, gv, wv); ok {
				return p, a, b, true
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok {
			return path, compact(got), compact(want), true
		}
		for i := range min(len(g), len(w)) {
			if p, a, b, ok := diverge(fmt.Sprintf("%s[%d]", path, i), g[i], w[i]); ok {
				return p, a, b, true
			}
		}
		if len(g) != len(w) {
			return path, fmt.Sprintf("a list of %d", len(g)), fmt.Sprintf("a list of %d", len(w)), true
		}
	default:
		if got != want {
			return path, compact(got), compact(want), true
		}
	}
	return "", "", "", false
}

func presence(v any, is bool) string {
	if !is {
		return "absent"
	}
	return compact(v)
}

func compact(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(data) > 120 {
		return string(data[:120]) + "…"
	}
	return string(data)
}

// What no eye can see of a place on the paper: of a figure, which has it exactly,
// and of a page, which has tenths.
const (
	figureTolerance = 0.01
	pageTolerance   = 0.11
)

// figureDifference compares two drawings: their words exactly, their numbers to
// what no eye can see, since machines round the last digit of a place on the
// paper differently.
func figureDifference(name string, got, want []byte, tolerance float64) string {
	number := regexp.MustCompile(`-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?`)
	const blank = "#"
	if number.ReplaceAllString(string(got), blank) != number.ReplaceAllString(string(want), blank) {
		return fmt.Sprintf("%s: it is not the figure that the records give", name)
	}
	g, w := number.FindAllString(string(got), -1), number.FindAllString(string(want), -1)
	for i := range w {
		a, errA := strconv.ParseFloat(g[i], 64)
		b, errB := strconv.ParseFloat(w[i], 64)
		if errA != nil || errB != nil || math.Abs(a-b) > tolerance {
			return fmt.Sprintf("%s: it has %s where the records give %s", name, g[i], w[i])
		}
	}
	return ""
}

// places are the attributes of a drawing in which machines may round otherwise.
var places = regexp.MustCompile(` (d|x|y|viewBox)="[^"]*"`)

// pageDifference compares two pages: their words and numbers exactly, the places
// on the paper as those of a figure.
func pageDifference(name string, got, want []byte) string {
	const blank = " #"
	g, w := places.ReplaceAll(got, []byte(blank)), places.ReplaceAll(want, []byte(blank))
	if !bytes.Equal(g, w) {
		if !bytes.Contains(got, []byte(`content="`+html.Version+`"`)) {
			return fmt.Sprintf("%s: it is no page of version %s, which this program makes: verify it with the program that made it, or make it again (assay report --html)", name, html.Version)
		}
		const around = 40
		at := 0
		for at < min(len(g), len(w)) && g[at] == w[at] {
			at++
		}
		said := func(text []byte) []byte { return text[min(max(at-around, 0), len(text)):min(at+around, len(text))] }
		return fmt.Sprintf("%s: it says %q, and the records give %q", name, said(g), said(w))
	}
	return figureDifference(name, bytes.Join(places.FindAll(got, -1), nil), bytes.Join(places.FindAll(want, -1), nil), pageTolerance)
}

func textDifference(name string, got, want []byte) string {
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("%s:%d: it says %q, and the records give %q", name, i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%s: it has %d lines, and the records give %d", name, len(g), len(w))
}

// Properties are what junit.xml carries of the bundle that it lies in.
func Properties(dir string, s metric.Summary) [][2]string {
	valid := "valid"
	if !s.Validity.Valid {
		valid = "invalid"
	}
	return [][2]string{
		{"assay.plan_sha256", s.PlanSHA256}, {"assay.schedule_sha256", s.ScheduleSHA256}, {"assay.run", s.Run},
		{"assay.status", s.Status}, {"assay.validity", valid},
		{"assay.requests_head", headOf(dir, record.RequestsFile)},
		{"assay.waves_head", headOf(dir, record.WavesFile)},
		{"assay.lifecycles_head", headOf(dir, record.LifecyclesFile)},
	}
}

// junit checks the heads that junit.xml carries.
func (v *verification) junit(b Bundle) {
	data, err := os.ReadFile(filepath.Join(v.dir, JUnitFile))
	if errors.Is(err, fs.ErrNotExist) {
		// A run that was stopped may not have come so far.
		if b.Summary.Status != "interrupted" {
			v.found("%s: it is missing", JUnitFile)
		}
		return
	}
	var suites struct {
		Suites []struct {
			Properties []struct {
				Name  string `xml:"name,attr"`
				Value string `xml:"value,attr"`
			} `xml:"properties>property"`
			Cases []struct {
				Name    string    `xml:"name,attr"`
				Status  string    `xml:"status,attr"` // only in older ones
				Failure *struct{} `xml:"failure"`
				Error   *struct{} `xml:"error"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err == nil {
		err = xml.Unmarshal(data, &suites)
	}
	if err != nil {
		v.found("%s: %s", JUnitFile, err)
		return
	}
	said := map[string]string{}
	for _, s := range suites.Suites {
		for _, p := range s.Properties {
			said[p.Name] = p.Value
		}
		for _, c := range s.Cases {
			if c.Failure != nil || c.Error != nil || !slices.Contains([]string{"", "passed", "skipped", "pending"}, c.Status) {
				v.failedSpecs = append(v.failedSpecs, c.Name)
			}
		}
	}
	want := Properties(v.dir, b.Summary)
	if said["assay.junit"] != "" { // older ones carry less
		want = append(want, more(b)...)
		for _, fault := range parts(junit.Check(data)) {
			v.found("%s: %s", JUnitFile, fault)
		}
	}
	for _, p := range want {
		if said[p[0]] != p[1] {
			v.found("%s: %s is %q, and the bundle has %q", JUnitFile, p[0], said[p[0]], p[1])
		}
	}
}

// logs checks that each lifecycle's log is there as it was kept: a lifecycle's
// record, which is chained, has its SHA-256.
func (v *verification) logs(run record.Run) {
	for _, l := range run.Lifecycles {
		if l.Log == nil {
			continue
		}
		name := record.LogsDir + "/" + l.Log.File
		data, err := os.ReadFile(filepath.Join(v.dir, record.LogsDir, filepath.Base(l.Log.File)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			v.found("%s: it is missing", name)
		case err != nil:
			v.found("%s: %s", name, err)
		case bytes.Count(data, []byte("\n")) != l.Log.Lines:
			v.found("%s: it has %d lines, and the lifecycle counted %d", name, bytes.Count(data, []byte("\n")), l.Log.Lines)
		case l.Log.KeptSHA256 != "" && record.LineSHA256(data) != l.Log.KeptSHA256:
			v.found("%s: it is not the log that lifecycle %d kept: its SHA-256 is another", name, l.Number)
		}
	}
}

// strangers names every file that no bundle of this run has.
func (v *verification) strangers(p *plan.Plan, run record.Run) error {
	known := append(slices.Clone(evidence), TasksFile, PlanFile, SummaryFile, ClaimsFile, ReportFile, PageFile, JUnitFile)
	if p.Telemetry != nil {
		known = append(known, record.TelemetryFile, record.EngineMetricsFile)
	}
	for _, lane := range []plan.Lane{plan.Fixed, plan.Natural} {
		known = append(known, curveFile(lane))
	}
	if p.Experiment == plan.Concurrency {
		known = append(known, goodputFile)
	}
	if p.Arrivals != nil {
		known = append(known, ttftFile)
	}
	known = append(known, entriesFiles(p)...)
	if p.Pairing != nil && p.Pairing.Fitted() {
		known = append(known, fmt.Sprintf("%s/00-%s.log", record.LogsDir, p.WithRole(plan.Baseline).Name))
	}
	for i := range run.Environment.Invocations {
		known = append(known, EarlierJUnit(i+1))
	}
	for _, l := range run.Lifecycles {
		if l.Log != nil {
			known = append(known, record.LogsDir+"/"+l.Log.File)
		} else if l.Executed > 0 {
			// Its process was killed: no record could name the log.
			known = append(known, fmt.Sprintf("%s/%02d-%s.log", record.LogsDir, l.Number, l.Arm))
		}
	}
	if len(run.Environment.Invocations) > 0 {
		for _, name := range record.Chained {
			known = append(known, record.CutOff(name))
		}
	}
	files, err := list(v.dir)
	for _, name := range files {
		if !slices.Contains(known, name) {
			v.found("%s: it is no file of this bundle", name)
		}
	}
	return err
}
