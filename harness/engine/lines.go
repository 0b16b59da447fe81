package engine

import (
	"bytes"
	"io"
	"slices"
	"sync"
)

const (
	// KeptLines is how many of a server's last lines go with its exit.
	KeptLines = 50
	// longestLine bounds what is held back for the end of a line.
	longestLine = 1 << 20
)

// Lines passes output on in whole lines and keeps the last [KeptLines] of
// them. Two streams of one server have one each, so that the halves of their
// lines never meet. What never ends in a newline is passed on in pieces of a
// mebibyte: a server must not stall on its log. Write never fails, for the same
// reason.
type Lines struct {
	to io.Writer

	mu      sync.Mutex
	partial []byte
	last    []string
}

// NewLines makes lines for to, which takes one in each call.
func NewLines(to io.Writer) *Lines { return &Lines{to: to} }

// Write takes output in pieces of any size.
func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := p; len(rest) > 0; {
		n := bytes.IndexByte(rest, '\n') + 1
		if n == 0 {
			n = len(rest)
		}
		n = min(n, longestLine-len(l.partial))
		l.partial = append(l.partial, rest[:n]...)
		rest = rest[n:]
		if l.partial[len(l.partial)-1] == '\n' || len(l.partial) == longestLine {
			l.pass()
		}
	}
	return len(p), nil
}

// Close passes on a last line that has no newline, which it is given.
func (l *Lines) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.partial) > 0 {
		l.partial = append(l.partial, '\n')
		l.pass()
	}
	return nil
}

// Last are the last lines, without their newlines.
func (l *Lines) Last() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.last)
}

func (l *Lines) pass() {
	_, _ = l.to.Write(l.partial)
	if l.last = append(l.last, string(bytes.TrimRight(l.partial, "\r\n"))); len(l.last) > KeptLines {
		l.last = slices.Delete(l.last, 0, 1)
	}
	l.partial = l.partial[:0]
}
