package html

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"assay/claim"
	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
)

// Version is that of the page: what it draws and says of the same records may
// differ between versions.
const Version = "assay.page/v1"

// Page is a run as one file shows it.
type Page struct {
	Plan    *plan.Plan
	Run     record.Run
	Summary metric.Summary
	Claims  claim.Document

	Title    string   // which run of what
	Question string   // that the run asks
	Finding  []string // what was seen, a sentence each
	Verdict  string   // what the claims came to
	Validity string   // whether the protocol was kept, apart from what was found
	// Tables are the run's, the one first, and Sections what stands under them.
	Tables   []Table
	Sections []Section
	Nulls    []string // each null of the tables with its reason
	Where    []string // it ran
	Frozen   string   // the plan, as its digest is over
}

// Table is a table of texts, headings first. The first cell of a row names it.
type Table struct {
	Title  string
	Head   []string
	Rows   [][]string
	Footer string
}

// Words is whether a column has words in it, and no number: it is read from the
// left.
func (t Table) Words(column int) bool {
	for _, row := range t.Rows {
		if column < len(row) && row[column] != "null" && strings.ContainsAny(row[column], "0123456789") {
			return false
		}
	}
	return true
}

// Section is a list with its heading.
type Section struct {
	Title string
	Lines []string
}

//go:embed page.tmpl
var pageText string

//go:embed style.css
var styleText string

//go:embed script.js
var scriptText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"csp":    policy,
	"style":  func() template.CSS { return template.CSS(styleText) },
	"script": func() template.JS { return template.JS(scriptText) },
	"bare":   func(s string) string { return strings.ReplaceAll(s, "_", " ") },
	"most":   atMost,
	"null":   func(v any) bool { return v == nil },
	"fact":   fact,
}).Parse(pageText))

// fact writes a fact's value: a text as it is, anything else as JSON with its
// keys in order, so that it is the same whether a run was kept or read.
func fact(v any) (string, error) {
	if text, is := v.(string); is {
		return text, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	var plain any
	if err := json.Unmarshal(data, &plain); err != nil {
		return "", err
	}
	data, err = json.Marshal(plain)
	return string(data), err
}

// policy lets the page run its own style and script, known by their digests, and
// nothing else: no other script, no other file, no address.
func policy() string {
	digest := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; img-src data:; base-uri 'none'; form-action 'none'", digest(styleText), digest(scriptText))
}

// mostLines is how many lines of a list are shown: of an invalid run each record
// may have a reason against it.
const mostLines = 200

// atMost shortens a list, and says by how much.
func atMost(lines []string) []string {
	more := len(lines) - mostLines
	if more <= 0 {
		return lines
	}
	return append(slices.Clone(lines[:mostLines]), fmt.Sprintf("and %d more, which are in summary.json", more))
}

// Render writes the page. The same run gives the same bytes.
func (p Page) Render() ([]byte, error) {
	var out bytes.Buffer
	err := pageTemplate.Execute(&out, struct {
		Page
		Version  string
		Figures  []figure
		Claims   []ledger
		Records  Records
		Invalid  bool
		Emulated bool
	}{p, Version, p.figures(), p.ledger(), p.records(), !p.Summary.Validity.Valid, p.Summary.Provenance == record.Emulated})
	if err != nil {
		return nil, fmt.Errorf("the page can't be made: %w", err)
	}
	return []byte(record.Visible(out.String())), nil
}

// names are the arms'.
func (p Page) names() (baseline, candidate string) {
	return p.Plan.WithRole(plan.Baseline).Name, p.Plan.WithRole(plan.Candidate).Name
}

// class is an arm's.
func (p Page) class(arm string) string {
	if base, _ := p.names(); arm == base {
		return baselineClass
	}
	return candidateClass
}
