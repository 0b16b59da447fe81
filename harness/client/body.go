package client

import (
	"bytes"
	"sort"
	"strconv"
)

// body is a response's body with the place of each of its bytes in the
// captured ones, so that an event's end leads to the read that brought it.
type body struct {
	data   []byte
	pieces []piece // in order
}

// piece is a run of the body that is a run of the capture too.
type piece struct{ body, raw int }

// raw is the capture's offset behind the body's first n bytes.
func (b body) raw(n int) int {
	if n == 0 || len(b.pieces) == 0 {
		return 0
	}
	i := sort.Search(len(b.pieces), func(i int) bool { return b.pieces[i].body >= n }) - 1
	return b.pieces[i].raw + n - b.pieces[i].body
}

// bodyOf takes the body out of captured bytes, from where the header ended.
// net/http read the same bytes on the clock and found their framing right as
// far as it went; where it broke, the body ends here. length is -1 where none
// was declared.
func bodyOf(raw []byte, start int, chunked bool, length int64) body {
	if chunked {
		return dechunk(raw, start)
	}
	data := raw[start:]
	if length >= 0 && length < int64(len(data)) {
		data = data[:length]
	}
	return body{data: data, pieces: []piece{{0, start}}}
}

// longestChunkLine is what net/http takes for a chunk's first line, in bytes,
// with a reader of that size.
const longestChunkLine = 4 << 10

// mostDigits is how many digits net/http takes for a chunk's size, zeros at its
// beginning too.
const mostDigits = 16

// mostExcess is how much more framing than content net/http takes, in bytes: 16
// for each chunk and twice its content are free.
const mostExcess = 16 << 10

// dechunk takes a chunked body apart (RFC 9112, 7.1), as strictly as net/http
// does: how much was received behind the place where the framing broke is
// chance, and must not decide what is decoded.
func dechunk(raw []byte, at int) body {
	b := body{data: make([]byte, 0, len(raw)-at)}
	excess := int64(0)
	for at < len(raw) {
		line, _, found := bytes.Cut(raw[at:], []byte("\r\n"))
		if !found || len(line)+2 > longestChunkLine || bytes.ContainsAny(line, "\r\n") {
			break
		}
		digits, _, _ := bytes.Cut(bytes.TrimRight(line, " \t"), []byte(";"))
		size, err := strconv.ParseUint(string(digits), 16, 64)
		if err != nil || size == 0 || len(digits) > mostDigits {
			break
		}
		if excess = max(0, excess+int64(len(line))+2-16-2*int64(size)); excess > mostExcess {
			break
		}
		at += len(line) + 2
		n := int(min(size, uint64(len(raw)-at)))
		b.pieces = append(b.pieces, piece{len(b.data), at})
		b.data = append(b.data, raw[at:at+n]...)
		at += n
		if !bytes.HasPrefix(raw[at:], []byte("\r\n")) {
			break
		}
		at += 2
	}
	return b
}
