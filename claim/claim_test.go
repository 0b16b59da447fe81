package claim_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"assay/claim"
	"assay/harness/crossing"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/harness/record/recordtest"
)

func judge(t *testing.T, p *plan.Plan, o recordtest.Options) map[plan.Claim]claim.Claim {
	t.Helper()
	run, err := recordtest.Write(t.TempDir()+"/b", p, recordtest.Run(p, o))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	out := map[plan.Claim]claim.Claim{}
	for _, c := range claim.Judge(p, metric.Summarize(p, run)).Claims {
		if c.Tier == 4 {
			out[c.Claim] = c
		}
	}
	return out
}

func naiveFails(r record.Request) bool { return r.Arm == "naive" && r.Ordinal == 4 }

func TestOneLifecycleIsAnObservation(t *testing.T) {
	g := NewWithT(t)
	c := judge(t, recordtest.Plan(), recordtest.Options{Fails: naiveFails})
	for name, v := range c {
		g.Expect(v.Verdict).To(Equal(claim.Unsupported), "%s", name)
		g.Expect(v.Reasons).To(ContainElement(ContainSubstring("an observation")))
		g.Expect(v.Observation).NotTo(BeEmpty())
		g.Expect(v.Records).NotTo(BeEmpty())
		g.Expect(v.PValue).To(BeNil())
	}
}

func TestFewPairsAreDescriptive(t *testing.T) {
	c := judge(t, recordtest.Plan("lifecycles: 1", "lifecycles: 5"), recordtest.Options{})
	NewWithT(t).Expect(c[plan.ClaimGoodput].Verdict).To(Equal(claim.Unsupported))
	NewWithT(t).Expect(c[plan.ClaimGoodput].Reasons).To(ContainElement(ContainSubstring("descriptive")))
}

func TestSixPairsThatAgreeSupportAClaim(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan("lifecycles: 1", "lifecycles: 6")
	c := judge(t, p, recordtest.Options{Fails: naiveFails})
	for _, name := range []plan.Claim{plan.ClaimGoodput, plan.ClaimFailures} {
		g.Expect(c[name].Verdict).To(Equal(claim.Supported), "%s: %v", name, c[name].Reasons)
		g.Expect(*c[name].PValue).To(BeNumerically("~", 2.0/64, 1e-12))
	}
	g.Expect(c[plan.ClaimTTFT].Verdict).To(Equal(claim.Supported), "a server that waits 10 s in vain is slower than one that does not: %v", c[plan.ClaimTTFT].Reasons)
	g.Expect(c[plan.ClaimTTFT].Reasons).To(ContainElement(ContainSubstring("6 of 6 pairs are known only as bounds; all point one way")))
	g.Expect(*c[plan.ClaimTTFT].PValue).To(BeNumerically("~", 2.0/64, 1e-12))
	c = judge(t, p, recordtest.Options{})
	g.Expect(c[plan.ClaimTTFT].Verdict).To(Equal(claim.Supported))
	g.Expect(c[plan.ClaimFailures].Verdict).To(Equal(claim.NotApplicable))
	c = judge(t, p, recordtest.Options{Speed: 0.1})
	g.Expect(c[plan.ClaimGoodput].Verdict).To(Equal(claim.Unsupported))
	g.Expect(c[plan.ClaimGoodput].Reasons).To(ContainElement(ContainSubstring("the other way")))
}

// TestBoundsThatDisagreeShowNothing has one pair in which the candidate is the
// one that fails, and one in which both do.
func TestBoundsThatDisagreeShowNothing(t *testing.T) {
	for name, test := range map[string]struct {
		fails func(record.Request) bool
		says  string
	}{
		"the other way": {func(r record.Request) bool { return r.Ordinal == 4 && (r.Arm == "naive") != (r.Pair == 3) }, "do not all point one way"},
		"in both arms":  {func(r record.Request) bool { return r.Ordinal == 4 && (r.Arm == "naive" || r.Pair == 3) }, "pair 3 has no effect"},
	} {
		t.Run(name, func(t *testing.T) {
			c := judge(t, recordtest.Plan("lifecycles: 1", "lifecycles: 6"), recordtest.Options{Fails: test.fails})[plan.ClaimTTFT]
			NewWithT(t).Expect(c.Verdict).To(Equal(claim.Unsupported))
			NewWithT(t).Expect(c.PValue).To(BeNil())
			NewWithT(t).Expect(c.Reasons).To(ContainElement(ContainSubstring(test.says)))
		})
	}
}

func TestClaimsAreAboutTheArmsAndSayWhatIsEmulated(t *testing.T) {
	for name, c := range judge(t, recordtest.Plan(), recordtest.Options{}) {
		NewWithT(t).Expect(c.Sentence).To(HavePrefix("vllm, as configured and emulated, "), "%s", name)
		NewWithT(t).Expect(c.Observation).To(HavePrefix("emulated: "))
		NewWithT(t).Expect(c.Provenance).To(Equal(record.Emulated))
	}
}

