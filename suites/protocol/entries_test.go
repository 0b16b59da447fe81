package protocol_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"assay/harness/client"
	"assay/harness/engine"
	"assay/harness/engine/emulated"
	"assay/harness/engine/emulated/scheduler"
	"assay/harness/plan"
	"assay/harness/record"
	. "assay/matchers"
	"assay/reports"
	"assay/suites/suite"
	"assay/workloads"
)

// sourced is the small plan with a source in place of its prompts.
func sourced(workload string, edits ...string) *plan.Plan {
	GinkgoHelper()
	text := strings.Replace(smallText, "workload: {prompts: eight, max_tokens: 16, temperature: 0, lane: natural}", "workload: {temperature: 0, "+workload+"}", 1)
	return parsed(text, edits...)
}

// bundled runs a plan whose bundle must verify, but for the JUnit report.
func bundled(ctx context.Context, p *plan.Plan) (reports.Bundle, string) {
	GinkgoHelper()
	return crossover(ctx, p)
}

// file writes a file and is its path and SHA-256.
func file(name, text string) (path, sum string) {
	GinkgoHelper()
	path = filepath.Join(GinkgoT().TempDir(), name)
	Expect(os.WriteFile(path, []byte(text), 0o644)).To(Succeed())
	digest := sha256.Sum256([]byte(text))
	return path, hex.EncodeToString(digest[:])
}

const families = "source: {kind: prefix, families: 2, prefix: 40, suffix: {uniform: {min: 8, max: 30}}, output: {uniform: {min: 4, max: 12}}}, lane: fixed"

