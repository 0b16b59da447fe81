package client

import (
	"bytes"
	"iter"
	"slices"
)

// event is one event of a stream, by the WHATWG's rules: its data lines, joined
// by line feeds.
type event struct {
	// kind is the event field's value; "error" too where a server gave its
	// data in a field of that name, as llama.cpp's does.
	kind string
	data []byte
	// end is the offset in the body behind the last data line: the text has
	// arrived then, whenever the blank line comes that dispatches the event.
	end int
	// open: the stream ended before that blank line.
	open bool
}

// events frames a body. Comments and fields without use here are skipped, a
// byte order mark at the start is ignored, lines end with LF, CRLF or CR. An
// event without a blank line after it, at the end of the stream, is returned
// all the same, marked open: the rules would drop it, and nothing that was
// seen is dropped here.
func events(body []byte) iter.Seq[event] {
	return func(yield func(event) bool) {
		var e event
		have := false
		lines := lines{rest: bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF"))}
		lines.at = len(body) - len(lines.rest)
		for {
			line, end, complete, ok := lines.next()
			if !ok {
				break
			}
			if len(line) == 0 {
				if complete && have && !yield(e) {
					return
				}
				e, have = event{}, false
				continue
			}
			value, isData := field(line, "data")
			if !isData {
				if kind, ok := field(line, "event"); ok {
					e.kind = string(kind)
				}
				if value, isData = field(line, "error"); isData {
					e.kind = "error"
				}
			}
			switch {
			case !isData:
				continue
			case have:
				// The first line is the body's own memory: clipped, so that
				// joining copies it, and only once.
				e.data = append(append(e.data, '\n'), value...)
			default:
				e.data, have = slices.Clip(value), true
			}
			e.end = end
		}
		if have {
			e.open = true
			yield(e)
		}
	}
}

// lines goes through a stream line by line.
type lines struct {
	rest []byte // of the body
	at   int    // offset of rest in the body
	lf   int    // where the next LF is in rest, once looked for
	seen bool   // lf is known: looking again for each CR would take quadratic time
}

// next is a line without its end, and the offset behind its end. A CR ends a
// line by itself: an LF that belongs to it may come in a later read and must
// not make the line look later.
func (l *lines) next() (line []byte, end int, complete, ok bool) {
	if len(l.rest) == 0 {
		return nil, l.at, false, false
	}
	if !l.seen {
		if l.lf = bytes.IndexByte(l.rest, '\n'); l.lf < 0 {
			l.lf = len(l.rest)
		}
		l.seen = true
	}
	stop, skip := l.lf, 1
	if cr := bytes.IndexByte(l.rest[:l.lf], '\r'); cr >= 0 {
		if stop = cr; cr+1 == l.lf && l.lf < len(l.rest) {
			skip = 2
		}
	}
	line, complete = l.rest[:stop], stop < len(l.rest)
	if !complete {
		skip = 0
	}
	end = l.at + stop + min(skip, 1)
	l.rest, l.at, l.lf = l.rest[stop+skip:], l.at+stop+skip, l.lf-stop-skip
	l.seen = l.lf >= 0
	return line, end, complete, true
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
