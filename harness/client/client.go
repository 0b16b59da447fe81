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

// Client makes attempts. It is safe for several goroutines and holds nothing
// between two attempts.
type Client struct {
	maxBytes int
	linger   time.Duration
	kernel   bool
	tls      *tls.Config
	delay    func(net.Conn) net.Conn
}

// Option changes a client.
type Option func(*Client)

// WithMaxBytes bounds the bytes of one response that are kept; a server that
// sends more gets a stream_error. The default is 64 MiB.
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
func WithConn(wrap func(net.Conn) net.Conn) Option { return func(c *Client) { c.delay = wrap } }

// New makes a client, defaults first, then the options.
func New(options ...Option) *Client {
	c := &Client{maxBytes: 64 << 20, linger: 100 * time.Millisecond, kernel: true, tls: &tls.Config{MinVersion: tls.VersionTLS12}}
	for _, o := range options {
		o(c)
	}
	return c
}

// stamper is a connection that knows when the kernel received the bytes of its
// last read, in ns since the Unix epoch; 0 if it does not.
type stamper interface {
	net.Conn
	received() int64
}

// Conn is one open connection, for one attempt.
type Conn struct {
	client *Client
	url    *url.URL
	key    string
	conn   net.Conn
	stamps stamper
	why    string // why there are no kernel times
	dial   int64  // ns
	tls    *int64 // ns; nil: no TLS
	err    error  // the connection could not be opened
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
	u, err := url.Parse(t.BaseURL + t.Path)
	if err != nil {
		return fmt.Errorf("the target is no URL: %w", err)
	}
	c.url = u
	if t.APIKeyEnv != "" {
		if c.key = os.Getenv(t.APIKeyEnv); c.key == "" {
			return fmt.Errorf("the environment variable %s, which the plan names for the API key, is empty: set it", t.APIKeyEnv)
		}
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	began := time.Now()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	c.dial = int64(time.Since(began))
	if err != nil {
		return err
	}
	c.conn = conn
	c.stampWith(conn.(*net.TCPConn))
	if c.client.delay != nil {
		c.conn = c.client.delay(c.conn)
	}
	if u.Scheme != "https" {
		return nil
	}
	config := c.client.tls.Clone()
	if config.ServerName == "" {
		config.ServerName = u.Hostname()
	}
	secured := tls.Client(c.conn, config)
	began = time.Now()
	err = secured.HandshakeContext(ctx)
	took := int64(time.Since(began))
	c.tls = &took
	c.conn = secured
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	return nil
}

func (c *Conn) stampWith(tcp *net.TCPConn) {
	if !c.client.kernel {
		c.why = "user-space times were asked for"
		return
	}
	stamps, err := stamp(tcp)
	if err != nil {
		c.why = err.Error()
		return
	}
	c.stamps, c.conn = stamps, stamps
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
	scheduled int64
	sent      *int64
	ended     int64
	dial      *int64
	tls       *int64
	why       string // why there are no kernel times
	status    *int
	header    http.Header
	capture   *capture
	// outcome is how reading ended, before the bytes were decoded: ok means
	// that the response came to its end.
	outcome record.Outcome
	err     error
}

// Outcome is how the attempt ended as far as is known before the bytes were
// decoded. An attempt that looks ok can still turn out to be none.
func (r *Raw) Outcome() record.Outcome { return r.outcome }

// Do makes the attempt: it writes the request once and reads one response
// until the stream's end, the timeout (counted from scheduledAt, in ns on the
// clock) or the end of ctx. The connection is closed afterwards. Everything
// that happened is in the result; there is no second try.
func (c *Conn) Do(ctx context.Context, clk clock.Clock, scheduledAt int64, timeout time.Duration, request Request) *Raw {
	r := &Raw{request: request, scheduled: scheduledAt, why: c.why, tls: c.tls}
	if c.dial > 0 {
		r.dial = &c.dial
	}
	if c.err != nil {
		return r.end(clk, record.ConnectError, c.err)
	}
	defer c.conn.Close()
	if err := ctx.Err(); err != nil {
		return r.end(clk, record.Cancelled, err)
	}
	deadline := clk.Time(scheduledAt).Add(timeout)
	if err := c.conn.SetDeadline(deadline); err != nil {
		return r.end(clk, record.ConnectError, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	outcome, err := c.exchange(clk, r, deadline)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		outcome = record.Timeout
		if ctx.Err() != nil {
			outcome, err = record.Cancelled, context.Cause(ctx)
		}
	}
	return r.end(clk, outcome, err)
}

func (r *Raw) end(clk clock.Clock, outcome record.Outcome, err error) *Raw {
	r.ended, r.outcome, r.err = clk.Now(), outcome, err
	if r.capture != nil && r.capture.done && r.status != nil && outcome != record.Cancelled {
		// The last event had arrived: nothing after it can undo that.
		r.outcome, r.err = record.OK, nil
	}
	return r
}

// exchange writes the request and reads the response.
func (c *Conn) exchange(clk clock.Clock, r *Raw, deadline time.Time) (record.Outcome, error) {
	request := &http.Request{
		Method: http.MethodPost, URL: c.url, Host: c.url.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "User-Agent": {"assay"}},
		Body:   io.NopCloser(bytes.NewReader(r.request.Body)), ContentLength: int64(len(r.request.Body)), Close: true,
	}
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	writer := &firstWrite{Conn: c.conn, clock: clk}
	err := request.Write(writer)
	r.sent = writer.at
	if err != nil {
		return record.ConnectError, fmt.Errorf("the request could not be written: %w", err)
	}
	r.capture = &capture{source: c.conn, stamps: c.stamps, clock: clk, limit: c.client.maxBytes, last: *r.sent}
	r.capture.onDone = func() {
		if linger := time.Now().Add(c.client.linger); linger.Before(deadline) {
			_ = c.conn.SetReadDeadline(linger)
		}
	}
	reader := bufio.NewReaderSize(r.capture, 4<<10)
	response, err := readFinal(reader, request)
	if err != nil {
		return record.ConnectError, fmt.Errorf("no HTTP answer: %w", err)
	}
	r.status, r.header = &response.StatusCode, response.Header
	_, err = io.CopyBuffer(io.Discard, onlyReader{response.Body}, make([]byte, 2<<10))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return record.Timeout, err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return record.Truncated, errors.New("the connection was closed inside the response")
	case err != nil:
		return record.StreamError, err
	}
	return record.OK, nil
}

// onlyReader hides a body's other methods, so that CopyBuffer uses its buffer.
type onlyReader struct{ io.Reader }

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

// Received is how many bytes of the response arrived.
func (r *Raw) Received() int64 {
	if r.capture == nil {
		return 0
	}
	return int64(r.capture.size)
}
