package llmtest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The tokens that every answer says it took.
const (
	InputTokens  = 10
	OutputTokens = 5
)

// Call is one tool call of an answer. Input is what the model wrote for it; in
// the OpenAI APIs it need not even be JSON.
type Call struct{ Name, Input string }

// said is an answer before it has an API's form.
type said struct {
	text  string
	calls []Call
	stop  string // "done", "length", "refusal"
}

// Calls the tool that was asked for with input, a JSON object.
func Calls(input string) Answer {
	return func(w http.ResponseWriter, q Question) {
		write(w, q, said{calls: []Call{{q.verdict(), input}}, stop: "done"})
	}
}

// CallsOther calls a tool of that name, offered or not: a helper, for one.
func CallsOther(name, input string) Answer { return CallsAll(Call{name, input}) }

// CallsAll makes several calls in one answer.
func CallsAll(calls ...Call) Answer {
	return func(w http.ResponseWriter, q Question) { write(w, q, said{calls: calls, stop: "done"}) }
}

// CallsTwice calls the tool twice in one answer.
func CallsTwice(first, second string) Answer {
	return func(w http.ResponseWriter, q Question) {
		write(w, q, said{calls: []Call{{q.verdict(), first}, {q.verdict(), second}}, stop: "done"})
	}
}

// CutOff calls the tool, but ran into its length limit.
func CutOff(input string) Answer {
	return func(w http.ResponseWriter, q Question) {
		write(w, q, said{calls: []Call{{q.verdict(), input}}, stop: "length"})
	}
}

// Says answers in prose, without a tool call; nothing at all for "".
func Says(text string) Answer {
	return func(w http.ResponseWriter, q Question) { write(w, q, said{text: text, stop: "done"}) }
}

// Refuses declines to answer, though the tool call is there.
func Refuses(input string) Answer {
	return func(w http.ResponseWriter, q Question) {
		write(w, q, said{calls: []Call{{q.verdict(), input}}, stop: "refusal"})
	}
}

// Fails answers with an error of the API.
func Fails(status int, kind, text string) Answer {
	return func(w http.ResponseWriter, q Question) {
		body := fmt.Sprintf(`{"error":{"message":%s,"type":%s,"param":null,"code":%s}}`, quote(text), quote(kind), quote(kind))
		if q.Format == Anthropic {
			body = fmt.Sprintf(`{"type":"error","error":{"type":%s,"message":%s}}`, quote(kind), quote(text))
		}
		Raw(status, "application/json", body)(w, q)
	}
}

// Hangs never answers.
func Hangs() Answer { return func(_ http.ResponseWriter, q Question) { <-q.Left } }

// HangsUp breaks the connection instead of answering, or in the middle of it.
func HangsUp(body string) Answer {
	return func(w http.ResponseWriter, q Question) {
		if body != "" {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
			_, _ = io.WriteString(w, body)
		}
		panic(http.ErrAbortHandler)
	}
}

// Raw answers with exactly this.
func Raw(status int, contentType, body string) Answer {
	return func(w http.ResponseWriter, _ Question) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Record is the body that a would answer q with; "" if it breaks off.
func Record(a Answer, q Question) (body string) {
	w := httptest.NewRecorder()
	defer func() {
		if recover() != nil {
			body = ""
		}
	}()
	a(w, q)
	return w.Body.String()
}

// verdict is the tool that the caller wants called: the forced one, or the
// first that is offered.
func (q Question) verdict() string {
	if q.Forced != "" || len(q.Tools) == 0 {
		return q.Forced
	}
	return q.Tools[0].Name
}

func write(w http.ResponseWriter, q Question, s said) {
	body := ""
	switch q.Format {
	case Anthropic:
		body = s.anthropic(q)
	case OpenAI:
		body = s.openAI(q)
	case Compatible:
		body = s.compatible(q)
	}
	Raw(http.StatusOK, "application/json", body)(w, q)
}

func (s said) anthropic(q Question) string {
	var content []string
	if s.text != "" {
		content = append(content, `{"type":"text","text":`+quote(s.text)+`}`)
	}
	stop := map[string]string{"done": "end_turn", "length": "max_tokens", "refusal": "refusal"}[s.stop]
	for i, c := range s.calls {
		content = append(content, fmt.Sprintf(`{"type":"tool_use","id":"call_%d","name":%s,"input":%s}`, len(q.Results)+i+1, quote(c.Name), c.Input))
		if s.stop == "done" {
			stop = "tool_use"
		}
	}
	return fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":%s,"content":[%s],"stop_reason":%q,"stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":%d}}`,
		quote(q.Model), strings.Join(content, ","), stop, InputTokens, OutputTokens)
}

func (s said) openAI(q Question) string {
	var output []string
	if s.text != "" {
		output = append(output, fmt.Sprintf(`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":%s,"annotations":[]}]}`, quote(s.text)))
	}
	if s.stop == "refusal" {
		output = append(output, `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"refusal","refusal":"I cannot help with that."}]}`)
	}
	for i, c := range s.calls {
		output = append(output, fmt.Sprintf(`{"type":"function_call","id":"fc_%[1]d","call_id":"call_%[1]d","name":%[2]s,"arguments":%[3]s,"status":"completed"}`, len(q.Results)+i+1, quote(c.Name), quote(c.Input)))
	}
	status, details := "completed", "null"
	if s.stop == "length" {
		status, details = "incomplete", `{"reason":"max_output_tokens"}`
	}
	return fmt.Sprintf(`{"id":"resp_1","object":"response","created_at":1,"status":%q,"error":null,"incomplete_details":%s,"model":%s,"output":[%s],"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":0},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}}`,
		status, details, quote(q.Model), strings.Join(output, ","), InputTokens, OutputTokens, InputTokens+OutputTokens)
}

func (s said) compatible(q Question) string {
	var calls []string
	stop := map[string]string{"done": "stop", "length": "length", "refusal": "content_filter"}[s.stop]
	for i, c := range s.calls {
		calls = append(calls, fmt.Sprintf(`{"id":"call_%d","type":"function","function":{"name":%s,"arguments":%s}}`, len(q.Results)+i+1, quote(c.Name), quote(c.Input)))
		if s.stop == "done" && q.Forced == "" {
			stop = "tool_calls" // a forced call ends with "stop", as at OpenAI
		}
	}
	message := `"role":"assistant","content":null`
	if s.text != "" {
		message = `"role":"assistant","content":` + quote(s.text)
	}
	if len(calls) > 0 {
		message += `,"tool_calls":[` + strings.Join(calls, ",") + `]`
	}
	return fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":%s,"choices":[{"index":0,"message":{%s},"logprobs":null,"finish_reason":%q}],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`,
		quote(q.Model), message, stop, InputTokens, OutputTokens, InputTokens+OutputTokens)
}

func quote(s string) string {
	b, _ := jsontext.AppendQuote(nil, s)
	return string(b)
}
