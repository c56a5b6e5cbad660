package llm

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/llm/llmtest"
)

// FuzzReply: whatever a server says with status 200, an answer is taken only
// from a reply in which a plain reading of the API finds that call, alone, in a
// turn that ended as it should.
func FuzzReply(f *testing.F) {
	for api := range apis {
		for _, row := range answerRows {
			for _, a := range row.answers {
				if body := recorded(api, a); body != "" {
					f.Add(api, body)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, api int, body string) {
		if api < 0 || api >= len(apis) || len(body) > 1<<16 {
			return
		}
		s := llmtest.Start(t, llmtest.Raw(200, "application/json", body))
		p, err := apis[api].make(testKey, s.URL, retryPolicy{first: time.Millisecond, longest: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		call, info, err := p.Ask(ctx, question())
		if (err == nil) == (call.Input == nil) || info.Rounds > 1 || info.Usage.Input < 0 || info.Usage.Output < 0 {
			t.Fatalf("input %s, info %+v: %v", call.Input, info, err)
		}
		if err != nil {
			if Reason(err) == "call-failed" || Reason(err) == "timeout" {
				t.Fatalf("a reply that has no word: %v", err)
			}
			return
		}
		if want := plainAnswer(api, body); call.Input.Kind() != '{' || !call.Input.IsValid() || string(call.Input) != want {
			t.Fatalf("answered %s, the reply holds %s", call.Input, want)
		}
	})
}

// recorded is the body that a scripted answer writes for an API; "" if none.
func recorded(api int, a llmtest.Answer) string {
	q := llmtest.Question{Format: apis[api].format, Model: "model-1", Forced: "verdict", Left: closed}
	return llmtest.Record(a, q)
}

var closed = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// plainAnswer reads a reply without the SDKs: the input of its one call, or "".
// It is lenient about everything but what makes an answer one.
func plainAnswer(api int, body string) string {
	lenient := json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var r struct {
		Stop    string `json:"stop_reason"`
		Content []struct {
			Type  string         `json:"type"`
			Name  string         `json:"name"`
			Input jsontext.Value `json:"input"`
		} `json:"content"`
		Status string `json:"status"`
		Output []struct {
			Type      string `json:"type"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"output"`
		Choices []struct {
			Stop    string `json:"finish_reason"`
			Message struct {
				Calls []struct {
					Function struct {
						Name      string `json:"name"`
						Arguments string `json:"arguments"`
					} `json:"function"`
				} `json:"tool_calls"`
			} `json:"message"`
		} `json:"choices"`
	}
	if json.Unmarshal([]byte(body), &r, lenient) != nil {
		return ""
	}
	var calls []string
	done := false
	switch apis[api].format {
	case llmtest.Anthropic:
		done = strings.Contains("tool_use end_turn stop_sequence", r.Stop)
		for _, c := range r.Content {
			if c.Type == "tool_use" && c.Name == "verdict" {
				calls = append(calls, string(c.Input))
			}
		}
	case llmtest.OpenAI:
		done = r.Status == "completed"
		for _, c := range r.Output {
			if c.Type == "function_call" && c.Name == "verdict" {
				calls = append(calls, c.Arguments)
			}
		}
	case llmtest.Compatible:
		if len(r.Choices) == 1 {
			done = strings.Contains("stop tool_calls", r.Choices[0].Stop)
			for _, c := range r.Choices[0].Message.Calls {
				if c.Function.Name == "verdict" {
					calls = append(calls, c.Function.Arguments)
				}
			}
		}
	}
	if !done || len(calls) != 1 {
		return ""
	}
	return calls[0]
}

// FuzzStrictSchema: what is taken is taken again and does not change, names the
// same properties, and every object in it is closed.
func FuzzStrictSchema(f *testing.F) {
	f.Add(verdictSchema)
	f.Add(`{"type":"object","properties":{"l":{"type":"array","maxItems":3,"items":{"anyOf":[{"type":"null"},{"type":"integer","minimum":0}]}}},"required":["l"],"additionalProperties":false}`)
	f.Fuzz(func(t *testing.T, in string) {
		once, err := strictSchema(jsontext.Value(in))
		if err != nil {
			return
		}
		out := object(once)
		twice, err := strictSchema(out)
		if err != nil || string(object(twice)) != string(out) {
			t.Fatalf("%s\nbecame %s\nand then %s, %v", in, out, object(twice), err)
		}
		var top map[string]jsontext.Value
		if err := json.Unmarshal(out, &top); err != nil {
			t.Fatal(err)
		}
		for _, keyword := range bounds {
			if _, kept := top[keyword]; kept {
				t.Fatalf("%s kept %s: %s", in, keyword, out)
			}
		}
		if string(top["additionalProperties"]) != "false" || string(top["type"]) != `"object"` {
			t.Fatalf("%s became the open %s", in, out)
		}
	})
}
