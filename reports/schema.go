package reports

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"assay/harness/record"
	"assay/reports/shape"
)

//go:embed schema/*.schema.json
var schemas embed.FS

// Schema compiles the published schema of a kind of document: "request",
// "wave", "lifecycle", "telemetry", "engine-metrics", "environment", "entries",
// "summary", "claims" or "comparison".
func Schema(kind string) (*jsonschema.Schema, error) {
	name := kind + ".schema.json"
	data, err := schemas.ReadFile("schema/" + name)
	if err != nil {
		return nil, err
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c := jsonschema.NewCompiler()
	location := "embedded:///" + name // a bare name would be one in this folder
	if err := c.AddResource(location, parsed); err != nil {
		return nil, err
	}
	return c.Compile(location)
}

// kinds are the kinds of a bundle's documents, by file: of those that are lines,
// and of those that are one document.
var kinds, wholeKinds = []struct{ file, kind string }{
	{record.RequestsFile, "request"}, {record.WavesFile, "wave"}, {record.LifecyclesFile, "lifecycle"},
	{record.TelemetryFile, "telemetry"}, {record.EngineMetricsFile, "engine-metrics"},
}, []struct{ file, kind string }{
	{record.EnvironmentFile, "environment"}, {record.EntriesFile, "entries"}, {SummaryFile, "summary"}, {ClaimsFile, "claims"},
}

// conformity holds documents against their schemas. It may be used from several
// goroutines.
type conformity struct {
	of map[string]*form // by file

	mu     sync.Mutex
	faults map[string][]fault // by file
}

// form is a schema, for a quick look and for a whole one.
type form struct {
	quick *shape.Shape
	whole *jsonschema.Schema
}

// fault is what is wrong with a line.
type fault struct {
	line int
	text string
}

func newConformity() (*conformity, error) {
	c := &conformity{of: map[string]*form{}, faults: map[string][]fault{}}
	for _, d := range slices.Concat(kinds, wholeKinds) {
		whole, err := Schema(d.kind)
		if err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", d.file, err)
		}
		text, err := schemas.ReadFile("schema/" + d.kind + ".schema.json")
		if err != nil {
			return nil, err
		}
		quick, err := shape.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", d.file, err)
		}
		c.of[d.file] = &form{quick, whole}
	}
	return c, nil
}

// hold holds a line of a file, or a file of one document, against its schema. The
// lists that a line is short of are by themselves as the schema has them.
func (c *conformity) hold(file string, number int, data, short []byte) {
	f := c.of[file]
	if f.quick.Fits(short) || len(data) == 0 || !json.Valid(data) {
		return // what is no JSON is said elsewhere
	}
	found := func(format string, args ...any) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.faults[file] = append(c.faults[file], fault{number, fmt.Sprintf("%s:%d: ", file, number) + fmt.Sprintf(format, args...)})
	}
	if key := doubled(data); key != "" {
		// Readers differ in which of the two they take.
		found("it has the key %s twice", key)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err == nil {
		err = f.whole.Validate(value)
	}
	if err != nil {
		found("it does not fit its schema: %s", misfit(err))
	}
}

// schemas says where the bundle's documents do not fit their schemas: its lines
// were held against them as they were read.
func (v *verification) schemas(c *conformity) {
	for _, d := range wholeKinds {
		if data, err := os.ReadFile(filepath.Join(v.dir, d.file)); err == nil { // else it is said elsewhere
			c.hold(d.file, 1, data, data)
		}
	}
	for _, d := range slices.Concat(kinds, wholeKinds) {
		slices.SortStableFunc(c.faults[d.file], func(a, b fault) int { return a.line - b.line })
		for _, f := range c.faults[d.file] {
			v.add(f.text)
		}
	}
}

// misfit names the first places at which a document does not fit its schema.
func misfit(err error) string {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err.Error()
	}
	const most = 3
	texts := leaves(invalid)
	slices.Sort(texts) // the library's order is a map's
	more := max(0, len(texts)-most)
	texts = texts[:len(texts)-more]
	text := strings.Join(texts, "; ")
	if more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// leaves are the faults that have no other behind them.
func leaves(e *jsonschema.ValidationError) []string {
	if len(e.Causes) == 0 {
		return []string{e.Error()}
	}
	var out []string
	for _, cause := range e.Causes {
		out = append(out, leaves(cause)...)
	}
	return out
}

// doubled is the path of the first key that an object of valid JSON has twice;
// empty: none.
func doubled(data []byte) string {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return doubledIn(dec, "")
}

func doubledIn(dec *json.Decoder, path string) string {
	token, err := dec.Token()
	if err != nil {
		return "" // said elsewhere
	}
	switch token {
	case json.Delim('['):
		for i := 0; dec.More(); i++ {
			if found := doubledIn(dec, fmt.Sprintf("%s[%d]", path, i)); found != "" {
				return found
			}
		}
	case json.Delim('{'):
		seen := map[string]bool{}
		for dec.More() {
			token, err := dec.Token()
			key, ok := token.(string)
			if err != nil || !ok {
				return ""
			}
			if seen[key] {
				return path + "." + key
			}
			seen[key] = true
			if found := doubledIn(dec, path+"."+key); found != "" {
				return found
			}
		}
	default:
		return ""
	}
	_, _ = dec.Token() // the closing bracket
	return ""
}
