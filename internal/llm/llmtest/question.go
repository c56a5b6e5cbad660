package llmtest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Format is one of the APIs.
type Format string

// The APIs, by the words of a record.
const (
	Anthropic  Format = "anthropic-messages"
	OpenAI     Format = "openai-responses"
	Compatible Format = "openai-chat-completions"
)

// Question is what the server was asked, read the same way from all APIs.
type Question struct {
	Format Format
	Header http.Header
	Path   string
	Body   jsontext.Value
	// Left ends when the caller has gone.
	Left <-chan struct{}

	Model     string
	MaxTokens int
	System    string
	// User is the first message.
	User  string
	Tools []Tool
	// Choice is the word by which the model is bound, as "tool", "any",
	// "function" or "required"; Forced the tool it must call, "" for any.
	Choice string
	Forced string
	// Parallel says whether more than one call is allowed at once.
	Parallel bool
	// Results are the helpers' answers so far, in order.
	Results []string
}

// Tool is one that the model was offered.
type Tool struct {
	Name   string
	Schema jsontext.Value
	Strict bool
}

func (q *Question) read() error {
	switch {
	case strings.HasSuffix(q.Path, "/v1/messages"):
		q.Format = Anthropic
		return q.readAnthropic()
	case strings.HasSuffix(q.Path, "/responses"):
		q.Format = OpenAI
		return q.readOpenAI()
	case strings.HasSuffix(q.Path, "/chat/completions"):
		q.Format = Compatible
		return q.readCompatible()
	default:
		return fmt.Errorf("no API at %s", q.Path)
	}
}

func (q *Question) readAnthropic() error {
	var b struct {
		Model     string `json:"model"`
		MaxTokens int    `json:"max_tokens"`
		System    []struct {
			Text string `json:"text"`
		} `json:"system"`
		Messages []struct {
			Content []struct {
				Type    string `json:"type"`
				Text    string `json:"text"`
				Content []struct {
					Text string `json:"text"`
				} `json:"content"`
			} `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name   string         `json:"name"`
			Schema jsontext.Value `json:"input_schema"`
			Strict bool           `json:"strict"`
		} `json:"tools"`
		Choice struct {
			Type  string `json:"type"`
			Name  string `json:"name"`
			Alone bool   `json:"disable_parallel_tool_use"`
		} `json:"tool_choice"`
	}
	if err := json.Unmarshal(q.Body, &b); err != nil {
		return err
	}
	q.Model, q.MaxTokens, q.Choice, q.Forced, q.Parallel = b.Model, b.MaxTokens, b.Choice.Type, b.Choice.Name, !b.Choice.Alone
	for _, s := range b.System {
		q.System += s.Text
	}
	for i, m := range b.Messages {
		for _, part := range m.Content {
			if i == 0 {
				q.User += part.Text
			}
			for _, c := range part.Content {
				q.Results = append(q.Results, c.Text)
			}
		}
	}
	for _, t := range b.Tools {
		q.Tools = append(q.Tools, Tool{t.Name, t.Schema, t.Strict})
	}
	return nil
}

func (q *Question) readOpenAI() error {
	var b struct {
		Model        string `json:"model"`
		MaxTokens    int    `json:"max_output_tokens"`
		Instructions string `json:"instructions"`
		Input        []struct {
			Type    string `json:"type"`
			Content string `json:"content"`
			Output  string `json:"output"`
		} `json:"input"`
		Tools []struct {
			Name   string         `json:"name"`
			Schema jsontext.Value `json:"parameters"`
			Strict bool           `json:"strict"`
		} `json:"tools"`
		Choice   jsontext.Value `json:"tool_choice"`
		Parallel bool           `json:"parallel_tool_calls"`
	}
	if err := json.Unmarshal(q.Body, &b); err != nil {
		return err
	}
	q.Model, q.MaxTokens, q.System, q.Parallel = b.Model, b.MaxTokens, b.Instructions, b.Parallel
	for i, in := range b.Input {
		if i == 0 {
			q.User = in.Content
		}
		if in.Type == "function_call_output" {
			q.Results = append(q.Results, in.Output)
		}
	}
	for _, t := range b.Tools {
		q.Tools = append(q.Tools, Tool{t.Name, t.Schema, t.Strict})
	}
	return q.readChoice(b.Choice)
}

func (q *Question) readCompatible() error {
	var b struct {
		Model     string `json:"model"`
		MaxTokens int    `json:"max_tokens"`
		Messages  []struct {
			Role    string         `json:"role"`
			Content jsontext.Value `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name   string         `json:"name"`
				Schema jsontext.Value `json:"parameters"`
				Strict bool           `json:"strict"`
			} `json:"function"`
		} `json:"tools"`
		Choice   jsontext.Value `json:"tool_choice"`
		Parallel bool           `json:"parallel_tool_calls"`
	}
	if err := json.Unmarshal(q.Body, &b); err != nil {
		return err
	}
	q.Model, q.MaxTokens, q.Parallel = b.Model, b.MaxTokens, b.Parallel
	for _, m := range b.Messages {
		var text string
		_ = json.Unmarshal(m.Content, &text) // an assistant's content may be left out
		switch m.Role {
		case "system":
			q.System += text
		case "user":
			q.User += text
		case "tool":
			q.Results = append(q.Results, text)
		}
	}
	for _, t := range b.Tools {
		q.Tools = append(q.Tools, Tool{t.Function.Name, t.Function.Schema, t.Function.Strict})
	}
	return q.readChoice(b.Choice)
}

// readChoice reads OpenAI's two forms: {"type":"function","name":…} of the
// Responses API and {"type":"function","function":{"name":…}} of the other.
func (q *Question) readChoice(v jsontext.Value) error {
	if v.Kind() == '"' {
		return json.Unmarshal(v, &q.Choice)
	}
	var c struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if err := json.Unmarshal(v, &c); err != nil {
		return err
	}
	q.Choice = c.Type
	if q.Forced = c.Name; q.Format == Compatible {
		q.Forced = c.Function.Name
	}
	return nil
}
