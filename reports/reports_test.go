package reports_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"assay/golden"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/harness/record/recordtest"
	"assay/reports"
	junitpkg "assay/reports/junit"
)

// failing times out two of the four attempts at the baseline's upper tier.
func failing(r record.Request) bool { return r.Arm == "naive" && r.Tier == 4 && r.Ordinal > 2 }

// bundle writes a whole bundle of a fixture run, sealed.
func bundle(t *testing.T, p *plan.Plan, o recordtest.Options) string {
	t.Helper()
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "bundle")
	g.Expect(written(t, dir, p, recordtest.Run(p, o))).NotTo(BeEmpty())
	return dir
}

// written writes records as a run would have, and everything that is derived
// from them: chains, heads, summary, claims, report, JUnit, sums.
func written(t *testing.T, dir string, p *plan.Plan, run record.Run) string {
	t.Helper()
	g := NewWithT(t)
	run, err := recordtest.Write(dir, p, run)
	g.Expect(err).NotTo(HaveOccurred())
	b := reports.Derive(p, run)
	g.Expect(b.Write(dir)).To(Succeed())
	junit(t, dir, b)
	g.Expect(reports.Seal(dir)).To(Succeed())
	return dir
}

func junit(t *testing.T, dir string, b reports.Bundle) {
	t.Helper()
	var out strings.Builder
	out.WriteString("<testsuites><testsuite><properties>")
	for _, p := range reports.Properties(dir, b.Summary) {
		fmt.Fprintf(&out, "<property name=%q value=%q/>", p[0], p[1])
	}
	out.WriteString("</properties></testsuite></testsuites>\n")
	NewWithT(t).Expect(os.WriteFile(filepath.Join(dir, reports.JUnitFile), []byte(out.String()), 0o644)).To(Succeed())
}

func TestAnHonestBundleHolds(t *testing.T) {
	for name, test := range map[string]struct {
		p      *plan.Plan
		o      recordtest.Options
		status string
		valid  bool
	}{
		"clean":         {recordtest.Plan(), recordtest.Options{}, "complete", true},
		"with failures": {recordtest.Plan(), recordtest.Options{Fails: failing}, "complete", true},
		"scaled":        {recordtest.Plan("seed: 7", "seed: 7\ntime_scale: 20"), recordtest.Options{}, "complete", true},
		"partial":       {recordtest.Plan(), recordtest.Options{Selected: func(tier int) bool { return tier == 4 }}, "partial", true},
		"six pairs":     {recordtest.Plan("lifecycles: 1", "lifecycles: 6"), recordtest.Options{}, "complete", true},
		"with warm-up":  {recordtest.Plan("lifecycles: 1", "lifecycles: 1, warmup: 2"), recordtest.Options{}, "complete", true},
		"stopped":       {recordtest.Plan("lifecycles: 1", "lifecycles: 2"), recordtest.Options{Stopped: func(lifecycle, wave int) bool { return lifecycle == 2 && wave == 3 }}, "interrupted", false},
		"half served":   {recordtest.Plan(), recordtest.Options{Fails: failing, Partial: func(record.Request) int { return 2 }}, "complete", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v, err := reports.Verify(bundle(t, test.p, test.o))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(v.Reasons).To(BeEmpty())
			g.Expect(v.Validity.Valid).To(Equal(test.valid), "%v", v.Validity.Reasons)
			g.Expect(v.Status).To(Equal(test.status))
		})
	}
}

// watched writes a bundle of a run whose GPU and engine were looked at.
func watched(t *testing.T) string {
	t.Helper()
	p := recordtest.WatchedPlan("engine_ttft: 1ms, engine_tokens: 0%")
	run := recordtest.Run(p, recordtest.Options{})
	recordtest.Look(&run, 2)
	return written(t, filepath.Join(t.TempDir(), "bundle"), p, run)
}

