package plan_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"assay/golden"
	"assay/harness/plan"
)

const eightOf = "workload: {prompts: eight, max_tokens: 128, temperature: 0, lane: natural}"

var digest = strings.Repeat("0a", 32)

// sourced is the shipped plan with a source in place of its prompts.
func sourced(t *testing.T, source, rest string) (*plan.Plan, error) {
	t.Helper()
	return edit(t, eightOf, "workload: {source: {"+strings.ReplaceAll(source, "DIGEST", digest)+"}, temperature: 0"+rest+"}")
}

func TestASourceFreezesToAFixedPoint(t *testing.T) {
	g := NewWithT(t)
	var all strings.Builder
	for _, source := range [][2]string{
		{"kind: independent, input: {lognormal: {median: 256, sigma: 0.8, min: 16, max: 2048}}, output: {fixed: 64}", ", lane: fixed"},
		{"kind: prefix, families: 4, prefix: 512, suffix: {uniform: {min: 16, max: 64}}, output: {fixed: 8}", ", lane: natural"},
		{"kind: independent, input: {empirical: {file: lengths.csv, column: in, sha256: DIGEST, license: MIT, min: 1, max: 9}}, output: {fixed: 64}", ", lane: fixed"},
		{"kind: jsonl, file: own.jsonl, sha256: DIGEST, license: unknown", ", max_tokens: 7, lane: natural"},
		{`kind: azure, file: "${TRACE}", sha256: DIGEST, license: CC-BY-4.0, window: {from: 1m, to: 90s}, sample: 20`, ", lane: fixed"},
		{`kind: mooncake, file: "${TRACE:-/data/m.jsonl}", sha256: DIGEST, license: Apache-2.0, window: {from: 1h}`, ", lane: fixed"},
		{"kind: sharegpt, file: s.json, sha256: DIGEST, license: unknown, sample: 5", ", max_tokens: 7, lane: natural"},
	} {
		p, err := sourced(t, source[0], source[1])
		g.Expect(err).NotTo(HaveOccurred())
		once, err := plan.Freeze(p)
		g.Expect(err).NotTo(HaveOccurred())
		again, err := plan.Parse("frozen", once.Bytes)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again).To(Equal(p))
		twice, err := plan.Freeze(again)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(twice).To(Equal(once))
		_, workload, _ := strings.Cut(string(once.Bytes), "workload:\n")
		workload, _, _ = strings.Cut(workload, "sampling:")
		all.WriteString(workload + "# " + p.Workload.Source.String() + "\n")
	}
	golden.Hold(t, "sources.frozen.golden", all.String())
}

func TestEveryMistakeInASourceIsToldAtOnce(t *testing.T) {
	g := NewWithT(t)
	_, err := plan.Load("testdata/sources.yaml")
	golden.Hold(t, "sources.golden", err.Error()+"\n")
	var mistakes *plan.Mistakes
	g.Expect(errors.As(err, &mistakes)).To(BeTrue())
}

