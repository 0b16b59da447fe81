package main

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"assay/golden"
	"assay/harness/record/recordtest"
	"assay/reports"
)

func call(t *testing.T, args ...string) (int, string, string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestCheckPrintsTheSchedule(t *testing.T) {
	code, out, _ := call(t, "check", "testdata/plan.yaml")
	NewWithT(t).Expect(code).To(Equal(0), out)
	golden.Hold(t, "check.txt", out)
}

func TestCheckTellsEveryMistake(t *testing.T) {
	g := NewWithT(t)
	code, out, _ := call(t, "check", "../../harness/plan/testdata/mistakes.yaml")
	g.Expect(code).To(Equal(1))
	g.Expect(strings.Count(out, "mistakes.yaml:")).To(BeNumerically(">=", 20))
	code, _, errs := call(t, "check", "nothing.yaml")
	g.Expect(code).To(Equal(2))
	g.Expect(errs).To(ContainSubstring("nothing.yaml"))
}

func TestVerifysExitCodes(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan()
	dir := filepath.Join(t.TempDir(), "bundle")
	run, err := recordtest.Write(dir, p, recordtest.Run(p, recordtest.Options{}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(reports.Derive(p, run).Write(dir)).To(Succeed())
	g.Expect(reports.Seal(dir)).To(Succeed())
	code, out, _ := call(t, "verify", dir)
	g.Expect(code).To(Equal(1))
	g.Expect(out).To(ContainSubstring("junit.xml: it is missing\n"))
	code, _, errs := call(t, "verify", filepath.Join(dir, "nothing"))
	g.Expect(code).To(Equal(2))
	g.Expect(errs).To(ContainSubstring("no bundle"))
	code, out, _ = call(t, "report", dir)
	g.Expect(code).To(Equal(0))
	g.Expect(out).To(ContainSubstring("speed-up"))
	page := filepath.Join(t.TempDir(), "page.html")
	picture := filepath.Join(t.TempDir(), "figure.png")
	code, out, _ = call(t, "report", "--html", page, "--png", picture, dir)
	g.Expect(code).To(Equal(0))
	g.Expect(out).To(BeEmpty())
	g.Expect(os.ReadFile(page)).To(ContainSubstring(`<table>`))
	drawn, err := os.ReadFile(picture)
	g.Expect(err).NotTo(HaveOccurred())
	config, err := png.DecodeConfig(bytes.NewReader(drawn))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Width).To(Equal(1728))
	code, _, errs = call(t, "report", "--html", filepath.Join(dir, "no", "such", "folder"), dir)
	g.Expect(code).To(Equal(2))
	g.Expect(errs).To(ContainSubstring("name another file"))
	code, _, _ = call(t, "verify")
	g.Expect(code).To(Equal(2), "it was called wrongly")
}

func TestRunDoesWhatTheGinkgoLineDoes(t *testing.T) {
	g := NewWithT(t)
	line, err := ginkgoLine("../../suites/concurrency/plans/cpu.yaml", []int{8, 64}, "")
	g.Expect(err).NotTo(HaveOccurred())
	text := strings.Join(line, " ")
	g.Expect(text).To(HavePrefix("go tool ginkgo --fail-on-empty --timeout "))
	g.Expect(text).To(ContainSubstring("--label-filter cpu && (tier:8 || tier:64) ./suites/concurrency -- -plan /"))
}
