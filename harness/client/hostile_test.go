package client_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/client"
	"assay/harness/clock"
	"assay/harness/metric"
	"assay/harness/record"
)

const chunkedHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

func gzipped(text string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return out.String()
}

// answers writes a response and ends the connection.
func answers(parts ...string) func(*net.TCPConn) {
	return func(c *net.TCPConn) { write(c, parts...) }
}

func TestAHostileServersHTTPGetsAnOutcomeByName(t *testing.T) {
	whole := token("a", 1) + finish + done
	sized := func(n int, body string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", n, body)
	}
	status := func(line string, fields ...string) string {
		return "HTTP/1.1 " + line + "\r\n" + strings.Join(append(fields, "Content-Length: 0"), "\r\n") + "\r\n\r\n"
	}
	type row struct {
		name    string
		script  func(*net.TCPConn)
		outcome record.Outcome
		says    string
		text    string
	}
	rows := []row{
		{"a stream that is compressed", answers("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n", gzipped(whole)), record.StreamError, "encoded as gzip, which was not asked for", ""},
		{"a transfer that is compressed", answers("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", chunked(gzipped(whole)), "0\r\n\r\n"), record.StreamError, "unsupported transfer encoding", ""},
		{"a compressed stream that says nothing of it", answers(head, gzipped(whole)), record.Truncated, "without [DONE]", ""},

		{"a chunk that is shorter than it says", answers(chunkedHead, chunked(token("a", 1)), "1000\r\n", token("b", 2)), record.Truncated, "closed inside", "ab"},
		{"a chunk that is longer than it says", answers(chunkedHead, chunked(token("a", 1)), "5\r\n", token("b", 2), "\r\n0\r\n\r\n"), record.StreamError, "malformed chunked encoding", "a"},
		{"a chunk's size that is no number", answers(chunkedHead, chunked(token("a", 1)), "many\r\n", token("b", 2)), record.StreamError, "invalid byte in chunk length", "a"},
		{"a chunk's size below nothing", answers(chunkedHead, chunked(token("a", 1)), "-5\r\n", token("b", 2)), record.StreamError, "invalid byte in chunk length", "a"},
		{"a chunk's size beyond every number", answers(chunkedHead, chunked(token("a", 1)), "fffffffffffffffff\r\n", token("b", 2)), record.StreamError, "chunk length too large", "a"},
		{"the largest size that there is", answers(chunkedHead, chunked(token("a", 1)), "ffffffffffffffff\r\n", token("b", 2)), record.Truncated, "closed inside", "ab"},
		{"a size without a line end", answers(chunkedHead, chunked(token("a", 1)), strings.Repeat("0", 5000)), record.StreamError, "too long", "a"},
		{"chunks with extensions", answers(chunkedHead, fmt.Sprintf("%x;quality=0.9\r\n%s\r\n", len(whole), whole), "0\r\n\r\n"), record.OK, "", "a"},
		{"trailers", answers(chunkedHead, chunked(whole), "0\r\nServer-Timing: x\r\n\r\n"), record.OK, "", "a"},
		{"no last chunk, behind the last event", answers(chunkedHead, chunked(whole)), record.OK, "", "a"},
		{"nonsense behind the last event", answers(chunkedHead, chunked(whole), "nonsense\r\n"), record.OK, "", "a"},

		{"less than its declared length", answers(sized(4000, token("a", 1))), record.Truncated, "closed inside", "a"},
		{"a length that cuts an event", answers(sized(len(token("a", 1))+9, token("a", 1)+token("b", 2))), record.Truncated, "without [DONE]", "a"},
		{"two lengths", answers("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 300\r\n\r\n", whole), record.StreamError, "Content-Length", ""},
		{"a length below nothing", answers("HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n", whole), record.StreamError, "Content-Length", ""},
		{"a length and chunks", answers("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", chunked(whole), "0\r\n\r\n"), record.OK, "", "a"},
		{"another answer behind it, as on a connection that is kept", answers(sized(len(whole), whole), sized(len(whole), token("c", 3)+finish+done)), record.OK, "", "a"},

		{"early hints, again and again", answers(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 20), head, whole), record.OK, "", "a"},
		{"a continue that nobody waits for", answers("HTTP/1.1 100 Continue\r\n\r\n", head, whole), record.OK, "", "a"},
		{"early hints and nothing else", answers("HTTP/1.1 103 Early Hints\r\n\r\n"), record.ConnectError, "no HTTP answer", ""},
		{"early hints without end", func(c *net.TCPConn) {
			for {
				if _, err := io.WriteString(c, strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 500)); err != nil {
					return
				}
			}
		}, record.StreamError, "larger than the client keeps", ""},
		{"another protocol", answers("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x05hello"), record.HTTPError, "HTTP 101", ""},

		{"HTTP/1.0, closed inside an event", answers("HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", token("a", 1), token("b", 2)[:20]), record.Truncated, "without [DONE]", "a"},
		{"HTTP/1.0 that would keep the connection", answers("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Type: text/event-stream\r\n\r\n", whole), record.OK, "", "a"},
		{"HTTP/0.9", answers(whole), record.StreamError, "malformed HTTP", ""},
		{"HTTP/2, unasked", answers("\x00\x00\x12\x04\x00\x00\x00\x00\x00", strings.Repeat("\x00", 18)), record.StreamError, "malformed HTTP", ""},
		{"a header with a NUL", answers("HTTP/1.1 200 OK\r\nX\x00: 1\r\n\r\n", whole), record.StreamError, "malformed MIME header", ""},
		{"a header without a colon", answers("HTTP/1.1 200 OK\r\nnothing\r\n\r\n", whole), record.StreamError, "malformed MIME header", ""},
		{"a status of no class", answers("HTTP/1.1 999 Odd\r\nContent-Length: 3\r\n\r\nodd"), record.HTTPError, "HTTP 999: odd", ""},
		{"success without content", answers("HTTP/1.1 204 No Content\r\n\r\n", whole), record.HTTPError, "HTTP 204", ""},
		{"a part of the content", answers("HTTP/1.1 206 Partial Content\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n", whole), record.HTTPError, "HTTP 206", ""},
	}
	for _, code := range []string{"301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"} {
		rows = append(rows, row{"a redirect: " + code, answers(status(code, "Location: /v1/chat/completions")), record.HTTPError, "HTTP " + code[:3], ""})
	}
	for _, code := range []string{"408 Request Timeout", "425 Too Early", "429 Too Many Requests", "502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout"} {
		for _, after := range []string{"0", "1", "Thu, 01 Jan 1970 00:00:00 GMT", "soon"} {
			rows = append(rows, row{code + ", to be tried again: " + after, answers(status(code, "Retry-After: "+after)), record.HTTPError, "HTTP " + code[:3], ""})
		}
	}
	for _, test := range rows {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			target, requests := serve(t, test.script)
			r := attempt(t, t.Context(), client.New(client.WithMaxBytes(1<<18)), target, 5*time.Second)
			g.Expect(r.Outcome).To(Equal(test.outcome), "%v", r.Error)
			if test.says == "" {
				g.Expect(r.Error).To(BeNil())
			} else {
				g.Expect(r.Error).To(HaveValue(ContainSubstring(test.says)))
			}
			g.Expect(r.OutputText).To(Equal(test.text))
			g.Expect(requests.Load()).To(Equal(int64(1)), "there is one try, whatever it is told")
		})
	}
}

