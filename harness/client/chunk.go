package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// chunk is what an event of a stream said: of a chat completion, of a plain
// completion, or an error in place of either.
type chunk struct {
	text      []byte // in the order in which it stands in the event
	reasoning []byte
	calls     []callPart
	carries   bool // a non-empty text, reasoning text, tool-call argument or token id
	ids       []int
	promptIDs *int // how many
	finish    *string
	usageIn   *int
	usageOut  *int
	failed    bool // the event is an error
	// wrong is the first field that is of another kind than it should be; what
	// else the event says is there all the same.
	wrong error
}

// chunks reads events' data as chunks. It goes through the JSON token by token
// and decodes only what is kept: decoding by reflection cost more than
// receiving. What it returns is valid until the next call.
type chunks struct {
	decoder *jsontext.Decoder
	buffer  bytes.Buffer
	chunk   chunk
	name    []byte
	scratch []byte // a string that is decoded and not kept as it is
	// thought is where the reasoning text of the choice under way begins in the
	// chunk's: some servers say it under two names.
	thought int
}

// callPart is what an event said of one tool call.
type callPart struct {
	index           *int // which call of the answer's; nil: it did not say
	name, arguments string
}

// Servers' JSON is taken as leniently as encoding/json takes it: what is
// judged here is whether it can be read.
var lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

var errTrailing = errors.New("more follows the value")

func (r *chunks) read(data []byte) (*chunk, error) {
	r.buffer = *bytes.NewBuffer(data)
	if r.decoder == nil {
		r.decoder = jsontext.NewDecoder(&r.buffer, lenient...)
	} else {
		r.decoder.Reset(&r.buffer, lenient...)
	}
	r.chunk = chunk{text: r.chunk.text[:0], reasoning: r.chunk.reasoning[:0], calls: r.chunk.calls[:0], ids: r.chunk.ids[:0]}
	if err := r.object("the event", r.top); err != nil {
		return &chunk{}, err
	}
	if _, err := r.decoder.ReadToken(); err != io.EOF {
		return &chunk{}, errors.Join(errTrailing, err)
	}
	return &r.chunk, nil
}

func (r *chunks) top(name []byte) error {
	switch string(name) {
	case "choices":
		return r.array("choices", func() error {
			r.thought = len(r.chunk.reasoning)
			return r.object("a choice", r.choice)
		})
	case "usage":
		return r.object("usage", r.usage)
	case "prompt_token_ids":
		if r.decoder.PeekKind() != '[' {
			return r.skip("prompt_token_ids", "an array")
		}
		n := 0
		r.chunk.promptIDs = &n
		return r.array("prompt_token_ids", func() error { n++; return r.decoder.SkipValue() })
	case "error":
		r.chunk.failed = r.chunk.failed || r.decoder.PeekKind() != 'n'
	case "object":
		if r.decoder.PeekKind() == '"' {
			value, err := r.decoder.ReadValue()
			r.chunk.failed = r.chunk.failed || string(value) == `"error"`
			return err
		}
	}
	return r.decoder.SkipValue()
}

func (r *chunks) choice(name []byte) error {
	switch string(name) {
	case "delta":
		return r.object("delta", r.delta)
	case "text":
		return r.text(&r.chunk.text, "text")
	case "token_ids":
		return r.array("token_ids", func() error {
			id, err := r.integer("a token id")
			if id != nil {
				r.chunk.ids, r.chunk.carries = append(r.chunk.ids, *id), true
			}
			return err
		})
	case "finish_reason":
		reason, err := r.word("finish_reason")
		if reason != "" {
			r.chunk.finish = &reason
		}
		return err
	}
	return r.decoder.SkipValue()
}

func (r *chunks) delta(name []byte) error {
	switch string(name) {
	case "content", "refusal":
		return r.text(&r.chunk.text, "content")
	case "reasoning", "reasoning_content":
		at := len(r.chunk.reasoning)
		if err := r.text(&r.chunk.reasoning, "reasoning"); err != nil {
			return err
		}
		if bytes.Equal(r.chunk.reasoning[r.thought:at], r.chunk.reasoning[at:]) {
			r.chunk.reasoning = r.chunk.reasoning[:at]
		}
		return nil
	case "tool_calls":
		return r.array("tool_calls", func() error {
			r.chunk.calls = append(r.chunk.calls, callPart{})
			return r.object("a tool call", r.call)
		})
	}
	return r.decoder.SkipValue()
}

