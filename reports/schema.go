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

	"github.com/santhosh-tekuri/jsonschema/v6"

	"assay/harness/record"
)

//go:embed schema/*.schema.json
var schemas embed.FS

// Schema compiles the published schema of a kind of document: "request",
// "wave", "lifecycle", "telemetry", "engine-metrics", "environment", "entries",
// "summary" or "claims".
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

// schemas validates every JSON document of the bundle.
func (v *verification) schemas() {
	for _, d := range []struct {
		file, kind string
		lines      bool
	}{
		{record.RequestsFile, "request", true}, {record.WavesFile, "wave", true}, {record.LifecyclesFile, "lifecycle", true},
		{record.TelemetryFile, "telemetry", true}, {record.EngineMetricsFile, "engine-metrics", true},
		{record.EnvironmentFile, "environment", false}, {record.EntriesFile, "entries", false}, {SummaryFile, "summary", false}, {ClaimsFile, "claims", false},
	} {
		schema, err := Schema(d.kind)
		if err != nil {
			v.found("the schema of %s: %s", d.file, err)
			continue
		}
		data, err := os.ReadFile(filepath.Join(v.dir, d.file))
		if err != nil {
			continue // said elsewhere
		}
		parts := [][]byte{data}
		if d.lines {
			parts = bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
		}
		for i, part := range parts {
			if len(part) == 0 || !json.Valid(part) {
				continue // said elsewhere
			}
			if key := doubled(part); key != "" {
				// Readers differ in which of the two they take.
				v.found("%s:%d: it has the key %s twice", d.file, i+1, key)
			}
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(part))
			if err == nil {
				err = schema.Validate(value)
			}
			if err != nil {
				v.found("%s:%d: it does not fit its schema: %s", d.file, i+1, misfit(err))
			}
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
