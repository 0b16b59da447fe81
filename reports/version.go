package reports

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"assay/claim"
	"assay/harness/metric"
	"assay/harness/record"
)

// reads are the schemas that this program reads, by file.
var reads = map[string]string{
	record.RequestsFile: record.RequestSchema, record.WavesFile: record.WaveSchema, record.LifecyclesFile: record.LifecycleSchema,
	record.TelemetryFile: record.TelemetrySchema, record.EngineMetricsFile: record.EngineMetricsSchema,
	record.EnvironmentFile: record.EnvironmentSchema, record.EntriesFile: record.EntriesSchema,
	SummaryFile: metric.SummarySchema, ClaimsFile: claim.Schema,
}

// ErrVersion is that a bundle's documents are of another version than this
// program reads: nothing can be said of them but that.
var ErrVersion = errors.New("the bundle is of another version than this program reads")

// versions is an error, joined to [ErrVersion], of every document of a bundle
// that begins as one of another version.
func versions(dir string) error {
	var errs []error
	newer := false
	for _, d := range slices.Concat(kinds, wholeKinds) {
		mine := reads[d.file]
		other, n := versionOf(filepath.Join(dir, d.file), mine)
		if other == "" {
			continue
		}
		_, own := split(mine)
		newer = newer || n > own
		errs = append(errs, fmt.Errorf("%s: it is of %s, and this program reads %s", d.file, other, mine))
	}
	if len(errs) == 0 {
		return nil
	}
	remedy := "an older version of it reads the bundle"
	if newer {
		remedy = "a newer version of it reads the bundle"
	}
	return fmt.Errorf("%w: %s\n%w", ErrVersion, remedy, errors.Join(errs...))
}

// mostOfDocument is how far into a document its schema is looked for.
const mostOfDocument = 1 << 16

var namesSchema = regexp.MustCompile(`"schema"\s*:\s*("[^"\\]*")`)

// versionOf is the schema of a document or of a file's first line, with its
// number, where it is another version of one; else empty.
func versionOf(path, mine string) (string, int) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0
	}
	defer file.Close()
	begin, err := io.ReadAll(io.LimitReader(file, mostOfDocument))
	if err != nil {
		return "", 0
	}
	var name string
	found := namesSchema.FindSubmatch(begin)
	if found == nil || json.Unmarshal(found[1], &name) != nil {
		return "", 0
	}
	kind, n := split(name)
	if own, _ := split(mine); kind != own || name == mine || n < 1 {
		return "", 0
	}
	return name, n
}

var versioned = regexp.MustCompile(`^(assay\.[a-z-]+)/v([0-9]{1,4})$`)

// split takes "assay.request/v3" apart.
func split(schema string) (kind string, version int) {
	m := versioned.FindStringSubmatch(schema)
	if m == nil {
		return "", 0
	}
	version, _ = strconv.Atoi(m[2])
	return m[1], version
}
