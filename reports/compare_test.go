package reports_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"assay/comparison"
	"assay/golden"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/harness/record/recordtest"
	"assay/reports"
)

var usual = comparison.Options{Minimum: comparison.DefaultMinimum, Level: comparison.DefaultLevel}

func sixPairs(oldnew ...string) *plan.Plan {
	return recordtest.Plan(append([]string{"lifecycles: 1", "lifecycles: 6"}, oldnew...)...)
}

func compared(t *testing.T, old, later string) comparison.Comparison {
	t.Helper()
	c, err := reports.Compare(old, later, nil, usual)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c
}

func TestAPlantedSlowDownIsWorseAndARepetitionIsNot(t *testing.T) {
	g := NewWithT(t)
	old := bundle(t, sixPairs(), recordtest.Options{})
	again := compared(t, old, bundle(t, sixPairs(), recordtest.Options{}))
	g.Expect(again.Verdict).To(Equal(comparison.NoDifference), again.Reason)
	g.Expect(again.Against).To(BeEmpty())
	g.Expect(again.Differences).To(BeEmpty())
	slow := compared(t, old, bundle(t, sixPairs(), recordtest.Options{Speed: 9}))
	g.Expect(slow.Verdict).To(Equal(comparison.Worse))
	for _, r := range slow.Rows {
		switch {
		case r.Arm == "naive" || r.Metric == "failure rate":
			g.Expect(r.Verdict).To(Equal(comparison.NoDifference), r.Sentence())
		default:
			g.Expect(r.Verdict).To(Equal(comparison.Worse), r.Sentence())
			want := 1.0 / 9
			if r.Unit == "tok/s" {
				want = -0.1
			}
			g.Expect(*r.Change).To(BeNumerically("~", want, 0.01), r.Sentence())
		}
	}
	g.Expect(compared(t, bundle(t, sixPairs(), recordtest.Options{Speed: 9}), old).Verdict).To(Equal(comparison.Better))
	// The other writings say the same.
	slow.Old.Bundle, slow.New.Bundle = "old", "new"
	slow.Old.SumsSHA256, slow.New.SumsSHA256 = "", ""
	golden.Hold(t, "compare.txt", reports.ComparisonTerminal(slow))
	golden.Hold(t, "compare.md", reports.ComparisonMarkdown(slow))
	fits(t, slow)
}

// fits holds a comparison's JSON against the published schema.
func fits(t *testing.T, c comparison.Comparison) {
	t.Helper()
	g := NewWithT(t)
	schema, err := reports.Schema("comparison")
	g.Expect(err).NotTo(HaveOccurred())
	data, err := reports.ComparisonJSON(c)
	g.Expect(err).NotTo(HaveOccurred())
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(schema.Validate(value)).To(Succeed())
}

func TestRunsThatCannotBeComparedSayEveryReason(t *testing.T) {
	old := bundle(t, sixPairs(), recordtest.Options{})
	for name, test := range map[string]struct {
		p    *plan.Plan
		o    recordtest.Options
		says []string
	}{
		"partial":     {sixPairs(), recordtest.Options{Selected: func(tier int) bool { return tier == 1 }}, []string{"new: it is partial"}},
		"interrupted": {sixPairs(), recordtest.Options{Stopped: func(int, int) bool { return true }}, []string{"new: it is interrupted", "new: it is invalid"}},
		"other tiers and repeats": {sixPairs("tiers: [1, 4]", "tiers: [1, 8]", "repeats: 2", "repeats: 3"), recordtest.Options{},
			[]string{"schedule.tiers: [1,4] → [1,8]", "schedule.repeats: 2 → 3"}},
		"another arm": {sixPairs("name: vllm", "name: other"), recordtest.Options{}, []string{"arms.other: none → ", "arms.vllm: "}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := compared(t, old, bundle(t, test.p, test.o))
			g.Expect(c.Verdict).To(Equal(comparison.NotComparable))
			for _, text := range test.says {
				g.Expect(strings.Join(c.Against, "\n")).To(ContainSubstring(text))
			}
			g.Expect(c.Rows).To(BeEmpty())
			fits(t, c)
		})
	}
}

