package reports_test

import (
	"encoding/json"
	"errors"
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
	"assay/workloads"
)

// sourced is the fixture's plan with a source in place of its prompts.
func sourced(workload string) (*plan.Plan, error) {
	text := strings.Replace(recordtest.PlanText, "workload: {prompts: eight, max_tokens: 4,", "workload: {"+workload+",", 1)
	return plan.Parse("sourced.yaml", []byte(text))
}

const digest = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"

func TestAPlanTakesTheDistributionsThatCanBeDrawn(t *testing.T) {
	g := NewWithT(t)
	taken, refused := 0, 0
	for _, median := range []float64{1, 16, 500, 60_000} {
		for _, sigma := range []float64{0.01, 0.5, 2, 9} {
			for _, bounds := range [][2]int{{1, 2}, {8, 64}, {64, 8}, {400, 600}, {50_000, 2_000_000}} {
				_, drawn := workloads.NewLengths("input", workloads.LengthSpec{Kind: "lognormal", Median: median, Sigma: sigma, Min: bounds[0], Max: bounds[1]})
				_, parsed := sourced(fmt.Sprintf("source: {kind: independent, input: {lognormal: {median: %g, sigma: %g, min: %d, max: %d}}, output: {fixed: 3}}", median, sigma, bounds[0], bounds[1]))
				g.Expect(parsed == nil).To(Equal(drawn == nil), "median %g, sigma %g, %v: %v against %v", median, sigma, bounds, parsed, drawn)
				if drawn == nil {
					taken++
				} else {
					refused++
				}
			}
		}
	}
	g.Expect(min(taken, refused)).To(BeNumerically(">", 10))
}

func TestAPlanTakesEveryKindOfFile(t *testing.T) {
	g := NewWithT(t)
	for _, kind := range workloads.Kinds() {
		source := "source: {kind: " + kind + ", file: f, sha256: " + digest + ", license: MIT}"
		_, alone := sourced(source)
		_, limited := sourced(source + ", max_tokens: 4")
		g.Expect(errors.Join(alone, limited)).To(HaveOccurred())
		g.Expect(alone == nil || limited == nil).To(BeTrue(), "%s: %v, %v", kind, alone, limited)
	}
}

