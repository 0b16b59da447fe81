package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// EntriesFile has what a run asked whose plan has a source.
const EntriesFile = "entries.json"

// EntriesSchema is its schema.
const EntriesSchema = "assay.entries/v1"

// Entries is what a run asks whose plan has a source, in the order of the
// ordinals. Every lifecycle's record names the SHA-256 of the file that it was
// asked from.
type Entries struct {
	Schema     string `json:"schema"`
	PlanSHA256 string `json:"plan_sha256"`
	// Datasets are the files that entries or their lengths were taken from.
	Datasets []Dataset `json:"datasets"`
	// CountedBy is the arm whose server counted the tokens of the texts, which
	// are then as long as they should be; null where none did, with the reason:
	// no text had to be written, or texts are as long as an estimate says.
	CountedBy *string `json:"counted_by"`
	Reason    string  `json:"reason,omitempty"`
	Entries   []Entry `json:"entries"`
}

// At is what an ordinal asks, from 1: the entries over and over.
func (e *Entries) At(ordinal int) Entry { return e.Entries[(ordinal-1)%len(e.Entries)] }

// Entry is one request of a source.
type Entry struct {
	ID string `json:"id"`
	// InputTokens is how many tokens the prompt should have, its chat template
	// included; null where a file has the messages themselves.
	InputTokens *int `json:"input_tokens"`
	// OutputTokens is exact in the fixed lane, and the most in the natural one.
	OutputTokens int       `json:"output_tokens"`
	Segments     []Segment `json:"segments,omitempty"`
	// Text is what was written for the segments.
	Text string `json:"text,omitempty"`
	// MessagesSHA256 is that of the messages' JSON, or of a list of the messages,
	// the tools and the choice among them, where a file has them: they are not
	// copied out of it.
	MessagesSHA256 string `json:"messages_sha256,omitempty"`
}

// Segment is a part of a text. Texts that begin with the same segments begin
// with the same bytes.
type Segment struct {
	Key    string `json:"key"`
	Tokens int    `json:"tokens"` // that it should have
	Bytes  int    `json:"bytes"`  // that it has
}

// Dataset is a file that entries or lengths were taken from. Entries is always
// Taken and what LeftOut counts.
type Dataset struct {
	Of      string         `json:"of"` // "entries", or which of their lengths: "input", "suffix", "output"
	Kind    string         `json:"kind"`
	File    string         `json:"file"` // its name without its folders
	SHA256  string         `json:"sha256"`
	License string         `json:"license"` // as declared
	Column  string         `json:"column,omitempty"`
	Seed    *uint64        `json:"seed"` // that drew those that were taken; null where none were drawn
	Entries int            `json:"entries"`
	Taken   int            `json:"taken"`
	LeftOut map[string]int `json:"left_out"` // by reason
}

// WriteEntries writes entries.json, with its schema and the plan's hash filled
// in, and returns its SHA-256.
func (s *Store) WriteEntries(e Entries) (Entries, string, error) {
	e.Schema, e.PlanSHA256 = EntriesSchema, s.plan
	data, err := json.MarshalIndent(e, "", " ")
	if err != nil {
		return e, "", fmt.Errorf("the entries are no JSON: %w", err)
	}
	data = append(data, '\n')
	return e, LineSHA256(data), WriteFile(filepath.Join(s.dir, EntriesFile), data)
}

// readEntries reads the entries of a bundle and the file's SHA-256; nil where
// there is no such file.
func readEntries(dir string) (*Entries, string, error) {
	data, err := os.ReadFile(filepath.Join(dir, EntriesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	e, err := ParseEntries(data)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", EntriesFile, err)
	}
	return e, LineSHA256(data), nil
}

// ParseEntries reads entries.json. Unknown members are refused, and so is a file
// that asks nothing.
func ParseEntries(data []byte) (*Entries, error) {
	var e Entries
	if err := strictly(data, &e); err != nil {
		return nil, err
	}
	switch {
	case e.Schema != EntriesSchema:
		return nil, fmt.Errorf("its schema is %q, and this program reads %s", e.Schema, EntriesSchema)
	case len(e.Entries) == 0:
		return nil, errors.New("there is no entry in it")
	}
	return &e, nil
}
