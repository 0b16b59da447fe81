package main

import (
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

// bundle writes a whole bundle of a fixture run.
func bundle(t *testing.T, o recordtest.Options) string {
	t.Helper()
	return bundleOf(NewWithT(t), t, recordtest.Plan(), o)
}

// bundleOf is likewise of a plan.
func bundleOf(g Gomega, t *testing.T, p *plan.Plan, o recordtest.Options) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bundle")
	g.Expect(seal(dir, p, recordtest.Run(p, o))).To(Succeed())
	return dir
}

// seal writes records as a run would have, and all that is derived from them.
func seal(dir string, p *plan.Plan, run record.Run) error {
	run, err := recordtest.Write(dir, p, run)
	if err != nil {
		return err
	}
	b := reports.Derive(p, run)
	if err := b.Write(dir); err != nil {
		return err
	}
	junit := "<testsuites><testsuite><properties>"
	for _, property := range reports.Properties(dir, b.Summary) {
		junit += fmt.Sprintf("<property name=%q value=%q/>", property[0], property[1])
	}
	if err := os.WriteFile(filepath.Join(dir, reports.JUnitFile), []byte(junit+"</properties></testsuite></testsuites>"), 0o644); err != nil {
		return err
	}
	return reports.Seal(dir)
}

func TestVerifySaysWhatHolds(t *testing.T) {
	for name, test := range map[string]struct {
		o    recordtest.Options
		says string
	}{
		"whole":   {recordtest.Options{}, "bundle holds: complete; the protocol was kept\n"},
		"partial": {recordtest.Options{Selected: func(tier int) bool { return tier == 1 }}, "bundle holds: partial; the protocol was kept\n"},
		"stopped": {recordtest.Options{Stopped: func(int, int) bool { return true }}, "bundle holds: interrupted; the run says of itself that it is invalid, for "},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := call(t, "verify", bundle(t, test.o))
			NewWithT(t).Expect(code).To(Equal(0), out+errs)
			NewWithT(t).Expect(out).To(ContainSubstring(test.says))
		})
	}
}

func TestVerifyGivesEachReasonALine(t *testing.T) {
	g := NewWithT(t)
	dir := bundle(t, recordtest.Options{})
	for _, name := range []string{record.RequestsFile, reports.ClaimsFile, reports.JUnitFile} {
		g.Expect(os.Remove(filepath.Join(dir, name))).To(Succeed())
	}
	g.Expect(reports.Seal(dir)).To(Succeed())
	code, out, _ := call(t, "verify", dir)
	g.Expect(code).To(Equal(1))
	for _, line := range []string{"requests.jsonl: it is missing", "claims.json: it is missing", "junit.xml: it is missing"} {
		g.Expect(strings.Split(out, "\n")).To(ContainElement(line))
	}
	g.Expect(out).To(MatchRegexp(`does not hold, for \d+ reason\(s\)\n$`))
}

func TestReportPrintsWhatThereIs(t *testing.T) {
	g := NewWithT(t)
	dir := bundle(t, recordtest.Options{})
	g.Expect(os.Remove(filepath.Join(dir, reports.ReportFile))).To(Succeed(), "it is computed anew")
	code, out, errs := call(t, "report", dir)
	g.Expect(code).To(Equal(0), errs)
	g.Expect(out).To(And(ContainSubstring("speed-up"), ContainSubstring("How to read this"), ContainSubstring("What this run does not show")))
	g.Expect(os.Remove(filepath.Join(dir, record.LifecyclesFile))).To(Succeed())
	code, out, errs = call(t, "report", dir)
	g.Expect(code).To(Equal(1))
	g.Expect(out).To(ContainSubstring("INVALID"))
	g.Expect(errs).To(ContainSubstring("is not whole"))
	code, _, errs = call(t, "report", filepath.Join(dir, "logs"))
	g.Expect(code).To(Equal(2))
	g.Expect(errs).To(ContainSubstring("can't be read"))
}

func TestNothingInABundleSpeaksToTheTerminal(t *testing.T) {
	g := NewWithT(t)
	const orders = "\x1b[2J\u202eholds\x00\nbundle holds: complete"
	p := recordtest.Plan()
	run := recordtest.Run(p, recordtest.Options{})
	run.Lifecycles[1].Status, run.Lifecycles[1].Error = "failed", orders
	run.Environment.Facts["cpu_model"] = record.Fact{Value: orders, Provenance: record.ClientObserved}
	dir := filepath.Join(t.TempDir(), "bundle")
	g.Expect(seal(dir, p, run)).To(Succeed())
	path := filepath.Join(dir, reports.JUnitFile)
	junit, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	failed := "<testcase name=\"\u202eevil&#10;bundle holds: complete\" status=\"failed\"/></testsuite>"
	g.Expect(os.WriteFile(path, []byte(strings.Replace(string(junit), "</testsuite>", failed, 1)), 0o644)).To(Succeed())
	g.Expect(reports.Seal(dir)).To(Succeed())
	broken := filepath.Join(t.TempDir(), "plan.yaml")
	g.Expect(os.WriteFile(broken, []byte("schema: \"\\e[2J\u202e\"\n"), 0o644)).To(Succeed())
	for _, args := range [][]string{{"verify", dir}, {"report", dir}, {"check", broken}, {"verify", "no\x1b[2Jbundle"}} {
		_, out, errs := call(t, args...)
		text := out + errs
		g.Expect(text).NotTo(BeEmpty())
		g.Expect(text).NotTo(ContainSubstring("\x1b"), args[0])
		g.Expect(text).NotTo(ContainSubstring("\u202e"), args[0])
		g.Expect(text).NotTo(MatchRegexp("(?m)^bundle holds"), args[0])
	}
}

func TestReportPrintsInTheFormatThatIsAskedFor(t *testing.T) {
	g := NewWithT(t)
	dir := bundle(t, recordtest.Options{})
	_, out, _ := call(t, "report", "--format", "summary", dir)
	g.Expect(out).To(HavePrefix("### vllm against naive"))
	g.Expect(strings.Count(out, "\n")).To(BeNumerically("<", 60))
	_, out, _ = call(t, "report", "--format", "markdown", dir)
	g.Expect(os.ReadFile(filepath.Join(dir, reports.ReportFile))).To(BeEquivalentTo(out))
	code, _, errs := call(t, "report", "--format", "pdf", dir)
	g.Expect(code).To(Equal(2))
	g.Expect(errs).To(ContainSubstring("--format pdf is none: there are terminal, markdown and summary"))
}
