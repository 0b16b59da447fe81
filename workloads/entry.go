package workloads

import (
	"encoding/json"
	"time"
)

// Entry is one request of a workload: of a file, of a trace, or drawn. What it
// asks is either its messages, which are sent as they are, or its segments:
// so many tokens of text that whoever asks it has to write.
type Entry struct {
	// ID is stable for ever, since records carry it: the file's own where it
	// has one, else the kind and the place, such as "azure/17" or "prefix/3/17".
	ID string
	// Place is the line of the file, or the element of its array, from 1; 0 in
	// what was drawn.
	Place int
	// Offset is when it is released, from the window's start and at the speed
	// that [Source] declares; 0 where there are no times.
	Offset   time.Duration
	Messages []Message
	// Tools and ToolChoice go with the messages, as the file has them; nil: none.
	Tools, ToolChoice json.RawMessage
	// Reference is the answer that the file has to the messages, if any. It is
	// not sent.
	Reference string
	Segments  []Segment
	// Output is how many tokens are to be generated, exactly; 0: not said.
	Output int
	// MaxTokens is the most that may be generated; 0: not said. An entry has
	// this or Output, or neither.
	MaxTokens int
}

// Message is one message of a chat.
type Message struct {
	Role    string `json:"role"` // "system", "developer", "user" or "assistant"
	Content string `json:"content"`
}

// Input is the tokens that the segments are to have together, the chat template
// included; 0 where the entry has its messages.
func (e Entry) Input() int {
	n := 0
	for _, s := range e.Segments {
		n += s.Tokens
	}
	return n
}

// Segment is a part of a prompt that is known by its length. Two prompts that
// begin with the same segments begin with the same text.
type Segment struct {
	Key    string // such as "mooncake/46", the block of that id
	Tokens int
}

// Shared is how many input tokens of requests, asked in this order, stand in
// segments that an earlier request began with, of how many. It is what a prefix
// cache saves that forgets nothing, if each request comes when the ones before
// it have been read. An engine saves a little less: it holds whole blocks of
// its own size, and the end of the chat template, which is counted in the first
// segment, follows the text.
func Shared(entries []Entry) (shared, total int) {
	type step struct {
		from int
		Segment
	}
	known := map[step]int{}
	for _, e := range entries {
		at, hit := 0, true
		for _, s := range e.Segments {
			next, ok := known[step{at, s}]
			if hit = hit && ok; hit {
				shared += s.Tokens
			}
			if !ok {
				next = len(known) + 1
				known[step{at, s}] = next
			}
			at = next
			total += s.Tokens
		}
	}
	return shared, total
}
