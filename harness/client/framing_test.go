package client_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/client"
	"assay/harness/clock"
	"assay/harness/metric"
	"assay/harness/record"
)

func newReader(c net.Conn) *bufio.Reader { return bufio.NewReader(c) }

// scripted is a connection that gives its bytes in pieces of declared sizes.
type scripted struct {
	net.Conn
	rest  []byte
	sizes func() int
}

func (s *scripted) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := min(max(s.sizes(), 1), len(p), len(s.rest))
	copy(p, s.rest[:n])
	s.rest = s.rest[n:]
	return n, nil
}

// Close leaves no TIME_WAIT: a fuzzer opens thousands.
func (s *scripted) Close() error {
	_ = s.Conn.(*net.TCPConn).SetLinger(0)
	return s.Conn.Close()
}
func (s *scripted) Write(p []byte) (int, error)      { return len(p), nil }
func (s *scripted) SetDeadline(time.Time) error      { return nil }
func (s *scripted) SetReadDeadline(time.Time) error  { return nil }
func (s *scripted) SetWriteDeadline(time.Time) error { return nil }

// decode makes an attempt whose response is the given bytes, read in pieces;
// sizes is asked before each read.
func decode(t testing.TB, listener net.Listener, response []byte, sizes func() int) record.Request {
	c := client.New(client.WithUserTime(), client.WithMaxBytes(1<<20), client.WithConn(func(conn net.Conn) net.Conn {
		return &scripted{Conn: conn, rest: response, sizes: sizes}
	}))
	clk := clock.Start()
	conn := c.Dial(t.Context(), client.Target{BaseURL: "http://" + listener.Addr().String()})
	request, err := client.NewChatRequest(client.Params{Model: "m", Messages: []client.Message{{Role: "user", Content: "Hi"}}, MaxTokens: 8, TopP: 1, TokenIDs: true})
	if err != nil {
		t.Fatal(err)
	}
	var r record.Request
	conn.Do(t.Context(), clk, clk.Now(), time.Minute, request).Decode(&r, nil)
	return r
}

func listen(t testing.TB) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}()
		}
	}()
	return l
}

func delta(text string) string { return `{"choices":[{"delta":{"content":"` + text + `"}}]}` }

func TestFramingFollowsTheStandard(t *testing.T) {
	for _, test := range []struct{ name, body, text string }{
		{"LF", "data: " + delta("a") + "\n\ndata: " + delta("b") + "\n\n" + done, "ab"},
		{"CRLF", "data: " + delta("a") + "\r\n\r\ndata: " + delta("b") + "\r\n\r\ndata: [DONE]\r\n\r\n", "ab"},
		{"CR", "data: " + delta("a") + "\r\rdata: " + delta("b") + "\r\rdata: [DONE]\r\r", "ab"},
		{"no space after the colon", "data:" + delta("a") + "\n\ndata:[DONE]\n\n", "a"},
		{"several data lines", "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"a\"}}]}\n\n" + done, "a"},
		{"comments and other fields", ": ping\n\nevent: message\nid: 1\nretry: 10\ndata: " + delta("a") + "\n\n" + done, "a"},
		{"a byte order mark", "\xEF\xBB\xBFdata: " + delta("a") + "\n\n" + done, "a"},
		{"a last blank line is missing", "data: " + delta("a") + "\n\n" + "data: [DONE]", "a"},
		{"a field that only begins like data", "database: x\ndata: " + delta("a") + "\n\n" + done, "a"},
		{"text that looks like the end", "data: " + delta(`\ndata: [DONE]\n\n`) + "\n\n" + done, "\ndata: [DONE]\n\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := listen(t)
			for size := 1; size < 70; size += 3 {
				r := decode(t, l, []byte(head+test.body), func() int { return size })
				NewWithT(t).Expect(r.Outcome).To(Equal(record.OK), "%d bytes a read: %v", size, r.Error)
				NewWithT(t).Expect(r.OutputText).To(Equal(test.text), "%d bytes a read", size)
			}
		})
	}
}

// paces is the clock's readings before each of the reads that bring the given
// pieces and after the last, and the attempt that they made.
func paces(t *testing.T, pieces ...string) ([]int64, record.Request) {
	var at []int64
	clk := clock.Start()
	l := listen(t)
	c := client.New(client.WithUserTime(), client.WithConn(func(conn net.Conn) net.Conn {
		next := 0
		return &scripted{Conn: conn, rest: []byte(strings.Join(pieces, "")), sizes: func() int {
			at = append(at, clk.Now())
			next++
			return len(pieces[next-1])
		}}
	}))
	raw := c.Dial(t.Context(), client.Target{BaseURL: "http://" + l.Addr().String()}).Do(t.Context(), clk, clk.Now(), time.Minute, request(t))
	at = append(at, clk.Now())
	var r record.Request
	raw.Decode(&r, nil)
	NewWithT(t).Expect(r.Outcome).To(Equal(record.OK), "%v", r.Error)
	return at, r
}

