package llm

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

// What a record says of calls made by OpenAI.
const (
	OpenAIAPI        = "openai-responses"
	OpenAIToolChoice = "function"
)

// OpenAIInfo is the Info of a call for model before it is made.
func OpenAIInfo(model string) Info {
	return Info{API: OpenAIAPI, ToolChoice: OpenAIToolChoice, ModelID: "openai/" + model}
}

// OpenAI speaks the OpenAI Responses API. Use NewOpenAI.
type OpenAI struct {
	caller
	responses responses.ResponseService
}

// NewOpenAI returns a provider that authenticates with key. baseURL is http(s)
// and ends before /responses; "" is OpenAI's own. Nothing is read from the
// environment, as in NewAnthropic.
func NewOpenAI(key, baseURL string) (*OpenAI, error) {
	if key == "" {
		return nil, fmt.Errorf("%w: there is no key", ErrAuth)
	}
	opts, err := openAIOptions(key, baseURL)
	if err != nil {
		return nil, err
	}
	return &OpenAI{caller: caller{key: key, retry: defaultRetry}, responses: responses.NewResponseService(opts...)}, nil
}

// openAIOptions are for a service made alone: openai.NewClient would read keys,
// base URL, organisation and headers from the environment.
func openAIOptions(key, baseURL string) ([]option.RequestOption, error) {
	opts := []option.RequestOption{
		option.WithEnvironmentProduction(),
		option.WithHTTPClient(newHTTPClient()),
		option.WithMaxRetries(0), // retry.go retries, within the deadline
	}
	if key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	if baseURL != "" {
		if err := CheckBaseURL(baseURL); err != nil {
			return nil, err
		}
		opts = append(opts, option.WithBaseURL(baseURL))
	}
	return opts, nil
}

// Describe implements Describer.
func (*OpenAI) Describe(model string) Info { return OpenAIInfo(model) }

// Ask implements Provider.
func (o *OpenAI) Ask(ctx context.Context, r Request) (ToolCall, Info, error) {
	info := OpenAIInfo(r.Model)
	tools, err := checkRequest(r)
	if err != nil {
		return ToolCall{}, info, err
	}
	return o.ask(ctx, r, info, &openAITalk{responses: o.responses, params: openAIParams(r, tools), verdict: r.Tool.Name})
}

func openAIParams(r Request, tools []tool) responses.ResponseNewParams {
	p := responses.ResponseNewParams{
		Model:           shared.ResponsesModel(r.Model),
		Instructions:    param.NewOpt(r.System),
		MaxOutputTokens: param.NewOpt(int64(r.MaxTokens)),
		Store:           param.NewOpt(false), // an agent's calls are not for a model server to keep
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
			responses.ResponseInputItemParamOfMessage(r.User, responses.EasyInputMessageRoleUser),
		}},
	}
	for _, t := range tools {
		f := responses.ToolParamOfFunction(t.name, t.fields(), true)
		f.OfFunction.Description = param.NewOpt(t.description)
		p.Tools = append(p.Tools, f)
	}
	return p
}

// openAITalk is a conversation. Each request holds all of it: nothing is stored
// at the server that the next one could refer to.
type openAITalk struct {
	responses responses.ResponseService
	params    responses.ResponseNewParams
	verdict   string
}

func (t *openAITalk) say(ctx context.Context, forced bool) (turn, error) {
	t.params.ToolChoice = responses.ResponseNewParamsToolChoiceUnion{OfToolChoiceMode: param.NewOpt(responses.ToolChoiceOptionsRequired)}
	t.params.ParallelToolCalls = param.NewOpt(!forced)
	if forced {
		t.params.ToolChoice = responses.ResponseNewParamsToolChoiceUnion{OfFunctionTool: &responses.ToolChoiceFunctionParam{Name: t.verdict}}
	}
	r, err := t.responses.New(ctx, t.params)
	if err != nil {
		return turn{}, &sdkError{err}
	}
	if r == nil || !r.JSON.Output.Valid() {
		return turn{}, fmt.Errorf("%w: the reply is no response", ErrMalformed)
	}
	out := readOpenAI(r)
	if r.Status == responses.ResponseStatusFailed {
		return out, openAIFailed(r.Error)
	}
	return out, nil
}

func readOpenAI(r *responses.Response) turn {
	out := turn{stop: openAIStop(r), usage: Usage{Input: r.Usage.InputTokens, Output: r.Usage.OutputTokens}}
	for _, item := range r.Output {
		switch item.Type {
		case "function_call":
			out.calls = append(out.calls, call{item.CallID, item.Name, jsontext.Value(item.Arguments.OfString)})
		case "message":
			for _, part := range item.Content {
				out.text += part.Text
				if part.Type == "refusal" {
					out.text += part.Refusal
					out.stop = stopRefusal
				}
			}
		}
	}
	return out
}

func openAIStop(r *responses.Response) stop {
	switch {
	case r.Status == responses.ResponseStatusCompleted:
		return stopDone
	case r.Status != responses.ResponseStatusIncomplete:
		return stopUnknown
	case r.IncompleteDetails.Reason == "max_output_tokens":
		return stopLength
	case r.IncompleteDetails.Reason == "content_filter":
		return stopRefusal
	default:
		return stopUnknown
	}
}

// openAIFailed sorts a failure that came with the status 200.
func openAIFailed(e responses.ResponseError) error {
	switch e.Code {
	case responses.ResponseErrorCodeServerError:
		return &passing{err: fmt.Errorf("%w: %s", ErrServer, e.Code)}
	case responses.ResponseErrorCodeRateLimitExceeded:
		return &passing{err: fmt.Errorf("%w: %s", ErrRateLimited, e.Code)}
	case responses.ResponseErrorCodeInvalidPrompt, responses.ResponseErrorCodeBioPolicy, responses.ResponseErrorCodeMisalignmentPolicyViolation:
		return fmt.Errorf("%w: %s", ErrRefused, e.Code)
	default:
		return fmt.Errorf("%w: the response failed", ErrMalformed)
	}
}

func (t *openAITalk) answered(said turn, answers []string) {
	list := t.params.Input.OfInputItemList
	for _, c := range said.calls {
		// Without the item's own id: with it the server would want the reasoning
		// that belongs to it, which is not kept.
		list = append(list, responses.ResponseInputItemParamOfFunctionCall(string(c.input), c.id, c.name))
	}
	for i, c := range said.calls {
		result := responses.ResponseInputItemParamOfFunctionCallOutput(answers[i])
		result.OfFunctionCallOutput.CallID = param.NewOpt(c.id)
		list = append(list, result)
	}
	t.params.Input.OfInputItemList = list
}
