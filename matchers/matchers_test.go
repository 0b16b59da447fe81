package matchers_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"assay/claim"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/harness/record/recordtest"
	. "assay/matchers"
)

func fixture(o recordtest.Options) (record.Run, metric.Summary, []claim.Claim) {
	p := recordtest.Plan()
	run := recordtest.Run(p, o)
	s := metric.Summarize(p, run)
	return run, s, claim.Judge(p, s).Claims
}

// wave is the baseline's wave of four clients; half of it fails if o says so.
func wave(o recordtest.Options) record.Population {
	run, _, _ := fixture(o)
	return run.Of(run.Waves[2])
}

var half = recordtest.Options{Fails: func(r record.Request) bool { return r.Ordinal > 2 }}

func TestMatchersDecide(t *testing.T) {
	clean, failing := wave(recordtest.Options{}), wave(half)
	short := clean
	short.Attempts = clean.Attempts[:3]
	doubled := clean
	doubled.Attempts = append(append([]record.Request(nil), clean.Attempts[:3]...), clean.Attempts[0])
	for _, test := range []struct {
		name    string
		matcher types.GomegaMatcher
		actual  record.Population
		want    bool
		says    string
	}{
		{"all are there", AccountForEveryAttempt(), clean, true, ""},
		{"failures are there too", AccountForEveryAttempt(), failing, true, ""},
		{"one is missing", AccountForEveryAttempt(), short, false, "ordinal 4 has no attempt"},
		{"one is doubled", AccountForEveryAttempt(), doubled, false, "there are no retries"},
		{"complete", CompleteEveryRequest(), clean, true, ""},
		{"not complete", CompleteEveryRequest(), failing, false, "the first: wave 3, ordinal 3, timeout: i/o timeout"},
		{"a missing one is not complete", CompleteEveryRequest(), short, false, "3 attempts"},
		{"an empty population is not complete", CompleteEveryRequest(), record.Population{Name: "nobody"}, false, "nobody"},
		{"half fail", HaveFailureRate("==", 0.5), failing, true, ""},
		{"more than a tenth fail", HaveFailureRate("<", 0.1), failing, false, "2 timeout"},
		{"nobody has no rate", HaveFailureRate("==", 0), record.Population{Name: "nobody"}, false, "0 of 0"},
		{"goodput", HaveGoodput(">", 40), clean, true, ""},
		{"goodput counts the wall of failures", HaveGoodput(">", 40), failing, false, "0.79992 tok/s"},
		{"TTFT of all", HaveTTFT(50, "<", plan.Duration(time.Second)), clean, true, ""},
		{"TTFT with failures is a bound", HaveTTFT(95, "<", plan.Duration(time.Minute)), failing, false, "only known to be at least"},
		{"a bound can still be too long", HaveTTFT(95, "<", plan.Duration(time.Second)), failing, false, "it is ≥ "},
		{"a bound can show that it is long", HaveTTFT(95, ">", plan.Duration(time.Second)), failing, true, ""},
		{"survivors have to be asked for", HaveTTFT(95, "<", plan.Duration(time.Second)), failing.OK(), true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := test.matcher.Match(test.actual)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(test.want), "%s", test.matcher.FailureMessage(test.actual))
			if !test.want {
				g.Expect(test.matcher.FailureMessage(test.actual)).To(ContainSubstring(test.says))
			}
			g.Expect(test.matcher.NegatedFailureMessage(test.actual)).NotTo(BeEmpty())
		})
	}
}

func TestMisuseIsAnError(t *testing.T) {
	tier := record.Population{Name: "a tier", Attempts: make([]record.Request, 1), Scheduled: 1}
	for name, test := range map[string]struct {
		matcher types.GomegaMatcher
		actual  any
	}{
		"no population":                {AccountForEveryAttempt(), 5},
		"not one wave":                 {AccountForEveryAttempt(), tier},
		"a run for a population":       {CompleteEveryRequest(), record.Run{}},
		"goodput of a tier":            {HaveGoodput(">", 1), tier},
		"a comparator that is none":    {HaveFailureRate("~", 0.5), wave(half)},
		"a rate above one":             {HaveFailureRate("<", 5), wave(half)},
		"a percentile above a hundred": {HaveTTFT(950, "<", plan.Duration(time.Second)), wave(half)},
		"a bundle for its summary":     {KeepTheProtocol(), record.Run{}},
		"a claim's name for claims":    {SupportOnly(plan.ClaimGoodput), "goodput"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.matcher.Match(test.actual)
			NewWithT(t).Expect(err).To(HaveOccurred())
		})
	}
}

func TestTheRunsMatchers(t *testing.T) {
	g := NewWithT(t)
	_, s, claims := fixture(recordtest.Options{})
	g.Expect(s).NotTo(KeepTheProtocol(), "a fixture that is not chained has no plan's hash")
	g.Expect(metric.Validity{Valid: true}).To(KeepTheProtocol())
	g.Expect(metric.Validity{}).NotTo(KeepTheProtocol(), "nothing is no validity")
	g.Expect(claims).To(SupportOnly(plan.ClaimGoodput, plan.ClaimFailures, plan.ClaimTTFT))
	m := SupportOnly(plan.ClaimGoodput)
	ok, err := m.Match(claims)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ok).To(BeFalse())
	g.Expect(m.FailureMessage(claims)).To(ContainSubstring("does not declare"))
	g.Expect([]claim.Claim{}).NotTo(SupportOnly(plan.ClaimGoodput))
}

func ExampleHaveTTFT() {
	failing := wave(half)
	m := HaveTTFT(95, "<", plan.Duration(time.Minute))
	ok, _ := m.Match(failing)
	fmt.Println(ok)
	ok, _ = m.Match(failing.OK())
	fmt.Println(ok)
	// Output:
	// false
	// true
}
