package shape_test

import (
	"bytes"
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"assay/reports/shape"
)

// schema has every keyword that is known.
const schema = `{
 "$defs": {"pair": {"type": "array", "minItems": 2, "maxItems": 3, "prefixItems": [{"type": "integer"}, {"oneOf": [{"type": "integer"}, {"type": "null"}]}], "items": {"type": "number"}}},
 "type": "object", "additionalProperties": false, "required": ["sum", "kind"],
 "properties": {
  "sum": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "words"},
  "kind": {"enum": ["ok", "timeout"]},
  "schema": {"const": "assay.test/v1"},
  "pair": {"$ref": "#/$defs/pair", "description": "words"},
  "reasons": {"type": "object", "additionalProperties": {"type": "string", "minLength": 2}},
  "count": {"type": "integer", "minimum": 0},
  "rate": {"type": "number", "exclusiveMinimum": 0},
  "either": {"oneOf": [{"enum": ["a", "b"]}, {"type": "null"}]},
  "name": {"type": ["string", "boolean"], "minLength": 1},
  "series": {"type": "object", "propertyNames": {"enum": ["power", "clock"]}, "additionalProperties": {"type": "array"}},
  "free": {}
 }
}`

const sum = `"sum":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"`

func compiled(tb testing.TB) (*shape.Shape, *jsonschema.Schema) {
	g := NewWithT(tb)
	s, err := shape.Compile([]byte(schema))
	g.Expect(err).NotTo(HaveOccurred())
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(schema)))
	g.Expect(err).NotTo(HaveOccurred())
	c := jsonschema.NewCompiler()
	g.Expect(c.AddResource("embedded:///test", parsed)).To(Succeed())
	whole, err := c.Compile("embedded:///test")
	g.Expect(err).NotTo(HaveOccurred())
	return s, whole
}

// valid is what the whole validator says, of JSON.
func valid(whole *jsonschema.Schema, text []byte) bool {
	if !json.Valid(text) {
		return false
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	return err == nil && whole.Validate(v) == nil
}

func TestWhatFitsAndWhatDoesNot(t *testing.T) {
	s, whole := compiled(t)
	NewWithT(t).Expect(s.Known()).To(BeTrue())
	for text, fits := range map[string]bool{
		`{` + sum + `,"kind":"ok"}`:                                       true,
		` { ` + sum + ` , "kind" : "timeout" } ` + "\n":                   true,
		`{"kind":"ok"}`:                                                   false,
		`{` + sum + `,"kind":"fine"}`:                                     false,
		`{` + sum + `,"kind":"ok","schema":"assay.test/v1"}`:              true,
		`{` + sum + `,"kind":"ok","schema":"assay.test/v2"}`:              false,
		`{` + sum + `,"kind":"ok","pair":[1,null]}`:                       true,
		`{` + sum + `,"kind":"ok","pair":[1,-2,3.5e2]}`:                   true,
		`{` + sum + `,"kind":"ok","pair":[1]}`:                            false,
		`{` + sum + `,"kind":"ok","pair":[1,2,3,4]}`:                      false,
		`{` + sum + `,"kind":"ok","pair":[1.5,2]}`:                        false,
		`{` + sum + `,"kind":"ok","pair":[null,2]}`:                       false,
		`{` + sum + `,"kind":"ok","pair":[1,2,"3"]}`:                      false,
		`{` + sum + `,"kind":"ok","reasons":{"a":"xy","b":"ä\\n"}}`:       false, // an escape, where a length is asked for
		`{` + sum + `,"kind":"ok","reasons":{"a":"xy","b":"äö"}}`:         true,
		`{` + sum + `,"kind":"ok","reasons":{"a":"x"}}`:                   false,
		`{` + sum + `,"kind":"ok","reasons":{"a":"xy","a":"xy"}}`:         false, // twice
		`{` + sum + `,"kind":"ok","kind":"ok"}`:                           false,
		`{` + sum + `,"kind":"ok","series":{"power":[],"clock":[1]}}`:     true,
		`{` + sum + `,"kind":"ok","series":{"powers":[]}}`:                false,
		`{` + sum + `,"kind":"ok","count":0}`:                             true,
		`{` + sum + `,"kind":"ok","count":-1}`:                            false,
		`{` + sum + `,"kind":"ok","count":01}`:                            false,
		`{` + sum + `,"kind":"ok","rate":0}`:                              false,
		`{` + sum + `,"kind":"ok","rate":1e-3}`:                           true,
		`{` + sum + `,"kind":"ok","either":"b"}`:                          true,
		`{` + sum + `,"kind":"ok","either":null}`:                         true,
		`{` + sum + `,"kind":"ok","either":"c"}`:                          false,
		`{` + sum + `,"kind":"ok","name":""}`:                             false,
		`{` + sum + `,"kind":"ok","name":true}`:                           true,
		`{` + sum + `,"kind":"ok","name":"\u0041\n\""}`:                   true,
		`{` + sum + `,"kind":"ok","name":"` + "\x01" + `"}`:               false,
		`{` + sum + `,"kind":"ok","free":[{"a":[1,{"b":null}]},"x",1.5]}`: true,
		`{` + sum + `,"kind":"ok","more":1}`:                              false,
		`{` + sum + `,"kind":"ok"}{}`:                                     false,
		`{` + sum + `,"kind":"ok"`:                                        false,
		`{` + sum + `,"kind":"ok",}`:                                      false,
		`[]`:                                                              false,
		``:                                                                false,
	} {
		g := NewWithT(t)
		g.Expect(s.Fits([]byte(text))).To(Equal(fits), text)
		if fits {
			g.Expect(valid(whole, []byte(text))).To(BeTrue(), text)
		}
	}
}

func TestAKeywordThatIsNotKnownLetsNothingFit(t *testing.T) {
	g := NewWithT(t)
	for _, schema := range []string{`{"not": {}}`, `{"properties": {"a": {"multipleOf": 2}}}`, `{"enum": [1]}`, `{"pattern": "x"}`, `{"required": ["a"]}`} {
		s, err := shape.Compile([]byte(schema))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.Known()).To(BeFalse(), schema)
		g.Expect(s.Fits([]byte(`{"a":4}`))).To(BeFalse(), schema)
	}
	for _, schema := range []string{`[`, `{"$ref": "#/$defs/none"}`, `{"items": 1}`} {
		_, err := shape.Compile([]byte(schema))
		g.Expect(err).To(HaveOccurred(), schema)
	}
}

// FuzzFits holds that what is said to fit is JSON, has no member twice at the
// top, and is valid by a whole validator.
func FuzzFits(f *testing.F) {
	f.Add([]byte(`{` + sum + `,"kind":"ok","pair":[1,null,2],"reasons":{"a":"xy"},"count":3,"rate":0.5,"either":null,"name":"\n","free":[{}]}`))
	f.Add([]byte(`{` + sum + `,"kind":"timeout","count":-0,"rate":1e-999,"free":{"a":{"b":[[]]}}}`))
	s, whole := compiled(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		if s.Fits(text) && !valid(whole, text) {
			t.Fatalf("%q is said to fit", text)
		}
	})
}
