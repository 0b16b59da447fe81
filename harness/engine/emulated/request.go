package emulated

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// request is a body as the endpoints take it. Fields that are not here are
// ignored, as vLLM does.
type request struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string  `json:"role"`
		Content content `json:"content"`
	} `json:"messages"`
	Prompt              prompt `json:"prompt"`
	MaxTokens           *int   `json:"max_tokens"`
	MaxCompletionTokens *int   `json:"max_completion_tokens"`
	MinTokens           int    `json:"min_tokens"`
	N                   *int   `json:"n"`
	IgnoreEOS           bool   `json:"ignore_eos"`
	Stream              bool   `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	ReturnTokenIDs bool `json:"return_token_ids"`
}

// content is a message's text: a string, or parts of which each is a text.
type content string

func (c *content) UnmarshalJSON(data []byte) error {
	var said string
	if json.Unmarshal(data, &said) == nil {
		*c = content(said)
		return nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return errors.New("a message's content is a string or a list of text parts")
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		if p.Type != "text" {
			return fmt.Errorf("a part of type %q: this model reads text alone", p.Type)
		}
		texts[i] = p.Text
	}
	*c = content(strings.Join(texts, "\n"))
	return nil
}

// prompt is a completion's prompt: a string, a list of one, or token ids.
type prompt string

func (p *prompt) UnmarshalJSON(data []byte) error {
	var said string
	var list []string
	var tokens []int
	switch {
	case json.Unmarshal(data, &said) == nil:
	case json.Unmarshal(data, &list) == nil:
		if len(list) != 1 {
			return fmt.Errorf("%d prompts: this server takes one a request", len(list))
		}
		said = list[0]
	case json.Unmarshal(data, &tokens) == nil:
		said = text(tokens)
	default:
		return errors.New("a prompt is a string, a list of one, or token ids")
	}
	*p = prompt(said)
	return nil
}

// refusal is why a request is not served.
type refusal struct {
	status int
	error
}

// parse reads a body and says everything that is wrong with it.
func (c Config) parse(body []byte, chat bool) (request, *refusal) {
	var q request
	if err := json.Unmarshal(body, &q); err != nil {
		return q, &refusal{http.StatusBadRequest, fmt.Errorf("the body is no request: %w", err)}
	}
	var errs []error
	if chat && len(q.Messages) == 0 {
		errs = append(errs, errors.New("messages: at least one is needed"))
	}
	if !chat && q.text() == "" {
		errs = append(errs, errors.New("prompt: it is needed, and not empty"))
	}
	if q.N != nil && *q.N != 1 {
		errs = append(errs, fmt.Errorf("n is %d: this server gives one answer a request", *q.N))
	}
	input, limit := len(c.tokens(q, chat)), c.limit(q, chat)
	switch {
	case limit < 1:
		errs = append(errs, fmt.Errorf("max_tokens is %d beside a prompt of %d tokens: at least 1 is needed, and both within %d", limit, input, c.Parameters.ContextTokens))
	case input > c.Parameters.ContextTokens-limit:
		errs = append(errs, fmt.Errorf("a prompt of %d tokens and max_tokens %d are more than the %d that this server holds", input, limit, c.Parameters.ContextTokens))
	}
	if q.MinTokens < 0 || q.MinTokens > limit {
		errs = append(errs, fmt.Errorf("min_tokens is %d: write 0 to max_tokens, %d", q.MinTokens, limit))
	}
	status := http.StatusBadRequest
	if q.Model != c.Model {
		if len(errs) == 0 {
			status = http.StatusNotFound
		}
		errs = append(errs, fmt.Errorf("the model %q does not exist: this server has %q", q.Model, c.Model))
	}
	if len(errs) > 0 {
		return q, &refusal{status, errors.Join(errs...)}
	}
	return q, nil
}

// text is what the model reads.
func (q request) text() string {
	parts := make([]string, 0, len(q.Messages)+1)
	for _, m := range q.Messages {
		parts = append(parts, string(m.Content))
	}
	return strings.TrimSpace(strings.Join(append(parts, string(q.Prompt)), "\n"))
}

// tokens are the prompt's, with the template if it is a chat.
func (c Config) tokens(q request, chat bool) []int {
	said := tokenize(q.text())
	if chat {
		return template(said, c.Parameters.TemplateTokens)
	}
	return said
}

// defaultMaxTokens is a completion's limit where it says none; a chat may fill
// the context then.
const defaultMaxTokens = 16

// limit is how many tokens a request may get.
func (c Config) limit(q request, chat bool) int {
	switch {
	case q.MaxCompletionTokens != nil:
		return *q.MaxCompletionTokens
	case q.MaxTokens != nil:
		return *q.MaxTokens
	case chat:
		return c.Parameters.ContextTokens - len(c.tokens(q, chat))
	default:
		return defaultMaxTokens
	}
}

// length is how many tokens a request gets, and why it stops.
func (c Config) length(q request, chat bool) (n int, reason string) {
	limit := c.limit(q, chat)
	n = min(c.natural(q.text()), limit)
	if q.IgnoreEOS {
		n = limit
	}
	if n = max(n, q.MinTokens); n == limit {
		return n, "length"
	}
	return n, "stop"
}
