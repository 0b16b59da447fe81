package client

import (
	"io"

	"assay/harness/clock"
)

// mark is one read: what it brought and when.
type mark struct {
	end    int   // offset in the capture after its bytes
	began  int64 // ns on the lifecycle's clock: the end of the read before it
	read   int64 // ns: the moment at which this read returned
	kernel int64 // ns since the Unix epoch: when the kernel got the last of it; 0: not known
}

// blockSize is how the captured bytes are stored: grown in whole blocks, since
// a doubling slice would hold twice what was received and copy it besides.
const blockSize = 8 << 10

// capture is everything that was read from a connection, with the time of each
// read. It is itself the reader that the response is parsed from.
type capture struct {
	source io.Reader
	stamps stamper // nil: no kernel times
	clock  clock.Clock
	blocks [][]byte
	size   int
	limit  int
	last   int64
	marks  []mark
	// done is set once the bytes of a line "data: [DONE]" were seen, and
	// onDone called: the last event has arrived, and what follows is framing.
	done   bool
	onDone func()
	match  matcher
}

// errTooLarge ends an attempt whose server sends without end.
var errTooLarge = errorString("the response is larger than the client keeps")

type errorString string

func (e errorString) Error() string { return string(e) }

// Read reads once from the connection, into p by way of the store.
func (c *capture) Read(p []byte) (int, error) {
	if c.size >= c.limit {
		return 0, errTooLarge
	}
	room := c.room()
	if len(room) > len(p) {
		room = room[:len(p)]
	}
	if left := c.limit - c.size; len(room) > left {
		room = room[:left]
	}
	n, err := c.source.Read(room)
	now := c.clock.Now()
	if n > 0 {
		last := len(c.blocks) - 1
		c.blocks[last] = c.blocks[last][:len(c.blocks[last])+n]
		c.size += n
		m := mark{end: c.size, began: c.last, read: now}
		if c.stamps != nil {
			m.kernel = c.stamps.received()
		}
		c.marks = append(c.marks, m)
		copy(p, room[:n])
		if !c.done && c.match.feed(room[:n]) {
			c.done = true
			c.onDone()
		}
	}
	c.last = now
	return n, err
}

// room is the free end of the last block, or a new one.
func (c *capture) room() []byte {
	if n := len(c.blocks); n > 0 {
		if b := c.blocks[n-1]; cap(b)-len(b) >= 512 {
			return b[len(b):cap(b)]
		}
	}
	b := make([]byte, 0, blockSize)
	c.blocks = append(c.blocks, b)
	return b[:cap(b)]
}

// bytes joins the blocks.
func (c *capture) bytes() []byte {
	out := make([]byte, 0, c.size)
	for _, b := range c.blocks {
		out = append(out, b...)
	}
	return out
}

// matcher looks for the last event's line as the bytes pass: a line end, then
// "data:", an optional space, "[DONE]". A line end can't stand in a JSON
// string, so that text can't look like it.
type matcher struct{ state int }

const doneLine = "data:[DONE]"

func (m *matcher) feed(p []byte) bool {
	for _, b := range p {
		switch {
		case b == '\n' || b == '\r':
			m.state = 1
		case m.state == 0:
		case b == ' ' && m.state == 1+len("data:"):
		case doneLine[m.state-1] == b:
			if m.state++; m.state > len(doneLine) {
				m.state = 0
				return true
			}
		default:
			m.state = 0
		}
	}
	return false
}