// TestAHostileStreamGetsAnOutcomeByName is the same of what stands in the
// stream.
func TestAHostileStreamGetsAnOutcomeByName(t *testing.T) {
	const mib = 1 << 20
	content := func(text string) string {
		return "data: {\"choices\":[{\"delta\":{\"content\":\"" + text + "\"}}]}\n\n"
	}
	member := func(value string) string {
		return "data: {\"x\":" + value + ",\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
	}
	for _, test := range []struct {
		name    string
		stream  string
		outcome record.Outcome
		says    string
		text    string
	}{
		{"a comment of 1 MiB", ":" + strings.Repeat("c", mib) + "\n" + content("a") + done, record.OK, "", "a"},
		{"a line of 1 MiB", content(strings.Repeat("a", mib)) + done, record.OK, "", strings.Repeat("a", mib)},
		{"1 MiB of line ends", strings.Repeat("\r\n", mib/2) + content("a") + done, record.OK, "", "a"},
		{"1 MiB in the name of a field", strings.Repeat("n", mib) + ": x\n" + content("a") + done, record.OK, "", "a"},
		{"an event of a hundred thousand lines", strings.Repeat("data:\n", 100000) + content("a") + done, record.OK, "", "a"},
		{"a hundred thousand events without a token", strings.Repeat("data: {}\n\n", 100000) + content("a") + done, record.OK, "", "a"},
		{"a NUL in a text", content("a\x00b") + done, record.StreamError, "no JSON", ""},
		{"a NUL that is escaped", content(`a\u0000b`) + done, record.OK, "", "a\x00b"},
		{"a NUL in a comment and an id", ": \x00\nid: \x00\n" + content("a") + done, record.OK, "", "a"},
		{"a NUL before the field", "\x00" + content("b") + content("a") + done, record.OK, "", "a"},
		{"text that is no UTF-8", content("a\xff\xc3(") + done, record.OK, "", "a\uFFFD\uFFFD("},
		{"half of a surrogate pair", content(`a\ud83d`) + done, record.OK, "", "a\uFFFD"},
		{"a byte order mark before each event", "\xEF\xBB\xBF" + content("a") + "\xEF\xBB\xBF" + content("b") + done, record.OK, "", "a"},
		{"JSON of a depth that can be read", member(strings.Repeat("[", 5000)+strings.Repeat("]", 5000)) + done, record.OK, "", "a"},
		{"JSON of a depth that can't", member(strings.Repeat("[", 200000)+strings.Repeat("]", 200000)) + done, record.StreamError, "no JSON", ""},
		{"a number of 100000 digits that nobody reads", member(strings.Repeat("9", 100000)) + done, record.OK, "", "a"},
		{"a token id beyond every number", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"token_ids\":[1e400]}]}\n\n" + done, record.StreamError, "a token id is not a whole number", "a"},
		{"a token id that is none", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"token_ids\":[1.5]}]}\n\n" + done, record.StreamError, "a token id is not a whole number", "a"},
		{"a count beyond every number", content("a") + "data: {\"usage\":{\"completion_tokens\":99999999999999999999}}\n\n" + done, record.StreamError, "completion_tokens is not a whole number", "a"},
		{"a count below nothing", content("a") + "data: {\"usage\":{\"completion_tokens\":-5}}\n\n" + done, record.StreamError, "completion_tokens is not a number of tokens", "a"},
		{"the same name twice", "data: {\"choices\":[{\"delta\":{\"content\":\"a\",\"content\":\"b\"}}]}\n\n" + done, record.OK, "", "ab"},
		{"two events in one", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\ndata: {\"choices\":[]}\n\n" + done, record.StreamError, "no JSON", ""},
		{"an end in capitals of another field", "DATA: [DONE]\n\n" + content("a"), record.Truncated, "without [DONE]", "a"},
		{"an end in other letters", content("a") + "data: [done]\n\n", record.StreamError, "no JSON", "a"},
		{"nothing but ends", strings.Repeat(done, 1000), record.OK, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			target, requests := serve(t, answers(head, test.stream))
			r := attempt(t, t.Context(), client.New(client.WithMaxBytes(8*mib)), target, 20*time.Second)
			g.Expect(r.Outcome).To(Equal(test.outcome), "%v", r.Error)
			if test.says == "" {
				g.Expect(r.Error).To(BeNil())
			} else {
				g.Expect(r.Error).To(HaveValue(ContainSubstring(test.says)))
				g.Expect(len(*r.Error)).To(BeNumerically("<", 2000), "a record does not repeat what it was sent")
			}
			g.Expect(r.OutputText == test.text).To(BeTrue(), "%.100q", r.OutputText)
			g.Expect(requests.Load()).To(Equal(int64(1)))
		})
	}
}