var _ = Describe("a source", Label("protocol"), func() {
	Context("of prefix families", Ordered, func() {
		var b reports.Bundle
		var dir string
		BeforeAll(func(ctx SpecContext) {
			b, dir = bundled(ctx, sourced(families, "seed: 11", "seed: 13", "gates:", "telemetry: {engine: 10ms}\ngates:"))
		})

		It("asks texts of just the lengths that are wanted, by the engine's own count", func() {
			Expect(b.Summary).To(KeepTheProtocol())
			Expect(b.Run.Entries.Entries).To(HaveLen(4), "as many as the largest wave has")
			Expect(b.Run.Entries.CountedBy).To(HaveValue(Equal("serial")))
			for _, r := range b.Run.Requests {
				e := b.Run.Entries.At(r.Ordinal)
				Expect(r.PromptID).To(Equal(e.ID))
				Expect(r.InputTokens).To(HaveValue(Equal(*e.InputTokens)))
				Expect(r.OutputTokens).To(HaveValue(Equal(e.OutputTokens)), "exactly its own number")
			}
			Expect(b.Summary.Inputs).To(HaveField("Other", 0))
			Expect(b.Summary.Inputs).To(HaveField("Counted", len(b.Run.Requests)))
			report, err := os.ReadFile(filepath.Join(dir, reports.ReportFile))
			Expect(err).NotTo(HaveOccurred())
			Expect(string(report)).To(ContainSubstring("Of 16 attempts the engine's own count is the length that was wanted in all 16"))
		})

		It("begins what a family shares with the same bytes, in both arms", func() {
			first := map[string]string{}
			for _, e := range b.Run.Entries.Entries {
				prefix := e.Text[:e.Segments[0].Bytes]
				if known, ok := first[e.Segments[0].Key]; ok {
					Expect(prefix).To(Equal(known))
				}
				first[e.Segments[0].Key] = prefix
			}
			Expect(first).To(HaveLen(2))
			sums := map[string]map[string]bool{}
			for _, r := range b.Run.Requests {
				if sums[r.PromptID] == nil {
					sums[r.PromptID] = map[string]bool{}
				}
				sums[r.PromptID][r.InputSHA256] = true
			}
			for id, s := range sums {
				Expect(s).To(HaveLen(1), id)
			}
		})

		It("says how much had been asked before, beside the engine's own count", func() {
			drawn, _, err := reports.Entries(b.Plan, "")
			Expect(err).NotTo(HaveOccurred())
			shared, total := workloads.Shared(drawn)
			Expect(shared).To(Equal(2*40), "of four requests of two families, two are the first")
			for _, w := range b.Summary.Waves {
				want := float64(shared) / float64(total)
				if w.Repeat == 2 {
					want = 1 // the same was asked by the first wave
				}
				Expect(w.Prefix.Expected.Value).To(HaveValue(BeNumerically("~", want, 1e-6)))
				Expect(w.Prefix.Expected.Provenance).To(Equal(record.Modelled))
				Expect(w.Prefix.Hits.Value).To(HaveValue(BeZero()), "an emulated server has no prefix cache")
			}
			run := clone(b.Run)
			run.EngineMetrics[slices.IndexFunc(run.EngineMetrics, func(m record.EngineMetrics) bool { return m.Wave == 1 })].After.Values[record.PrefixHits] += 0.5 * float64(total)
			broken := reports.Derive(b.Plan, run)
			Expect(broken.Summary.Waves[0].Prefix.Hits.Value).To(HaveValue(BeNumerically("~", 0.5, 1e-6)))
			Expect(reports.Markdown(broken)).To(ContainSubstring("hits 0 to 50 %"))
		})

		It("does not verify with other texts, lengths or entries, even with new sums", func() {
			Expect(rewritten(dir, record.EntriesFile, func(s string) string { return strings.Replace(s, " the ", " THE ", 1) })).
				To(ContainElement(ContainSubstring("it was asked from another entries.json")))
			Expect(rewritten(dir, record.EntriesFile, func(s string) string { return strings.Replace(s, `"tokens": 40`, `"tokens": 41`, 1) })).
				To(ContainElement(ContainSubstring("and the plan draws")))
			Expect(rewritten(dir, record.EntriesFile, func(s string) string { return strings.Replace(s, `"id": "prefix/`, `"id": "suffix/`, 1) })).
				To(ContainElement(ContainSubstring("and the entry there is suffix/")))
			Expect(rewritten(dir, record.EntriesFile, func(s string) string { return "{}" })).
				To(ContainElement(ContainSubstring(`entries.json: its schema is ""`)))
		})

		It("does not verify without them", func() {
			copied := filepath.Join(GinkgoT().TempDir(), "copy")
			Expect(os.CopyFS(copied, os.DirFS(dir))).To(Succeed())
			Expect(os.Remove(filepath.Join(copied, record.EntriesFile))).To(Succeed())
			Expect(reports.Seal(copied)).To(Succeed())
			Expect(against(copied)).To(ContainElement(ContainSubstring("there is no entries.json that can be read, and lifecycle 1 was asked from one")))
		})

		It("says where the engine counts otherwise", func() {
			run := clone(b.Run)
			*run.Requests[2].InputTokens += 3
			*run.Requests[5].InputTokens -= 5
			s := reports.Derive(b.Plan, run).Summary
			Expect(*s.Inputs).To(And(HaveField("Other", 2), HaveField("Most", -5), HaveField("MostIn", run.Requests[5].PromptID)))
		})

		It("holds each answer to its own entry's length", func() {
			run := clone(b.Run)
			for i := range run.Entries.Entries {
				run.Entries.Entries[i].OutputTokens++
			}
			Expect(reports.Derive(b.Plan, run).Summary.Validity.Reasons).To(ContainElement(ContainSubstring("output tokens in the fixed lane, which needs exactly")))
		})
	})

	It("is drawn, and asked as plain completions in the natural lane", func(ctx SpecContext) {
		b, _ := bundled(ctx, sourced("source: {kind: independent, input: {lognormal: {median: 30, sigma: 0.5, min: 10, max: 90}}, output: {fixed: 6}}, api: completions, lane: natural"))
		Expect(b.Summary).To(KeepTheProtocol())
		Expect(b.Summary.Inputs).To(HaveField("Other", 0))
		for _, r := range b.Run.Requests {
			Expect(*r.OutputTokens).To(BeNumerically("<=", 6))
		}
	})

	It("is a file, whose messages are sent as they are and not copied", func(ctx SpecContext) {
		path, sum := file("own.jsonl", `{"id": "greeting", "prompt": "Say hello.", "max_tokens": 3}
{"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Count to three."}], "tools": [{"type": "function"}], "tool_choice": "auto"}
{"prompt": "More than is asked"}
`)
		p := sourced("source: {kind: jsonl, file: "+path+", sha256: "+sum+", license: MIT}, max_tokens: 7, lane: natural", "tiers: [4]", "tiers: [2]")
		b, dir := bundled(ctx, p)
		Expect(b.Summary).To(KeepTheProtocol())
		Expect(b.Summary.Inputs).To(BeNil())
		lines, _, err := workloads.Load(path, workloads.Source{Kind: "jsonl", License: "MIT"})
		Expect(err).NotTo(HaveOccurred())
		for _, r := range b.Run.Requests {
			e := lines[r.Ordinal-1]
			sent := client.Params{Model: "emulated", MaxTokens: []int{3, 7}[r.Ordinal-1], TopP: 1, RepetitionPenalty: 1, TokenIDs: true, Tools: e.Tools, ToolChoice: e.ToolChoice}
			for _, m := range e.Messages {
				sent.Messages = append(sent.Messages, client.Message(m))
			}
			body, err := client.NewChatRequest(sent)
			Expect(err).NotTo(HaveOccurred())
			Expect(r.InputSHA256).To(Equal(body.SHA256()), "messages and tools are sent as they are")
			Expect(r.PromptID).To(Equal([]string{"greeting", "jsonl/2"}[r.Ordinal-1]))
			Expect(*r.OutputTokens).To(BeNumerically("<=", []int{3, 7}[r.Ordinal-1]))
		}
		Expect(b.Run.Entries.Datasets).To(ConsistOf(And(
			HaveField("SHA256", sum), HaveField("License", "MIT"), HaveField("Taken", 2), HaveField("Entries", 3), HaveField("LeftOut", map[string]int{"beyond the largest wave": 1}),
		)))
		entries, err := os.ReadFile(filepath.Join(dir, record.EntriesFile))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(entries)).NotTo(ContainSubstring("Count to three"))
		report, err := os.ReadFile(filepath.Join(dir, reports.ReportFile))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(report)).To(ContainSubstring("licence MIT. Taken: 2 of 3; left out, beyond the largest wave: 1."))
	})

	It("is a trace, and lengths of a file", func(ctx SpecContext) {
		trace, sum := file("t.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:00:00.0000000,40,4\n2023-11-16 18:00:01.0000000,60,5\n")
		b, _ := bundled(ctx, sourced("source: {kind: azure, file: "+trace+", sha256: "+sum+", license: CC-BY-4.0}, lane: fixed"))
		Expect(b.Summary).To(KeepTheProtocol())
		for _, r := range b.Run.Requests {
			Expect(r.InputTokens).To(HaveValue(Equal([]int{40, 60}[(r.Ordinal-1)%2])), "two entries go round")
			Expect(r.OutputTokens).To(HaveValue(Equal([]int{4, 5}[(r.Ordinal-1)%2])))
		}
		lengths, sum := file("l.txt", "50\n50\n70\n")
		b, _ = bundled(ctx, sourced("source: {kind: independent, input: {empirical: {file: "+lengths+", sha256: "+sum+", license: unknown, min: 1, max: 100}}, output: {fixed: 3}}, lane: fixed"))
		Expect(b.Run.Entries.Datasets).To(ConsistOf(HaveField("Of", "input")))
		for _, r := range b.Run.Requests {
			Expect(r.InputTokens).To(HaveValue(BeElementOf(50, 70)))
		}
	})

	It("refuses a file that is not the plan's, and entries that can't be asked, before anything starts", func(ctx SpecContext) {
		begin := func(p *plan.Plan) error {
			r, err := suite.NewRun(p, "")
			Expect(err).NotTo(HaveOccurred())
			return r.Begin(ctx, filepath.Join(GinkgoT().TempDir(), "bundle"))
		}
		path, sum := file("own.jsonl", `{"id": "exact", "prompt": "Say hello.", "output_tokens": 3}
{"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Count to three."}]}
`)
		workload := "source: {kind: jsonl, file: " + path + ", sha256: " + sum + ", license: MIT}, max_tokens: 7, lane: natural"
		Expect(begin(sourced(workload + ", api: completions"))).To(MatchError(And(
			ContainSubstring("exact has output_tokens, an exact number, and the natural lane forces none"), ContainSubstring("jsonl/2 is a chat, or has tools, and the plan's api, completions, takes one prompt"),
		)))
		Expect(begin(sourced(strings.Replace(workload, sum, strings.Repeat("f", 64), 1)))).To(MatchError(ContainSubstring("is another file than the plan's: its SHA-256 is " + sum)))
		Expect(begin(sourced(strings.Replace(workload, path, "nowhere.jsonl", 1)))).To(MatchError(ContainSubstring("can't be read")))
	})

	It("says which texts can't be as short as that, and runs nothing", func(ctx SpecContext) {
		r, err := suite.NewRun(sourced("source: {kind: independent, input: {fixed: 2}, output: {fixed: 3}}, lane: fixed"), "")
		Expect(err).NotTo(HaveOccurred())
		b, err := r.All(ctx, filepath.Join(GinkgoT().TempDir(), "bundle"))
		Expect(err).NotTo(HaveOccurred())
		Expect(b.Run.Requests).To(BeEmpty())
		Expect(b.Run.Lifecycles[0].Error).To(And(ContainSubstring("independent/1 can't be made 2 tokens long"), ContainSubstring("independent/4 can't be made 2 tokens long")))
		Expect(against(r.Dir())).To(BeEmpty())
	})

	It("keeps what was wanted and what came of it where no engine can count", func(ctx SpecContext) {
		p := sourced(families, "engine: {emulated: {parameters: t4-naive}}", `engine: {endpoint: {url: "http://127.0.0.1:1"}, metrics: /metrics}`, "time_scale: 100\n", "",
			"engine: {emulated: {parameters: t4-vllm}}", `engine: {endpoint: {url: "http://127.0.0.1:2"}, metrics: /metrics}`, "request: 60s, connect: 1000s", "request: 60s")
		p.Arms[0].Engine.Endpoint.URL, p.Arms[1].Engine.Endpoint.URL = countless(ctx), countless(ctx)
		b, dir := bundled(ctx, p)
		Expect(b.Run.Entries.CountedBy).To(BeNil())
		Expect(b.Run.Entries.Reason).To(And(ContainSubstring("serial: "), ContainSubstring("batching: "), ContainSubstring("404 Not Found: this engine can't count prompts")))
		Expect(b.Summary.Inputs.Other).To(BeNumerically(">", 0), "no estimate knows the chat template")
		Expect(b.Summary.Validity.Valid).To(BeTrue(), "%v", b.Summary.Validity.Reasons)
		report, err := os.ReadFile(filepath.Join(dir, reports.ReportFile))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(report)).To(ContainSubstring("nothing but an estimate said how long a text is"))
	})
})

// countless is the address of a server that can do everything but count prompts:
// an emulated one, behind a proxy that knows no /tokenize.
func countless(ctx context.Context) string {
	GinkgoHelper()
	behind, err := emulated.New(emulated.Config{Parameters: scheduler.Sets()["t4-vllm"], Name: "t4-vllm", Model: "emulated", Scale: 100}).
		Launch(ctx, engine.Launch{Logs: GinkgoWriter, Mark: func(engine.Moment) {}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(behind.Stop(ctx)).To(Succeed()) })
	address, err := url.Parse(behind.URL())
	Expect(err).NotTo(HaveOccurred())
	proxy := httputil.NewSingleHostReverseProxy(address)
	proxy.FlushInterval = -1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/tokenize" {
			http.NotFound(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	DeferCleanup(server.Close)
	return server.URL
}
