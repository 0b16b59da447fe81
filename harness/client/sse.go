package client

// event is one event of a stream, by the WHATWG's rules: its data lines, joined
// by line feeds, and the offset behind the bytes that completed it.
type event struct {
	data []byte
	end  int // offset in the body
	// open: the stream ended before the blank line that dispatches an event.
	open bool
}

// events frames a body. Comments and fields other than data are skipped, a
// byte order mark at the start is ignored, lines end with LF, CRLF or CR. An
// event without a blank line after it, at the end of the stream, is returned
// all the same, marked open: the rules would drop it, and nothing that was
// seen is dropped here.
func events(body []byte) []event {
	var out []event
	var data []byte
	have := false
	dispatch := func(end int, open bool) {
		if have {
			out = append(out, event{data: data, end: end, open: open})
		}
		data, have = nil, false
	}
	at := 0
	if len(body) >= 3 && body[0] == 0xEF && body[1] == 0xBB && body[2] == 0xBF {
		at = 3
	}
	for at < len(body) {
		start := at
		for at < len(body) && body[at] != '\n' && body[at] != '\r' {
			at++
		}
		line := body[start:at]
		complete := at < len(body)
		// A CR ends the line by itself: an LF that belongs to it may come in a
		// later read and must not make the event look later.
		ended := at + 1
		if complete {
			if body[at] == '\r' && at+1 < len(body) && body[at+1] == '\n' {
				at++
			}
			at++
		}
		if len(line) == 0 {
			if complete {
				dispatch(ended, false)
			}
			continue
		}
		value, ok := field(line, "data")
		switch {
		case !ok:
		case have:
			data = append(append(data[:len(data):len(data)], '\n'), value...)
		default:
			data, have = value, true
		}
	}
	dispatch(at, true)
	return out
}

// field is the value of a line of that field name: what follows the colon,
// without one space; empty where the line is the name alone.
func field(line []byte, name string) ([]byte, bool) {
	if len(line) < len(name) || string(line[:len(name)]) != name {
		return nil, false
	}
	rest := line[len(name):]
	switch {
	case len(rest) == 0:
		return rest, true
	case rest[0] != ':':
		return nil, false
	case len(rest) > 1 && rest[1] == ' ':
		return rest[2:], true
	default:
		return rest[1:], true
	}
}
