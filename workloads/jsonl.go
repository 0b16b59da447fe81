package workloads

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ownRequest is a line of one's own requests.
type ownRequest struct {
	ID           *string        `json:"id"`
	Prompt       *string        `json:"prompt"`
	Messages     []Message      `json:"messages"`
	Tools        jsontext.Value `json:"tools"`
	ToolChoice   jsontext.Value `json:"tool_choice"`
	MaxTokens    *int           `json:"max_tokens"`
	OutputTokens *int           `json:"output_tokens"`
}

// readJSONL reads one's own requests, one JSON object a line: a prompt, which
// is a chat's one user turn, or messages, and the tools that go with them.
func readJSONL(r io.Reader, in *intake) error {
	lineOf := map[string]int{} // by id
	return eachLine(r, func(n int, text []byte) {
		var l ownRequest
		if err := jsonv2.Unmarshal(text, &l, jsonv2.RejectUnknownMembers(true)); err != nil {
			in.faults.add(n, fmt.Sprintf("it is no request: %s; its members are id, prompt or messages, tools, tool_choice, max_tokens or output_tokens", err))
			return
		}
		e, why := l.entry(n)
		if first, ok := lineOf[e.ID]; ok {
			why = append(why, fmt.Sprintf("the id %q is line %d's: give each its own", e.ID, first))
		}
		lineOf[e.ID] = n
		if len(why) > 0 {
			in.faults.add(n, why...)
			return
		}
		in.take(e)
	})
}

// entry is the line's request, and what is wrong with it.
func (l ownRequest) entry(n int) (e Entry, why []string) {
	e = Entry{ID: fmt.Sprintf("jsonl/%d", n), Place: n, Messages: l.Messages}
	if l.ID != nil {
		if e.ID = *l.ID; strings.TrimSpace(e.ID) == "" {
			why = append(why, "its id is empty: leave it out, and it is the line's number")
		}
	}
	switch {
	case l.Prompt != nil && l.Messages != nil:
		why = append(why, "it has both a prompt and messages: give one of them")
	case l.Prompt == nil && l.Messages == nil:
		why = append(why, "it has neither a prompt nor messages: give one of them")
	case l.Prompt != nil:
		e.Messages = []Message{{Role: "user", Content: *l.Prompt}}
		if strings.TrimSpace(*l.Prompt) == "" {
			why = append(why, "its prompt is empty")
		}
	default:
		why = append(why, checkMessages(l.Messages)...)
	}
	why = append(why, l.checkTools()...)
	e.Tools, e.ToolChoice = json.RawMessage(l.Tools), json.RawMessage(l.ToolChoice)
	for _, t := range []struct {
		name string
		said *int
		to   *int
	}{{"max_tokens", l.MaxTokens, &e.MaxTokens}, {"output_tokens", l.OutputTokens, &e.Output}} {
		if t.said == nil {
			continue
		}
		if *t.to = *t.said; *t.said < 1 || *t.said > mostTokens {
			why = append(why, fmt.Sprintf("%s is %d: write 1 to %d", t.name, *t.said, mostTokens))
		}
	}
	if l.MaxTokens != nil && l.OutputTokens != nil {
		why = append(why, "it has both max_tokens, the most, and output_tokens, the exact number: give one of them")
	}
	return e, why
}

// checkTools says what is wrong with the tools. What a tool is, the server says.
func (l ownRequest) checkTools() (why []string) {
	if l.Tools != nil {
		var tools []map[string]any
		if err := jsonv2.Unmarshal(l.Tools, &tools); err != nil || len(tools) == 0 {
			why = append(why, "tools is no list of objects: write one at least, or leave it out")
		}
	}
	if l.ToolChoice != nil {
		switch l.ToolChoice.Kind() {
		case '"', '{':
		default:
			why = append(why, "tool_choice is neither a word nor an object: write one, such as auto")
		}
		if l.Tools == nil {
			why = append(why, "it has a tool_choice and no tools: leave it out, or give them")
		}
	}
	return why
}

var roles = []string{"system", "developer", "user", "assistant"}

// checkMessages says everything that is wrong with a chat that is to be
// answered.
func checkMessages(messages []Message) (why []string) {
	for i, m := range messages {
		if !slices.Contains(roles, m.Role) {
			why = append(why, fmt.Sprintf("message %d has the role %q: there are %s", i+1, m.Role, strings.Join(roles, ", ")))
		}
		if strings.TrimSpace(m.Content) == "" {
			why = append(why, fmt.Sprintf("message %d is empty", i+1))
		}
	}
	switch last := len(messages) - 1; {
	case last < 0:
		why = append(why, "it has no message: give at least the user's")
	case messages[last].Role != "user" && slices.Contains(roles, messages[last].Role):
		why = append(why, fmt.Sprintf("its last message is the %s's: end with the user's, which is answered", messages[last].Role))
	}
	return why
}
