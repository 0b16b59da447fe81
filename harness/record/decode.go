package record

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
)

// requestDecoder decodes lines of requests.jsonl as encoding/json would, with
// unknown members refused. Most of a line are long lists of whole numbers: those
// are read here, in a tenth of the time, and the rest of the line without them by
// a library that is quicker than encoding/json and takes less. A line in which
// anything is unusual is left to encoding/json whole.
type requestDecoder struct {
	rest   []byte // the line with empty lists
	apart  bool   // the last line was decoded so
	events []Event
	counts []int // of the events' tokens; -1 is null
	lags   []int64
	ids    []int
}

// decode decodes a line. The request's lists lie in the decoder's memory until
// keep is called or another line is decoded.
func (s *requestDecoder) decode(line []byte, to *Request) error {
	if s.apart = s.split(line) && json.Unmarshal(s.rest, to, json.RejectUnknownMembers(true)) == nil; !s.apart {
		*to = Request{}
		return strictly(line, to)
	}
	for i, n := range s.counts {
		if n >= 0 {
			s.events[i].Tokens = &s.counts[i]
		}
	}
	to.Events, to.ClientLag, to.OutputTokenIDs = s.events, s.lags, s.ids
	return nil
}

func (s *requestDecoder) short(line []byte) []byte {
	if s.apart {
		return s.rest
	}
	return line
}

// keep gives the request that was decoded last memory of its own for its lists,
// those that it still has.
func (s *requestDecoder) keep(r *Request) {
	if len(r.Events) > 0 && len(s.events) > 0 && &r.Events[0] == &s.events[0] {
		counts := slices.Clone(s.counts)
		r.Events = slices.Clone(r.Events)
		for i := range r.Events {
			if r.Events[i].Tokens != nil {
				r.Events[i].Tokens = &counts[i]
			}
		}
	}
	if len(r.ClientLag) > 0 && len(s.lags) > 0 && &r.ClientLag[0] == &s.lags[0] {
		r.ClientLag = slices.Clone(r.ClientLag)
	}
	if len(r.OutputTokenIDs) > 0 && len(s.ids) > 0 && &r.OutputTokenIDs[0] == &s.ids[0] {
		r.OutputTokenIDs = slices.Clone(r.OutputTokenIDs)
	}
}

// members are the names of a request's members in JSON.
var members = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for field := range reflect.TypeFor[Request]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names[name] = true
	}
	delete(names, "-")
	return names
})

// split takes a line apart. It is false of one that has to be decoded as it is.
func (s *requestDecoder) split(line []byte) bool {
	if s.events == nil {
		s.events, s.lags, s.ids = []Event{}, []int64{}, []int{} // an empty list is no null
	}
	s.rest, s.events, s.counts, s.lags, s.ids = s.rest[:0], s.events[:0], s.counts[:0], s.lags[:0], s.ids[:0]
	in := scan{text: line}
	if !in.take('{') {
		return false
	}
	seen, copied := 0, 0 // lists that were taken out, and how much of the line is in rest
	for more := true; more; more = in.take(',') {
		name, ok := in.word()
		if !ok || !members()[string(name)] || !in.take(':') {
			return false
		}
		in.space()
		from := in.at
		list := 0
		switch string(name) {
		case "events":
			list, ok = 1, in.list(s.event)
		case "client_lag_ns":
			list, ok = 2, in.list(s.lag)
		case "output_token_ids":
			list, ok = 4, in.list(s.id)
		default:
			ok = in.skip()
		}
		if !ok || seen&list != 0 {
			return false
		}
		if list != 0 {
			seen |= list
			s.rest = append(append(s.rest, line[copied:from]...), "[]"...)
			copied = in.at
		}
	}
	s.rest = append(s.rest, line[copied:]...)
	return seen == 7 && in.take('}')
}

