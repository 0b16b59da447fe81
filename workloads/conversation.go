package workloads

import (
	"errors"
	"fmt"
	"time"
)

// ConversationSpec declares conversations: the user says something, reads the
// answer, thinks, and goes on.
type ConversationSpec struct {
	Turns  LengthSpec // turns of a conversation
	User   LengthSpec // tokens of the user's text in a turn, without the chat template
	Output LengthSpec // tokens of an answer
	// Think is in milliseconds: from the end of an answer to the user's next
	// turn. It may be 0.
	Think LengthSpec
}

// Turn is one of the user's turns and the answer to it.
type Turn struct {
	User   int // tokens of the user's text, without the chat template
	Output int // tokens of the answer
	// Think is the time from the end of the last answer to this turn; 0 in a
	// conversation's first.
	Think time.Duration
}

// Conversation is one conversation. When it begins is up to the arrivals, and
// when it goes on to the answers.
type Conversation struct {
	ID    string // such as "conversation/5"
	Turns []Turn
}

// TurnID is the ID of a turn's request, from 1, such as "conversation/5/2".
func (c Conversation) TurnID(turn int) string { return fmt.Sprintf("%s/%d", c.ID, turn) }

// Context is the tokens that stand in the request of a turn, from 1, without
// the chat template: what was said up to it, and the user's own turn.
func (c Conversation) Context(turn int) int {
	n := 0
	for _, t := range c.Turns[:turn-1] {
		n += t.User + t.Output
	}
	return n + c.Turns[turn-1].User
}

// Conversations draws conversations.
type Conversations struct{ Turns, User, Output, Think *Lengths }

// NewConversations checks a declaration and says everything that is wrong with
// it.
func NewConversations(s ConversationSpec) (*Conversations, error) {
	var c Conversations
	var errs [4]error
	c.Turns, errs[0] = NewLengths("turns", s.Turns)
	c.User, errs[1] = NewLengths("user", s.User)
	c.Output, errs[2] = NewLengths("output", s.Output)
	c.Think, errs[3] = newLengths("think", s.Think, 0)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return &c, nil
}

// Draw is n conversations from a seed: the same always, and more begin with
// fewer.
func (c *Conversations) Draw(n int, seed uint64) []Conversation {
	counts := c.Turns.Draw(n, seed)
	all := 0
	for _, turns := range counts {
		all += turns
	}
	user, output, think := c.User.Draw(all, seed), c.Output.Draw(all, seed), c.Think.Draw(all, seed)
	out := make([]Conversation, len(counts))
	at := 0
	for i, turns := range counts {
		out[i] = Conversation{ID: fmt.Sprintf("conversation/%d", i+1), Turns: make([]Turn, turns)}
		for t := range turns {
			out[i].Turns[t] = Turn{User: user[at], Output: output[at]}
			if t > 0 {
				out[i].Turns[t].Think = time.Duration(think[at]) * time.Millisecond
			}
			at++
		}
	}
	return out
}
