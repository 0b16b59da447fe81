package record_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	. "github.com/onsi/gomega"

	"assay/harness/record"
)

func previousOf(r record.Request) string { return r.PreviousSHA256 }

// chained are so many requests as lines of a file, the n-th with n events.
func chained(n int) string {
	var out strings.Builder
	head := record.Genesis
	for i := range n {
		r := record.Request{Schema: record.RequestSchema, PreviousSHA256: head, Ordinal: i + 1, Events: []record.Event{}, ClientLag: []int64{}, OutputTokenIDs: []int{}}
		for j := range i % 50 {
			e := record.Event{Earliest: int64(j), Arrival: int64(j * i)}
			if j%3 > 0 {
				e.Tokens = &j
			}
			r.Events, r.ClientLag, r.OutputTokenIDs = append(r.Events, e), append(r.ClientLag, int64(-j)), append(r.OutputTokenIDs, j)
		}
		line, err := json.Marshal(r)
		if err != nil {
			panic(err)
		}
		head = record.LineSHA256(line)
		fmt.Fprintf(&out, "%s\n", line)
	}
	return out.String()
}

// strictly is what encoding/json makes of a file's lines.
func strictly(text string) (out []record.Request) {
	for line := range strings.Lines(text) {
		dec := json.NewDecoder(strings.NewReader(line))
		dec.DisallowUnknownFields()
		var r record.Request
		if dec.Decode(&r) == nil {
			out = append(out, r)
		}
	}
	return out
}

func TestAFileIsReadInOrderHoweverItComes(t *testing.T) {
	text := chained(3000) // several blocks
	for name, from := range map[string]io.Reader{
		"whole": strings.NewReader(text), "by the byte": iotest.OneByteReader(strings.NewReader(text)), "by halves": iotest.HalfReader(strings.NewReader(text)),
		"with its end": iotest.DataErrReader(strings.NewReader(text)),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out, head, err := record.ReadLines(from, "f", previousOf)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out).To(Equal(strictly(text)))
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			g.Expect(head).To(Equal(record.LineSHA256([]byte(lines[len(lines)-1]))))
		})
	}
}

func TestEveryFaultOfAFileIsSaidWithItsLine(t *testing.T) {
	g := NewWithT(t)
	lines := strings.SplitAfter(chained(2500), "\n")
	lines[1] = "{}\n"
	lines[1200] = "\x00\x1b[31m\n"
	lines[2000] = strings.TrimSuffix(lines[2000], "\n") + "{}\n"
	lines[2001] = strings.Replace(lines[2001], `"events"`, `"Events"`, 1)
	lines[2400] = "\n"
	text := strings.Join(lines[:2499], "") + lines[2499][:40]
	out, _, err := record.ReadLines(strings.NewReader(text), "f", previousOf)
	g.Expect(out).To(HaveLen(2500 - 3))
	g.Expect(strings.Split(err.Error(), "\n")).To(HaveExactElements(
		HavePrefix("f:2: the chain is broken: previous_sha256 is , the line before has "),
		HavePrefix("f:3: the chain is broken"),
		HavePrefix("f:1201: no record: invalid character '\\x00'"),
		HavePrefix("f:1202: the chain is broken"),
		HavePrefix("f:2001: more than one record on the line"),
		HavePrefix("f:2002: the chain is broken"),
		HavePrefix("f:2003: the chain is broken"),
		HavePrefix("f:2401: no record: EOF"),
		HavePrefix("f:2402: the chain is broken"),
		HavePrefix("f:2500: the last line has no end: it was cut off"),
		HavePrefix("f:2500: no record: unexpected EOF"),
	))
}

func TestAFileThatCantBeReadOnIsSaidToBe(t *testing.T) {
	g := NewWithT(t)
	text := chained(5)
	broken := errors.New("the disk is gone")
	out, _, err := record.ReadLines(io.MultiReader(strings.NewReader(text+`{"half`), iotest.ErrReader(broken)), "f", previousOf)
	g.Expect(out).To(HaveLen(5))
	g.Expect(err).To(MatchError(broken))
	g.Expect(err).To(MatchError("f:6: the disk is gone"))
}

