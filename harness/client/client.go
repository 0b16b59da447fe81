package client

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"assay/harness/clock"
	"assay/harness/record"
)

// Target is where attempts go.
type Target struct {
	BaseURL string // scheme and host, no trailing slash
	Path    string // empty: ChatPath
	// APIKeyEnv names the environment variable with a bearer key, if one is
	// needed. The key goes into the request's header and nowhere else.
	APIKeyEnv string
}

// Client makes attempts. It is safe for several goroutines and holds no
// connection between two attempts.
type Client struct {
	unstamped atomic.Pointer[error] // why the kernel gives no times, once that is known
	maxBytes  int                   // 0: by the request
	linger    time.Duration
	kernel    bool
	tls       *tls.Config
	wrap      func(net.Conn) net.Conn
}

// Option changes a client.
type Option func(*Client)

// WithMaxBytes bounds what is kept of one response, in bytes; a server that
// sends more gets a stream_error. The default goes by the request: 1 MiB, 16
// times its own size (its tokens may come back as ids) and 4 KiB for each token
// asked for, which is ten times what servers send.
func WithMaxBytes(n int) Option { return func(c *Client) { c.maxBytes = n } }

// WithLinger is how long to wait, once the last event has arrived, for the end
// of the response: what still comes is kept. It is outside every duration. The
// default is 100 ms.
func WithLinger(d time.Duration) Option { return func(c *Client) { c.linger = d } }

// WithUserTime reads arrival times in user space although the kernel's are to
// be had, for comparing the two.
func WithUserTime() Option { return func(c *Client) { c.kernel = false } }

// WithTLS configures https targets.
func WithTLS(config *tls.Config) Option { return func(c *Client) { c.tls = config } }

// WithConn puts a connection of the caller's around the one that was dialled,
// above the kernel's times: a reader that is late, a line that is slow.
func WithConn(wrap func(net.Conn) net.Conn) Option { return func(c *Client) { c.wrap = wrap } }

// New makes a client, defaults first, then the options.
func New(options ...Option) *Client {
	c := &Client{linger: 100 * time.Millisecond, kernel: true, tls: &tls.Config{MinVersion: tls.VersionTLS12}}
	for _, o := range options {
		o(c)
	}
	return c
}

// limit is the most that is kept of the response to a request, in bytes.
func (c *Client) limit(r Request) int {
	if c.maxBytes > 0 {
		return c.maxBytes
	}
	return 1<<20 + 16*len(r.Body) + 4<<10*r.tokens
}

// Conn is one open connection, for one attempt.
type Conn struct {
	client *Client
	url    *url.URL
	key    string
	conn   net.Conn // what requests are written to and responses read from
	wire   *wire    // under it
	why    string   // why there are no kernel times
	dial   *int64   // ns; nil: it was not tried
	tls    *int64   // ns; nil: no TLS
	err    error    // the connection could not be opened
}

// Dial opens a connection before the request's time has come. It never
// returns nil: a connection that could not be opened makes an attempt that
// ends as connect_error, since a request that can't be sent is an observation
// too. ctx bounds the opening alone.
func (c *Client) Dial(ctx context.Context, t Target) *Conn {
	conn := &Conn{client: c}
	conn.err = conn.open(ctx, t)
	return conn
}

