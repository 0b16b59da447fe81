package client_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/client"
	"assay/harness/clock"
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
func (s *scripted) Write(p []byte) (int, error)      { return len(p), nil }
func (s *scripted) SetDeadline(time.Time) error      { return nil }
func (s *scripted) SetReadDeadline(time.Time) error  { return nil }
func (s *scripted) SetWriteDeadline(time.Time) error { return nil }

// decode makes an attempt whose response is the given bytes, read in pieces.
func decode(t testing.TB, listener net.Listener, response []byte, sizes func() int) record.Request {
	c := client.New(client.WithUserTime(), client.WithMaxBytes(1<<20), client.WithConn(func(conn net.Conn) net.Conn {
		return &scripted{Conn: conn, rest: response, sizes: sizes}
	}))
	clk := clock.Start()
	conn := c.Dial(t.Context(), client.Target{BaseURL: "http://" + listener.Addr().String()})
	request, err := client.NewChatRequest(client.ChatParams{Model: "m", Messages: []client.Message{{Role: "user", Content: "Hi"}}, MaxTokens: 8, TopP: 1, TokenIDs: true})
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
			_ = c.Close()
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
			return fmt.Sprint(r.Outcome, r.OutputText, r.OutputTokenIDs, usage, len(r.Events), r.FinishReason == nil)
		}
		// After the last event the client may stop reading at any point.
		if one.AfterDone == all.AfterDone && same(one) != same(all) {
			t.Fatalf("in pieces: %s\nat once:   %s", same(one), same(all))
		}
	})
}