func TestWhatWasSeenBesideTheLoadIsPartOfABundle(t *testing.T) {
	g := NewWithT(t)
	dir := watched(t)
	v, err := reports.Verify(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(BeEmpty())
	g.Expect(v.Validity.Valid).To(BeTrue(), "%v", v.Validity.Reasons)
	report, err := os.ReadFile(filepath.Join(dir, reports.ReportFile))
	g.Expect(err).NotTo(HaveOccurred())
	_, text, _ := strings.Cut(string(report), "## Beside the load\n")
	text, _, _ = strings.Cut(text, "\n## ")
	golden.Hold(t, "beside.md", strings.TrimSpace(text)+"\n")

	for _, c := range []struct{ file, old, new, says string }{
		{record.TelemetryFile, "300000", "100000", "the chain is broken"},
		{record.EngineMetricsFile, `"count":71`, `"count":70`, "the chain is broken"},
	} {
		dir := watched(t)
		replace(t, dir, c.file, c.old, c.new)
		g.Expect(reports.Seal(dir)).To(Succeed()) // whoever edits it makes new sums, too
		v, err := reports.Verify(dir)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(strings.Join(v.Reasons, "\n")).To(ContainSubstring(c.says), c.file)
	}
	for _, name := range []string{record.TelemetryFile, record.EngineMetricsFile} {
		dir := watched(t)
		g.Expect(os.Remove(filepath.Join(dir, name))).To(Succeed())
		g.Expect(reports.Seal(dir)).To(Succeed())
		v, err := reports.Verify(dir)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(strings.Join(v.Reasons, "\n")).To(ContainSubstring("its head of " + name + " is no line of it"))
	}
}

// lines edits a JSONL file's lines.
func lines(t *testing.T, dir, name string, edit func([]string) []string) {
	t.Helper()
	path := filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	out := edit(strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"))
	NewWithT(t).Expect(os.WriteFile(path, []byte(strings.Join(out, "\n")+"\n"), 0o644)).To(Succeed())
}

// replace changes a text in a file, which must be there.
func replace(t *testing.T, dir, name, old, new string) {
	t.Helper()
	path := filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(string(data)).To(ContainSubstring(old))
	NewWithT(t).Expect(os.WriteFile(path, bytes.Replace(data, []byte(old), []byte(new), 1), 0o644)).To(Succeed())
}

// rechain gives every line of a file the right previous_sha256 again, as
// somebody would who knows how.
func rechain(lines []string) []string {
	head := record.Genesis
	for i, line := range lines {
		var v map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			panic(err)
		}
		old := string(v["previous_sha256"])
		lines[i] = strings.Replace(line, `"previous_sha256":`+old, fmt.Sprintf(`"previous_sha256":%q`, head), 1)
		head = record.LineSHA256([]byte(lines[i]))
	}
	return lines
}

func TestEveryTamperingIsNamed(t *testing.T) {
	type tampering struct {
		name string
		do   func(t *testing.T, dir string)
		says string // with sums made anew
	}
	whole := bundle(t, recordtest.Plan(), recordtest.Options{Fails: failing})
	requests := func(edit func([]string) []string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { lines(t, dir, record.RequestsFile, edit) }
	}
	for _, test := range []tampering{
		{"a record changed", requests(func(l []string) []string {
			l[3] = strings.Replace(l[3], `"outcome":"timeout"`, `"outcome":"ok"`, 1)
			l[5] = strings.Replace(l[5], `"tier":4`, `"tier":1`, 1)
			return l
		}), "requests.jsonl:"},
		{"the last record changed", requests(func(l []string) []string {
			l[len(l)-1] = strings.Replace(l[len(l)-1], `"received_bytes":2000`, `"received_bytes":2001`, 1)
			return l
		}), "lifecycle 2: its requests_head is no line of requests.jsonl"},
		{"a lifecycle's count of its attempts, and chained again", func(t *testing.T, dir string) {
			lines(t, dir, record.LifecyclesFile, func(l []string) []string {
				l[0] = strings.Replace(l[0], `"requests":10`, `"requests":9`, 1)
				return rechain(l)
			})
		}, "lifecycle 1: it had 9 attempts and 4 waves, and there are 10 and 4"},
		{"a record chained behind the last lifecycle", requests(func(l []string) []string {
			return rechain(append(l, l[0]))
		}), "the last lifecycle does not stand behind the last line"},
		{"a lifecycle's head moved back, and chained again", func(t *testing.T, dir string) {
			data, err := os.ReadFile(filepath.Join(dir, record.WavesFile))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			first, _, _ := bytes.Cut(data, []byte("\n"))
			lines(t, dir, record.LifecyclesFile, func(l []string) []string {
				old := strings.SplitAfter(l[1], `"waves_head":"`)[1][:64]
				l[1] = strings.Replace(l[1], old, record.LineSHA256(first), 1)
				return rechain(l)
			})
		}, "lifecycle 2: its waves_head is no line of waves.jsonl that could have been the last then"},
		{"a record removed", requests(func(l []string) []string { return append(l[:4], l[5:]...) }), "the chain is broken"},
		{"the last record removed", requests(func(l []string) []string { return l[:len(l)-1] }), "has no attempt"},
		{"a record doubled", requests(func(l []string) []string { return append(l[:4], l[3:]...) }), "there are no retries"},
		{"a record added", requests(func(l []string) []string { return append(l, strings.Replace(l[0], `"ordinal":1`, `"ordinal":9`, 1)) }), "beyond the"},
		{"records swapped", requests(func(l []string) []string { l[4], l[5] = l[5], l[4]; return l }), "the chain is broken"},
		{"a failed attempt dropped, and chained again", requests(func(l []string) []string { return rechain(append(l[:4], l[5:]...)) }), "has no attempt"},
		{"a failure called ok, and chained again", requests(func(l []string) []string {
			for i := range l {
				l[i] = strings.Replace(l[i], `"outcome":"timeout"`, `"outcome":"ok"`, 1)
			}
			return rechain(l)
		}), "it is called ok and has the error"},
		{"a time moved, and chained again", requests(func(l []string) []string {
			l[0] = strings.Replace(l[0], `"sent_at_ns":2000000000`, `"sent_at_ns":1000000000`, 1)
			return rechain(l)
		}), "sent_at_ns is 1000000000, before scheduled_at_ns"},
		{"a field that nobody knows", requests(func(l []string) []string {
			l[0] = strings.Replace(l[0], `{`, `{"retried":false,`, 1)
			return l
		}), "unknown field"},
		{"a wave's release lag", func(t *testing.T, dir string) {
			lines(t, dir, record.WavesFile, func(l []string) []string {
				l[2] = strings.Replace(l[2], `"release_lag_ns":3000`, `"release_lag_ns":1`, 1)
				return rechain(l)
			})
		}, "release lag is not the time between"},
		{"a wave removed", func(t *testing.T, dir string) {
			lines(t, dir, record.WavesFile, func(l []string) []string { return rechain(append(l[:1], l[2:]...)) })
		}, "lifecycle 1, wave 2: it has 0 records"},
		{"a lifecycle dropped", func(t *testing.T, dir string) {
			lines(t, dir, record.LifecyclesFile, func(l []string) []string { return rechain(l[1:]) })
		}, "lifecycle 1 (naive): it has 0 records"},
		{"a lifecycle's order", func(t *testing.T, dir string) {
			lines(t, dir, record.LifecyclesFile, func(l []string) []string { l[0], l[1] = l[1], l[0]; return rechain(l) })
		}, "against the schedule"},
		{"a summary's number", func(t *testing.T, dir string) {
			replace(t, dir, reports.SummaryFile, `"attempted": 1`, `"attempted": 2`)
		}, "summary.json: ."},
		{"a claim's verdict", func(t *testing.T, dir string) {
			replace(t, dir, reports.ClaimsFile, `"unsupported"`, `"supported"`)
		}, "claims.json: .claims[0].verdict is \"supported\", and the records give \"unsupported\""},
		{"the report", func(t *testing.T, dir string) { replace(t, dir, reports.ReportFile, "Valid:", "Great:") }, "report.md:3"},
		{"the figure's words", func(t *testing.T, dir string) { replace(t, dir, "goodput.svg", "clients at once", "requests at once") }, "goodput.svg: it is not the figure that the records give"},
		{"a place in the figure", func(t *testing.T, dir string) { replace(t, dir, "goodput.svg", "<path d=\"M", "<path d=\"M9") }, "goodput.svg: it has"},
		{"the figure removed", func(t *testing.T, dir string) {
			NewWithT(t).Expect(os.Remove(filepath.Join(dir, "goodput.svg"))).To(Succeed())
		}, "goodput.svg: it is missing"},
		{"the plan", func(t *testing.T, dir string) {
			replace(t, dir, reports.PlanFile, "client_lag: 20ms", "client_lag: 90ms")
		}, "the record is of another plan"},
		{"a time of the environment, which no report shows", func(t *testing.T, dir string) {
			replace(t, dir, record.EnvironmentFile, `"2026-01-01T00:00:00Z"`, `"2026-01-02T00:00:00Z"`)
		}, "environment.json: it is not the one that summary.json was computed with"},
		{"a word of a log", func(t *testing.T, dir string) { replace(t, dir, "logs/01-naive.log", "ready", "weary") }, "logs/01-naive.log: it is not the log that lifecycle 1 kept"},
		{"a line of a log removed", func(t *testing.T, dir string) { replace(t, dir, "logs/02-vllm.log", "vllm leaves\n", "") }, "logs/02-vllm.log: it has 1 lines, and the lifecycle counted 2"},
		{"a log removed", func(t *testing.T, dir string) {
			NewWithT(t).Expect(os.Remove(filepath.Join(dir, "logs/02-vllm.log"))).To(Succeed())
		}, "logs/02-vllm.log: it is missing"},
		{"a log and its hash, and chained again", func(t *testing.T, dir string) {
			replace(t, dir, "logs/02-vllm.log", "leaves", "heaves")
			data, err := os.ReadFile(filepath.Join(dir, "logs/02-vllm.log"))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			lines(t, dir, record.LifecyclesFile, func(l []string) []string {
				old := strings.SplitAfter(l[1], `"kept_sha256":"`)[1][:64]
				l[1] = strings.Replace(l[1], `"kept_sha256":"`+old, `"kept_sha256":"`+record.LineSHA256(data), 1)
				return rechain(l)
			})
		}, "junit.xml: assay.lifecycles_head"},
		{"the requests removed", func(t *testing.T, dir string) {
			NewWithT(t).Expect(os.Remove(filepath.Join(dir, record.RequestsFile))).To(Succeed())
		}, "requests.jsonl: it is missing"},
		{"the lifecycles removed", func(t *testing.T, dir string) {
			NewWithT(t).Expect(os.Remove(filepath.Join(dir, record.LifecyclesFile))).To(Succeed())
		}, "lifecycles.jsonl: it is missing"},
		{"the environment removed", func(t *testing.T, dir string) {
			NewWithT(t).Expect(os.Remove(filepath.Join(dir, record.EnvironmentFile))).To(Succeed())
		}, "environment.json: it is missing"},
		{"JUnit's report removed", func(t *testing.T, dir string) {
			NewWithT(t).Expect(os.Remove(filepath.Join(dir, reports.JUnitFile))).To(Succeed())
		}, "junit.xml: it is missing"},
		{"JUnit's report made no report", func(t *testing.T, dir string) { replace(t, dir, reports.JUnitFile, "<testsuites>", "<testsuits>") }, "junit.xml: "},
		{"a report of JUnit about another bundle", func(t *testing.T, dir string) {
			replace(t, dir, reports.JUnitFile, "fixture-20260101", "fixture-20260102")
		}, "assay.run"},
		{"a summary by another contract", func(t *testing.T, dir string) {
			replace(t, dir, reports.SummaryFile, `"metric_contract": 3`, `"metric_contract": 2`)
		}, "by version 2 of the metric contract"},
		{"a summary that is no JSON", func(t *testing.T, dir string) { replace(t, dir, reports.SummaryFile, `{`, `[`) }, "summary.json: no JSON"},
		{"a verdict written before the true one", func(t *testing.T, dir string) {
			replace(t, dir, reports.ClaimsFile, `"verdict": "unsupported"`, `"verdict": "supported", "verdict": "unsupported"`)
		}, "claims.json:1: it has the key .claims[0].verdict twice"},
		{"an outcome written before the true one, and chained again", requests(func(l []string) []string {
			l[4] = strings.Replace(l[4], `"outcome":`, `"outcome":"ok","outcome":`, 1)
			return rechain(l)
		}), "requests.jsonl:5: it has the key .outcome twice"},
		{"a key in capitals, and chained again", requests(func(l []string) []string {
			l[4] = strings.Replace(l[4], `"outcome":`, `"Outcome":"ok","outcome":`, 1)
			return rechain(l)
		}), "requests.jsonl:5: it does not fit its schema: at '': additional properties 'Outcome'"},
		{"a claim added", func(t *testing.T, dir string) {
			replace(t, dir, reports.ClaimsFile, `"claims": [`, `"claims": [{},`)
		}, "claims.json:1: it does not fit its schema: at '/claims/0': missing properties"},
		{"a number in the report's table", func(t *testing.T, dir string) { replace(t, dir, reports.ReportFile, "4/8 (50 %)", "0/8 (0 %)") }, "report.md:12: it says"},
		{"the report's last line removed", func(t *testing.T, dir string) {
			lines(t, dir, reports.ReportFile, func(l []string) []string { return l[:len(l)-1] })
		}, "report.md"},
		{"the plan's bytes, and none of its values", func(t *testing.T, dir string) {
			replace(t, dir, reports.PlanFile, "schema:", "# quite honest\nschema:")
		}, "plan.yaml: it is not frozen"},
		{"the environment", func(t *testing.T, dir string) {
			replace(t, dir, record.EnvironmentFile, `"a processor"`, `"a better processor"`)
		}, "report.md"},
		{"a head in JUnit", func(t *testing.T, dir string) { replace(t, dir, reports.JUnitFile, `"valid"`, `"invalid"`) }, "assay.validity"},
		{"a file added", func(t *testing.T, dir string) {
			NewWithT(t).Expect(os.WriteFile(filepath.Join(dir, "extra.txt"), nil, 0o644)).To(Succeed())
		}, "extra.txt: it is no file of this bundle"},
		{"a log added", func(t *testing.T, dir string) {
			NewWithT(t).Expect(os.WriteFile(filepath.Join(dir, "logs", "03-other.log"), nil, 0o644)).To(Succeed())
		}, "logs/03-other.log: it is no file of this bundle"},
		{"a derived file removed", func(t *testing.T, dir string) {
			NewWithT(t).Expect(os.Remove(filepath.Join(dir, reports.ClaimsFile))).To(Succeed())
		}, "claims.json: it is missing"},
	} {
		for _, anew := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, sums anew %v", test.name, anew), func(t *testing.T) {
				g := NewWithT(t)
				dir := filepath.Join(t.TempDir(), "bundle")
				g.Expect(os.CopyFS(dir, os.DirFS(whole))).To(Succeed())
				test.do(t, dir)
				says := "SHA256SUMS"
				if anew {
					g.Expect(reports.Seal(dir)).To(Succeed())
					says = test.says
				}
				v, err := reports.Verify(dir)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(v.Holds()).To(BeFalse())
				g.Expect(strings.Join(v.Reasons, "\n")).To(ContainSubstring(says))
			})
		}
	}
}

