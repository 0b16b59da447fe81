package reports_test

import (
	"encoding/json"
	"os"
	"testing"

	. "github.com/onsi/gomega"

	"assay/reports/shape"
)

// What a reader of lines leaves out of a short line is what the schema wants.
func TestTheSchemaWantsOfARequestsListsWhatItsReaderTakes(t *testing.T) {
	g := NewWithT(t)
	data, err := os.ReadFile("schema/request.schema.json")
	g.Expect(err).NotTo(HaveOccurred())
	var schema struct {
		Properties map[string]json.RawMessage
	}
	g.Expect(json.Unmarshal(data, &schema)).To(Succeed())
	numbers := `{"type":"array","items":{"type":"integer"}}`
	events := `{"type":"array","items":{"type":"array","minItems":3,"maxItems":3,"prefixItems":[{"type":"integer"},{"type":"integer"},{"oneOf":[{"type":"integer"},{"type":"null"}]}]}}`
	for name, want := range map[string]string{"events": events, "client_lag_ns": numbers, "output_token_ids": numbers} {
		g.Expect(bare(t, schema.Properties[name])).To(MatchJSON(want), name)
	}
}

// bare is a schema without its descriptions.
func bare(t *testing.T, schema []byte) []byte {
	var v any
	NewWithT(t).Expect(json.Unmarshal(schema, &v)).To(Succeed())
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			delete(v, "description")
			for _, part := range v {
				strip(part)
			}
		case []any:
			for _, part := range v {
				strip(part)
			}
		}
	}
	strip(v)
	out, err := json.Marshal(v)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return out
}

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