// summary is a run's with six pairs, for a test to change before it is judged.
func summary(t *testing.T, p *plan.Plan) metric.Summary {
	t.Helper()
	run, err := recordtest.Write(t.TempDir()+"/b", p, recordtest.Run(p, recordtest.Options{}))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return metric.Summarize(p, run)
}

func TestWhatKeepsAClaimFromBeingSupported(t *testing.T) {
	value := func(v float64, atLeast bool) metric.Value { return metric.Value{Value: &v, AtLeast: atLeast} }
	six := recordtest.Plan("lifecycles: 1", "lifecycles: 6")
	for name, test := range map[string]struct {
		p      *plan.Plan
		change func(*metric.Tier)
		claim  plan.Claim
		says   string // empty: it is supported all the same
	}{
		"nothing":                        {six, func(*metric.Tier) {}, plan.ClaimTTFT, ""},
		"a tier of which a part was run": {six, func(t *metric.Tier) { t.Status = "partial" }, plan.ClaimTTFT, "the tier is partial"},
		"pairs that disagree": {six, func(t *metric.Tier) {
			t.Pairs[2].Candidate = value(*t.Pairs[2].Baseline.Value/8, false)
		}, plan.ClaimGoodput, "not shown at 95 %"},
		"equal outputs that were required": {recordtest.Plan("lifecycles: 1", "lifecycles: 6", "claims: [", "gates: {identity: require}\nclaims: ["), func(*metric.Tier) {}, plan.ClaimGoodput, ""},
		"unequal outputs where equal ones are required": {recordtest.Plan("lifecycles: 1", "lifecycles: 6", "claims: [", "gates: {identity: require}\nclaims: ["), func(t *metric.Tier) {
			t.Outputs.Equal--
		}, plan.ClaimGoodput, "the plan requires equal outputs, and 47 of 48 were"},
		"unequal outputs that are only reported": {six, func(t *metric.Tier) { t.Outputs.Equal-- }, plan.ClaimGoodput, ""},
		"a baseline that waits at least so long": {six, func(t *metric.Tier) { t.TTFTPairs[2].Baseline = value(60, true) }, plan.ClaimTTFT, ""},
		"a candidate known only to be at least faster": {six, func(t *metric.Tier) {
			t.TTFTPairs[2].Candidate.AtLeast = true // its bound is below the baseline: the truth may be above
		}, plan.ClaimTTFT, "pair 3 has no effect"},
		"a baseline whose bound is below": {six, func(t *metric.Tier) { t.TTFTPairs[2].Baseline = value(1e-6, true) }, plan.ClaimTTFT, "pair 3 has no effect"},
		"a pair without a number":         {six, func(t *metric.Tier) { t.Pairs[2].Candidate.Value = nil }, plan.ClaimGoodput, "pair 3 has no effect"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := summary(t, test.p)
			test.change(&s.Tiers[1])
			for _, c := range claim.Judge(test.p, s).Claims {
				if c.Claim != test.claim || c.Tier != 4 {
					continue
				}
				if test.says == "" {
					g.Expect(c.Verdict).To(Equal(claim.Supported), "%v", c.Reasons)
					return
				}
				g.Expect(c.Verdict).To(Equal(claim.Unsupported))
				g.Expect(c.Reasons).To(ContainElement(ContainSubstring(test.says)))
			}
		})
	}
}

func TestNothingAttemptedIsNotNothingFailed(t *testing.T) {
	c := judge(t, recordtest.Plan(), recordtest.Options{Stopped: func(lifecycle, _ int) bool { return lifecycle == 1 }})[plan.ClaimFailures]
	NewWithT(t).Expect(c.Verdict).To(Equal(claim.Unsupported))
	NewWithT(t).Expect(c.Reasons).To(ContainElement("naive made 0 attempts and vllm 0: there is nothing to compare"))
}

func TestAnInvalidRunSupportsNothing(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan("lifecycles: 1", "lifecycles: 6")
	run, err := recordtest.Write(t.TempDir()+"/b", p, recordtest.Run(p, recordtest.Options{}))
	g.Expect(err).NotTo(HaveOccurred())
	yes := true
	run.Waves[0].CarryOver = &yes
	for _, c := range claim.Judge(p, metric.Summarize(p, run)).Claims {
		g.Expect(c.Verdict).NotTo(Equal(claim.Supported))
	}
}

// TestFalsePositives draws pairs without any difference and counts how often
// the test at 95 % calls one: it must not be more often than it says.
func TestFalsePositives(t *testing.T) {
	g := NewWithT(t)
	state := uint64(7)
	random := func() float64 {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		return float64(state>>11)/(1<<53) - 0.5
	}
	const draws = 4000
	called := 0
	for range draws {
		effects := make([]float64, 8)
		for i := range effects {
			effects[i] = random() + random() + random()
		}
		if p, _ := crossing.SignFlip(effects); p <= 1-claim.Level {
			called++
		}
	}
	rate := float64(called) / draws
	g.Expect(rate).To(BeNumerically("<", 0.06))
	g.Expect(rate).To(BeNumerically(">", 0.03))
}
