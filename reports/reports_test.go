package reports_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/plan"
	"assay/harness/record"
	"assay/harness/record/recordtest"
	"assay/reports"
)

var update = flag.Bool("update", false, "write the golden files anew")

// failing times out two of the four attempts at the baseline's upper tier.
func failing(r record.Request) bool { return r.Arm == "naive" && r.Tier == 4 && r.Ordinal > 2 }

// bundle writes a whole bundle of a fixture run, sealed.
func bundle(t *testing.T, p *plan.Plan, o recordtest.Options) string {
	t.Helper()
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "bundle")
	run, err := recordtest.Write(dir, p, recordtest.Run(p, o))
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
	}{
		"clean":         {recordtest.Plan(), recordtest.Options{}, "complete"},
		"with failures": {recordtest.Plan(), recordtest.Options{Fails: failing}, "complete"},
		"scaled":        {recordtest.Plan("seed: 7", "seed: 7\ntime_scale: 20"), recordtest.Options{}, "complete"},
		"partial":       {recordtest.Plan(), recordtest.Options{Selected: func(tier int) bool { return tier == 4 }}, "partial"},
		"six pairs":     {recordtest.Plan("lifecycles: 1", "lifecycles: 6"), recordtest.Options{}, "complete"},
		"with warm-up":  {recordtest.Plan("lifecycles: 1", "lifecycles: 1, warmup: 2"), recordtest.Options{}, "complete"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v, err := reports.Verify(bundle(t, test.p, test.o))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(v.Reasons).To(BeEmpty())
			g.Expect(v.Validity.Reasons).To(BeEmpty())
			g.Expect(v.Status).To(Equal(test.status))
		})
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
		}), "requests_head"},
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
		{"the plan", func(t *testing.T, dir string) {
			replace(t, dir, reports.PlanFile, "client_lag: 20ms", "client_lag: 90ms")
		}, "the record is of another plan"},
		{"the environment", func(t *testing.T, dir string) {
			replace(t, dir, record.EnvironmentFile, `"a processor"`, `"a better processor"`)
		}, "report.md"},
		{"a head in JUnit", func(t *testing.T, dir string) { replace(t, dir, reports.JUnitFile, `"valid"`, `"invalid"`) }, "assay.validity"},
		{"a file added", func(t *testing.T, dir string) {
			NewWithT(t).Expect(os.WriteFile(filepath.Join(dir, "extra.txt"), nil, 0o644)).To(Succeed())
		}, ""},
		{"a derived file removed", func(t *testing.T, dir string) {
			NewWithT(t).Expect(os.Remove(filepath.Join(dir, reports.ClaimsFile))).To(Succeed())
		}, "claims.json: it is missing"},
	} {
		for _, anew := range []bool{false, true} {
			if anew && test.says == "" {
				continue
			}
			t.Run(fmt.Sprintf("%s, sums anew %v", test.name, anew), func(t *testing.T) {
				g := NewWithT(t)
				dir := bundle(t, recordtest.Plan(), recordtest.Options{Fails: failing})
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

func TestWhatCanNotBeReadIsAnError(t *testing.T) {
	g := NewWithT(t)
	_, err := reports.Verify(filepath.Join(t.TempDir(), "nothing"))
	g.Expect(err).To(HaveOccurred())
	dir := bundle(t, recordtest.Plan(), recordtest.Options{})
	g.Expect(os.Remove(filepath.Join(dir, record.RequestsFile))).To(Succeed())
	_, err = reports.Verify(dir)
	g.Expect(err).To(MatchError(ContainSubstring(record.RequestsFile)))
	g.Expect(os.Remove(filepath.Join(dir, reports.PlanFile))).To(Succeed())
	_, err = reports.Verify(dir)
	g.Expect(err).To(MatchError(ContainSubstring("plan")))
}

func TestWhatPeopleRead(t *testing.T) {
	for name, p := range map[string]*plan.Plan{
		"report":   recordtest.Plan(),
		"emulated": recordtest.Plan("seed: 7", "seed: 7\ntime_scale: 20", "request: 10s", "request: 200s"),
	} {
		run, err := recordtest.Write(filepath.Join(t.TempDir(), name), p, recordtest.Run(p, recordtest.Options{Fails: failing}))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		b := reports.Derive(p, run)
		for suffix, got := range map[string]string{".md": reports.Markdown(b), ".txt": reports.Terminal(b)} {
			file := filepath.Join("testdata", name+suffix)
			if *update {
				NewWithT(t).Expect(os.WriteFile(file, []byte(got), 0o644)).To(Succeed())
			}
			want, err := os.ReadFile(file)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(got).To(Equal(string(want)), "go test ./reports -update writes it anew")
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