// TestATamperingThatIsMadeConsistentIsNamed rewrites everything after the
// change, as somebody would who has this program: chains, heads, counts,
// summary, claims, report, JUnit and sums. What the schedule and the invariants
// hold against it is named all the same.
func TestATamperingThatIsMadeConsistentIsNamed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*record.Run)
		says   string
	}{
		"a failed attempt dropped": {func(run *record.Run) {
			i := slices.IndexFunc(run.Requests, func(r record.Request) bool { return r.Outcome != record.OK })
			dropped := run.Requests[i]
			run.Requests = slices.Delete(run.Requests, i, i+1)
			for j := range run.Waves {
				if w := &run.Waves[j]; w.Lifecycle == dropped.Lifecycle && w.Number == dropped.Wave {
					w.Attempts--
				}
			}
			run.Lifecycles[dropped.Lifecycle-1].Requests--
		}, "has no attempt"},
		"the wave with the failures dropped": {func(run *record.Run) {
			run.Waves = slices.DeleteFunc(run.Waves, func(w record.Wave) bool { return w.Lifecycle == 1 && w.Number == 4 })
			run.Requests = slices.DeleteFunc(run.Requests, func(r record.Request) bool { return r.Lifecycle == 1 && r.Wave == 4 })
			run.Lifecycles[0].Requests -= 4
			run.Lifecycles[0].Waves--
		}, "lifecycle 1, wave 4: it has 0 records"},
		"a lifecycle dropped": {func(run *record.Run) {
			run.Waves = slices.DeleteFunc(run.Waves, func(w record.Wave) bool { return w.Lifecycle == 2 })
			run.Requests = slices.DeleteFunc(run.Requests, func(r record.Request) bool { return r.Lifecycle == 2 })
			run.Lifecycles = run.Lifecycles[:1]
		}, "lifecycle 2 (vllm): it has 0 records"},
		"an attempt doubled": {func(run *record.Run) {
			run.Requests = append(run.Requests, run.Requests[len(run.Requests)-1])
			run.Waves[len(run.Waves)-1].Attempts++
			run.Lifecycles[1].Requests++
		}, "there are no retries"},
		"an answer made faster": {func(run *record.Run) {
			r := &run.Requests[len(run.Requests)-1]
			*r.FirstTokenAt -= ms
		}, "first_token_at_ns is not the arrival"},
		"a timeout that came early": {func(run *record.Run) {
			i := slices.IndexFunc(run.Requests, func(r record.Request) bool { return r.Outcome == record.Timeout })
			run.Requests[i].EndedAt = run.Requests[i].ScheduledAt + second
		}, "called a timeout after 1.000 s"},
		"more tokens": {func(run *record.Run) {
			n := 40
			r := &run.Requests[len(run.Requests)-1]
			r.OutputTokens, r.UsageOutputTokens = &n, &n
		}, "output_tokens is 40 by token ids"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := recordtest.Plan()
			run := recordtest.Run(p, recordtest.Options{Fails: failing})
			test.change(&run)
			v, err := reports.Verify(written(t, filepath.Join(t.TempDir(), "bundle"), p, run))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(strings.Join(v.Reasons, "\n")).To(ContainSubstring(test.says))
		})
	}
}

