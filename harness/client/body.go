package client

import (
	"bytes"
	"net/http"
	"net/textproto"
	"sort"
	"strconv"
	"strings"
)

// body is a response's body with the place of each of its bytes in the
// captured ones, so that an event's end leads to the read that brought it.
type body struct {
	data   []byte
	pieces []piece // in order
}

// piece is a run of the body that is a run of the capture too.
type piece struct{ body, raw int }

// raw is the capture's offset behind the body's byte before offset n.
func (b body) raw(n int) int {
	if n == 0 || len(b.pieces) == 0 {
		return 0
	}
	i := sort.Search(len(b.pieces), func(i int) bool { return b.pieces[i].body >= n }) - 1
	return b.pieces[i].raw + n - b.pieces[i].body
}

// bodyOf finds the body in captured bytes: behind the final response's header,
// and out of its chunks. The response was read by net/http before, on the
// clock, so that its framing is known to be right as far as it goes; what is
// broken simply ends the body here.
func bodyOf(raw []byte) body {
	at := 0
	for {
		header, length := head(raw[at:])
		if length < 0 {
			return body{}
		}
		at += length
		if header.status >= 200 || header.status == http.StatusSwitchingProtocols {
			if header.chunked {
				return dechunk(raw, at)
			}
			return body{data: raw[at:], pieces: []piece{{0, at}}}
		}
	}
}

type responseHead struct {
	status  int
	chunked bool
}

// head reads a status line and header; its length is -1 if they don't end.
func head(raw []byte) (responseHead, int) {
	end, gap := bytes.Index(raw, []byte("\r\n\r\n")), 4
	if lf := bytes.Index(raw, []byte("\n\n")); end < 0 || lf >= 0 && lf < end {
		end, gap = lf, 2
	}
	if end < 0 {
		return responseHead{}, -1
	}
	var h responseHead
	for i, line := range strings.Split(string(raw[:end]), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if i == 0 {
			if fields := strings.Fields(line); len(fields) > 1 {
				h.status, _ = strconv.Atoi(fields[1])
			}
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		if textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)) == "Transfer-Encoding" {
			h.chunked = strings.EqualFold(textproto.TrimString(value), "chunked")
		}
	}
	return h, end + gap
}

// dechunk takes a chunked body apart (RFC 9112, 7.1).
func dechunk(raw []byte, at int) body {
	var b body
	for at < len(raw) {
		eol := bytes.IndexByte(raw[at:], '\n')
		if eol < 0 {
			break
		}
		line, _, _ := bytes.Cut(raw[at:at+eol], []byte(";"))
		size, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 31)
		if err != nil || size == 0 {
			break
		}
		at += eol + 1
		n := min(int(size), len(raw)-at)
		b.pieces = append(b.pieces, piece{len(b.data), at})
		b.data = append(b.data, raw[at:at+n]...)
		at += n
		if at < len(raw) && raw[at] == '\r' {
			at++
		}
		if at < len(raw) && raw[at] == '\n' {
			at++
		}
	}
	return b
}
