package reports

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"assay/harness/record"
)

//go:embed schema/*.schema.json
var schemas embed.FS

// Schema compiles the published schema of a kind of document: "request",
// "wave", "lifecycle", "environment", "summary" or "claims".
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
	if err := c.AddResource(name, parsed); err != nil {
		return nil, err
	}
	return c.Compile(name)
}

// schemas validates every JSON document of the bundle.
func (v *verification) schemas() {
	for _, d := range []struct {
		file, kind string
		lines      bool
	}{
		{record.RequestsFile, "request", true}, {record.WavesFile, "wave", true}, {record.LifecyclesFile, "lifecycle", true},
		{record.EnvironmentFile, "environment", false}, {SummaryFile, "summary", false}, {ClaimsFile, "claims", false},
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
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(part))
			if err == nil {
				err = schema.Validate(value)
			}
			if err != nil {
				v.found("%s:%d: it does not fit its schema: %s", d.file, i+1, oneLine(err))
			}
		}
	}
}

func oneLine(err error) string {
	return string(bytes.Join(bytes.Fields([]byte(err.Error())), []byte(" ")))
}
