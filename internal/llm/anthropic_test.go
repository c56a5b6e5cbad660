package llm

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/assent-dev/assent/internal/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "sk-test-0123456789"

var sentinels = []error{ErrAuth, ErrModel, ErrTimeout, ErrNoToolCall, ErrCutOff, ErrRefused, ErrCall}

func question() Request {
	return Request{
		Model: "claude-haiku-4-5", System: "judge", User: "a path", MaxTokens: 64,
		Tool: Tool{Name: "verdict", Description: "your verdict", Schema: jsontext.Value(
			`{"type":"object","properties":{"verdict":{"type":"string","enum":["deny","unsure"]}},"required":["verdict"],"additionalProperties":false}`)},
	}
}

// provider returns a provider for url whose retries are quick.
func provider(t *testing.T, url string) *Anthropic {
	t.Helper()
	a, err := NewAnthropic(testKey, url)
	if err != nil {
		t.Fatal(err)
	}
	a.retry = retryPolicy{attempts: 3, first: time.Millisecond, longest: 5 * time.Millisecond}
	return a
}

func TestAnswer(t *testing.T) {
	const deny = `{"verdict":"deny","reason":"doubled"}`
	overloaded := llmtest.Fails(529, "overloaded_error", "busy")
	rows := []struct {
		name     string
		answers  []llmtest.Answer
		want     error // nil: the input deny
		attempts int
	}{
		{"a forced call is the answer", []llmtest.Answer{llmtest.Calls(deny)}, nil, 1},
		{"an overloaded server is asked again", []llmtest.Answer{overloaded, llmtest.Calls(deny)}, nil, 2},
		{"a rate limit is waited out", []llmtest.Answer{llmtest.Fails(429, "rate_limit_error", "slow down"), llmtest.Calls(deny)}, nil, 2},
		{"a server error is asked again twice", []llmtest.Answer{llmtest.Fails(500, "api_error", "oops"), overloaded, llmtest.Calls(deny)}, nil, 3},

		{"a key that is not taken", []llmtest.Answer{llmtest.Fails(401, "authentication_error", "invalid x-api-key")}, ErrAuth, 1},
		{"a key without the right", []llmtest.Answer{llmtest.Fails(403, "permission_error", "no")}, ErrAuth, 1},
		{"an unknown model", []llmtest.Answer{llmtest.Fails(404, "not_found_error", "model: x")}, ErrModel, 1},
		{"a bad request is not repeated", []llmtest.Answer{llmtest.Fails(400, "invalid_request_error", "bad")}, ErrCall, 1},
		{"a server that stays broken", []llmtest.Answer{llmtest.Fails(500, "api_error", "oops")}, ErrCall, 3},
		{"a server that stays busy", []llmtest.Answer{llmtest.Fails(429, "rate_limit_error", "slow")}, ErrCall, 3},
		{"prose without a call", []llmtest.Answer{llmtest.Says("I would deny this.")}, ErrNoToolCall, 1},
		{"a call of another tool", []llmtest.Answer{llmtest.CallsOther("allow", deny)}, ErrNoToolCall, 1},
		{"two calls", []llmtest.Answer{llmtest.CallsTwice(deny, `{"verdict":"unsure"}`)}, ErrNoToolCall, 1},
		{"a call whose input is no object", []llmtest.Answer{llmtest.Calls(`"deny"`)}, ErrNoToolCall, 1},
		{"a call that was cut off", []llmtest.Answer{llmtest.CutOff(deny)}, ErrCutOff, 1},
		{"a refusal beside a call", []llmtest.Answer{llmtest.Refuses(deny)}, ErrRefused, 1},
		{"a web page", []llmtest.Answer{llmtest.Raw(200, "text/html", "<h1>hello</h1>")}, ErrCall, 1},
		{"JSON that is no message", []llmtest.Answer{llmtest.Raw(200, "application/json", `{"verdict":"deny"}`)}, ErrCall, 1},
		{"JSON that breaks off", []llmtest.Answer{llmtest.Raw(200, "application/json", `{"content":[{"type":"tool_use","na`)}, ErrCall, 3},
		{"a redirect is not followed", []llmtest.Answer{redirects}, ErrCall, 1},
		{"a reply without end", []llmtest.Answer{llmtest.Raw(200, "application/json", `{"content":[],"pad":"`+strings.Repeat("x", 2<<20)+`"}`)}, ErrCall, 1},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.Start(t, row.answers...)
			a := provider(t, s.URL)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			call, info, err := a.Ask(ctx, question())
			checkAnswer(t, call, err, row.want, deny)
			if n := len(s.Asked()); n != row.attempts || info.Attempts != n {
				t.Errorf("the server was asked %d times, the info says %d, want %d", n, info.Attempts, row.attempts)
			}
			if info.API != "anthropic-messages" || info.ToolChoice != "tool" || info.ModelID != "anthropic/claude-haiku-4-5" || info.Latency <= 0 {
				t.Errorf("info = %+v", info)
			}
		})
	}
}

func redirects(w http.ResponseWriter, _ llmtest.Question) {
	w.Header().Set("Location", "/elsewhere")
	w.WriteHeader(http.StatusTemporaryRedirect)
}

func checkAnswer(t *testing.T, call ToolCall, err, want error, input string) {
	t.Helper()
	if want == nil {
		if err != nil || string(call.Input) != input {
			t.Fatalf("answer %s, %v; want %s", call.Input, err, input)
		}
		return
	}
	if call.Input != nil {
		t.Errorf("an answer that is none came with the input %s", call.Input)
	}
	for _, s := range sentinels {
		if errors.Is(err, s) != (s == want) {
			t.Errorf("error %v: is %q = %t", err, s, errors.Is(err, s))
		}
	}
}

