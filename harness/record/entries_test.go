package record_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/record"
)

func TestEntriesAreReadBackWithTheSumOfTheirFile(t *testing.T) {
	g := NewWithT(t)
	s, dir := store(t)
	n := 12
	written, sum, err := s.WriteEntries(record.Entries{Datasets: []record.Dataset{}, Reason: "none", Entries: []record.Entry{
		{ID: "a", InputTokens: &n, OutputTokens: 3, Text: "x", Segments: []record.Segment{{Key: "a", Tokens: n, Bytes: 1}}}, {ID: "b", OutputTokens: 4},
	}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(written.PlanSHA256).To(Equal(strings.Repeat("a", 64)))
	g.Expect(s.Close()).To(Succeed())
	run, err := record.Read(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*run.Entries).To(Equal(written))
	g.Expect(run.EntriesSHA256).To(Equal(sum))
	data, err := os.ReadFile(filepath.Join(dir, record.EntriesFile))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(record.LineSHA256(data)).To(Equal(sum))
	for ordinal, id := range map[int]string{1: "a", 2: "b", 3: "a", 64: "b"} {
		g.Expect(run.Entries.At(ordinal).ID).To(Equal(id))
	}
}

func TestARunWithoutASourceHasNoEntries(t *testing.T) {
	g := NewWithT(t)
	s, dir := store(t)
	g.Expect(s.Close()).To(Succeed())
	run, err := record.Read(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(run.Entries).To(BeNil())
}

func TestEntriesThatAreNoneAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		`{"schema":"assay.entries/v2","entries":[{}]}`:       `its schema is "assay.entries/v2"`,
		`{"schema":"assay.entries/v1","entries":[]}`:         "there is no entry in it",
		`{"schema":"assay.entries/v1","entries":[{}]} {}`:    "more than one document",
		`{"schema":"assay.entries/v1","forged":1}`:           "unknown field",
		`{"schema":"assay.entries/v1","entries":[{"id":1}]}`: "cannot unmarshal number",
	} {
		_, err := record.ParseEntries([]byte(text))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(says)), text)
	}
}

func FuzzParseEntries(f *testing.F) {
	f.Add([]byte(`{"schema":"assay.entries/v1","datasets":[],"counted_by":null,"entries":[{"id":"a","input_tokens":3,"output_tokens":1}]}`))
	f.Add([]byte(`{"schema":"assay.entries/v1","datasets":[{"of":"input","left_out":{"x":1},"seed":3}],"entries":[{"segments":[{"key":"a"}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := record.ParseEntries(data)
		if err != nil {
			return
		}
		written, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		again, err := record.ParseEntries(written)
		if err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		rewritten, err := json.Marshal(again)
		if err != nil || !reflect.DeepEqual(written, rewritten) {
			t.Fatalf("%s became %s", written, rewritten)
		}
		_ = e.At(len(e.Entries) + 1)
	})
}
