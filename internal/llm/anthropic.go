package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// What a record says of calls made by Anthropic.
const (
	AnthropicAPI        = "anthropic-messages"
	AnthropicToolChoice = "tool"
)

// maxText bounds what is kept of a model's prose, in bytes.
const maxText = 2048

// AnthropicInfo is the Info of a call for model before it is made.
func AnthropicInfo(model string) Info {
	return Info{API: AnthropicAPI, ToolChoice: AnthropicToolChoice, ModelID: "anthropic/" + model}
}

// Anthropic speaks the Anthropic Messages API. Use NewAnthropic.
type Anthropic struct {
	messages anthropic.MessageService
	key      string
	retry    retryPolicy
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
	return &Anthropic{messages: anthropic.NewClient(opts...).Messages, key: key, retry: defaultRetry}, nil
}

// CheckBaseURL accepts an http or https URL with a host and nothing that hides
// a second meaning: no user, query or fragment.
func CheckBaseURL(s string) error {
	u, err := url.Parse(s)
	if err != nil {
		return fmt.Errorf("base URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("base URL %q: want http://HOST or https://HOST, without user, query or fragment", u.Redacted())
	}
	return nil
}

// Ask implements Provider.
func (a *Anthropic) Ask(ctx context.Context, r Request) (ToolCall, Info, error) {
	info := AnthropicInfo(r.Model)
	params, err := anthropicParams(r)
	if err != nil {
		return ToolCall{}, info, err
	}
	start := time.Now()
	var call ToolCall
	err = a.retry.do(ctx, func() error {
		info.Attempts++
		message, err := a.messages.New(ctx, params)
		if err != nil {
			return a.failure(ctx, err)
		}
		call, info.Text, err = readAnthropic(message, r.Tool.Name)
		return err
	})
	info.Latency = time.Since(start)
	if err != nil {
		return ToolCall{}, info, err
	}
	return call, info, nil
}

func anthropicParams(r Request) (anthropic.MessageNewParams, error) {
	// The SDK takes a schema apart; it must come out whole, so all of it but the
	// type goes through as it is.
	schema := anthropic.ToolInputSchemaParam{ExtraFields: map[string]any{}}
	var fields map[string]jsontext.Value
	if err := json.Unmarshal(r.Tool.Schema, &fields); err != nil {
		return anthropic.MessageNewParams{}, fmt.Errorf("%w: schema of tool %s: %w", ErrCall, r.Tool.Name, err)
	}
	for k, v := range fields {
		if k != "type" {
			schema.ExtraFields[k] = jsonRaw(v)
		}
	}
	return anthropic.MessageNewParams{
		Model:     anthropic.Model(r.Model),
		MaxTokens: int64(r.MaxTokens),
		System:    []anthropic.TextBlockParam{{Text: r.System}},
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(r.User))},
		Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
			Name: r.Tool.Name, Description: param.NewOpt(r.Tool.Description), InputSchema: schema,
		}}},
		ToolChoice: anthropic.ToolChoiceUnionParam{OfTool: &anthropic.ToolChoiceToolParam{
			Name: r.Tool.Name, DisableParallelToolUse: param.NewOpt(true),
		}},
	}, nil
}

// readAnthropic takes the one call of tool out of a message. An answer that was
// cut off may hold a call that looks whole, so the reason it stopped comes first.
func readAnthropic(m *anthropic.Message, tool string) (call ToolCall, text string, err error) {
	if m == nil || !m.JSON.Content.Valid() {
		return ToolCall{}, "", fmt.Errorf("%w: the reply is no message", ErrCall)
	}
	calls := 0
	for _, block := range m.Content {
		switch block.Type {
		case "text":
			text = clip(text+block.Text, maxText)
		case "tool_use":
			calls++
			if block.Name == tool {
				call.Input = jsontext.Value(block.Input)
			}
		}
	}
	switch {
	case m.StopReason == anthropic.StopReasonRefusal:
		err = ErrRefused
	case m.StopReason == anthropic.StopReasonMaxTokens || m.StopReason == anthropic.StopReasonModelContextWindowExceeded:
		err = fmt.Errorf("%w: %s", ErrCutOff, m.StopReason)
	case calls != 1 || call.Input.Kind() != '{':
		err = fmt.Errorf("%w: %d tool calls, want one of %s with an object", ErrNoToolCall, calls, tool)
	}
	if err != nil {
		return ToolCall{}, text, err
	}
	return call, text, nil
}

// failure sorts an error of the SDK. Its own text is not passed on whole: a
// server may echo what it was sent.
func (a *Anthropic) failure(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ErrTimeout
	}
	var api *anthropic.Error
	if !errors.As(err, &api) {
		failed := fmt.Errorf("%w: %s", ErrCall, a.redact(err.Error()))
		if lost := new(url.Error); errors.As(err, &lost) || errors.Is(err, io.ErrUnexpectedEOF) {
			return &passing{err: failed}
		}
		return failed // an answer, but none of a model server: it will not change
	}
	text := fmt.Sprintf("status %d %s: %s", api.StatusCode, api.Type(), a.redact(api.Message))
	switch {
	case api.StatusCode == 401 || api.StatusCode == 403:
		return fmt.Errorf("%w: %s", ErrAuth, text)
	case api.StatusCode == 404:
		return fmt.Errorf("%w: %s", ErrModel, text)
	case api.StatusCode == 408 || api.StatusCode == 409 || api.StatusCode == 429 || api.StatusCode >= 500:
		return &passing{err: fmt.Errorf("%w: %s", ErrCall, text), after: retryAfter(api.Response)}
	default:
		return fmt.Errorf("%w: %s", ErrCall, text)
	}
}

func (a *Anthropic) redact(s string) string {
	return clip(strings.ReplaceAll(s, a.key, "[key]"), 300)
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
