package environment_test

import (
	"os"
	"runtime"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/environment"
	"assay/harness/record"
)

func TestEveryFactHasAValueOrAReason(t *testing.T) {
	g := NewWithT(t)
	facts := environment.Facts(t.Context(), ".")
	g.Expect(facts).To(HaveKey("clock_source"))
	for name, f := range facts {
		if f.Value == nil {
			g.Expect(f.Reason).NotTo(BeEmpty(), name)
		} else {
			g.Expect(f.Provenance).To(Equal(record.ClientObserved), name)
		}
	}
	g.Expect(facts["os"].Value).To(Equal(runtime.GOOS))
}

func TestNoFactNamesTheMachine(t *testing.T) {
	host, err := os.Hostname()
	if err != nil || len(host) < 4 {
		t.Skip("this machine has no name to look for")
	}
	g := NewWithT(t)
	for name, f := range environment.Facts(t.Context(), ".") {
		g.Expect(f.Value).NotTo(Equal(host), name)
	}
}

func TestTooManyConnectionsAreRefusedBeforehand(t *testing.T) {
	g := NewWithT(t)
	g.Expect(environment.Enough(1)).To(Succeed())
	limit, err := environment.FileDescriptors()
	if err != nil {
		t.Skip(err)
	}
	if limit > 1<<40 {
		t.Skip("no limit to reach")
	}
	g.Expect(environment.Enough(int(limit))).To(MatchError(ContainSubstring("ulimit -n")))
}
