package client

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// The paths at which completions are asked for.
const (
	ChatPath        = "/v1/chat/completions"
	CompletionsPath = "/v1/completions"
)

// Message is one turn of a chat.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Params is a streaming completion: everything that an engine's defaults could
// decide differently is said.
type Params struct {
	Model    string
	Messages []Message // of a chat
	// Tools and ToolChoice are a chat's, sent as they are; nil: none.
	Tools, ToolChoice json.RawMessage
	// Prompt is a plain completion's: it goes to the model as it is, without the
	// chat template.
	Prompt      string
	MaxTokens   int
	Temperature float64
	TopP        float64
	// RepetitionPenalty is sent whenever it is set, 1 too: a model's own
	// generation defaults may be another, and vLLM takes them.
	RepetitionPenalty float64
	Seed              uint64
	// Exact forces MaxTokens output tokens (ignore_eos, min_tokens).
	Exact bool
	// TokenIDs asks for the ids of the tokens (return_token_ids).
	TokenIDs bool
}

// Request is one request's body, made before the wave.
type Request struct {
	Body []byte
	// TokenIDs says that ids were asked for.
	TokenIDs bool

	tokens int // asked for at most
}

// SHA256 is the body's digest in hex: the record's input_sha256.
func (r Request) SHA256() string {
	sum := sha256.Sum256(r.Body)
	return hex.EncodeToString(sum[:])
}

type requestBody struct {
	Model             string          `json:"model"`
	Messages          []Message       `json:"messages,omitempty"`
	Prompt            string          `json:"prompt,omitempty"`
	Tools             json.RawMessage `json:"tools,omitempty"`
	ToolChoice        json.RawMessage `json:"tool_choice,omitempty"`
	MaxTokens         int             `json:"max_tokens"`
	Temperature       float64         `json:"temperature"`
	TopP              float64         `json:"top_p"`
	RepetitionPenalty *float64        `json:"repetition_penalty,omitempty"`
	Seed              *uint64         `json:"seed,omitempty"`
	IgnoreEOS         bool            `json:"ignore_eos,omitempty"`
	MinTokens         int             `json:"min_tokens,omitempty"`
	Stream            bool            `json:"stream"`
	StreamOptions     struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	ReturnTokenIDs bool `json:"return_token_ids,omitempty"`
}

// NewChatRequest makes a body for [ChatPath]. The same parameters give the same
// bytes.
func NewChatRequest(p Params) (Request, error) {
	var errs []error
	if len(p.Messages) == 0 {
		errs = append(errs, errors.New("a request needs at least one message"))
	}
	if p.Prompt != "" {
		errs = append(errs, errors.New("a chat has messages and no prompt: leave it out"))
	}
	return newRequest(p, errs)
}

// NewCompletionRequest makes a body for [CompletionsPath]. The same parameters
// give the same bytes.
func NewCompletionRequest(p Params) (Request, error) {
	var errs []error
	if p.Prompt == "" {
		errs = append(errs, errors.New("a request needs a prompt that is not empty"))
	}
	if len(p.Messages) > 0 {
		errs = append(errs, errors.New("a plain completion has a prompt and no messages: leave them out"))
	}
	if p.Tools != nil || p.ToolChoice != nil {
		errs = append(errs, errors.New("a plain completion has no tools: leave them out"))
	}
	return newRequest(p, errs)
}

// newRequest makes the body, unless errs or its own checks speak against it.
func newRequest(p Params, errs []error) (Request, error) {
	if p.Model == "" {
		errs = append(errs, errors.New("a request needs a model: set the plan's model.served_as"))
	}
	if p.MaxTokens < 1 {
		errs = append(errs, fmt.Errorf("max_tokens is %d: ask for at least 1", p.MaxTokens))
	}
	if err := errors.Join(errs...); err != nil {
		return Request{}, err
	}
	body := requestBody{
		Model: p.Model, Messages: p.Messages, Prompt: p.Prompt, Tools: p.Tools, ToolChoice: p.ToolChoice, MaxTokens: p.MaxTokens, Temperature: p.Temperature, TopP: p.TopP,
		IgnoreEOS: p.Exact, Stream: true, ReturnTokenIDs: p.TokenIDs,
	}
	if p.RepetitionPenalty != 0 {
		body.RepetitionPenalty = &p.RepetitionPenalty
	}
	if p.Temperature != 0 {
		body.Seed = &p.Seed // greedy decoding has none, and some servers refuse one
	}
	if p.Exact {
		body.MinTokens = p.MaxTokens
	}
	body.StreamOptions.IncludeUsage = true
	data, err := json.Marshal(body)
	return Request{Body: data, TokenIDs: p.TokenIDs, tokens: p.MaxTokens}, err
}