func (s *requestDecoder) event(in *scan) bool {
	if !in.take('[') {
		return false
	}
	earliest, a := in.number()
	ok := a && in.take(',')
	arrival, b := in.number()
	ok = ok && b && in.take(',')
	count := int64(-1)
	if in.space(); ok && !in.literal("null") {
		n, is := in.number()
		if count = n; !is || n < 0 {
			return false // encoding/json takes it, and what it means is told elsewhere
		}
	}
	s.events, s.counts = append(s.events, Event{Earliest: earliest, Arrival: arrival}), append(s.counts, int(count))
	return ok && in.take(']')
}

func (s *requestDecoder) lag(in *scan) bool {
	n, ok := in.number()
	s.lags = append(s.lags, n)
	return ok
}

func (s *requestDecoder) id(in *scan) bool {
	n, ok := in.number()
	s.ids = append(s.ids, int(n))
	return ok
}

// scan goes through a JSON text. What it does not take may be JSON all the same.
type scan struct {
	text []byte
	at   int
}

func (in *scan) space() {
	for in.at < len(in.text) {
		switch in.text[in.at] {
		case ' ', '\t', '\r', '\n':
			in.at++
		default:
			return
		}
	}
}

// take takes one character, and the white space before it.
func (in *scan) take(c byte) bool {
	in.space()
	if in.at >= len(in.text) || in.text[in.at] != c {
		return false
	}
	in.at++
	return true
}

func (in *scan) literal(word string) bool {
	if !bytes.HasPrefix(in.text[in.at:], []byte(word)) {
		return false
	}
	in.at += len(word)
	return true
}

// word takes a string without escapes.
func (in *scan) word() ([]byte, bool) {
	if !in.take('"') {
		return nil, false
	}
	n := bytes.IndexByte(in.text[in.at:], '"')
	if n < 0 {
		return nil, false
	}
	word := in.text[in.at : in.at+n]
	in.at += n + 1
	return word, bytes.IndexByte(word, '\\') < 0
}

// number takes a whole number of up to eighteen digits, which no int64 is too
// small for.
func (in *scan) number() (int64, bool) {
	in.space()
	negative := in.at < len(in.text) && in.text[in.at] == '-'
	if negative {
		in.at++
	}
	from, n := in.at, int64(0)
	for in.at < len(in.text) {
		c := in.text[in.at] - '0'
		if c > 9 {
			break
		}
		n = n*10 + int64(c)
		in.at++
	}
	digits := in.at - from
	if digits == 0 || digits > 18 || digits > 1 && in.text[from] == '0' {
		return 0, false
	}
	if in.at < len(in.text) {
		switch in.text[in.at] {
		case '.', 'e', 'E':
			return 0, false
		}
	}
	if negative {
		n = -n
	}
	return n, true
}

// list takes a list of what a function takes.
func (in *scan) list(one func(*scan) bool) bool {
	if !in.take('[') {
		return false
	}
	if in.take(']') {
		return true
	}
	for {
		if !one(in) {
			return false
		}
		if !in.take(',') {
			return in.take(']')
		}
	}
}

// skip goes to the end of a value: if the text is JSON, to no other place. That
// it is, encoding/json finds out.
func (in *scan) skip() bool {
	depth := 0
	for in.at < len(in.text) {
		switch c := in.text[in.at]; c {
		case '"':
			if !in.quoted() {
				return false
			}
			if depth == 0 {
				return true
			}
			continue
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 {
				return true
			}
			if c != ',' {
				depth--
			}
			if depth == 0 && c != ',' {
				in.at++
				return true
			}
		}
		in.at++
	}
	return false
}

// quoted goes behind a string.
func (in *scan) quoted() bool {
	in.at++
	for in.at < len(in.text) {
		n := bytes.IndexByte(in.text[in.at:], '"')
		if n < 0 {
			return false
		}
		end := in.at + n
		escapes := 0
		for end-1-escapes >= in.at && in.text[end-1-escapes] == '\\' {
			escapes++
		}
		in.at = end + 1
		if escapes%2 == 0 {
			return true
		}
	}
	return false
}