func TestWhatTheServerIsAsked(t *testing.T) {
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("ANTHROPIC_API_KEY", "sk-of-somebody-else")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "token-of-somebody-else")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Stray: 1")
	s := llmtest.Start(t, llmtest.Calls(`{"verdict":"unsure"}`))
	if _, _, err := provider(t, s.URL).Ask(t.Context(), question()); err != nil {
		t.Fatal(err)
	}
	q := s.Asked()[0]
	if q.Path != "/v1/messages" || q.Model != "claude-haiku-4-5" || q.MaxTokens != 64 {
		t.Errorf("asked %s for model %s, %d tokens", q.Path, q.Model, q.MaxTokens)
	}
	if len(q.System) != 1 || q.System[0].Text != "judge" || len(q.Messages) != 1 || q.Messages[0].Content[0].Text != "a path" {
		t.Errorf("asked with system %v, messages %v", q.System, q.Messages)
	}
	if c := q.ToolChoice; c.Type != "tool" || c.Name != "verdict" || !c.Parallel {
		t.Errorf("tool choice %+v does not force one call", c)
	}
	if len(q.Tools) != 1 || !sameJSON(t, q.Tools[0].InputSchema, question().Tool.Schema) {
		t.Errorf("tools %s", q.Tools)
	}
	sent := q.Header.Get("Authorization") + q.Header.Get("X-Api-Key")
	if !strings.Contains(sent, testKey) || strings.Contains(sent, "somebody-else") || q.Header.Get("X-Stray") != "" {
		t.Errorf("headers %v", q.Header)
	}
}

func sameJSON(t *testing.T, a, b jsontext.Value) bool {
	t.Helper()
	a, b = a.Clone(), b.Clone()
	if err := errors.Join(a.Canonicalize(), b.Canonicalize()); err != nil {
		t.Fatal(err)
	}
	return string(a) == string(b)
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name     string
		answers  []llmtest.Answer
		patience time.Duration
		want     error
		attempts int
	}{
		{"a server that hangs is given up at the deadline", []llmtest.Answer{llmtest.Hangs()}, 100 * time.Millisecond, ErrTimeout, 1},
		{"a retry that hangs is a timeout", []llmtest.Answer{llmtest.Fails(500, "api_error", "x"), llmtest.Hangs()}, 500 * time.Millisecond, ErrTimeout, 2},
		{"a retry that does not fit is not begun", []llmtest.Answer{failsFor("3600"), llmtest.Hangs()}, time.Minute, ErrCall, 1},
		{"a wait that fits is waited", []llmtest.Answer{failsFor("1"), llmtest.Calls(`{}`)}, time.Minute, nil, 2},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.Start(t, row.answers...)
			ctx, cancel := context.WithTimeout(t.Context(), row.patience)
			defer cancel()
			call, info, err := provider(t, s.URL).Ask(ctx, question())
			checkAnswer(t, call, err, row.want, `{}`)
			if info.Attempts != row.attempts {
				t.Errorf("%d attempts, want %d", info.Attempts, row.attempts)
			}
		})
	}
}

func failsFor(seconds string) llmtest.Answer {
	return func(w http.ResponseWriter, q llmtest.Question) {
		w.Header().Set("Retry-After", seconds)
		llmtest.Fails(429, "rate_limit_error", "slow down")(w, q)
	}
}

func TestNobodyAtTheAddress(t *testing.T) {
	t.Parallel()
	call, info, err := provider(t, "http://127.0.0.1:1").Ask(t.Context(), question())
	checkAnswer(t, call, err, ErrCall, "")
	if info.Attempts != 3 {
		t.Errorf("%d attempts, want 3", info.Attempts)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := llmtest.Start(t, func(w http.ResponseWriter, q llmtest.Question) { cancel(); <-q.Left })
	call, _, err := provider(t, s.URL).Ask(ctx, question())
	checkAnswer(t, call, err, ErrCall, "")
}

func TestKeyStaysInside(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 404, 500} {
		s := llmtest.Start(t, llmtest.Fails(status, "some_error", "you sent "+testKey))
		_, info, err := provider(t, s.URL).Ask(t.Context(), question())
		if err == nil || strings.Contains(err.Error(), testKey) || strings.Contains(info.Text, testKey) {
			t.Errorf("status %d: error %v, text %q", status, err, info.Text)
		}
	}
}

func TestProviderThatCannotWork(t *testing.T) {
	t.Parallel()
	if _, err := NewAnthropic("", ""); !errors.Is(err, ErrAuth) {
		t.Errorf("no key: %v", err)
	}
	u := Unavailable{Info: AnthropicInfo("m"), Cause: ErrAuth}
	call, info, err := u.Ask(t.Context(), question())
	if call.Input != nil || info.Attempts != 0 || !errors.Is(err, ErrAuth) {
		t.Errorf("%v, %+v, %v", call, info, err)
	}
}

func TestBaseURL(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"https://api.anthropic.com", "http://127.0.0.1:8080/anthropic", "https://proxy.example/v1/", "http://[::1]:9", "https://h"} {
		if err := CheckBaseURL(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"api.anthropic.com", "ftp://h", "https://", "https://user:secret@h", "https://h?a=b"} {
		err := CheckBaseURL(bad)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