// TestAWhollyConsistentRewriteIsWhatSigningIsFor keeps the documented limit: a
// bundle that was made up consistently holds. docs/verify.md says so.
func TestAWhollyConsistentRewriteIsWhatSigningIsFor(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan()
	v, err := reports.Verify(written(t, filepath.Join(t.TempDir(), "bundle"), p, recordtest.Run(p, recordtest.Options{Speed: 1000})))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(BeEmpty())
}

// TestAServerThatLiesLeavesABundleThatHolds tells what a server did from what
// was done to the records: the run is invalid, and its evidence is whole.
func TestAServerThatLiesLeavesABundleThatHolds(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan()
	run := recordtest.Run(p, recordtest.Options{})
	more := 9
	run.Requests[3].UsageOutputTokens = &more
	v, err := reports.Verify(written(t, filepath.Join(t.TempDir(), "bundle"), p, run))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(BeEmpty())
	g.Expect(v.Validity.Valid).To(BeFalse())
	g.Expect(v.Validity.Reasons).To(ConsistOf(ContainSubstring("the engine's usage counts 9 output tokens")))
}

func TestAStoppedRunNeedsNoJUnitReport(t *testing.T) {
	g := NewWithT(t)
	dir := bundle(t, recordtest.Plan(), recordtest.Options{Stopped: func(lifecycle, wave int) bool { return lifecycle == 1 && wave == 2 }})
	g.Expect(os.Remove(filepath.Join(dir, reports.JUnitFile))).To(Succeed())
	g.Expect(reports.Seal(dir)).To(Succeed())
	v, err := reports.Verify(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(BeEmpty())
	g.Expect(v.Status).To(Equal("interrupted"))
}

func TestSumsAreHeldToTheirForm(t *testing.T) {
	g := NewWithT(t)
	dir := bundle(t, recordtest.Plan(), recordtest.Options{})
	replace(t, dir, reports.SumsFile, "  claims.json", " claims.json")
	v, err := reports.Verify(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(ContainElement(HaveSuffix("is no line of it")))
	g.Expect(os.WriteFile(filepath.Join(dir, "extra.txt"), nil, 0o644)).To(Succeed())
	v, err = reports.Verify(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(ContainElement("extra.txt: it is not in SHA256SUMS"))
	g.Expect(os.Remove(filepath.Join(dir, "extra.txt"))).To(Succeed())
	g.Expect(os.Remove(filepath.Join(dir, reports.SumsFile))).To(Succeed())
	v, err = reports.Verify(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(ConsistOf(ContainSubstring("SHA256SUMS is missing")))
}

func TestWhatCanNotBeReadIsAnError(t *testing.T) {
	g := NewWithT(t)
	_, err := reports.Verify(filepath.Join(t.TempDir(), "nothing"))
	g.Expect(err).To(MatchError(ContainSubstring("no bundle")))
	dir := bundle(t, recordtest.Plan(), recordtest.Options{})
	_, err = reports.Verify(filepath.Join(dir, reports.PlanFile))
	g.Expect(err).To(MatchError(ContainSubstring("name the bundle's directory")))
	g.Expect(os.Remove(filepath.Join(dir, reports.PlanFile))).To(Succeed())
	_, err = reports.Verify(dir)
	g.Expect(err).To(MatchError(ContainSubstring("plan")))
}

// TestThePublishedBundlesHold keeps what the docs show.
func TestThePublishedBundlesHold(t *testing.T) {
	bundles, err := filepath.Glob("../docs/results/*/" + reports.PlanFile)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(bundles).NotTo(BeEmpty())
	packed, err := filepath.Glob("../docs/results/*" + reports.PackedExtension)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, p := range packed {
		file, err := os.Open(p)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		dir, err := reports.Unpack(file, t.TempDir())
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(file.Close()).To(Succeed())
		bundles = append(bundles, filepath.Join(dir, reports.PlanFile))
		// What people read of it lies beside it as well.
		shown, err := filepath.Glob(filepath.Join(strings.TrimSuffix(p, reports.PackedExtension), "*"))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(shown).NotTo(BeEmpty())
		for _, name := range shown {
			got, err := os.ReadFile(name)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			want, err := os.ReadFile(filepath.Join(dir, filepath.Base(name)))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(string(got)).To(Equal(string(want)), name)
		}
	}
	for _, p := range bundles {
		v, err := reports.Verify(filepath.Dir(p))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(v.Reasons).To(BeEmpty(), p)
	}
}

// TestSchemasRefuse breaks a document of each kind: a schema that takes
// everything would check nothing. That they take what is written is what every
// bundle here that holds shows.
func TestSchemasRefuse(t *testing.T) {
	dir := watched(t)
	for kind, name := range map[string]string{
		"telemetry": record.TelemetryFile, "engine-metrics": record.EngineMetricsFile,
		"request": record.RequestsFile, "wave": record.WavesFile, "lifecycle": record.LifecyclesFile,
		"environment": record.EnvironmentFile, "summary": reports.SummaryFile, "claims": reports.ClaimsFile,
	} {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			schema, err := reports.Schema(kind)
			g.Expect(err).NotTo(HaveOccurred())
			data, err := os.ReadFile(filepath.Join(dir, name))
			g.Expect(err).NotTo(HaveOccurred())
			if strings.HasSuffix(name, ".jsonl") {
				data, _, _ = bytes.Cut(data, []byte("\n"))
			}
			document := func() map[string]any {
				var d map[string]any
				g.Expect(json.Unmarshal(data, &d)).To(Succeed())
				return d
			}
			g.Expect(schema.Validate(document())).To(Succeed())
			for key := range document() {
				d := document()
				delete(d, key)
				g.Expect(schema.Validate(d)).NotTo(Succeed(), "without %s", key)
				d[key] = []any{[]any{}}
				g.Expect(schema.Validate(d)).NotTo(Succeed(), "%s is of another kind", key)
			}
			d := document()
			d["more"] = 1
			g.Expect(schema.Validate(d)).NotTo(Succeed(), "an unknown key")
		})
	}
	_, err := reports.Schema("nothing")
	NewWithT(t).Expect(err).To(HaveOccurred())
}

func TestTheSchemaTakesTheRestOfAnAnswerAndNothingEmpty(t *testing.T) {
	schema, err := reports.Schema("request")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	data, err := os.ReadFile(filepath.Join(watched(t), record.RequestsFile))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	line, _, _ := bytes.Cut(data, []byte("\n"))
	for _, test := range []struct {
		fields string
		fits   bool
	}{
		{`"reasoning_text":"hm","tool_calls":[{"name":"f","arguments":"{}"}]`, true},
		{`"reasoning_text":""`, false},
		{`"reasoning_text":null`, false},
		{`"tool_calls":[]`, false},
		{`"tool_calls":[{"name":"f"}]`, false},
		{`"tool_calls":[{"name":"f","arguments":{}}]`, false},
		{`"tool_calls":[{"name":"f","arguments":"","id":"1"}]`, false},
	} {
		var d any
		NewWithT(t).Expect(json.Unmarshal(append([]byte("{"+test.fields+","), line[1:]...), &d)).To(Succeed())
		NewWithT(t).Expect(schema.Validate(d) == nil).To(Equal(test.fits), test.fields)
	}
}

func TestANullWithoutAReasonFitsNoSchema(t *testing.T) {
	g := NewWithT(t)
	dir := bundle(t, recordtest.Plan(), recordtest.Options{Selected: func(tier int) bool { return tier == 4 }})
	replace(t, dir, reports.SummaryFile, `"reason": "no wave was recorded at this tier"`, `"reason": ""`)
	v, err := reports.Verify(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(ContainElement(And(ContainSubstring("summary.json:1: it does not fit its schema"), ContainSubstring("/reason'"))))
}

const (
	ms     = int64(1e6)
	second = int64(1e9)
)

func TestWhatPeopleRead(t *testing.T) {
	for name, test := range map[string]struct {
		p *plan.Plan
		o recordtest.Options
	}{
		"report": {recordtest.Plan("labels: [emulated]", "labels: [cpu]",
			"{emulated: {parameters: t4-naive}}", "{container: {image: naive}}", "{emulated: {parameters: t4-vllm}}", "{container: {image: vllm}}"), recordtest.Options{Fails: failing}},
		"emulated": {recordtest.Plan("seed: 7", "seed: 7\ntime_scale: 20", "request: 10s", "request: 200s"), recordtest.Options{Fails: failing}},
		"partial":  {recordtest.Plan("lifecycles: 1", "lifecycles: 6"), recordtest.Options{Selected: func(tier int) bool { return tier == 4 }}},
		"stopped":  {recordtest.Plan(), recordtest.Options{Stopped: func(lifecycle, wave int) bool { return lifecycle == 2 && wave == 3 }}},
	} {
		dir := t.TempDir()
		run, err := recordtest.Write(filepath.Join(dir, name), test.p, recordtest.Run(test.p, test.o))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		b := reports.Derive(test.p, run)
		NewWithT(t).Expect(b.Write(filepath.Join(dir, name))).To(Succeed())
		figure, err := os.ReadFile(filepath.Join(dir, name, "goodput.svg"))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for suffix, got := range map[string]string{".md": reports.Markdown(b), ".txt": reports.Terminal(b), ".svg": string(figure)} {
			// What a plan freezes to is tested where it is frozen.
			got = strings.NewReplacer(b.Summary.PlanSHA256, "<the plan's SHA-256>", b.Summary.ScheduleSHA256, "<the schedule's SHA-256>").Replace(got)
			golden.Hold(t, name+suffix, got)
			if suffix == ".txt" {
				for _, line := range strings.Split(got, "\n") {
					NewWithT(t).Expect(len([]rune(line))).To(BeNumerically("<=", 120), line)
				}
			}
		}
	}
}

func FuzzVerifyRequests(f *testing.F) {
	p := recordtest.Plan()
	dir := filepath.Join(f.TempDir(), "seed")
	if _, err := recordtest.Write(dir, p, recordtest.Run(p, recordtest.Options{})); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, record.RequestsFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data[:2000])
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		at := filepath.Join(t.TempDir(), "bundle")
		if _, err := recordtest.Write(at, p, recordtest.Run(p, recordtest.Options{})); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, record.RequestsFile), data, 0o644); err != nil {
			t.Fatal(err)
		}
		if v, err := reports.Verify(at); err == nil && v.Holds() {
			t.Fatal("records that are none of the run's were taken for them")
		}
	})
}

