package shape

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// parser goes through a JSON text (RFC 8259) once, but for what may be one of
// several.
type parser struct {
	text  []byte
	at    int
	depth int
}

// deepest is how deep a value may be nested; no document of a bundle is deeper.
const deepest = 64

func (p *parser) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return
		}
	}
}

// next is the next character, none at the end.
func (p *parser) next() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

// take takes one character, and the white space before it.
func (p *parser) take(c byte) bool {
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	p.space()
	if p.next() != c {
		return false
	}
	p.at++
	return true
}

// value takes a value that fits a schema.
func (p *parser) value(n *node) bool {
	if n.unknown {
		return false
	}
	if n.one != nil && !p.oneOf(n.one) {
		return false
	}
	switch c := p.next(); c {
	case '{':
		return n.types&object != 0 && p.object(n)
	case '[':
		return n.types&array != 0 && p.array(n)
	case '"':
		return n.types&text != 0 && p.string(n)
	case 't':
		return n.types&boolean != 0 && p.literal("true")
	case 'f':
		return n.types&boolean != 0 && p.literal("false")
	case 'n':
		return n.types&null != 0 && p.literal("null")
	default:
		return n.types&integer != 0 && !n.bounded() && p.whole() || p.number(n)
	}
}

// whole takes a whole number, such as most of a large document are.
func (p *parser) whole() bool {
	text, at := p.text, p.at
	if at < len(text) && text[at] == '-' {
		at++
	}
	from := at
	for at < len(text) && '0' <= text[at] && text[at] <= '9' {
		at++
	}
	if at == from || at == len(text) || text[from] == '0' && at > from+1 {
		return false
	}
	switch text[at] {
	case ',', ']', '}', ' ', '\n':
		p.at = at
		return true
	}
	return false
}

// bounded is whether a number has to be in a range.
func (n *node) bounded() bool { return !math.IsInf(n.atLeast, -1) || !math.IsInf(n.above, -1) }

// oneOf is whether exactly one of several schemas takes the value that comes; it
// is not taken yet.
func (p *parser) oneOf(of []*node) bool {
	before, fit := *p, 0
	for _, n := range of {
		if p.value(n) {
			fit++
		} else if !n.decided(before.next()) {
			return false
		}
		*p = before
	}
	return fit == 1
}

// decided is whether what does not fit a schema here fits it by no other way of
// reading: the type alone says so.
func (n *node) decided(first byte) bool {
	return !n.unknown && n.types&kindOf(first) == 0
}

// kindOf is what a value can be, by its first character.
func kindOf(first byte) kinds {
	switch first {
	case '{':
		return object
	case '[':
		return array
	case '"':
		return text
	case 't', 'f':
		return boolean
	case 'n':
		return null
	}
	return integer | fraction
}

func (p *parser) literal(word string) bool {
	if !bytes.HasPrefix(p.text[p.at:], []byte(word)) {
		return false
	}
	p.at += len(word)
	return true
}

// mostFields is how many members of an object can be told apart that a schema
// names, and mostOthers how many that it does not.
const (
	mostFields = 192
	mostOthers = 512
)

func (p *parser) object(n *node) bool {
	if p.depth++; p.depth > deepest || len(n.fields) > mostFields {
		return false
	}
	p.at++
	var seen [mostFields / 64]uint64
	var others [][]byte
	required := 0
	for more := !p.take('}'); more; {
		p.space()
		name, plain := p.word()
		if !plain || !p.take(':') {
			return false
		}
		if n.names != nil && !slices.Contains(n.names.words, string(name)) {
			return false
		}
		p.space()
		if f := n.fields[string(name)]; f != nil {
			bit := uint64(1) << (f.at % 64)
			if seen[f.at/64]&bit != 0 {
				return false
			}
			seen[f.at/64] |= bit
			if f.required {
				required++
			}
			if !p.value(f.node) {
				return false
			}
		} else {
			if n.closed || len(others) == mostOthers || slices.ContainsFunc(others, func(o []byte) bool { return bytes.Equal(o, name) }) {
				return false
			}
			others = append(others, name)
			if !p.value(or(n.other)) {
				return false
			}
		}
		if !p.take(',') {
			if !p.take('}') {
				return false
			}
			more = false
		}
	}
	p.depth--
	return required == n.required
}