func (c *Conn) open(ctx context.Context, t Target) error {
	if t.Path == "" {
		t.Path = ChatPath
	}
	u, err := url.Parse(strings.TrimSuffix(t.BaseURL, "/") + t.Path)
	if err != nil {
		return fmt.Errorf("the target is no URL: %w", err)
	}
	c.url = u
	port, known := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	if !known {
		return fmt.Errorf("the target's scheme is %q: http and https are spoken here", u.Scheme)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	if t.APIKeyEnv != "" {
		if c.key = os.Getenv(t.APIKeyEnv); c.key == "" {
			return fmt.Errorf("the environment variable %s, which the plan names for the API key, is empty: set it", t.APIKeyEnv)
		}
	}
	began := time.Now()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	took := int64(time.Since(began))
	c.dial = &took
	if err != nil {
		return err
	}
	c.wire = &wire{Conn: conn, records: u.Scheme == "https"}
	c.conn = c.wire
	c.stamp(conn.(*net.TCPConn))
	if c.client.wrap != nil {
		c.wire.Conn = c.client.wrap(c.wire.Conn)
	}
	if !c.wire.records {
		return nil
	}
	return c.secure(ctx)
}

// stamp switches the kernel's times on, before the request's time has come.
func (c *Conn) stamp(tcp *net.TCPConn) {
	if !c.client.kernel {
		c.why = "user-space times were asked for"
		return
	}
	if err := c.client.unstamped.Load(); err != nil {
		c.why = (*err).Error()
		return
	}
	stamps, err := stamped(tcp)
	if err != nil {
		c.client.unstamped.Store(&err)
		c.why = err.Error()
		return
	}
	c.wire.stamps, c.wire.Conn = stamps, stamps
}

// secure shakes hands.
func (c *Conn) secure(ctx context.Context) error {
	config := c.client.tls.Clone()
	config.NextProtos = []string{"http/1.1"} // the one that is spoken here
	if config.ServerName == "" {
		config.ServerName = c.url.Hostname()
	}
	secured := tls.Client(c.wire, config)
	began := time.Now()
	err := secured.HandshakeContext(ctx)
	took := int64(time.Since(began))
	c.tls = &took
	if err != nil {
		return errors.Join(err, c.wire.Close())
	}
	c.conn = secured
	return nil
}

// Close closes a connection that no attempt was made on.
func (c *Conn) Close() error {
	if c.conn == nil {
		return nil
	}
	return c.conn.Close()
}

// firstWrite takes the time of a connection's first Write: the request's first
// byte.
type firstWrite struct {
	net.Conn
	clock clock.Clock
	at    *int64
}

func (w *firstWrite) Write(p []byte) (int, error) {
	if w.at == nil {
		now := w.clock.Now()
		w.at = &now
	}
	return w.Conn.Write(p)
}

// Raw is one attempt as it was seen, not yet decoded. It never changes after
// [Conn.Do] has returned it.
type Raw struct {
	request   Request
	key       string // to keep it out of what is written
	scheduled int64
	sent      *int64
	ended     int64
	dial      *int64
	tls       *int64
	why       string // why there are no kernel times
	status    *int
	header    http.Header
	capture   *capture
	start     int   // of the body in the capture
	chunked   bool  // the body is
	length    int64 // of the body as declared; -1: not declared
	framed    bool  // the response ended by its framing, before the connection did
	lingered  bool  // the last event had arrived, and the end of the response was not awaited longer
	// outcome is how reading ended, before the bytes were decoded: ok means
	// that the response came to its end.
	outcome record.Outcome
	err     error
}

// Outcome is how the attempt ended as far as is known before the bytes were
// decoded. An attempt that looks ok can still turn out to be none.
func (r *Raw) Outcome() record.Outcome {
	if r.capture != nil && r.capture.done && r.status != nil && *r.status == http.StatusOK {
		return record.OK // the last event had arrived: nothing after it undoes that
	}
	return r.outcome
}

// Received is how many bytes of the response arrived.
func (r *Raw) Received() int64 {
	if r.capture == nil {
		return 0
	}
	return int64(r.capture.size)
}

// Do makes the attempt: it writes the request once and reads one response
// until the stream's end, the timeout (counted from scheduledAt, in ns on the
// clock) or the end of ctx. The connection is closed afterwards. Everything
// that happened is in the result; there is no second try.
func (c *Conn) Do(ctx context.Context, clk clock.Clock, scheduledAt int64, timeout time.Duration, request Request) *Raw {
	r := &Raw{request: request, key: c.key, scheduled: scheduledAt, why: c.why, dial: c.dial, tls: c.tls}
	if c.err != nil {
		outcome := record.ConnectError
		if errors.Is(c.err, context.Canceled) {
			outcome = record.Cancelled // this side gave up, not the server
		}
		return r.end(clk.Now(), outcome, c.err)
	}
	defer c.conn.Close()
	if err := ctx.Err(); err != nil {
		return r.end(clk.Now(), record.Cancelled, context.Cause(ctx))
	}
	deadline := clk.Time(scheduledAt).Add(timeout)
	if err := c.conn.SetDeadline(deadline); err != nil {
		return r.end(clk.Now(), record.ConnectError, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	outcome, err := c.exchange(clk, r, deadline)
	now := clk.Now()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		switch {
		case ctx.Err() != nil:
			outcome, err = record.Cancelled, context.Cause(ctx)
		case r.lingered:
			outcome, err = record.StreamError, errors.New("a line said [DONE] and was no event: what followed it was not read")
		default:
			outcome, err = record.Timeout, fmt.Errorf("not complete %s after its release: %w", timeout, err)
			// The poller's timer is set from two readings of its own clock, and
			// may fire by their distance too early.
			now = max(now, scheduledAt+int64(timeout))
		}
	}
	return r.end(now, outcome, err)
}

func (r *Raw) end(at int64, outcome record.Outcome, err error) *Raw {
	r.ended, r.outcome, r.err = at, outcome, err
	if r.capture != nil {
		r.capture.release()
	}
	return r
}

// exchange writes the request and reads the response.
func (c *Conn) exchange(clk clock.Clock, r *Raw, deadline time.Time) (record.Outcome, error) {
	c.wire.clock = &clk
	request := &http.Request{
		Method: http.MethodPost, URL: c.url, Host: c.url.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "User-Agent": {"assay"}},
		Body:   io.NopCloser(bytes.NewReader(r.request.Body)), ContentLength: int64(len(r.request.Body)), Close: true,
	}
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	writer := &firstWrite{Conn: c.conn, clock: clk}
	unwritten := request.Write(writer)
	r.sent = writer.at
	if unwritten != nil {
		unwritten = fmt.Errorf("the request could not be written: %w", unwritten)
		if r.sent == nil || errors.Is(unwritten, os.ErrDeadlineExceeded) {
			return record.ConnectError, unwritten
		}
		// A server may refuse a request before it has read all of it: what it
		// said is worth more than the broken pipe.
	}
	r.capture = &capture{source: c.conn, wire: c.wire, limit: c.client.limit(r.request)}
	r.capture.onDone = func() {
		if linger := time.Now().Add(c.client.linger); linger.Before(deadline) {
			r.lingered = c.conn.SetReadDeadline(linger) == nil
		}
	}
	reader := bufio.NewReaderSize(r.capture, 4<<10)
	response, err := readFinal(reader, request)
	if err != nil {
		if unwritten != nil {
			return record.ConnectError, unwritten
		}
		return unanswered(err), fmt.Errorf("no HTTP answer: %w", err)
	}
	r.status, r.header = &response.StatusCode, response.Header
	r.start = r.capture.size - reader.Buffered()
	r.chunked, r.length = slices.Contains(response.TransferEncoding, "chunked"), response.ContentLength
	scratch := make([]byte, 2<<10)
	for err == nil {
		_, err = response.Body.Read(scratch)
	}
	switch {
	case err == io.EOF:
		r.framed = !r.capture.closed
		return record.OK, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return record.Timeout, err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return record.Truncated, errors.New("the connection was closed inside the response")
	default:
		return record.StreamError, err
	}
}

// unanswered is the outcome of an answer that never became one: connect_error
// if the connection ended first, stream_error if what came is not HTTP or does
// not stop.
func unanswered(err error) record.Outcome {
	var network net.Error
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network) {
		return record.ConnectError
	}
	return record.StreamError
}

// readFinal reads the response and skips informational ones before it (early
// hints); their bytes stay in the capture.
func readFinal(reader *bufio.Reader, request *http.Request) (*http.Response, error) {
	for {
		response, err := http.ReadResponse(reader, request)
		if err != nil || response.StatusCode >= 200 || response.StatusCode == http.StatusSwitchingProtocols {
			return response, err
		}
	}
}