func FuzzParseSums(f *testing.F) {
	sum := strings.Repeat("0a", 32)
	f.Add([]byte(sum + "  plan.yaml\n" + sum + "  logs/01-naive.log\n"))
	f.Add([]byte(sum + "  a\n" + sum + "  a\n"))
	f.Add([]byte(strings.ToUpper(sum) + "  a"))
	f.Add([]byte("  \n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		sums, faults := reports.ParseSums(data)
		var again []string
		for name, sum := range sums {
			again = append(again, sum+"  "+name)
		}
		slices.Sort(again)
		got := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		slices.Sort(got)
		if whole := slices.Equal(got, again); whole != (len(faults) == 0) {
			t.Fatalf("%q: faults %q, and read as %q", data, faults, again)
		}
	})
}

func TestWhatTheClientShowedBeforehandIsInTheReport(t *testing.T) {
	share, p50, p99 := 0.4, int64(6_000), int64(56_000)
	proof := record.ClientProof{Streams: 64, ArrivalErrorP50: &p50, ArrivalErrorP99: &p99, ClientLagP99: 1_700_000, Busiest: &share}
	data, err := json.Marshal(proof)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var read any
	NewWithT(t).Expect(json.Unmarshal(data, &read)).To(Succeed())
	for _, c := range []struct {
		fact record.Fact
		says string
	}{
		{record.Fact{Value: proof}, "with 64 streams from a server that computes nothing: arrivals were off by 6 µs at p50 and 56 µs at p99, reads came up to 1700 µs late at p99; it used 40 % of its processors"},
		{record.Fact{Value: read}, "arrivals were off by 6 µs at p50 and 56 µs at p99"},
		{record.Fact{Value: record.ClientProof{Streams: 1}}, "how far arrivals were off is null, since the wall clock was stepped meanwhile"},
		{record.Fact{Reason: "2 of 64 streams did not come whole"}, "The client did not prove itself: 2 of 64 streams did not come whole."},
	} {
		p := recordtest.Plan()
		run := recordtest.Run(p, recordtest.Options{})
		run.Environment.Facts = map[string]record.Fact{"client_proof": c.fact}
		NewWithT(t).Expect(reports.Markdown(reports.Derive(p, run))).To(ContainSubstring(c.says))
	}
}

