package plan_test

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"assay/golden"
	"assay/harness/plan"
)

func crossover(t *testing.T, edits ...string) (*plan.Plan, error) {
	t.Helper()
	g := NewWithT(t)
	data, err := os.ReadFile("testdata/crossover.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	text := string(data)
	for i := 0; i < len(edits); i += 2 {
		g.Expect(text).To(ContainSubstring(edits[i]))
		text = strings.Replace(text, edits[i], edits[i+1], 1)
	}
	return plan.Parse("crossover.yaml", []byte(text))
}

func TestACrossoverPlanFreezesToAFixedPoint(t *testing.T) {
	g := NewWithT(t)
	for _, edits := range [][]string{
		nil,
		{"  fixed:   {tasks: retrieval, requests: 144, cycle: 12, output_tokens: 96}\n", "", "output_identical, equal_token_count, ", ""},
		{"output_tokens: 96", "output_tokens: 96, input_tokens: [64, 128]"},
		{"cost: {list_rate_per_hour: 0.39, currency: USD, source: console, boundary: boot to termination}\nresume: {causes: [preempted, operator], at_most: 2}\n", ""},
		{"caches: {compile: fresh, prefix: \"off\", page: warm, image: present}\n", "", "inference: {level: 95%, resamples: 20000, margin: 0%}\n", "", "blocks: [ABBA, BAAB], poll: 50ms", "blocks: [BAAB]"},
	} {
		p, err := crossover(t, edits...)
		g.Expect(err).NotTo(HaveOccurred())
		once, err := plan.Freeze(p)
		g.Expect(err).NotTo(HaveOccurred())
		again, err := plan.Parse("frozen", once.Bytes)
		g.Expect(err).NotTo(HaveOccurred(), string(once.Bytes))
		g.Expect(again).To(Equal(p))
	}
	p, err := crossover(t)
	g.Expect(err).NotTo(HaveOccurred())
	once, err := plan.Freeze(p)
	g.Expect(err).NotTo(HaveOccurred())
	golden.Hold(t, "crossover.frozen.golden", string(once.Bytes))
	g.Expect(*p.Pairing.Cost).To(Equal(plan.Cost{ListRatePerHour: 0.39, Currency: "USD", Source: "console", Boundary: "boot to termination"}))
	g.Expect(*p.Pairing.Resume).To(Equal(plan.Resume{Causes: []string{"preempted", "operator"}, AtMost: 2}))
	without, err := crossover(t, "resume: {causes: [preempted, operator], at_most: 2}\n", "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(without.Pairing.Resume).To(BeNil())
	expanded, _, err := p.Expand(func(string) (string, bool) { return "", false })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(expanded).To(Equal(p))
}

func TestWhatACrossoverPlanCannotBe(t *testing.T) {
	for _, c := range []struct{ old, new, says string }{
		{"pairs: 6", "pairs: 7", "schedule.pairs: 7 pairs leave a block of two with one: write an even number, such as 8"},
		{"pairs: 6", "pairs: 4", "claims: 4 pairs can't support a claim at 95%: a two-sided sign-flip test over them goes no lower than 2/2^4; run 6 pairs or more"},
		{"level: 95%", "level: 99%", "claims: 6 pairs can't support a claim at 99%: a two-sided sign-flip test over them goes no lower than 2/2^6; run 8 pairs or more"},
		{"level: 95%", "level: 100%", "inference.level: 100% is no level of confidence"},
		{"[ABBA, BAAB]", "[ABBA, ABBA]", "schedule.blocks[1]: ABBA stands there twice"},
		{"[ABBA, BAAB]", "[ABAB]", `schedule.blocks[0]: "ABAB" is not known`},
		{"poll: 50ms", "poll: 1s", "schedule.poll: 1s blurs the moment of readiness"},
		{"poll: 50ms", "tiers: [1]", "schedule.tiers: unknown key"},
		{"tasks: mixed", "tasks: mix", `lanes.natural.tasks: there is no family "mix"`},
		{"requests: 24", "requests: 8", "lanes.natural.requests: 8 do not hold one cycle of 12"},
		{"dwell: 12", "dwell: 25", "lanes.natural.requests: 24 can't hold a dwell of 25"},
		{", output_tokens: 96", "", "lanes.fixed.output_tokens: missing"},
		{"max_tokens: 64", "output_tokens: 64", "lanes.natural.output_tokens: unknown key"},
		{"failure: exclude_pair", "failure: retry", `failure: "retry" is not known: write exclude_pair or stop_pair`},
		{"natural: {tasks: mixed, requests: 24, cycle: 12, max_tokens: 64}", "", "claims[2]: natural_quality is over the natural lane, and the plan has none"},
		{"correctness: report", "correctness: none", "claims[2]: natural_quality needs answers that are evaluated"},
		{"role: candidate,", "role: candidate, token_ids: false,", "claims[0]: output_identical is decided from token ids, and compiled is not asked for them"},
		{"temperature: 0", "temperature: 1", ""},
		{"currency: USD", "currency: dollars", `cost.currency: "dollars" is wrong: write a currency's three letters, such as USD`},
		{"output_tokens: 96", "output_tokens: 96, input_tokens: [2048, 8]", "lanes.fixed.input_tokens[1]: 8 is too small"},
		{"at_most: 2", "at_most: 0", "resume.at_most: 0 is too small"},
		{"experiment: crossover", "experiment: crossover\nworkload: {prompts: eight, max_tokens: 1, lane: fixed}", "workload: unknown key"},
	} {
		t.Run(c.new, func(t *testing.T) {
			_, err := crossover(t, c.old, c.new)
			if c.says == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
	inContainer := []string{
		"emulated: {parameters: rtx4090-eager, startup: 64600ms}", "container: {image: vllm, mounts: [{volume: cache, target: /root/.cache}]}",
		"emulated: {parameters: rtx4090-compiled, startup: 119143ms}", "container: {image: vllm, mounts: [{volume: model, target: /model, read_only: true}]}",
	}
	_, err := crossover(t, inContainer...)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("arms[0].engine.container.mounts: caches.compile is fresh, and eager may write to what is mounted at /root/.cache")))
	_, err = crossover(t, append(inContainer, "compile: fresh", "compile: kept")...)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("caches.compile: kept, and nothing that compiled may write to outlives its container")))
	_, err = crossover(t, "identity: report", "identity: require", "temperature: 0", "temperature: 0.7")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("a temperature of 0.7 draws them at random")))
}

