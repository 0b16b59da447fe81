//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"assay/harness/client"
)

// pace is what a request asks the null server for, in its path:
// /<tokens>/<first, µs>/<gap, µs>/<hold, µs>, before the API's own.
type pace struct {
	tokens int
	first  time.Duration // before the first token
	gap    time.Duration // between two tokens; 0: they leave together
	hold   time.Duration // after the last token, before the end
}

func (p pace) path() string {
	return fmt.Sprintf("/%d/%d/%d/%d"+client.ChatPath, p.tokens, p.first.Microseconds(), p.gap.Microseconds(), p.hold.Microseconds())
}

// serveNull prints its address and streams tokens until its standard input
// closes, which is when its parent has gone. Each token's text is the wall
// clock, in ns, just before it was written.
func serveNull() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go exitWithParent()
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go stream(conn)
	}
}

const nullHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

// stream answers the requests of one connection, one after the other.
func stream(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	out := make([]byte, 0, 32<<10)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, request.Body); err != nil {
			return
		}
		if err := answer(conn, request.URL.Path, out); err != nil || request.Close {
			return
		}
	}
}

func answer(conn net.Conn, path string, out []byte) error {
	var tokens int
	var first, gap, hold int64
	if _, err := fmt.Sscanf(path, "/%d/%d/%d/%d", &tokens, &first, &gap, &hold); err != nil {
		return err
	}
	at := time.Now().Add(time.Duration(first) * time.Microsecond)
	if _, err := io.WriteString(conn, nullHead); err != nil {
		return err
	}
	for i := range tokens {
		if gap > 0 || i == 0 && first > 0 {
			time.Sleep(time.Until(at))
			at = at.Add(time.Duration(gap) * time.Microsecond)
		}
		out = appendEvent(out, time.Now().UnixNano())
		// At full speed a request's tokens leave together, as they would from a
		// server that never waits.
		if gap > 0 || i == tokens-1 || len(out) > 30<<10 {
			if _, err := conn.Write(out); err != nil {
				return err
			}
			out = out[:0]
		}
	}
	time.Sleep(time.Duration(hold) * time.Microsecond)
	_, err := io.WriteString(conn, nullEnd)
	return err
}

const nullEnd = "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"

// appendEvent writes one chunk with an event of the size that vLLM's have.
func appendEvent(out []byte, stamp int64) []byte {
	const before = `data: {"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk","created":1796110692,"model":"null","choices":[{"index":0,"delta":{"content":"`
	const after = `"},"logprobs":null,"finish_reason":null,"token_ids":[1234]}]}` + "\n\n"
	text := strconv.FormatInt(stamp, 10)
	out = strconv.AppendInt(out, int64(len(before)+len(text)+len(after)), 16)
	out = append(out, "\r\n"...)
	out = append(out, before...)
	out = append(out, text...)
	out = append(out, after...)
	return append(out, "\r\n"...)
}
