package client

import (
	"strings"

	"assay/harness/record"
)

// calls are an answer's tool calls, put together from the parts that its events
// bring of them.
type calls struct {
	list    []*call
	byIndex map[int]*call
}

type call struct{ name, arguments strings.Builder }

// add appends a part to the call whose index it names. Without an index, a name
// begins the next call, and what has none belongs to the call before.
func (c *calls) add(part callPart) {
	to := c.at(part)
	to.name.WriteString(part.name)
	to.arguments.WriteString(part.arguments)
}

func (c *calls) at(part callPart) *call {
	if part.index == nil {
		if n := len(c.list); n > 0 && part.name == "" {
			return c.list[n-1]
		}
		return c.begin()
	}
	to, known := c.byIndex[*part.index]
	if !known {
		to = c.begin()
		if c.byIndex == nil {
			c.byIndex = map[int]*call{}
		}
		c.byIndex[*part.index] = to
	}
	return to
}

func (c *calls) begin() *call {
	to := &call{}
	c.list = append(c.list, to)
	return to
}

// all is every call in the order in which they began, each text as clean
// leaves it.
func (c *calls) all(clean func(string) string) []record.ToolCall {
	var out []record.ToolCall
	for _, one := range c.list {
		out = append(out, record.ToolCall{Name: clean(one.name.String()), Arguments: clean(one.arguments.String())})
	}
	return out
}
