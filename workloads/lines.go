package workloads

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// mostLine is the longest line of a file, in bytes: more than any engine's
// context holds.
const mostLine = 64 << 20

// byteOrderMark begins some files, and is none of their text.
var byteOrderMark = []byte("\ufeff")

// withoutMark reads what follows a byte order mark, if there is one.
func withoutMark(r io.Reader) *bufio.Reader {
	buffered := bufio.NewReader(r)
	if start, err := buffered.Peek(len(byteOrderMark)); err == nil && bytes.Equal(start, byteOrderMark) {
		_, _ = buffered.Discard(len(byteOrderMark)) // it is in the buffer
	}
	return buffered
}

// eachLine hands on every line that isn't empty, with its number.
func eachLine(r io.Reader, each func(line int, text []byte)) error {
	s := bufio.NewScanner(withoutMark(r))
	s.Buffer(nil, mostLine)
	line := 0
	for s.Scan() {
		line++
		if text := bytes.TrimSpace(s.Bytes()); len(text) > 0 {
			each(line, text)
		}
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d: it is longer than %d bytes: is it one JSON value a line?", line+1, mostLine)
	}
	return s.Err()
}