func TestOneSlipInASourceIsOneMessage(t *testing.T) {
	const (
		drawn = "kind: prefix, families: 4, prefix: 512, suffix: {uniform: {min: 16, max: 64}}, output: {fixed: 8}"
		trace = "kind: azure, file: t.csv, sha256: DIGEST, license: MIT, window: {from: 1m, to: 2m}"
		own   = "kind: jsonl, file: t.jsonl, sha256: DIGEST, license: MIT"
		log   = "kind: independent, input: {lognormal: {median: 256, sigma: 0.8, min: 16, max: 2048}}, output: {fixed: 64}"
	)
	for _, test := range []struct{ in, old, new, rest, says string }{
		{drawn, "kind: prefix", "kind: prefixes", "", `workload.source.kind: "prefixes" is not known; did you mean prefix?`},
		{drawn, "kind: prefix, families: 4, prefix: 512, suffix", "kind: conversations, turns: 2, user", "", "workload.source.kind: only an arrival plan waits for an answer"},
		{drawn, "kind: prefix, ", "", "", "workload.source.kind: missing: write independent, prefix,"},
		{drawn, "families", "familes", "", "workload.source.familes: unknown key; did you mean families?"},
		{drawn, "families: 4, ", "", "", "workload.source.families: missing: write how many families there are"},
		{drawn, "families: 4", "families: 0", "", "workload.source.families: 0 is too small: write 1 or more"},
		{drawn, "prefix: 512", "prefix: 512, input: {fixed: 3}", "", "workload.source.input: a source of the kind prefix has none: it has families, prefix, suffix, output"},
		{drawn, "{fixed: 8}", "{}", "", "workload.source.output: it is none of them: write exactly one of fixed,"},
		{drawn, "{fixed: 8}", "{fixed: 8, uniform: {min: 1, max: 2}}", "", "workload.source.output: it is fixed and uniform: write exactly one"},
		{drawn, "{fixed: 8}", "8", "", "workload.source.output: 8 is wrong: write "},
		{drawn, "{min: 16, max: 64}", "{min: 16, max: 6}", "", "workload.source.suffix.uniform.max: 6 is smaller than min, 16"},
		{drawn, "{min: 16, max: 64}", "{min: 16}", "", "workload.source.suffix.uniform.max: missing: write the largest length"},
		{drawn, "", "", ", max_tokens: 9", "workload.max_tokens: each request of a source of the kind prefix has its own number: leave it out"},
		{drawn, "", "", ", prompts: eight", `workload.source: it stands beside prompts, "eight": a workload has one of them`},
		{log, "sigma: 0.8", "sigma: 0", "", "workload.source.input.lognormal.sigma: 0 is too small"},
		{log, "min: 16", "min: 2000", "", "workload.source.input.lognormal: the bounds 2000 to 2048 hold 0.0"},
		{trace, "sha256: DIGEST", "sha256: 0A", "", `workload.source.sha256: "0A" is wrong: write the file's SHA-256`},
		{trace, "sha256: DIGEST, ", "", "", "workload.source.sha256: missing: write the file's SHA-256"},
		{trace, "license", "licence", "", "workload.source.licence: unknown key; did you mean license?"},
		{trace, "to: 2m", "to: 1m", "", "workload.source.window.to: 1m0s is not after from, 1m0s"},
		{trace, "from: 1m", "from: -1m", "", "workload.source.window.from: -1m0s is negative"},
		{trace, "license: MIT", "license: MIT, speed: 2", "", "workload.source.speed: unknown key"},
		{trace, "license: MIT", `license: "${LICENSE}"`, "", "belong to a machine"},
		{own, "", "", "", "workload.max_tokens: missing: write how many tokens a request may get whose line doesn't say"},
		{"kind: sharegpt, file: t.json, sha256: DIGEST, license: MIT", "", "", ", max_tokens: 9, api: completions", "workload.api: completions takes one prompt"},
	} {
		t.Run(test.says, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(test.in).To(ContainSubstring(test.old))
			_, err := sourced(t, strings.Replace(test.in, test.old, test.new, 1), test.rest+", lane: fixed")
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(strings.Split(err.Error(), "\n")).To(HaveLen(1), "one slip is one message, and breeds no other:\n%s", err)
		})
	}
}

func TestAFileOfThisMachineStaysOutOfTheHashAndItsDigestInIt(t *testing.T) {
	g := NewWithT(t)
	const trace = `kind: azure, file: "${TRACE}", sha256: DIGEST, license: MIT`
	frozen := func(source string) plan.Frozen {
		p, err := sourced(t, source, ", lane: fixed")
		g.Expect(err).NotTo(HaveOccurred())
		f, err := plan.Freeze(p)
		g.Expect(err).NotTo(HaveOccurred())
		return f
	}
	p, err := sourced(t, trace, ", lane: fixed")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Variables()).To(Equal([]string{"TRACE"}))
	expanded, said, err := p.Expand(variables(map[string]string{"TRACE": "/home/me/t.csv", "HOME": "/home/me"}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(expanded.Workload.Source.File).To(Equal("/home/me/t.csv"))
	g.Expect(said).To(Equal(map[string]string{"TRACE": "~/t.csv"}))
	g.Expect(p.Workload.Source.File).To(Equal("${TRACE}"), "the plan itself keeps the name")
	_, _, err = p.Expand(variables(map[string]string{"TRACE": ""}))
	g.Expect(err).To(MatchError(ContainSubstring("the file of the workload's source, ${TRACE}, is empty: set the variable")))

	empirical := `kind: independent, input: {empirical: {file: "${LENGTHS}", sha256: DIGEST, license: MIT, min: 1, max: 9}}, output: {fixed: 8}`
	p, err = sourced(t, empirical, ", lane: fixed")
	g.Expect(err).NotTo(HaveOccurred())
	expanded, _, err = p.Expand(variables(map[string]string{"LENGTHS": "/l"}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]string{expanded.Workload.Source.Input.Empirical.File, p.Workload.Source.Input.Empirical.File}).To(Equal([]string{"/l", "${LENGTHS}"}))

	g.Expect(frozen(trace).SHA256).NotTo(Equal(frozen(strings.Replace(trace, "DIGEST", strings.Repeat("1", 64), 1)).SHA256))
}

func TestTheLargestWaveIsTheScheduleS(t *testing.T) {
	g := NewWithT(t)
	p, err := plan.Load("../../suites/concurrency/plans/emulated.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.LargestWave()).To(Equal(64))
	p, err = plan.Load("testdata/crossover.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.LargestWave()).To(Equal(max(p.Pairing.Lanes.Fixed.Requests, p.Pairing.Lanes.Natural.Requests)))
}

func TestAPlanWithoutASourceIsFrozenWithoutTheKey(t *testing.T) {
	g := NewWithT(t)
	data, err := os.ReadFile("../../docs/results/cpu/plan.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	p, err := plan.Parse("published", data)
	g.Expect(err).NotTo(HaveOccurred())
	again, err := plan.Freeze(p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(again.Bytes)).To(Equal(string(data)), "the hashes of published bundles depend on it")
}
