package protocol_test

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"assay/harness/engine"
	"assay/harness/engine/emulated"
	"assay/harness/engine/emulated/scheduler"
	"assay/harness/plan"
	"assay/suites/suite"
)

// mechanism starts a batching server, changed as a spec wants it, and checks on
// it how many of eight clients are served at once. Its answers of two tokens are
// over long before a first look, as those of a fast GPU are.
func mechanism(ctx context.Context, change func(*scheduler.Parameters)) (suite.Peak, error) {
	GinkgoHelper()
	parameters := scheduler.Sets()["t4-vllm"]
	change(&parameters)
	config := emulated.Config{Parameters: parameters, Name: "t4-vllm", Model: "emulated", Seed: 1, Scale: scale}
	server, err := emulated.New(config).Launch(ctx, engine.Launch{Run: "mechanism", Name: "01-batching", Logs: io.Discard, Mark: func(engine.Moment) {}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(server.Stop(ctx)).To(Succeed()) })
	p, err := plan.Parse("mechanism.yaml", fmt.Appendf(nil, `
schema: assay.plan/v1
name: mechanism
experiment: concurrency
labels: [protocol]
seed: 11
model: {name: emulated, revision: none, served_as: emulated}
arms:
  - {name: serial, role: baseline, engine: {endpoint: {url: %[1]q}, metrics: /metrics}}
  - {name: batching, role: candidate, engine: {endpoint: {url: %[1]q}, metrics: /metrics}}
workload: {prompts: eight, max_tokens: 2, temperature: 0, lane: natural}
schedule: {tiers: [8], repeats: 1, settle: {idle: 10s}}
timeouts: {ready: 10s, request: 20s, connect: 10s, stop: 10s}
telemetry: {gpu: 0s, engine: 0s, mechanism: true}
gates: {client_lag: 500ms, coalesced: 100%%}
claims: []
`, server.URL()))
	Expect(err).NotTo(HaveOccurred())
	r, err := suite.NewRun(p, "")
	Expect(err).NotTo(HaveOccurred())
	Expect(r.Begin(ctx, filepath.Join(GinkgoT().TempDir(), "bundle"))).To(Succeed())
	place := r.Schedule.Lifecycles[1]
	Expect(r.Start(ctx, place)).To(Succeed())
	peak, err := r.Mechanism(ctx, place, 8)
	Expect(r.Stop(ctx)).To(Succeed())
	b, finished := r.Finish()
	Expect(finished).NotTo(HaveOccurred())
	Expect(r.Seal()).To(Succeed())
	Expect(b.Run.Requests).To(BeEmpty(), "the wave is in no record")
	return peak, err
}

var _ = Describe("the mechanism", Label("protocol"), func() {
	It("sees a whole wave being worked on, however short the plan's answers are", func(ctx SpecContext) {
		peak, err := mechanism(ctx, func(*scheduler.Parameters) {})
		Expect(err).NotTo(HaveOccurred())
		Expect(peak.Running).To(Equal(8), "%s", peak)
		Expect(peak.Looks).To(BeNumerically(">", 0))
	})

	It("sees that a server runs fewer", func(ctx SpecContext) {
		peak, err := mechanism(ctx, func(p *scheduler.Parameters) { p.MaxSequences = 7 })
		Expect(err).NotTo(HaveOccurred())
		Expect(peak.Running).To(Equal(7), "%s", peak)
		Expect(peak.Looks).To(BeNumerically(">", 1), "it looks as long as the wave lasts")
	})

	It("says that a server refuses answers so long", func(ctx SpecContext) {
		_, err := mechanism(ctx, func(p *scheduler.Parameters) { p.ContextTokens = 512 })
		Expect(err).To(MatchError(And(ContainSubstring("8 of the 8 requests for 1024 tokens each"), ContainSubstring("are more than the 512 that this server holds"))))
	})
})
