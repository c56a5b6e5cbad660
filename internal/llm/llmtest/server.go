// Package llmtest plays a model server for tests: the Anthropic Messages API on
// loopback, with an answer that the test chooses.
package llmtest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Answer answers one request.
type Answer func(w http.ResponseWriter, q Question)

// Question is what the server was asked.
type Question struct {
	Header http.Header    `json:"-"`
	Path   string         `json:"-"`
	Body   jsontext.Value `json:"-"`
	// Left ends when the caller has gone.
	Left <-chan struct{} `json:"-"`

	Model     string `json:"model"`
	MaxTokens int    `json:"max_tokens"`
	System    []struct {
		Text string `json:"text"`
	} `json:"system"`
	Messages []struct {
		Role    string `json:"role"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string         `json:"name"`
		InputSchema jsontext.Value `json:"input_schema"`
	} `json:"tools"`
	ToolChoice struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Parallel bool   `json:"disable_parallel_tool_use"`
	} `json:"tool_choice"`
}

// Server is a running model server.
type Server struct {
	URL string

	mu      sync.Mutex
	asked   []Question
	answers []Answer
}

// Start starts a server that gives answers in order and repeats the last one;
// it ends with the test.
func Start(t testing.TB, answers ...Answer) *Server {
	t.Helper()
	s := &Server{answers: answers}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	s.URL = h.URL
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	q := Question{Header: r.Header, Path: r.URL.Path, Body: body, Left: r.Context().Done()}
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.next(q)(w, q)
}

func (s *Server) next(q Question) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, q)
	return s.answers[min(len(s.asked), len(s.answers))-1]
}

// Asked is every question so far.
func (s *Server) Asked() []Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Calls the tool that was asked for with input, a JSON object.
func Calls(input string) Answer {
	return func(w http.ResponseWriter, q Question) {
		message(w, q, "tool_use", tool(q.ToolChoice.Name, input))
	}
}

// CallsOther calls a tool that nobody offered.
func CallsOther(name, input string) Answer {
	return func(w http.ResponseWriter, q Question) { message(w, q, "tool_use", tool(name, input)) }
}

// CallsTwice calls the tool twice in one answer.
func CallsTwice(first, second string) Answer {
	return func(w http.ResponseWriter, q Question) {
		message(w, q, "tool_use", tool(q.ToolChoice.Name, first)+","+tool(q.ToolChoice.Name, second))
	}
}

// CutOff calls the tool, but ran into its length limit.
func CutOff(input string) Answer {
	return func(w http.ResponseWriter, q Question) {
		message(w, q, "max_tokens", tool(q.ToolChoice.Name, input))
	}
}

// Says answers in prose, without a tool call.
func Says(text string) Answer {
	return func(w http.ResponseWriter, q Question) { message(w, q, "end_turn", prose(text)) }
}

// Refuses declines to answer, though the tool call is there.
func Refuses(input string) Answer {
	return func(w http.ResponseWriter, q Question) {
		message(w, q, "refusal", tool(q.ToolChoice.Name, input))
	}
}

// Fails answers with an error of the API.
func Fails(status int, kind, text string) Answer {
	return func(w http.ResponseWriter, q Question) {
		Raw(status, "application/json", fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, kind, text))(w, q)
	}
}

// Hangs never answers.
func Hangs() Answer { return func(_ http.ResponseWriter, q Question) { <-q.Left } }

// Raw answers with exactly this.
func Raw(status int, contentType, body string) Answer {
	return func(w http.ResponseWriter, _ Question) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func message(w http.ResponseWriter, q Question, stop, content string) {
	Raw(http.StatusOK, "application/json", fmt.Sprintf(
		`{"id":"msg_1","type":"message","role":"assistant","model":%q,"content":[%s],"stop_reason":%q,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":10}}`,
		q.Model, content, stop))(w, q)
}

func tool(name, input string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":"toolu_1","name":%q,"input":%s}`, name, input)
}

func prose(text string) string {
	b, _ := jsontext.AppendQuote(nil, text)
	return `{"type":"text","text":` + string(b) + `}`
}