func TestWhatIsDrawnIsAsMuchAsTheLargestWaveHasAndTheSameForASeed(t *testing.T) {
	g := NewWithT(t)
	p, err := sourced("source: {kind: prefix, families: 3, prefix: 20, suffix: {uniform: {min: 2, max: 9}}, output: {uniform: {min: 2, max: 9}}}")
	g.Expect(err).NotTo(HaveOccurred())
	entries, sets, err := reports.Entries(p, "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sets).To(BeEmpty())
	g.Expect(entries).To(HaveLen(4))
	again, _, err := reports.Entries(p, "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(entries))
	p.Seed++
	other, _, err := reports.Entries(p, "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(other).NotTo(Equal(entries))
}

func TestEveryFileOfASourceIsHeldToItsDigest(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(root, "in.txt"), []byte("5\n"), 0o644)).To(Succeed())
	empirical := func(file string) string {
		return "{empirical: {file: " + file + ", sha256: " + digest + ", license: MIT, min: 1, max: 9}}"
	}
	p, err := sourced("source: {kind: independent, input: " + empirical("in.txt") + ", output: " + empirical("out.txt") + "}")
	g.Expect(err).NotTo(HaveOccurred())
	_, _, err = reports.Entries(p, root)
	g.Expect(err).To(MatchError(And(ContainSubstring("in.txt is another file than the plan's: its SHA-256 is f0b5c2c2211c8d67ed15e75e656c7862d086e9245420892a7de62cd9ec582a06"), ContainSubstring("out.txt"))))
	g.Expect(strings.Split(err.Error(), "\n")).To(HaveLen(2))
}

// entries are of a document that can be broken.
func entriesDocument() record.Entries {
	n, arm := 7, "naive"
	return record.Entries{
		Schema: record.EntriesSchema, PlanSHA256: digest, CountedBy: &arm,
		Datasets: []record.Dataset{{Of: "entries", Kind: "azure", File: "t.csv", SHA256: digest, License: "MIT", Entries: 1, Taken: 1, LeftOut: map[string]int{}}},
		Entries: []record.Entry{{ID: "azure/2", InputTokens: &n, OutputTokens: 3, Text: "one two", Segments: []record.Segment{
			{Key: "a", Tokens: 3, Bytes: 3}, {Key: "b", Tokens: 4, Bytes: 4},
		}}},
	}
}

func TestTheSchemaOfEntriesRefuses(t *testing.T) {
	g := NewWithT(t)
	schema, err := reports.Schema("entries")
	g.Expect(err).NotTo(HaveOccurred())
	data, err := json.Marshal(entriesDocument())
	g.Expect(err).NotTo(HaveOccurred())
	document := func() map[string]any {
		var d map[string]any
		g.Expect(json.Unmarshal(data, &d)).To(Succeed())
		return d
	}
	g.Expect(schema.Validate(document())).To(Succeed())
	parts := map[string]func(map[string]any) map[string]any{
		"the document": func(d map[string]any) map[string]any { return d },
		"a data set":   func(d map[string]any) map[string]any { return d["datasets"].([]any)[0].(map[string]any) },
		"a segment": func(d map[string]any) map[string]any {
			return d["entries"].([]any)[0].(map[string]any)["segments"].([]any)[0].(map[string]any)
		},
	}
	for name, part := range parts {
		for key := range part(document()) {
			d := document()
			part(d)[key] = []any{[]any{}}
			g.Expect(schema.Validate(d)).NotTo(Succeed(), "%s: %s is of another kind", name, key)
			delete(part(d), key)
			g.Expect(schema.Validate(d)).NotTo(Succeed(), "%s without %s", name, key)
		}
		d := document()
		part(d)["more"] = 1
		g.Expect(schema.Validate(d)).NotTo(Succeed(), "%s has an unknown key", name)
	}
}

// entriesBundle is a bundle whose plan has a source, with these entries.
func entriesBundle(t *testing.T, entries []byte) string {
	t.Helper()
	g := NewWithT(t)
	p, err := sourced("source: {kind: jsonl, file: own.jsonl, sha256: " + digest + ", license: MIT}, max_tokens: 4")
	g.Expect(err).NotTo(HaveOccurred())
	dir := filepath.Join(t.TempDir(), "bundle")
	_, err = recordtest.Write(dir, p, recordtest.Run(p, recordtest.Options{}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(dir, record.EntriesFile), entries, 0o644)).To(Succeed())
	return dir
}

func TestTextsAreMadeOfTheirSegments(t *testing.T) {
	for says, change := range map[string]func(*record.Entries){
		"azure/2 has 7 bytes of text, and its segments have others":           func(e *record.Entries) { e.Entries[0].Segments[1].Bytes = 5 },
		"azure/2 has 7 bytes of text, and its segments have 6":                func(e *record.Entries) { e.Entries[0].Segments[1].Bytes = 3 },
		"azure/2 has not the input tokens that its segments have together, 8": func(e *record.Entries) { e.Entries[0].Segments[1].Tokens = 5 },
		"x begins with the segments of an entry before it, and with another text": func(e *record.Entries) {
			x := e.Entries[0]
			x.ID, x.Text = "x", "won two"
			e.Entries = append(e.Entries, x)
		},
		"it was asked from another entries.json": func(*record.Entries) {},
		"and the entry there is azure/2":         func(*record.Entries) {},
		"entries.json is of another plan":        func(*record.Entries) {},
	} {
		g := NewWithT(t)
		e := entriesDocument()
		change(&e)
		data, err := json.Marshal(e)
		g.Expect(err).NotTo(HaveOccurred())
		v, err := reports.Verify(entriesBundle(t, data))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(v.Reasons).To(ContainElement(ContainSubstring(says)))
	}
}

func FuzzVerifyEntries(f *testing.F) {
	data, err := json.Marshal(entriesDocument())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(strings.Replace(string(data), `"bytes":3`, `"bytes":-3`, 1)))
	f.Add([]byte(`{"schema":"assay.entries/v1","entries":[{}]}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if v, err := reports.Verify(entriesBundle(t, data)); err == nil && v.Holds() {
			t.Fatal("entries that nothing was asked from were taken for those of the run")
		}
	})
}
