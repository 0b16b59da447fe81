//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// null is a server that computes nothing: it answers every request at its pace.
type null struct {
	pace  pace
	began atomic.Int64 // requests
	log   serverLog
}

// nullAddresses are where one null server listens: a client has one range of
// ports for each address that it connects to, and 10,000 streams need room.
var nullAddresses = []string{"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"}

// serveNull prints its addresses and answers at a pace until its standard input
// closes; then it prints its log. Addresses that this system does not have are
// left out, but for the first.
func serveNull(arguments string) error {
	s := &null{}
	if arguments != "" {
		if err := json.Unmarshal([]byte(arguments), &s.pace); err != nil {
			return err
		}
	}
	var addresses []string
	for i, host := range nullAddresses {
		l, err := (&net.ListenConfig{Control: askForStamps}).Listen(context.Background(), "tcp", host+":0")
		if err != nil && i == 0 {
			return err
		}
		if err == nil {
			addresses = append(addresses, l.Addr().String())
			go s.accept(l)
		}
	}
	fmt.Println(strings.Join(addresses, " "))
	_, _ = io.Copy(io.Discard, os.Stdin)
	return json.NewEncoder(os.Stdout).Encode(s.log.answered())
}

func (s *null) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, "the null server accepts no more:", err)
			return
		}
		go s.converse(conn.(*net.TCPConn))
	}
}

// converse answers the requests of one connection, one after the other.
func (s *null) converse(conn *net.TCPConn) {
	defer conn.Close()
	source := newStamped(conn)
	reader := bufio.NewReader(source)
	for {
		source.at = 0
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		at := source.at // of the header: a body may come later
		if _, err := io.Copy(io.Discard, request.Body); err != nil {
			return
		}
		if request.Method != http.MethodPost {
			err = inform(conn)
		} else {
			err = s.answer(conn, request.URL.Path, at)
		}
		if err != nil || request.Close {
			return
		}
	}
}

// inform says what a client may want to know first: that this is a server, and
// which model it has.
func inform(to io.Writer) error {
	const said = `{"object":"list","data":[{"id":"smollm2","object":"model","created":1796110692,"owned_by":"null","max_model_len":8192}]}`
	_, err := fmt.Fprintf(to, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(said), said)
	return err
}

const nullHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

func (s *null) answer(to io.Writer, path string, received int64) error {
	p := s.pace.or(path)
	gap := p.gap(s.began.Add(1))
	now := time.Now()
	at := now.Add(p.First)
	if received != 0 {
		// From when the request was there, not from when this process saw it.
		at = at.Add(-min(p.First, max(0, time.Duration(now.UnixNano()-received))))
	}
	if _, err := io.WriteString(to, nullHead); err != nil {
		return err
	}
	var out []byte
	var first, last int64
	for i := range p.Tokens {
		if p.Gap > 0 || i == 0 && p.First > 0 {
			time.Sleep(time.Until(at))
			at = at.Add(gap)
		}
		last = time.Now().UnixNano()
		if i == 0 {
			first = last
		}
		text := " word"
		if p.Stamped {
			text = strconv.FormatInt(last, 10)
		}
		out = appendEvent(out, text, i == p.Tokens-1)
		// At full speed a request's tokens leave together, as they would from a
		// server that never waits.
		if p.Gap > 0 || i == p.Tokens-1 || len(out) > 30<<10 {
			if _, err := to.Write(out); err != nil {
				return err
			}
			out = out[:0]
		}
	}
	time.Sleep(p.Hold)
	if _, err := io.WriteString(to, nullEnd(p.Tokens)); err != nil {
		return err
	}
	s.log.add(served{received, first, last, p.Tokens})
	return nil
}

// nullEnd is what follows the tokens: the count, the last event, the end.
func nullEnd(tokens int) string {
	usage := fmt.Sprintf(`data: {"id":"chatcmpl-0","object":"chat.completion.chunk","created":1796110692,"model":"smollm2","choices":[],"usage":{"prompt_tokens":32,"completion_tokens":%d,"total_tokens":%d}}`+"\n\n", tokens, 32+tokens)
	return fmt.Sprintf("%x\r\n%s\r\n", len(usage), usage) + "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
}

// appendEvent writes one chunk with an event of the size that vLLM's have. The
// last has the reason in it, so that there are as many events as tokens.
func appendEvent(out []byte, text string, last bool) []byte {
	const before = `data: {"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk","created":1796110692,"model":"smollm2","choices":[{"index":0,"delta":{"content":"`
	const after, reason, end = `"},"logprobs":null,"finish_reason":`, `"length"`, `,"token_ids":[1234]}]}` + "\n\n"
	finish := "null"
	if last {
		finish = reason
	}
	out = strconv.AppendInt(out, int64(len(before)+len(text)+len(after)+len(finish)+len(end)), 16)
	for _, part := range [...]string{"\r\n", before, text, after, finish, end, "\r\n"} {
		out = append(out, part...)
	}
	return out
}