func TestManyEmptyLinesAreManyFaults(t *testing.T) {
	g := NewWithT(t)
	_, _, err := record.ReadLines(strings.NewReader(strings.Repeat("\n", 5000)), "f", previousOf)
	g.Expect(strings.Count(err.Error(), "no record: EOF")).To(Equal(5000))
}

func TestAReaderShowsEachLineAndEachRequest(t *testing.T) {
	g := NewWithT(t)
	s, dir := store(t)
	for n := 1; n <= 3; n++ {
		_, _, err := s.AppendWave(wave(n))
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(s.Close()).To(Succeed())
	text := chained(100)
	g.Expect(os.WriteFile(filepath.Join(dir, record.RequestsFile), []byte(text), 0o644)).To(Succeed())
	var mu sync.Mutex
	seen, ordinals := map[string]map[int]string{}, 0
	r := record.Reader{
		Line: func(file string, number int, line, short []byte) {
			mu.Lock()
			defer mu.Unlock()
			if file == record.RequestsFile {
				g.Expect(short).To(ContainSubstring(`"events":[],"client_lag_ns":[],`))
			} else {
				g.Expect(short).To(Equal(line))
			}
			if seen[file] == nil {
				seen[file] = map[int]string{}
			}
			seen[file][number] = string(line)
		},
		Request: func(r *record.Request) {
			mu.Lock()
			defer mu.Unlock()
			ordinals += r.Ordinal
			if r.Ordinal%2 == 0 {
				r.Events, r.ClientLag, r.OutputTokenIDs = nil, nil, nil
			}
		},
	}
	run, err := r.Read(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ordinals).To(Equal(100 * 101 / 2))
	want := strictly(text)
	for i := range want {
		if want[i].Ordinal%2 == 0 {
			want[i].Events, want[i].ClientLag, want[i].OutputTokenIDs = nil, nil, nil
		}
	}
	g.Expect(run.Requests).To(Equal(want), "what a request keeps is its own")
	for i, line := range bytes.Split(bytes.TrimSuffix([]byte(text), []byte("\n")), []byte("\n")) {
		g.Expect(seen[record.RequestsFile][i+1]).To(Equal(string(line)))
		g.Expect(r.Sums[record.RequestsFile][i].String()).To(Equal(record.LineSHA256(line)))
	}
	g.Expect(seen[record.WavesFile]).To(HaveLen(3))
	g.Expect(r.Sums).NotTo(HaveKey(record.TelemetryFile))
}

func TestPackedNumbersComeBack(t *testing.T) {
	g := NewWithT(t)
	numbers := []int64{0, 1, -1, 63, 64, -64, -65, 1 << 20, 1<<63 - 1, -1 << 63}
	var back []int64
	for n := range record.Pack(numbers).All() {
		back = append(back, n)
	}
	g.Expect(back).To(Equal(numbers))
	g.Expect(record.Pack([]int{1, 2})).To(Equal(record.Pack([]int64{1, 2})))
	for n := range record.Pack(numbers).All() {
		g.Expect(n).To(BeZero(), "it can be left after the first")
		break
	}
}

func TestAnIndexedRunHasTheSamePopulations(t *testing.T) {
	g := NewWithT(t)
	run := record.Run{Waves: []record.Wave{{Lifecycle: 1, Number: 1}, {Lifecycle: 1, Number: 2}, {Lifecycle: 2, Number: 1}, {Lifecycle: 3, Number: 1}}}
	for i := range 30 {
		run.Requests = append(run.Requests, record.Request{Lifecycle: 1 + i%2, Wave: 1 + i%3, Ordinal: i})
	}
	indexed := run.Indexed()
	for _, w := range run.Waves {
		g.Expect(indexed.Of(w)).To(Equal(run.Of(w)))
	}
	indexed.Requests = indexed.Requests[:10]
	g.Expect(indexed.Of(run.Waves[0]).Attempts).To(HaveLen(2), "an index of other requests is no use")
}
