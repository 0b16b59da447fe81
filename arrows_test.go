package assay_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/tools/go/packages"
)

// allowed says which of the module's trees each tree may import, beside
// itself. What is not listed is refused.
var allowed = map[string][]string{
	"suites":   {"matchers", "reports", "claim", "harness", "workloads"},
	"golden":   {},
	"matchers": {"claim", "comparison", "harness/record", "harness/metric", "harness/plan", "harness/crossing"},
	"reports":  {"golden", "claim", "comparison", "workloads", "harness/record", "harness/metric", "harness/plan", "harness/crossing"},
	"claim":    {"harness/record", "harness/metric", "harness/plan", "harness/crossing"},
	// It knows a bundle by its plan and records alone, so that matchers can have it.
	"comparison": {"harness/record", "harness/metric", "harness/plan"},
	"harness":    {"golden"},
	"workloads":  {},
	"cmd":        {"golden", "reports", "claim", "comparison", "harness", "workloads"},
	"bench":      {"harness", "workloads"},
}

func tree(path string) string {
	path = strings.TrimPrefix(path, "assay/")
	head, _, _ := strings.Cut(path, "/")
	return head
}

func TestArrowsPointOneWay(t *testing.T) {
	g := NewWithT(t)
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedImports, Tests: true}, "./...")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(loaded)).To(BeNumerically(">", 10))
	for _, p := range loaded {
		from := strings.TrimSuffix(strings.TrimSuffix(p.PkgPath, ".test"), "_test")
		if !strings.HasPrefix(from, "assay/") {
			continue
		}
		may, known := allowed[tree(from)]
		g.Expect(known).To(BeTrue(), "%s is in no tree of the layout", from)
		for to := range p.Imports {
			to = strings.TrimSuffix(to, "_test")
			if !strings.HasPrefix(to, "assay/") || tree(to) == tree(from) {
				continue
			}
			ok := slices.ContainsFunc(may, func(a string) bool {
				to := strings.TrimPrefix(to, "assay/")
				return to == a || strings.HasPrefix(to, a+"/")
			})
			g.Expect(ok).To(BeTrue(), "%s imports %s: the arrow points the other way", from, to)
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	g := NewWithT(t)
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedFiles}, "./...")
	g.Expect(err).NotTo(HaveOccurred())
	for _, p := range loaded {
		if len(p.GoFiles) == 0 {
			continue // tests only: a suite says it in its own words
		}
		_, err := os.Stat(filepath.Join(filepath.Dir(p.GoFiles[0]), "doc.go"))
		g.Expect(err).NotTo(HaveOccurred(), "%s has no doc.go", p.PkgPath)
	}
}