// TestWhatWasReadBehindABreakIsNotDecoded: how much that is depends on how the
// network cut the stream.
func TestWhatWasReadBehindABreakIsNotDecoded(t *testing.T) {
	padded := strings.Repeat(fmt.Sprintf("1;%s\r\n:\r\n", strings.Repeat("x", 3000)), 6)
	for _, test := range []struct{ name, body string }{
		{"more framing than content", padded + chunked("\n"+token("b", 2)) + chunked(finish+done)},
		{"a size of more digits than net/http takes", fmt.Sprintf("%017x\r\n%s\r\n", len(token("b", 2)), token("b", 2)) + chunked(finish+done)},
		{"a size that is none", "zz\r\n" + chunked(token("b", 2)) + chunked(finish+done)},
		{"a chunk without its end", fmt.Sprintf("%x\r\n%s", 5, token("b", 2)) + chunked(finish+done)},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := listen(t)
			response := chunkedHead + chunked(token("a", 1)) + test.body
			for _, size := range []int{1, 7, 100, 1000, 4 << 10, 1 << 20} {
				r := decode(t, l, []byte(response), func() int { return size })
				NewWithT(t).Expect(r.Outcome).To(Equal(record.StreamError), "%d bytes a read", size)
				NewWithT(t).Expect(r.OutputText).To(Equal("a"), "%d bytes a read", size)
			}
		})
	}
}