func TestACrossoverScheduleIsCounterbalancedInBlocks(t *testing.T) {
	g := NewWithT(t)
	for _, seed := range []string{"1", "2", "3", "4", "5"} {
		p, err := crossover(t, "seed: 7", "seed: "+seed, "pairs: 6", "pairs: 8")
		g.Expect(err).NotTo(HaveOccurred())
		s := p.Schedule()
		g.Expect(s.Lifecycles).To(HaveLen(32))
		g.Expect(s).To(Equal(p.Schedule()), "drawn from the plan alone")
		orders := map[plan.Lane]string{}
		for i, l := range s.Lifecycles {
			g.Expect(l.Number).To(Equal(i + 1))
			g.Expect(l.Pair).To(Equal(i/2 + 1))
			g.Expect(l.Position).To(Equal(i%2 + 1))
			g.Expect(l.Waves).To(HaveLen(1))
			g.Expect(l.Waves[0].Attempts()).To(Equal(p.Pairing.Lanes.Sequence(l.Lane).Requests))
			orders[l.Lane] += map[string]string{"eager": "A", "compiled": "B"}[l.Arm]
		}
		for lane, order := range orders {
			abba := 0
			for i := 0; i < len(order); i += 4 {
				g.Expect(order[i:i+4]).To(BeElementOf("ABBA", "BAAB"), "lane %s", lane)
				if order[i:i+4] == "ABBA" {
					abba++
				}
			}
			g.Expect(abba).To(Equal(2), "each order as often as the other in lane %s: %s", lane, order)
		}
		g.Expect(s.PairsOf(plan.Fixed)).To(Equal([]int{1, 2, 5, 6, 9, 10, 13, 14}))
		g.Expect(s.PairsOf(plan.Natural)).To(Equal([]int{3, 4, 7, 8, 11, 12, 15, 16}))
		g.Expect(s.Requests()).To(Equal(16*144 + 16*24))
	}
	one, err := crossover(t)
	g.Expect(err).NotTo(HaveOccurred())
	orders := map[string]bool{}
	for _, seed := range []string{"11", "12", "13", "14", "15", "16", "17", "18"} {
		other, err := crossover(t, "seed: 7", "seed: "+seed)
		g.Expect(err).NotTo(HaveOccurred())
		orders[other.Schedule().SHA256()] = true
	}
	g.Expect(len(orders)).To(BeNumerically(">", 1), "the seed decides")
	g.Expect(one.WorstCaseEmulated()).To(Equal(24*(one.Timeouts.Ready+one.Timeouts.Stop) + plan.Duration(12*144+12*24)*(one.Timeouts.Connect+one.Timeouts.Request)))
}
