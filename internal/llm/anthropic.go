package llm

import (
	"context"
	"fmt"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"
	"github.com/go-json-experiment/json/jsontext"
)

// What a record says of calls made by Anthropic.
const (
	AnthropicAPI        = "anthropic-messages"
	AnthropicToolChoice = "tool"
)

// AnthropicInfo is the Info of a call for model before it is made.
func AnthropicInfo(model string) Info {
	return Info{API: AnthropicAPI, ToolChoice: AnthropicToolChoice, ModelID: "anthropic/" + model}
}

// Anthropic speaks the Anthropic Messages API. Use NewAnthropic.
type Anthropic struct {
	caller
	messages anthropic.MessageService
}

// NewAnthropic returns a provider that authenticates with key. baseURL is
// http(s); "" is Anthropic's own. Nothing else is read from the environment: a
// stray variable must not send an operator's key elsewhere.
func NewAnthropic(key, baseURL string) (*Anthropic, error) {
	if key == "" {
		return nil, fmt.Errorf("%w: there is no key", ErrAuth)
	}
	opts := []option.RequestOption{
		option.WithoutEnvironmentDefaults(),
		option.WithAPIKey(key),
		option.WithHTTPClient(newHTTPClient()),
		option.WithMaxRetries(0), // retry.go retries, within the deadline
	}
	if baseURL != "" {
		if err := CheckBaseURL(baseURL); err != nil {
			return nil, err
		}
		opts = append(opts, option.WithBaseURL(baseURL))
	}
	return &Anthropic{caller: caller{key: key, retry: defaultRetry}, messages: anthropic.NewClient(opts...).Messages}, nil
}

// Describe implements Describer.
func (*Anthropic) Describe(model string) Info { return AnthropicInfo(model) }

// Ask implements Provider.
func (a *Anthropic) Ask(ctx context.Context, r Request) (ToolCall, Info, error) {
	info := AnthropicInfo(r.Model)
	tools, err := checkRequest(r)
	if err != nil {
		return ToolCall{}, info, err
	}
	return a.ask(ctx, r, info, &anthropicTalk{messages: a.messages, params: anthropicParams(r, tools), verdict: r.Tool.Name})
}

func anthropicParams(r Request, tools []tool) anthropic.MessageNewParams {
	p := anthropic.MessageNewParams{
		Model:     anthropic.Model(r.Model),
		MaxTokens: int64(r.MaxTokens),
		System:    []anthropic.TextBlockParam{{Text: r.System}},
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(r.User))},
	}
	for _, t := range tools {
		// The SDK would take the schema apart and write its members in any order.
		schema := param.Override[anthropic.ToolInputSchemaParam](jsonRaw(object(t.schema)))
		p.Tools = append(p.Tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
			Name: t.name, Description: param.NewOpt(t.description), Strict: param.NewOpt(true),
			InputSchema: schema,
		}})
	}
	return p
}

// anthropicTalk is a conversation. Each request holds all of it: the API keeps
// nothing.
type anthropicTalk struct {
	messages anthropic.MessageService
	params   anthropic.MessageNewParams
	verdict  string
}

func (t *anthropicTalk) say(ctx context.Context, forced bool) (turn, error) {
	t.params.ToolChoice = anthropic.ToolChoiceUnionParam{OfAny: &anthropic.ToolChoiceAnyParam{}}
	if forced {
		t.params.ToolChoice = anthropic.ToolChoiceUnionParam{OfTool: &anthropic.ToolChoiceToolParam{
			Name: t.verdict, DisableParallelToolUse: param.NewOpt(true),
		}}
	}
	m, err := t.messages.New(ctx, t.params)
	if err != nil {
		return turn{}, &sdkError{err}
	}
	if m == nil || !m.JSON.Content.Valid() {
		return turn{}, fmt.Errorf("%w: the reply is no message", ErrMalformed)
	}
	return readAnthropic(m), nil
}

func readAnthropic(m *anthropic.Message) turn {
	u := m.Usage
	out := turn{stop: anthropicStop(m.StopReason), usage: Usage{
		Input:  u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens,
		Output: u.OutputTokens,
	}}
	for _, block := range m.Content {
		switch block.Type {
		case "text":
			out.text += block.Text
		case "tool_use":
			out.calls = append(out.calls, call{block.ID, block.Name, jsontext.Value(block.Input)})
		}
	}
	return out
}

func anthropicStop(why anthropic.StopReason) stop {
	switch why {
	case anthropic.StopReasonToolUse, anthropic.StopReasonEndTurn, anthropic.StopReasonStopSequence:
		return stopDone
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		return stopLength
	case anthropic.StopReasonRefusal:
		return stopRefusal
	default:
		return stopUnknown
	}
}

func (t *anthropicTalk) answered(said turn, answers []string) {
	var calls, results []anthropic.ContentBlockParamUnion
	for i, c := range said.calls {
		calls = append(calls, anthropic.NewToolUseBlock(c.id, jsonRaw(c.input), c.name))
		results = append(results, anthropic.NewToolResultBlock(c.id, answers[i], false))
	}
	t.params.Messages = append(t.params.Messages, anthropic.NewAssistantMessage(calls...), anthropic.NewUserMessage(results...))
}
