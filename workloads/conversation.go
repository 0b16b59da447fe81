package workloads

import (
	"errors"
	"fmt"
)

// ConversationSpec declares conversations: the user says something, reads the
// answer, thinks, and goes on. Each turn asks with all that was said before it.
type ConversationSpec struct {
	Turns  int        // of each conversation
	User   LengthSpec // tokens of the user's text in a turn; in the first, the chat template included
	Output LengthSpec // tokens of an answer
}

// mostTurns is more than anyone has patience for.
const mostTurns = 1000

// Conversations draws the turns of conversations.
type Conversations struct {
	User, Output *Lengths
	turns        int
}

// NewConversations checks a declaration and says everything that is wrong with
// it.
func NewConversations(s ConversationSpec) (*Conversations, error) {
	var faults []error
	if s.Turns < 1 || s.Turns > mostTurns {
		faults = append(faults, fmt.Errorf("turns is %d: write 1 to %d", s.Turns, mostTurns))
	}
	user, userErr := NewLengths("user", s.User)
	output, outputErr := NewLengths("output", s.Output)
	if err := errors.Join(append(faults, userErr, outputErr)...); err != nil {
		return nil, err
	}
	return &Conversations{User: user, Output: output, turns: s.Turns}, nil
}

// Draw is n turns from a seed, conversation after conversation: the same always,
// and more begin with fewer. A turn begins with the text of the one before it
// and a text in the place of its answer, as long as that was asked to be: what a
// server has really answered is in no request, so that every server is asked the
// same. Its prefix cache can save what the turn before it asked, and not what it
// answered.
func (c *Conversations) Draw(n int, seed uint64) []Entry {
	user, output := c.User.Draw(n, seed), c.Output.Draw(n, seed)
	out := make([]Entry, n)
	var said []Segment
	for i := range out {
		turn := i % c.turns
		if turn == 0 {
			said = nil
		}
		id := fmt.Sprintf("conversation/%d/%d", 1+i/c.turns, 1+turn)
		said = append(said[:len(said):len(said)], Segment{Key: id + "/user", Tokens: user[i]})
		out[i] = Entry{ID: id, Segments: said, Output: output[i]}
		said = append(said[:len(said):len(said)], Segment{Key: id + "/answer", Tokens: output[i]})
	}
	return out
}