// TestAConnectionThatWasCutIsNotUsedAgain: what a server would have sent on it
// belongs to no other attempt.
func TestAConnectionThatWasCutIsNotUsedAgain(t *testing.T) {
	g := NewWithT(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer l.Close()
	const attempts = 4
	kept := make(chan net.Conn, attempts)
	go func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			kept <- c
			body := token(string(rune('a'+n)), n) + finish + done
			if n%2 == 0 { // keeps the connection, and cuts the answer
				write(c, fmt.Sprintf("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n", len(body)), body[:len(token("a", 1))])
				_ = c.(*net.TCPConn).CloseWrite()
			} else {
				write(c, fmt.Sprintf("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n", len(body)), body, "HTTP/1.1 200 OK\r\n\r\n", token("late", 9))
			}
		}
	}()
	c := client.New()
	for n := range attempts {
		r := attempt(t, t.Context(), c, client.Target{BaseURL: "http://" + l.Addr().String()}, 5*time.Second)
		g.Expect(r.OutputText).To(Equal(string(rune('a' + n))))
		if n%2 == 0 {
			g.Expect(r.Outcome).To(Equal(record.Truncated), "%v", r.Error)
		} else {
			g.Expect(r.Outcome).To(Equal(record.OK), "%v", r.Error)
		}
	}
	g.Expect(kept).To(HaveLen(attempts), "a connection for each")
	for range attempts {
		_ = (<-kept).Close()
	}
}

// TestHostileStreamsLeaveNothingInMemory: what a server sends is gone with its
// record.
func TestHostileStreamsLeaveNothingInMemory(t *testing.T) {
	g := NewWithT(t)
	l := listen(t)
	c := func(response string) {
		held := client.New(client.WithUserTime(), client.WithMaxBytes(2<<20), client.WithConn(func(conn net.Conn) net.Conn {
			return &scripted{Conn: conn, rest: []byte(response), sizes: func() int { return 1 << 12 }}
		}))
		clk := clock.Start()
		var r record.Request
		held.Dial(t.Context(), client.Target{BaseURL: "http://" + l.Addr().String()}).Do(t.Context(), clk, clk.Now(), time.Minute, request(t)).Decode(&r, nil)
		g.Expect(metric.Broken(r)).To(BeEmpty())
	}
	streams := []string{
		head + ":" + strings.Repeat("c", 1<<20) + "\n\n", head + strings.Repeat(token("a", 1), 20000),
		head + "data: " + strings.Repeat("[", 1<<20) + "\n\n", chunkedHead + strings.Repeat("1\r\n\n\r\n", 100000), head + strings.Repeat(done, 50000),
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what finalizers held goes with the second
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	round := func(n int) uint64 {
		for range n {
			for _, s := range streams {
				c(s)
			}
		}
		return heap()
	}
	after := round(2)
	g.Expect(round(10)).To(BeNumerically("<", after+1<<20), "fifty streams of a megabyte and more")
}