func TestADifferenceInWhatServesIsSaid(t *testing.T) {
	g := NewWithT(t)
	c := compared(t, bundle(t, sixPairs(), recordtest.Options{}), bundle(t, sixPairs("model: {name: fixture, revision: none", "model: {name: fixture, revision: two", "parameters: t4-vllm", "parameters: t4-naive"), recordtest.Options{}))
	g.Expect(c.Against).To(BeEmpty())
	g.Expect(strings.Join(c.Differences, "\n")).To(And(ContainSubstring("the plan's SHA-256: "), ContainSubstring(`model.revision: "none" → "two"`), ContainSubstring(`arms.vllm.engine.emulated.parameters: "t4-vllm" → "t4-naive"`)))
}

func TestATerminalIsGivenNoCommands(t *testing.T) {
	g := NewWithT(t)
	p := sixPairs()
	run := recordtest.Run(p, recordtest.Options{})
	run.Environment.Run = "a\x1b[2Jrun"
	run.Environment.Facts["cpu_model"] = record.Fact{Value: "fast\x1b]0;x\a\nWORSE", Provenance: record.ClientObserved}
	// Read and not verified: the names in a fixture's JUnit can't hold these.
	old, err := comparison.Open(bundle(t, p, recordtest.Options{}))
	g.Expect(err).NotTo(HaveOccurred())
	later, err := comparison.Open(written(t, filepath.Join(t.TempDir(), "bundle"), p, run))
	g.Expect(err).NotTo(HaveOccurred())
	c, err := comparison.Runs(old, later, nil, usual)
	g.Expect(err).NotTo(HaveOccurred())
	for _, text := range []string{reports.ComparisonTerminal(c), reports.ComparisonMarkdown(c)} {
		g.Expect(text).To(And(ContainSubstring("cpu_model"), ContainSubstring("2Jrun against fixture")))
		g.Expect(text).NotTo(Or(ContainSubstring("\x1b"), ContainSubstring("\a"), ContainSubstring("\nWORSE")))
	}
}

func TestATamperedOrAbsentBundleIsNotCompared(t *testing.T) {
	g := NewWithT(t)
	old, later := bundle(t, sixPairs(), recordtest.Options{}), bundle(t, sixPairs(), recordtest.Options{})
	replace(t, later, reports.ClaimsFile, "goodput", "badput")
	c := compared(t, old, later)
	g.Expect(strings.Join(c.Against, "\n")).To(ContainSubstring("new: it does not hold: "))
	g.Expect(os.Remove(filepath.Join(later, record.WavesFile))).To(Succeed())
	_, err := reports.Compare(filepath.Join(old, "nothing"), later, []string{"speed"}, comparison.Options{Level: 2})
	for _, text := range []string{"nothing is no bundle", record.WavesFile, `no metric "speed"`, "a level of 200 %"} {
		g.Expect(err).To(MatchError(ContainSubstring(text)))
	}
}

func TestFailuresAreWorseAndWhatTheyCutShortIsLost(t *testing.T) {
	g := NewWithT(t)
	old := bundle(t, sixPairs(), recordtest.Options{})
	c := compared(t, old, bundle(t, sixPairs(), recordtest.Options{Fails: failing}))
	g.Expect(c.Verdict).To(Equal(comparison.Worse))
	lost := false
	for _, r := range c.Rows {
		if r.Arm != "naive" || r.Where != "4 clients" {
			continue
		}
		if r.Metric == "failure rate" {
			g.Expect(r.Sentence()).To(ContainSubstring("0.0 % → 50.0 %, +50.0 points"))
			g.Expect(r.Verdict).To(Equal(comparison.Worse))
		}
		lost = lost || r.Lost
	}
	g.Expect(lost).To(BeTrue())
	fits(t, c)
}

func TestACommentIsShortAndShowsWhatARecordHoldsAsItIs(t *testing.T) {
	g := NewWithT(t)
	var series []comparison.Series
	for range 80 {
		series = append(series, comparison.Series{Where: "1 client", Arm: "a|b", Metric: "<b>", Unit: "s", Old: comparison.Sample{Reason: "`x` @all"}})
	}
	c, err := comparison.Of(series, usual)
	g.Expect(err).NotTo(HaveOccurred())
	for range 90 {
		c.Differences = append(c.Differences, "cpu_model: <img src=x>")
	}
	text := reports.ComparisonMarkdown(c)
	g.Expect(strings.Count(text, "\n")).To(BeNumerically("<", 60))
	g.Expect(text).NotTo(Or(ContainSubstring("<b>"), ContainSubstring("<img"), ContainSubstring("| a|b"), ContainSubstring(" @all")))
	g.Expect(text).To(And(ContainSubstring(`| a\|b |`), ContainSubstring("`@all`")))
	g.Expect(text).To(ContainSubstring("50 more rows"))
}
