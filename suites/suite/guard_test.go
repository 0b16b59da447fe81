package suite

import (
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
)

func TestWaysOfRunningThatWouldBeWorthlessAreRefused(t *testing.T) {
	g := NewWithT(t)
	g.Expect(guard(types.SuiteConfig{ParallelTotal: 1})).To(Succeed())
	err := guard(types.SuiteConfig{FlakeAttempts: 3, MustPassRepeatedly: 2, ParallelTotal: 4, RandomizeAllSpecs: true, FocusStrings: []string{"serves"}, SkipStrings: []string{"kept"}, FocusFiles: []string{"a"}, SkipFiles: []string{"b"}})
	for _, word := range []string{"--flake-attempts=3", "--must-pass-repeatedly=2", "4 parallel processes", "--randomize-all", "--focus:", "--skip:", "--focus-file:", "--skip-file:"} {
		g.Expect(err).To(MatchError(ContainSubstring(word)), "all at once")
	}
}

func TestRetriesInASpecAreRefused(t *testing.T) {
	g := NewWithT(t)
	_, _, errs := noRetries(types.NodeTypeIt, 0, "serves", []any{ginkgo.FlakeAttempts(2), ginkgo.MustPassRepeatedly(3)})
	g.Expect(errs).To(HaveLen(2))
	_, _, errs = noRetries(types.NodeTypeIt, 0, "serves", []any{ginkgo.Label("x")})
	g.Expect(errs).To(BeEmpty())
}

func TestWhatIsAskedForByName(t *testing.T) {
	for _, test := range []struct {
		filter string
		want   bool
	}{
		{"gpu", true},
		{"gpu && tier:8", true},
		{"gpu || cpu", true},
		{"!slow", false},
		{"", false},
		{"tier:8", false},
		{"tier:8 || gpu", false},
		{"cpu", false},
		{"/g.u/", true},
	} {
		t.Run(test.filter, func(t *testing.T) {
			got, err := asked(test.filter, []string{"gpu", "tier:8"}, []string{"gpu"})
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(got).To(Equal(test.want))
		})
	}
	_, err := asked("gpu &&", []string{"gpu"}, []string{"gpu"})
	NewWithT(t).Expect(err).To(HaveOccurred())
}

func TestAMisspeltLabelIsRefused(t *testing.T) {
	g := NewWithT(t)
	known := []string{"cpu", "gpu", "tier:8"}
	for _, filter := range []string{"", "gpu", "GPU && tier:8", "!(cpu || gpu)", "/gp./", "cpu, gpu"} {
		g.Expect(unknown(filter, known)).To(Succeed(), filter)
	}
	for _, filter := range []string{"gpuu", "gpu && tier:9", "!slow"} {
		g.Expect(unknown(filter, known)).To(MatchError(And(ContainSubstring("names"), ContainSubstring("cpu, gpu, tier:8"))), filter)
	}
}

func TestTheModulesOwnLabelsAreKnown(t *testing.T) {
	g := NewWithT(t)
	known, err := knownLabels(nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(known).To(ContainElements("cpu", "emulated", "gpu", "protocol", "smoke", "tier:64"))
	g.Expect(strings.Join(known, " ")).NotTo(ContainSubstring("tier:3 "))
}

// A plan that does not load would be a spec without labels, which a filter
// leaves out: green, and nothing done.
func TestPlansThatDoNotLoadAreRefusedBeforeAnythingIsFiltered(t *testing.T) {
	g := NewWithT(t)
	set := func(flag *string, value string) {
		before := *flag
		*flag = value
		t.Cleanup(func() { *flag = before })
	}
	set(planFlag, "harness/plan/testdata/mistakes.yaml")
	g.Expect(loadPlans()).To(MatchError(ContainSubstring("mistakes.yaml:13:41")))
	set(planFlag, "suites/crossover/plans/cpu.yaml")
	g.Expect(loadPlans()).To(Succeed())
	set(resumeFlag, "out/nowhere")
	g.Expect(loadPlans()).To(MatchError(ContainSubstring("nothing can go on from")))
	set(causeFlag, "weather")
	g.Expect(loadPlans()).To(MatchError(ContainSubstring(`the cause "weather" is none of the plan's`)))
}
