package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Hold compares a text with testdata/NAME of the package under test, or writes
// it there if the test runs with -update.
func Hold(t *testing.T, name, got string) {
	t.Helper()
	g := gomega.NewWithT(t)
	file := filepath.Join("testdata", name)
	if *update {
		g.Expect(os.WriteFile(file, []byte(got), 0o644)).To(gomega.Succeed())
	}
	want, err := os.ReadFile(file)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(got).To(gomega.Equal(string(want)), "go test -update writes it anew")
}
