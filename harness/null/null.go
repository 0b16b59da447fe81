package null

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Server answers every request at its pace, and computes nothing.
type Server struct {
	pace  Pace
	began atomic.Int64 // requests
	lock  sync.Mutex
	log   []Served
}

// Served is one answered request, in ns since the Unix epoch: what a client
// should have reported. Received is when the request had reached this host;
// where the system does not say that, when the server read it. First and Last
// are just before the first and the last token were written.
type Served struct {
	Received, First, Last int64
	Tokens                int
}

// New makes a server that answers at a pace where a request's path asks for
// none, see [Pace.Path].
func New(p Pace) *Server { return &Server{pace: p} }

// Answered are the requests that were answered, in the order of their ends.
func (s *Server) Answered() []Served {
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.Clone(s.log)
}

// Listen serves at an address, such as 127.0.0.1:0, until the listener that it
// returns is closed. Connections that are open by then are served on.
func (s *Server) Listen(address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{Control: askForStamps}).Listen(context.Background(), "tcp", address)
	if err == nil {
		go s.accept(l)
	}
	return l, err
}

func (s *Server) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return // it was closed, or nobody can be served any more: clients see it
		}
		go s.converse(conn.(*net.TCPConn))
	}
}

// converse answers the requests of one connection, one after the other.
func (s *Server) converse(conn *net.TCPConn) {
	defer conn.Close()
	source, err := newStamped(conn)
	if err != nil {
		return
	}
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

const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

func (s *Server) answer(to io.Writer, path string, received int64) error {
	p := s.pace.or(path)
	gap := p.gap(s.began.Add(1))
	now := time.Now()
	at := now.Add(p.First)
	if received != 0 {
		// From when the request was there, not from when this process saw it.
		at = at.Add(-min(p.First, max(0, time.Duration(now.UnixNano()-received))))
	}
	if _, err := io.WriteString(to, head); err != nil {
		return err
	}
	shape := chat
	if strings.HasSuffix(path, "/v1/completions") {
		shape = completion
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
		out = shape.append(out, text, i == p.Tokens-1)
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
	if _, err := io.WriteString(to, ending(p.Tokens)); err != nil {
		return err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.log = append(s.log, Served{received, first, last, p.Tokens})
	return nil
}

// EndSize is how many bytes follow the tokens of an answer.
func EndSize(tokens int) int { return len(ending(tokens)) }

// ending is what follows the tokens: the count, the last event, the end.
func ending(tokens int) string {
	usage := fmt.Sprintf(`data: {"id":"chatcmpl-0","object":"chat.completion.chunk","created":1796110692,"model":"smollm2","choices":[],"usage":{"prompt_tokens":32,"completion_tokens":%d,"total_tokens":%d}}`+"\n\n", tokens, 32+tokens)
	return fmt.Sprintf("%x\r\n%s\r\n", len(usage), usage) + "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
}

// shape is what an event has before and after a token's text.
type shape struct{ before, after string }

// The two, as vLLM has them and of the size that its events have.
var (
	chat = shape{
		`data: {"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk","created":1796110692,"model":"smollm2","choices":[{"index":0,"delta":{"content":"`,
		`"},"logprobs":null,"finish_reason":`,
	}
	completion = shape{
		`data: {"id":"cmpl-0123456789abcdef0123456789abcdef","object":"text_completion","created":1796110692,"model":"smollm2","choices":[{"index":0,"text":"`,
		`","logprobs":null,"finish_reason":`,
	}
)

// append writes one chunk with an event. The last has the reason in it, so that
// there are as many events as tokens.
func (s shape) append(out []byte, text string, last bool) []byte {
	const end = `,"token_ids":[1234]}]}` + "\n\n"
	finish := "null"
	if last {
		finish = `"length"`
	}
	out = strconv.AppendInt(out, int64(len(s.before)+len(text)+len(s.after)+len(finish)+len(end)), 16)
	for _, part := range [...]string{"\r\n", s.before, text, s.after, finish, end, "\r\n"} {
		out = append(out, part...)
	}
	return out
}
