package reports_test

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"

	"assay/reports/shape"
)

// What a schema says in words that the quick look does not know, each line of a
// large bundle would be held against slowly.
func TestTheSchemasOfLinesAreKnownWhole(t *testing.T) {
	for _, kind := range []string{"request", "wave", "lifecycle", "telemetry", "engine-metrics"} {
		g := NewWithT(t)
		text, err := os.ReadFile("schema/" + kind + ".schema.json")
		g.Expect(err).NotTo(HaveOccurred())
		s, err := shape.Compile(text)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.Known()).To(BeTrue(), kind)
	}
}