func TestAnEventArrivesWithTheEndOfItsText(t *testing.T) {
	chunks := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	event := token("a", 1)
	half := len(event) / 2
	size := fmt.Sprintf("%x\r\n", len(event))
	rest := finish + done
	for _, test := range []struct {
		name   string
		pieces []string
		read   int // the one that completed the text, from 0
	}{
		{"whole", []string{head, event, rest}, 1},
		{"with the header", []string{head + event, rest}, 0},
		{"in halves", []string{head, event[:half], event[half:], rest}, 2},
		{"its blank line is late", []string{head, event[:len(event)-1], "\n" + rest}, 1},
		{"the LF of its CRLF is late", []string{head, strings.TrimSpace(event) + "\r", "\n\r\n" + rest}, 1},
		{"its line end is late", []string{head, event[:len(event)-2], "\n\n" + rest}, 2},
		{"its chunk's size comes first", []string{chunks, size, event, "\r\n", chunked(rest) + "0\r\n\r\n"}, 2},
		{"split by a chunk's end", []string{chunks, chunked(event[:half]), chunked(event[half:]), chunked(rest) + "0\r\n\r\n"}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			at, r := paces(t, test.pieces...)
			g.Expect(r.Events).To(HaveLen(1))
			g.Expect(*r.FirstTokenAt).To(BeNumerically(">=", at[test.read]))
			g.Expect(*r.FirstTokenAt).To(BeNumerically("<=", at[test.read+1]))
			g.Expect(r.Events[0].Earliest).To(BeNumerically("<=", at[test.read]), "it may have come at once after the read before")
		})
	}
}

func TestBracketsAreOpenedByWhatFollows(t *testing.T) {
	a, b, end := token("a", 1), token("b", 2), finish+done
	pad := func(upTo int, tail string) string { // comments until tail ends at a read's full size
		return ":" + strings.Repeat(" ", upTo-len(head)-len(tail)-2) + "\n" + tail
	}
	const bufferSize = 4 << 10
	for _, test := range []struct {
		name      string
		pieces    []string
		coalesced int
	}{
		{"each in its read", []string{head, a, b, end}, 0},
		{"both in one", []string{head, a + b, end}, 1},
		{"with the beginning of the next", []string{head, a + b[:9], b[9:], end}, 1},
		{"with another blank line", []string{head, a + "\n", b, end}, 0},
		{"with a comment", []string{head, a + ": ping\n\n", b, end}, 1},
		{"a read that filled its buffer", []string{head + pad(bufferSize, a), b, end}, 1},
		{"a read that nearly did", []string{head + pad(bufferSize-1, a), b, end}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			at, r := paces(t, test.pieces...)
			g.Expect(r.OutputText).To(Equal("ab"))
			g.Expect(r.Coalesced).To(Equal(test.coalesced))
			if strings.Contains(test.name, "filled") {
				g.Expect(r.Events[1].Earliest).To(BeNumerically("<=", at[0]), "b may have waited behind the full read")
			}
		})
	}
}

func TestSingleBytesAreBoundedToo(t *testing.T) {
	g := NewWithT(t)
	const limit = 64 << 10
	l := listen(t)
	c := client.New(client.WithUserTime(), client.WithMaxBytes(limit), client.WithConn(func(conn net.Conn) net.Conn {
		return &scripted{Conn: conn, rest: []byte(head + strings.Repeat("\n", limit)), sizes: func() int { return 1 }}
	}))
	clk := clock.Start()
	var r record.Request
	c.Dial(t.Context(), client.Target{BaseURL: "http://" + l.Addr().String()}).Do(t.Context(), clk, clk.Now(), time.Minute, request(t)).Decode(&r, nil)
	g.Expect(r.Outcome).To(Equal(record.StreamError))
	g.Expect(r.ReceivedBytes).To(BeNumerically("<", limit/32), "the time of each read is kept as well")
}

// slicing reads in pieces of a given size, whatever lies ready.
type slicing struct {
	net.Conn
	size int
}

func (s *slicing) Read(p []byte) (int, error) { return s.Conn.Read(p[:min(len(p), s.size)]) }