var open = &node{types: anything, maxItems: math.MaxInt, atLeast: math.Inf(-1), above: math.Inf(-1)}

// or is a schema, or one that everything fits.
func or(n *node) *node {
	if n == nil {
		return open
	}
	return n
}

func (p *parser) array(n *node) bool {
	if p.depth++; p.depth > deepest {
		return false
	}
	p.at++
	count := 0
	if !p.take(']') {
		for {
			item := n.items
			if count < len(n.prefix) {
				item = n.prefix[count]
			}
			if p.next() <= ' ' {
				p.space()
			}
			if !p.value(or(item)) {
				return false
			}
			count++
			if p.take(',') {
				continue
			}
			if !p.take(']') {
				return false
			}
			break
		}
	}
	p.depth--
	return count >= n.minItems && count <= n.maxItems
}

// word takes a string without escapes, of printable characters.
func (p *parser) word() ([]byte, bool) {
	if p.next() != '"' {
		return nil, false
	}
	p.at++
	from := p.at
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return p.text[from : p.at-1], true
		case c < 0x20 || c == '\\' || c >= utf8.RuneSelf:
			return nil, false
		}
		p.at++
	}
	return nil, false
}

// string takes any string where no word is asked for, and else one of those.
func (p *parser) string(n *node) bool {
	if n.words != nil || n.hex {
		word, plain := p.word()
		return plain && n.longEnough(word) && (n.words == nil || slices.Contains(n.words, string(word))) && (!n.hex || isHex(word))
	}
	p.at++
	from := p.at
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return n.longEnough(p.text[from : p.at-1])
		case c == '\\':
			if !p.escape() {
				return false
			}
		case c < 0x20:
			return false
		default:
			p.at++
		}
	}
	return false
}

// longEnough is whether a string as it is written has as many characters as it
// should. An escape is longer than what it stands for.
func (n *node) longEnough(written []byte) bool {
	switch {
	case n.minRunes <= 1:
		return len(written) >= n.minRunes
	case bytes.IndexByte(written, '\\') >= 0:
		return false
	}
	return utf8.RuneCount(written) >= n.minRunes
}

func (p *parser) escape() bool {
	p.at++
	switch p.next() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.at++
		return true
	case 'u':
		if p.at+5 > len(p.text) {
			return false
		}
		for _, c := range p.text[p.at+1 : p.at+5] {
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
				return false
			}
		}
		p.at += 5
		return true
	}
	return false
}

func isHex(word []byte) bool {
	if len(word) != 64 {
		return false
	}
	for _, c := range word {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return false
		}
	}
	return true
}

// number takes a number.
func (p *parser) number(n *node) bool {
	from := p.at
	if p.next() == '-' {
		p.at++
	}
	kind := integer
	switch c := p.next(); {
	case c == '0':
		p.at++
	case c < '1' || c > '9':
		return false
	default:
		p.digits()
	}
	if p.next() == '.' {
		p.at++
		if kind = fraction; !p.digits() {
			return false
		}
	}
	if c := p.next(); c == 'e' || c == 'E' {
		p.at++
		if c := p.next(); c == '+' || c == '-' {
			p.at++
		}
		if kind = fraction; !p.digits() {
			return false
		}
	}
	if n.types&kind == 0 {
		return false
	}
	if !n.bounded() {
		return true
	}
	v, err := strconv.ParseFloat(string(p.text[from:p.at]), 64)
	// A fraction may be less than the float64 that it is rounded to.
	return err == nil && v > n.above && (v > n.atLeast || v == n.atLeast && kind == integer)
}

func (p *parser) digits() bool {
	from := p.at
	for c := p.next(); '0' <= c && c <= '9'; c = p.next() {
		p.at++
	}
	return p.at > from
}
