package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"assay/comparison"
	"assay/harness/record/recordtest"
	"assay/reports"
)

// six writes a whole bundle of a fixture run with six lifecycles an arm.
func six(t *testing.T, speed float64) string {
	t.Helper()
	g := NewWithT(t)
	p := recordtest.Plan("lifecycles: 1", "lifecycles: 6")
	return bundleOf(g, t, p, recordtest.Options{Speed: speed})
}

func TestComparesExitCodes(t *testing.T) {
	g := NewWithT(t)
	old, same, slow := six(t, 10), six(t, 10), six(t, 9)
	code, out, errs := call(t, "compare", old, same)
	g.Expect(code).To(Equal(0), errs)
	g.Expect(out).To(ContainSubstring("NO DIFFERENCE SHOWN"))
	code, out, errs = call(t, "compare", old, slow)
	g.Expect(code).To(Equal(1), errs)
	g.Expect(out).To(And(ContainSubstring("WORSE"), ContainSubstring("-10.0 %")))
	code, out, _ = call(t, "compare", "--format", "md", "--minimum", "20%", old, slow)
	g.Expect(code).To(Equal(0), "a change under the minimum fails nothing")
	g.Expect(out).To(ContainSubstring("smaller than the minimum of 20 %"))
	code, out, _ = call(t, "compare", old, bundle(t, recordtest.Options{Speed: 9}))
	g.Expect(code).To(Equal(2), "one lifecycle an arm shows nothing")
	g.Expect(out).To(ContainSubstring("TOO FEW TO SHOW"))
	code, out, _ = call(t, "compare", old, bundle(t, recordtest.Options{Selected: func(tier int) bool { return tier == 1 }}))
	g.Expect(code).To(Equal(2))
	g.Expect(out).To(ContainSubstring("it is partial"))
	packed := filepath.Join(t.TempDir(), "slow"+reports.PackedExtension)
	g.Expect(pack(slow, packed)).To(Succeed())
	code, out, errs = call(t, "compare", "--format", "json", "--metrics", "goodput", old, packed)
	g.Expect(code).To(Equal(1), errs)
	var c comparison.Comparison
	g.Expect(json.Unmarshal([]byte(out), &c)).To(Succeed())
	g.Expect(c.Rows).To(HaveLen(4))
	g.Expect(c.New.Bundle).To(Equal(packed))
	code, _, errs = call(t, "compare", "--old-sums", strings.Repeat("0", 64), old, same)
	g.Expect(code).To(Equal(2))
	g.Expect(errs).To(ContainSubstring("another bundle than the one that was accepted"))
	code, _, errs = call(t, "compare", "--old-sums", c.Old.SumsSHA256, old, same)
	g.Expect(code).To(Equal(0), errs)
}

func TestCompareTellsEveryMistake(t *testing.T) {
	code, _, errs := call(t, "compare", "--format", "xml", "--minimum", "5", "--level", "10%", "--metrics", "speed", "nothing.tar.zst", "none.tar.zst")
	g := NewWithT(t)
	g.Expect(code).To(Equal(2))
	for _, text := range []string{"md or json", `"5" is no share`, "a level of 10 %", `no metric "speed"`, "nothing.tar.zst", "none.tar.zst"} {
		g.Expect(errs).To(ContainSubstring(text))
	}
}