func TestTLSIsFollowedRecordByRecordHoweverItIsRead(t *testing.T) {
	text := strings.Repeat("long ", 5000) // more than one record
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 5 {
			_, _ = io.WriteString(w, token("t", i))
			w.(http.Flusher).Flush()
		}
		_, _ = io.WriteString(w, token(text, 9)+finish+done)
	}))
	defer server.Close()
	config := server.Client().Transport.(*http.Transport).TLSClientConfig
	for _, size := range []int{1, 2, 3, 4, 5, 6, 7, 100, 1000, 1 << 20} {
		c := client.New(client.WithTLS(config), client.WithConn(func(conn net.Conn) net.Conn { return &slicing{conn, size} }))
		r := attempt(t, t.Context(), c, client.Target{BaseURL: server.URL}, 10*time.Second)
		NewWithT(t).Expect(r.Outcome).To(Equal(record.OK), "%d bytes a read: %v", size, r.Error)
		NewWithT(t).Expect(r.OutputText).To(Equal("ttttt"+text), "%d bytes a read", size)
	}
}

// joining reads two TLS records before it gives anything of them, then the
// first with the beginning of the second, and the rest of the second after it.
type joining struct {
	net.Conn
	armed bool
	held  []byte
	sizes []int
}

func (j *joining) Read(p []byte) (int, error) {
	if !j.armed {
		return j.Conn.Read(p)
	}
	for j.sizes == nil {
		n, err := j.Conn.Read(p)
		if err != nil {
			return 0, err
		}
		j.held = append(j.held, p[:n]...)
		if first := record1(j.held); first > 0 && record1(j.held[first:]) > 0 {
			j.sizes = []int{first + 3, len(j.held) - first - 3}
		}
	}
	if len(j.sizes) == 0 {
		return j.Conn.Read(p)
	}
	n := copy(p, j.held[:j.sizes[0]])
	j.held, j.sizes = j.held[n:], j.sizes[1:]
	return n, nil
}

// record1 is the length of the first TLS record, once it is whole.
func record1(p []byte) int {
	if len(p) < 5 || len(p) < 5+int(p[3])<<8+int(p[4]) {
		return 0
	}
	return 5 + int(p[3])<<8 + int(p[4])
}

func TestTheBeginningOfAnotherRecordOpensABracket(t *testing.T) {
	g := NewWithT(t)
	over := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 2 {
			_, _ = io.WriteString(w, token("t", i))
			w.(http.Flusher).Flush()
		}
		<-over
	}))
	defer server.Close()
	defer close(over)
	var conn *joining
	config := server.Client().Transport.(*http.Transport).TLSClientConfig
	c := client.New(client.WithTLS(config), client.WithConn(func(c net.Conn) net.Conn { conn = &joining{Conn: c}; return conn }))
	clk := clock.Start()
	before := clk.Read()
	opened := c.Dial(t.Context(), client.Target{BaseURL: server.URL})
	conn.armed = true
	r := after(t, t.Context(), opened, clk, before, 200*time.Millisecond)
	g.Expect(r.OutputText).To(Equal("tt"))
	g.Expect(r.Coalesced).To(Equal(1), "the first; the second came whole with the next read")
	g.Expect(*r.LastTokenAt).To(BeNumerically(">=", *r.FirstTokenAt))
	if r.Clock.Provenance == record.KernelObserved {
		g.Expect(r.ClientLag[0]).To(BeNumerically(">=", r.Events[0].Arrival-*r.SentAt), "it may have waited since the request")
	}
}

func TestOneRecordIsOneArrivalHoweverItIsTaken(t *testing.T) {
	g := NewWithT(t)
	certified := httptest.NewTLSServer(http.NotFoundHandler())
	defer certified.Close()
	config := &tls.Config{Certificates: certified.TLS.Certificates, DynamicRecordSizingDisabled: true}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	g.Expect(err).NotTo(HaveOccurred())
	defer l.Close()
	const n = 150 // too much for one read of the plain text, not for one of the record
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if _, err := http.ReadRequest(newReader(c)); err != nil {
			return
		}
		_, _ = io.WriteString(c, head+strings.Repeat(token("a", 1), n)+finish+done)
	}()
	c := client.New(client.WithTLS(certified.Client().Transport.(*http.Transport).TLSClientConfig))
	r := attempt(t, t.Context(), c, client.Target{BaseURL: "https://" + l.Addr().String()}, 10*time.Second)
	g.Expect(r.Outcome).To(Equal(record.OK), "%v", r.Error)
	g.Expect(r.ReceivedBytes).To(BeNumerically(">", 8<<10))
	g.Expect(r.Coalesced).To(Equal(n), "the end came behind the last of them")
	for _, e := range r.Events {
		g.Expect(e.Arrival).To(Equal(*r.FirstTokenAt))
		g.Expect(e.Earliest).To(Equal(*r.SentAt))
	}
}

