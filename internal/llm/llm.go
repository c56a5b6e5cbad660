// Package llm asks a language model one question whose answer is one tool call.
//
// A judge never reads prose for a verdict: the model is forced to call the
// tool it is given, and anything else is no answer. Every way of not answering
// is an error that wraps exactly one sentinel of errors.go, so that a caller
// can count and record them apart.
//
// Start at Provider; anthropic.go speaks the Anthropic Messages API.
package llm

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Provider is a model server. Ask is safe for concurrent use and makes at least
// one call unless the provider cannot work at all; it retries what may pass,
// as long as that fits before ctx's deadline. Info is filled in as far as the
// call came, also with an error.
type Provider interface {
	Ask(ctx context.Context, r Request) (ToolCall, Info, error)
}

// Request is one question. All its fields but Helpers and Rounds are required.
type Request struct {
	Model  string
	System string
	User   string
	// Tool is what the model must call: its input is the answer.
	Tool Tool
	// MaxTokens bounds each of the model's turns; one that reaches it is cut off,
	// and no answer.
	MaxTokens int
	// Helpers are tools that the model may call before it calls Tool. Without
	// them Tool is forced at once.
	Helpers []Helper
	// Rounds bounds the model's turns, the one that calls Tool included; 0 and 1
	// force Tool at once. In the last round Tool is forced.
	Rounds int
}

// Helper is a tool that the model may call while it makes up its mind.
type Helper struct {
	Tool
	// Answer is given what the model wrote, unchecked, a JSON object; its text goes
	// back to the model. It has to come back when ctx ends. An error ends the Ask
	// with ErrHelper: what a model that could not ask would say is worth nothing.
	Answer func(ctx context.Context, input jsontext.Value) (string, error)
}

// Tool is what the model must call.
type Tool struct {
	Name        string
	Description string
	// Schema is the JSON Schema of the input, an object.
	Schema jsontext.Value
}

// ToolCall is the model's answer. Input is a JSON object that the model wrote:
// nothing of it has been checked against the schema.
type ToolCall struct {
	Input jsontext.Value
}

// Info is how the question was put and what became of it, for records.
type Info struct {
	// API names the wire format, as "anthropic-messages"; ToolChoice how the
	// model was bound to the tool.
	API        string
	ToolChoice string
	// ModelID is the provider and the model that was asked for.
	ModelID string
	// Attempts counts the calls that left this process, of all rounds.
	Attempts int
	// Rounds counts the model's turns that came back, the last one included.
	Rounds int
	// Usage is what the server says it counted, of all attempts and rounds.
	Usage Usage
	// Latency is from the first attempt to the last answer, waits included.
	Latency time.Duration
	// Text is what the model said besides, clipped: for debugging, never for a
	// verdict.
	Text string
}

// Usage counts tokens: Input what was read, from a cache too, and Output what
// was written.
type Usage struct {
	Input  int64
	Output int64
}

func (u Usage) plus(v Usage) Usage { return Usage{u.Input + v.Input, u.Output + v.Output} }

// Unavailable is a provider that cannot work, for a reason known beforehand: a
// judge that has it defers every time, and says why.
type Unavailable struct {
	Info  Info
	Cause error
}

// Ask returns the cause and makes no call.
func (u Unavailable) Ask(context.Context, Request) (ToolCall, Info, error) {
	return ToolCall{}, u.Info, u.Cause
}

// Describe implements Describer.
func (u Unavailable) Describe(string) Info { return u.Info }
