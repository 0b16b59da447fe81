package shape

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Shape is a schema (JSON Schema 2020-12) made ready.
type Shape struct{ root *node }

// node is one schema.
type node struct {
	unknown  bool // it has a keyword that this package does not know: nothing fits
	types    kinds
	fields   map[string]*field
	required int   // how many of the fields are
	other    *node // what additional members have to fit; nil: anything
	closed   bool  // there may be none
	names    *node // what members may be called, by its words; nil: anything
	one      []*node
	items    *node
	prefix   []*node
	minItems int
	maxItems int
	words    []string // what a string may be; nil: anything
	minRunes int
	hex      bool // 64 lower-case hexadecimal digits
	// A number has to be at least the first, and more than the second.
	atLeast, above float64
}

type field struct {
	*node
	at       int // among the fields
	required bool
}

// kinds are types of JSON values.
type kinds uint8

const (
	object kinds = 1 << iota
	array
	text
	integer
	fraction // a number that is not written as a whole one
	boolean
	null
	anything = object | array | text | integer | fraction | boolean | null
)

var typeNames = map[string]kinds{
	"object": object, "array": array, "string": text, "integer": integer, "number": integer | fraction, "boolean": boolean, "null": null,
}

// hexPattern is the one pattern that is known.
const hexPattern = "^[0-9a-f]{64}$"

// Compile makes a schema ready. It is an error if it is no JSON or refers to a
// part that it has not; a keyword that is not known lets nothing fit that the
// keyword would be asked of.
func Compile(schema []byte) (*Shape, error) {
	var root map[string]any
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, fmt.Errorf("no schema: %w", err)
	}
	c := compiler{root: root, defs: map[string]*node{}}
	n, err := c.node(root)
	return &Shape{n}, err
}

type compiler struct {
	root map[string]any
	defs map[string]*node
}

func (c *compiler) node(schema any) (*node, error) {
	n := &node{types: anything, maxItems: math.MaxInt, atLeast: math.Inf(-1), above: math.Inf(-1)}
	if open, is := schema.(bool); is {
		if !open {
			n.types = 0
		}
		return n, nil
	}
	of, is := schema.(map[string]any)
	if !is {
		return nil, fmt.Errorf("%v is no schema", schema)
	}
	if path, is := of["$ref"].(string); is {
		if len(of) > 1 && !onlyWords(of) {
			return &node{unknown: true}, nil
		}
		return c.ref(path)
	}
	for keyword, v := range of {
		if err := c.keyword(n, keyword, v); err != nil {
			return nil, err
		}
	}
	if n.words != nil {
		n.types &= text
	}
	return n, c.requires(n, of["required"])
}

// onlyWords is whether beside a $ref there is nothing that asks for more.
func onlyWords(of map[string]any) bool {
	for keyword := range of {
		switch keyword {
		case "$ref", "description", "title", "$comment":
		default:
			return false
		}
	}
	return true
}

func (c *compiler) ref(path string) (*node, error) {
	name, is := strings.CutPrefix(path, "#/$defs/")
	defs, _ := c.root["$defs"].(map[string]any)
	schema, has := defs[name]
	if !is || !has {
		return nil, fmt.Errorf("the schema has no %s", path)
	}
	if n := c.defs[name]; n != nil {
		return n, nil
	}
	n := new(node)
	c.defs[name] = n // it may refer to itself
	made, err := c.node(schema)
	if err == nil {
		*n = *made
	}
	return n, err
}

func (c *compiler) keyword(n *node, keyword string, v any) error {
	var err error
	switch keyword {
	case "$schema", "$id", "$comment", "$defs", "title", "description", "examples", "required":
	case "type":
		n.types = 0
		for _, name := range list(v) {
			n.types |= typeNames[fmt.Sprint(name)]
		}
	case "properties":
		fields, is := v.(map[string]any)
		n.unknown = n.unknown || !is
		if n.fields == nil {
			n.fields = map[string]*field{}
		}
		for name, schema := range fields {
			one, err := c.node(schema)
			if err != nil {
				return err
			}
			n.fields[name] = &field{node: one, at: len(n.fields)}
		}
	case "additionalProperties":
		if n.closed = v == false; !n.closed {
			n.other, err = c.node(v)
		}
	case "propertyNames":
		n.names, err = c.node(v)
		n.unknown = n.unknown || err == nil && n.names.words == nil
	case "oneOf":
		n.one, err = c.nodes(v)
	case "items":
		n.items, err = c.node(v)
	case "prefixItems":
		n.prefix, err = c.nodes(v)
	case "minItems":
		n.minItems = whole(n, v)
	case "maxItems":
		n.maxItems = whole(n, v)
	case "minLength":
		n.minRunes = whole(n, v)
	case "minimum":
		n.atLeast = number(n, v)
	case "exclusiveMinimum":
		n.above = number(n, v)
	case "const", "enum":
		values := list(v)
		if keyword == "const" {
			values = []any{v}
		}
		for _, v := range values {
			word, is := v.(string)
			n.unknown = n.unknown || !is
			n.words = append(n.words, word)
		}
	case "pattern":
		n.hex = true
		n.unknown = n.unknown || v != hexPattern
	default:
		n.unknown = true
	}
	return err
}

func (c *compiler) nodes(v any) ([]*node, error) {
	var out []*node
	for _, schema := range list(v) {
		n, err := c.node(schema)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// requires marks the fields that have to be there.
func (c *compiler) requires(n *node, v any) error {
	for _, name := range list(v) {
		f := n.fields[fmt.Sprint(name)]
		if f == nil {
			n.unknown = true // it is asked for, and nothing says what it is
			continue
		}
		if !f.required {
			f.required = true
			n.required++
		}
	}
	return nil
}

// list is a value as a list of values.
func list(v any) []any {
	if many, is := v.([]any); is {
		return many
	}
	if v == nil {
		return nil
	}
	return []any{v}
}

func number(n *node, v any) float64 {
	f, is := v.(float64)
	n.unknown = n.unknown || !is
	return f
}

func whole(n *node, v any) int {
	f := number(n, v)
	n.unknown = n.unknown || f != math.Trunc(f)
	return int(f)
}

// Known is whether every keyword of the schema is known, so that what fits it is
// said to.
func (s *Shape) Known() bool { return known(s.root, map[*node]bool{}) }

func known(n *node, seen map[*node]bool) bool {
	if n == nil || seen[n] {
		return true
	}
	seen[n] = true
	parts := slices.Concat(n.one, n.prefix, []*node{n.other, n.items})
	for _, f := range n.fields {
		parts = append(parts, f.node)
	}
	return !n.unknown && !slices.ContainsFunc(parts, func(p *node) bool { return !known(p, seen) })
}

// Fits is whether the text is one JSON value that is valid by the schema, in
// which no object has a member twice. False says nothing: a text that is, and has
// an escape where a name or a word of the schema could be, is left to others too.
func (s *Shape) Fits(data []byte) bool {
	p := parser{text: data}
	p.space()
	if !p.value(s.root) {
		return false
	}
	p.space()
	return p.at == len(data)
}