func (r *chunks) call(name []byte) (err error) {
	switch part := &r.chunk.calls[len(r.chunk.calls)-1]; string(name) {
	case "index":
		part.index, err = r.integer("a tool call's index")
		return err
	case "function":
		return r.object("function", r.function)
	}
	return r.decoder.SkipValue()
}

func (r *chunks) function(name []byte) (err error) {
	switch part := &r.chunk.calls[len(r.chunk.calls)-1]; string(name) {
	case "name":
		part.name, err = r.word("a function's name") // kept, and no token by the contract
		return err
	case "arguments":
		part.arguments, err = r.word("arguments")
		r.chunk.carries = r.chunk.carries || part.arguments != ""
		return err
	}
	return r.decoder.SkipValue()
}

func (r *chunks) usage(name []byte) (err error) {
	switch string(name) {
	case "prompt_tokens":
		r.chunk.usageIn, err = r.count("prompt_tokens")
	case "completion_tokens":
		r.chunk.usageOut, err = r.count("completion_tokens")
	default:
		err = r.decoder.SkipValue()
	}
	return err
}

// object calls field for each member, whose value it must read; null has none.
func (r *chunks) object(what string, field func(name []byte) error) error {
	if r.decoder.PeekKind() != '{' {
		return r.skip(what, "an object")
	}
	if _, err := r.decoder.ReadToken(); err != nil {
		return err
	}
	for r.decoder.PeekKind() != '}' {
		name, err := r.decoder.ReadValue()
		if err != nil {
			return err
		}
		if bytes.IndexByte(name, '\\') < 0 {
			name = name[1 : len(name)-1]
		} else {
			r.name, _ = jsontext.AppendUnquote(r.name[:0], name) // as in appendText
			name = r.name
		}
		if err := field(name); err != nil {
			return err
		}
	}
	_, err := r.decoder.ReadToken()
	return err
}

// array calls element for each, which it must read; null has none.
func (r *chunks) array(what string, element func() error) error {
	if r.decoder.PeekKind() != '[' {
		return r.skip(what, "an array")
	}
	if _, err := r.decoder.ReadToken(); err != nil {
		return err
	}
	for r.decoder.PeekKind() != ']' {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := r.decoder.ReadToken()
	return err
}

// text appends a string that is a token's.
func (r *chunks) text(to *[]byte, what string) error {
	before := len(*to)
	err := r.appendText(to, what)
	r.chunk.carries = r.chunk.carries || len(*to) > before
	return err
}

// word is a string by itself.
func (r *chunks) word(what string) (string, error) {
	r.scratch = r.scratch[:0]
	err := r.appendText(&r.scratch, what)
	return string(r.scratch), err
}

func (r *chunks) appendText(to *[]byte, what string) error {
	if r.decoder.PeekKind() != '"' {
		return r.skip(what, "a string")
	}
	value, err := r.decoder.ReadValue()
	if err != nil {
		return err
	}
	// The decoder has found the string well formed: what can be said against it
	// is invalid UTF-8, which is replaced.
	*to, _ = jsontext.AppendUnquote(*to, value)
	return nil
}

func (r *chunks) integer(what string) (*int, error) {
	if r.decoder.PeekKind() != '0' {
		return nil, r.skip(what, "a whole number")
	}
	value, err := r.decoder.ReadValue()
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(string(value))
	if err != nil {
		r.isWrong(what, "a whole number")
		return nil, nil
	}
	return &n, nil
}

// count is a number of tokens, of which nobody has less than none.
func (r *chunks) count(what string) (*int, error) {
	n, err := r.integer(what)
	if n != nil && *n < 0 {
		r.isWrong(what, "a number of tokens")
		return nil, err
	}
	return n, err
}

// skip goes over a value that is not what it should be; null may stand for
// anything.
func (r *chunks) skip(what, kind string) error {
	if r.decoder.PeekKind() != 'n' {
		r.isWrong(what, kind)
	}
	return r.decoder.SkipValue()
}

func (r *chunks) isWrong(what, kind string) {
	if r.chunk.wrong == nil {
		r.chunk.wrong = fmt.Errorf("%s is not %s", what, kind)
	}
}