func TestTheJUnitReportCarriesWhatItsBundleHolds(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan()
	dir := filepath.Join(t.TempDir(), "bundle")
	run, err := recordtest.Write(dir, p, recordtest.Run(p, recordtest.Options{Fails: failing}))
	g.Expect(err).NotTo(HaveOccurred())
	b := reports.Derive(p, run)
	g.Expect(b.Write(dir)).To(Succeed())
	suite := junitpkg.Suite{
		Properties: [][2]string{{"assay.bundle", "out/fixture"}},
		Cases:      []junitpkg.Case{{Name: "naive serves 1 client"}, {Name: "vllm fails", Outcome: junitpkg.Failed, Message: "1 of 2"}, {Name: "panics", Outcome: junitpkg.Errored}},
	}
	data, err := reports.JUnit(dir, b, suite)
	g.Expect(err).NotTo(HaveOccurred())
	hidden := strings.NewReplacer(b.Summary.PlanSHA256, "<the plan's SHA-256>", b.Summary.ScheduleSHA256, "<the schedule's SHA-256>")
	golden.Hold(t, "junit.xml", regexp.MustCompile(`_head" value="[0-9a-f]{64}"`).ReplaceAllString(hidden.Replace(string(data)), `_head" value="<a line's SHA-256>"`))
	path := filepath.Join(dir, reports.JUnitFile)
	g.Expect(os.WriteFile(path, data, 0o644)).To(Succeed())
	g.Expect(reports.Seal(dir)).To(Succeed())
	v, err := reports.Verify(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(BeEmpty())
	g.Expect(v.FailedSpecs).To(Equal([]string{"vllm fails", "panics"}))

	replace(t, dir, reports.JUnitFile, `initialization_s" value="0.200"`, `initialization_s" value="0.100"`)
	replace(t, dir, reports.JUnitFile, `<testsuites name=`, `<testsuites disabled="0" name=`)
	g.Expect(reports.Seal(dir)).To(Succeed())
	v, err = reports.Verify(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(ConsistOf(
		`junit.xml: assay.lifecycle.1.initialization_s is "0.100", and the bundle has "0.200"`, "junit.xml: line 2: a testsuites has no attribute disabled"))
}