func TestAResponseEndsWithItsLastBytes(t *testing.T) {
	g := NewWithT(t)
	_, r := paces(t, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"+chunked(token("a", 1)+finish)+"0\r\n\r\n")
	g.Expect(r.EndedAt).To(Equal(*r.LastTokenAt), "they came together, whenever the end was noticed")
}

// standard frames a stream as the WHATWG's text reads, one character at a time.
func standard(stream string) []string {
	var out, data []string
	line := ""
	stream = strings.TrimPrefix(stream, "\xEF\xBB\xBF")
	take := func() {
		name, value, colon := strings.Cut(line, ":")
		switch {
		case line == "":
			if data != nil {
				out = append(out, strings.Join(data, "\n"))
			}
			data = nil
		case name == "data" || name == "error": // the second is llama.cpp's
			if colon {
				value = strings.TrimPrefix(value, " ")
			}
			data = append(data, value)
		}
		line = ""
	}
	for i := 0; i < len(stream); i++ {
		switch {
		case stream[i] == '\n':
			take()
		case stream[i] == '\r':
			take()
			if i+1 < len(stream) && stream[i+1] == '\n' {
				i++
			}
		default:
			line += stream[i : i+1]
		}
	}
	if line != "" {
		take()
	}
	take() // the end ends the last event: here nothing that was seen is dropped
	return out
}

// FuzzFraming holds the framing against a plain reading of the standard.
func FuzzFraming(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\ndata:b\r\n\r\ndata:  c\r\r", "\xEF\xBB\xBFdata: a\n\n", "data\n\ndata\ndata\n\ndata:", ":c\n\n\r\nid: 1\ndata: x",
		"error: {}\n\n", "event: error\ndata: y\ndata: z\n\n", "datum: a\ndata : b\n\n", "data: a\r\ndata: b\n\r\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		want := standard(string(stream))
		got := client.Framed(stream)
		if len(got) != len(want) {
			t.Fatalf("%d events, the standard has %d: %q, %q", len(got), len(want), got, want)
		}
		for i := range want {
			if string(got[i]) != want[i] {
				t.Fatalf("event %d is %q, the standard has %q", i+1, got[i], want[i])
			}
		}
	})
}

// FuzzResponse holds that any bytes, read in any pieces, are decoded to the
// same, and never crash or contradict themselves.
func FuzzResponse(f *testing.F) {
	whole := head + token("a", 1) + token("b", 2) + finish + usage(2) + done
	f.Add([]byte(whole), uint8(7))
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"+chunked(token("a", 1))+chunked(finish+done)+"0\r\n\r\n"), uint8(3))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\ndata: x"), uint8(1))
	f.Add([]byte("HTTP/1.0 500 \n\n: \x00"), uint8(2))
	f.Add([]byte(head+"\xEF\xBB\xBF:\r\rdata\ndata:[DONE]"), uint8(4))
	f.Add([]byte(head+"data: "+strings.Repeat("[", 5000)+"\n\n"), uint8(200))
	f.Add([]byte(head+`data: {"choices":[{"delta":{"content":"a"},"token_ids":[1e400]}]}`+"\n\n"), uint8(9))
	f.Add([]byte(head+`data: {"choices":[{"delta":{"reasoning":"h","tool_calls":[{"index":-1,"function":{"name":"f","arguments":"{"}},{"function":{}}]}}]}`+"\n\n"), uint8(5))
	l := listen(f)
	f.Fuzz(func(t *testing.T, response []byte, size uint8) {
		at := uint8(0)
		one := decode(t, l, bytes.Clone(response), func() int { at = at*31 + size; return int(at) })
		all := decode(t, l, bytes.Clone(response), func() int { return 1 << 20 })
		same := func(r record.Request) string {
			usage := "none"
			if r.UsageOutputTokens != nil {
				usage = fmt.Sprint(*r.UsageOutputTokens)
			}
			return fmt.Sprint(r.Outcome, r.OutputText, r.ReasoningText, r.ToolCalls, r.OutputTokenIDs, usage, len(r.Events), r.FinishReason == nil)
		}
		for _, r := range []record.Request{one, all} {
			if broken := metric.Broken(r); len(broken) > 0 {
				t.Fatalf("the record contradicts itself: %q", broken)
			}
		}
		// After the last event the client may stop reading at any point.
		if one.AfterDone == all.AfterDone && same(one) != same(all) {
			t.Fatalf("in pieces: %s\nat once:   %s", same(one), same(all))
		}
	})
}
