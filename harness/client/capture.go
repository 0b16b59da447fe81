package client

import (
	"bytes"
	"fmt"
	"io"
)

// mark says when the captured bytes up to end came.
type mark struct {
	end    int
	at     int64 // ns on the lifecycle's clock: when the read returned
	kernel int64 // ns since the Unix epoch; 0: not known
	read   int32 // number of the read: under TLS several marks can be of one
	more   bool  // the read brought more behind these bytes, or may have left some
}

// markSize is about what a mark takes, in bytes: a server that sends single
// bytes fills the memory with marks, so that they count against the limit.
const markSize = 32

// blockSize is how the captured bytes are stored: grown in whole blocks, since
// a doubling slice would hold twice what was received and copy it besides.
const blockSize = 8 << 10

// leastRoom is the least room in the last block that a read is made into.
const leastRoom = 1 << 10

// capture is everything that was read from a connection, with the time of each
// read. It is itself the reader that the response is parsed from.
type capture struct {
	source io.Reader
	wire   *wire
	blocks [][]byte
	size   int
	limit  int // of the bytes and the marks
	marks  []mark
	closed bool // the server closed the connection
	// done is set once the bytes of a line "data: [DONE]" were seen, and
	// onDone called: the last event has arrived, and what follows is framing.
	done   bool
	onDone func()
	match  matcher
}

// tooLargeError ends an attempt whose server sends without end.
type tooLargeError struct{ limit int }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("the response is larger than the client keeps, %d bytes: the server does not stop, or the client needs a larger limit", e.limit)
}

// Read reads once from the connection, into p by way of the store.
func (c *capture) Read(p []byte) (int, error) {
	left := c.limit - c.size - markSize*len(c.marks)
	if left <= 0 {
		return 0, &tooLargeError{c.limit}
	}
	room := c.room()
	room = room[:min(len(room), len(p), left)]
	n, err := c.source.Read(room)
	if n > 0 {
		last := len(c.blocks) - 1
		c.blocks[last] = c.blocks[last][:len(c.blocks[last])+n]
		c.size += n
		w := c.wire
		c.marks = append(c.marks, mark{end: c.size, at: w.last.at, kernel: w.last.kernel, read: w.last.number, more: w.more()})
		copy(p, room[:n])
		if !c.done && c.match.feed(room[:n]) {
			c.done = true
			c.onDone()
		}
	}
	if err == io.EOF {
		c.closed = true
	}
	return n, err
}

// release lets go of what only reading needed.
func (c *capture) release() { c.source, c.wire, c.onDone = nil, nil, nil }

// room is the free end of the last block, or a new one.
func (c *capture) room() []byte {
	if n := len(c.blocks); n > 0 {
		if b := c.blocks[n-1]; cap(b)-len(b) >= leastRoom {
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
// string, so that text can't look like it. Where a chunk's framing splits that
// line it is not found, and the end of the response ends the attempt.
type matcher struct {
	tail []byte // the end of what passed before
}

var (
	doneMark   = []byte("[DONE]")
	doneField  = []byte("data:")
	longestEnd = len("\ndata: [DONE]")
)

func (m *matcher) feed(p []byte) bool {
	if len(m.tail) > 0 {
		var window [32]byte
		joined := append(append(window[:0], m.tail...), p[:min(len(p), longestEnd-1)]...)
		if hasDoneLine(joined) {
			return true
		}
	}
	if hasDoneLine(p) {
		return true
	}
	if keep := longestEnd - 1; len(p) >= keep {
		m.tail = append(m.tail[:0], p[len(p)-keep:]...)
	} else {
		m.tail = append(m.tail, p...)
		m.tail = m.tail[max(0, len(m.tail)-keep):]
	}
	return false
}

func hasDoneLine(p []byte) bool {
	for {
		i := bytes.Index(p, doneMark)
		if i < 0 {
			return false
		}
		before, found := bytes.CutSuffix(bytes.TrimSuffix(p[:i], []byte(" ")), doneField)
		if n := len(before); found && n > 0 && (before[n-1] == '\n' || before[n-1] == '\r') {
			return true
		}
		p = p[i+len(doneMark):]
	}
}
