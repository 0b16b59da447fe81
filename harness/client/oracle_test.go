package client_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/tmaxmax/go-sse"

	"assay/harness/client"
	"assay/harness/metric"
	"assay/harness/record"
)

// oracle frames a stream with another reader of event streams.
func oracle(t testing.TB, stream string) []sse.Event {
	t.Helper()
	var out []sse.Event
	for e, err := range sse.Read(strings.NewReader(stream), &sse.ReadConfig{MaxEventSize: len(stream) + 4<<10}) {
		if err != nil {
			t.Fatalf("the oracle gave up: %v: %q", err, stream)
		}
		out = append(out, e)
	}
	return out
}

// datas is what events carry.
func datas(events []sse.Event) []string {
	var out []string
	for _, e := range events {
		out = append(out, e.Data)
	}
	return out
}

// framed is what this client's framing makes of a stream.
func framed(stream string) []string {
	var out []string
	for _, data := range client.Framed([]byte(stream)) {
		out = append(out, string(data))
	}
	return out
}

// TestWhereTheOracleDiffers names each difference. In the first ones this client
// keeps to the WHATWG's text (HTML, 9.2.6, interpreting an event stream) and the
// oracle does not; the last ones are this client's own, and wanted.
func TestWhereTheOracleDiffers(t *testing.T) {
	for _, test := range []struct {
		why, stream    string
		client, oracle []string
	}{
		{"without a data line nothing is dispatched", "event: ping\n\nid: 7\n\ndata: a\n\n", []string{"a"}, []string{"", "", "a"}},
		{"a byte order mark is one at the stream's very beginning alone", "\n\xEF\xBB\xBFdata: a\n\ndata: b\n\n", []string{"b"}, []string{"a", "b"}},
		{"the end of the stream is no blank line, and nothing that was seen is dropped here", "data: a\n\ndata: b", []string{"a", "b"}, []string{"a"}},
		{"llama.cpp gives the data of an error in a field of that name", "error: x\n\ndata: a\n\n", []string{"x", "a"}, []string{"a"}},
	} {
		t.Run(test.why, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(framed(test.stream)).To(Equal(test.client))
			g.Expect(datas(oracle(t, test.stream))).To(Equal(test.oracle), "the oracle has changed: take the difference out of this table")
		})
	}
}

var (
	errorField = regexp.MustCompile(`(^|[\r\n])error(:|[\r\n])`)
	lateMark   = regexp.MustCompile("^[\r\n]+\xEF\xBB\xBF")
)

// bridged is a stream on which both readers have to agree: it is ended by a
// blank line, and llama.cpp's field is called data for the oracle.
func bridged(stream string) (ours, theirs string) {
	ours = stream + "\n\n"
	mark, rest := "", ours
	if after, ok := strings.CutPrefix(ours, "\xEF\xBB\xBF"); ok {
		mark, rest = "\xEF\xBB\xBF", after
	}
	for errorField.MatchString(rest) { // two that follow one another share a line end
		rest = errorField.ReplaceAllString(rest, "${1}data${2}")
	}
	if theirs = mark + rest; lateMark.MatchString(ours) {
		theirs = ":\n" + theirs // so that the mark is not at the beginning of its first event
	}
	return ours, theirs
}

// FuzzOracle holds the framing of any stream against the oracle's, and then the
// whole client, which reads the stream in pieces, against that framing: what
// came behind the first [DONE] is counted, and no record contradicts itself.
func FuzzOracle(f *testing.F) {
	long := strings.Repeat("x", 1<<16)
	for _, seed := range []string{
		"data: a\n\ndata:b\r\n\r\ndata:  c\r\r", "\xEF\xBB\xBFdata: a\n\n", "\xEF\xBB\xBF\n\ndata: a\n\n", "\r\n\xEF\xBB\xBFdata: a\n\n",
		"data\n\ndata\ndata\n\ndata:", ":c\n\n\r\nid: 1\ndata: x", "error\nerror: {}\n\n", "event: error\ndata: y\ndata: z\n\n",
		"datum: a\ndata : b\n\ndata: a\r\ndata: b\n\r\r\n", "data: a\x00b\nid: \x00\n\n", "data: \xff\xfe\xc3\n\n", "retry: 99999999999999999999\n\n",
		token("a", 1) + finish + done + token("b", 2) + done, "data: [DONE]\n\ndata: [DONE]\n\n", "data:[DONE]\r\rdata: [DONE] \n\n", " data: [DONE]\n\n",
		"data: " + strings.Repeat("[", 20000) + "\n\n", `data: {"choices":[{"token_ids":[1e400,99999999999999999999,-1]}],"usage":{"completion_tokens":-9}}` + "\n\n",
		": " + long + "\n\ndata: " + long + "\n\n", strings.Repeat("data:\n", 500) + "\n", strings.Repeat("data: a\n\n", 500), strings.Repeat("\r", 300) + "data: a\r\n\r",
	} {
		f.Add([]byte(seed), uint8(7))
	}
	l := listen(f)
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		ours, theirs := bridged(string(stream))
		got, want := framed(ours), datas(oracle(t, theirs))
		// What has no data the oracle can't tell from what has an empty one.
		empty := func(s string) bool { return s == "" }
		some := slices.DeleteFunc(slices.Clone(got), empty)
		if want = slices.DeleteFunc(want, empty); !slices.Equal(some, want) {
			t.Fatalf("framed: %q\noracle: %q", some, want)
		}
		at := uint8(0)
		r := decode(t, l, bytes.Join([][]byte{[]byte(head), []byte(ours)}, nil), func() int { at = at*31 + size; return int(at) })
		if broken := metric.Broken(r); len(broken) > 0 {
			t.Fatalf("the record contradicts itself: %q", broken)
		}
		ended := slices.IndexFunc(got, func(s string) bool { return strings.TrimSpace(s) == "[DONE]" })
		switch {
		case r.Outcome == record.StreamError && strings.Contains(*r.Error, "larger than the client keeps"):
		case ended < 0 && r.Outcome == record.OK && r.FinishReason == nil:
			t.Fatal("an attempt is ok that neither ended nor gave a reason")
		case ended >= 0 && r.AfterDone != len(got)-ended-1:
			t.Fatalf("%d events after [DONE], and the stream has %d: %q", r.AfterDone, len(got)-ended-1, got)
		}
	})
}
