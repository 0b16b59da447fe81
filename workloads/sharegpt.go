package workloads

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// shareGPT is one conversation.
type shareGPT struct {
	Conversations []shareGPTTurn `json:"conversations"`
}

type shareGPTTurn struct {
	From  *string `json:"from"`
	Value *string `json:"value"`
}

// shareGPTRoles are the roles of those who speak in the files that go around.
var shareGPTRoles = map[string]string{
	"system": "system",
	"human":  "user", "user": "user",
	"gpt": "assistant", "chatgpt": "assistant", "bing": "assistant", "bard": "assistant", "assistant": "assistant",
}

// readShareGPT reads a JSON array of conversations. Each answer makes an entry,
// with all that was said before it as its messages. Where a conversation stops
// being one (two turns of the same side, say), the answers from there on are
// left out, and the reason counted for each.
//
// Halves of surrogate pairs stand in such files, where texts were cut, and are
// read as U+FFFD.
func readShareGPT(r io.Reader, in *intake) error {
	lenient := jsontext.AllowInvalidUTF8(true)
	d := jsontext.NewDecoder(withoutMark(r), lenient, jsontext.AllowDuplicateNames(true))
	if token, err := d.ReadToken(); err != nil || token.Kind() != jsontext.KindBeginArray {
		return fmt.Errorf("it is no JSON array of conversations%s", reason(err))
	}
	n := 1
	for ; d.PeekKind() != jsontext.KindEndArray; n++ {
		value, err := d.ReadValue()
		if err != nil {
			in.faults.add(n, fmt.Sprintf("it is no JSON: %s; nothing after it was read", err))
			return nil
		}
		var c shareGPT
		if err := json.Unmarshal(value, &c, lenient, jsontext.AllowDuplicateNames(true)); err != nil {
			in.faults.add(n, fmt.Sprintf("it is no conversation: %s", err))
			continue
		}
		if c.Conversations == nil {
			in.faults.add(n, "it has no conversations: they are a list of {from, value}")
			continue
		}
		in.takeConversation(n, c.Conversations)
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the array: a ShareGPT file is one array")
	}
	return nil
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// takeConversation makes entries of a conversation's answers.
func (in *intake) takeConversation(n int, turns []shareGPTTurn) {
	var why []string
	answers := 0
	for i, t := range turns {
		switch {
		case t.From == nil || t.Value == nil:
			why = append(why, fmt.Sprintf("turn %d has no from or no value", i+1))
		case shareGPTRoles[*t.From] == "assistant":
			answers++
		}
	}
	if len(why) > 0 {
		in.faults.add(n, why...)
		return
	}
	if answers == 0 {
		in.skip(1, "a conversation without an answer")
		return
	}
	var said []Message
	taken := 0
	for i, t := range turns {
		role, last := shareGPTRoles[*t.From], ""
		if len(said) > 0 {
			last = said[len(said)-1].Role
		}
		broken := ""
		switch {
		case role == "":
			broken = fmt.Sprintf("after a turn from %q", *t.From)
		case strings.TrimSpace(*t.Value) == "":
			broken = "after an empty turn"
		case role == "system" && i > 0:
			broken = "after a system turn that is not the first"
		case role == "assistant" && last != "user":
			broken = "an answer that nobody asked for, and after it"
		case role == "user" && last == "user":
			broken = "after two questions in a row"
		}
		if broken != "" {
			in.skip(answers-taken, broken)
			return
		}
		if role == "assistant" {
			taken++
			in.take(Entry{ID: fmt.Sprintf("sharegpt/%d/%d", n, taken), Place: n, Messages: said[:len(said):len(said)], Reference: *t.Value})
		}
		said = append(said, Message{Role: role, Content: *t.Value})
	}
}
