package llm

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"
)

// What a record says of calls made by Compatible.
const (
	CompatibleAPI        = "openai-chat-completions"
	CompatibleToolChoice = "function"
)

// CompatibleInfo is the Info of a call for model before it is made.
func CompatibleInfo(model string) Info {
	return Info{API: CompatibleAPI, ToolChoice: CompatibleToolChoice, ModelID: "openai-compatible/" + model}
}

// Compatible speaks the Chat Completions API, as OpenAI first did and as vLLM,
// Ollama, LiteLLM, OpenRouter and others do. Use NewOpenAICompatible.
type Compatible struct {
	caller
	completions openai.ChatCompletionService
}

// NewOpenAICompatible returns a provider for the server at baseURL, which is
// http(s) and ends before /chat/completions; "" is OpenAI's own. key "" sends
// none: a server on the same machine often wants none. Nothing is read from the
// environment, as in NewAnthropic.
func NewOpenAICompatible(key, baseURL string) (*Compatible, error) {
	if key == "" && baseURL == "" {
		return nil, fmt.Errorf("%w: there is no key", ErrAuth)
	}
	opts, err := openAIOptions(key, baseURL)
	if err != nil {
		return nil, err
	}
	return &Compatible{caller: caller{key: key, retry: defaultRetry}, completions: openai.NewChatCompletionService(opts...)}, nil
}

// Describe implements Describer.
func (*Compatible) Describe(model string) Info { return CompatibleInfo(model) }

// Ask implements Provider.
func (o *Compatible) Ask(ctx context.Context, r Request) (ToolCall, Info, error) {
	info := CompatibleInfo(r.Model)
	tools, err := checkRequest(r)
	if err != nil {
		return ToolCall{}, info, err
	}
	return o.ask(ctx, r, info, &compatibleTalk{completions: o.completions, params: compatibleParams(r, tools), verdict: r.Tool.Name})
}

func compatibleParams(r Request, tools []tool) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{
		Model: shared.ChatModel(r.Model),
		// The newer max_completion_tokens is unknown to many servers, and a bound
		// that is ignored is none.
		MaxTokens: param.NewOpt(int64(r.MaxTokens)),
		Messages:  []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(r.System), openai.UserMessage(r.User)},
	}
	for _, t := range tools {
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: t.name, Description: param.NewOpt(t.description), Strict: param.NewOpt(true), Parameters: t.fields(),
		}))
	}
	return p
}

// compatibleTalk is a conversation. Each request holds all of it: the API keeps
// nothing.
type compatibleTalk struct {
	completions openai.ChatCompletionService
	params      openai.ChatCompletionNewParams
	verdict     string
}

func (t *compatibleTalk) say(ctx context.Context, forced bool) (turn, error) {
	t.params.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: param.NewOpt(string(openai.ChatCompletionToolChoiceOptionAutoRequired))}
	t.params.ParallelToolCalls = param.NewOpt(!forced)
	if forced {
		t.params.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: t.verdict})
	}
	c, err := t.completions.New(ctx, t.params)
	if err != nil {
		return turn{}, &sdkError{err}
	}
	if c == nil || len(c.Choices) != 1 {
		return turn{}, fmt.Errorf("%w: the reply is no completion with one choice", ErrMalformed)
	}
	return readCompatible(c), nil
}

func readCompatible(c *openai.ChatCompletion) turn {
	m := c.Choices[0].Message
	out := turn{
		text: m.Content + m.Refusal, stop: compatibleStop(c.Choices[0].FinishReason),
		usage: Usage{Input: c.Usage.PromptTokens, Output: c.Usage.CompletionTokens},
	}
	if m.Refusal != "" {
		out.stop = stopRefusal
	}
	for _, t := range m.ToolCalls {
		out.calls = append(out.calls, call{t.ID, t.Function.Name, jsontext.Value(t.Function.Arguments)})
	}
	return out
}

// compatibleStop: a call that was forced ends with "stop" at some servers and
// with "tool_calls" at others.
func compatibleStop(why string) stop {
	switch why {
	case "stop", "tool_calls":
		return stopDone
	case "length":
		return stopLength
	case "content_filter":
		return stopRefusal
	default:
		return stopUnknown
	}
}

func (t *compatibleTalk) answered(said turn, answers []string) {
	var m openai.ChatCompletionAssistantMessageParam
	for _, c := range said.calls {
		m.ToolCalls = append(m.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
			ID: c.id, Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.name, Arguments: string(c.input)},
		}})
	}
	t.params.Messages = append(t.params.Messages, openai.ChatCompletionMessageParamUnion{OfAssistant: &m})
	for i, c := range said.calls {
		t.params.Messages = append(t.params.Messages, openai.ToolMessage(answers[i], c.id))
	}
}
