package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

// pace is what a request asks the null server for, in its path:
// /<tokens>/<first, µs>/<gap, µs>.
type pace struct {
	tokens     int
	first, gap time.Duration
}

func (p pace) path() string {
	return fmt.Sprintf("/%d/%d/%d", p.tokens, p.first.Microseconds(), p.gap.Microseconds())
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
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go stream(conn)
	}
}

const nullHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

func stream(conn net.Conn) {
	defer conn.Close()
	request, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, request.Body)
	var p pace
	var first, gap int
	if _, err := fmt.Sscanf(request.URL.Path, "/%d/%d/%d", &p.tokens, &first, &gap); err != nil {
		return
	}
	at := time.Now().Add(time.Duration(first) * time.Microsecond)
	if _, err := io.WriteString(conn, nullHead); err != nil {
		return
	}
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	out := make([]byte, 0, 32<<10)
	for i := range p.tokens {
		if gap > 0 || i == 0 {
			due.Reset(time.Until(at))
			<-due.C
			at = at.Add(time.Duration(gap) * time.Microsecond)
		}
		out = appendEvent(out, time.Now().UnixNano())
		// At full speed a request's tokens leave together, as they would from a
		// server that never waits.
		if gap > 0 || i == p.tokens-1 || len(out) > 30<<10 {
			if _, err := conn.Write(out); err != nil {
				return
			}
			out = out[:0]
		}
	}
	_, _ = io.WriteString(conn, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
}

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
