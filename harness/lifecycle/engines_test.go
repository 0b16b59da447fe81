package lifecycle_test

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/lifecycle"
	"assay/harness/plan"
)

func TestARelativeFolderOfAProcessLiesUnderTheProject(t *testing.T) {
	root := t.TempDir()
	for dir, at := range map[string]string{"nowhere": filepath.Join(root, "nowhere"), "/nowhere": "/nowhere"} {
		g := NewWithT(t)
		arm := plan.Arm{Name: "a", Engine: plan.Engine{Process: &plan.Process{Command: []string{"bin/serve"}, Dir: dir}}}
		made, err := lifecycle.NewEngine(&plan.Plan{}, arm, plan.Lifecycle{}, nil, root)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(made.Check(t.Context())).To(MatchError(ContainSubstring("the folder " + at + ", in which bin/serve is to run, is not there")))
	}
}
