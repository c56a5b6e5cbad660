package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/llm/llmtest"
)

const deny = `{"verdict":"deny","reason":"doubled"}`

// answerRow is what a server says, and what has to come of it in each API.
type answerRow struct {
	name     string
	answers  []llmtest.Answer
	reason   string // "": the input deny
	attempts int
}

var answerRows = []answerRow{
	{"a forced call is the answer", answers(llmtest.Calls(deny)), "", 1},
	{"an overloaded server is asked again", answers(llmtest.Fails(529, "overloaded_error", "busy"), llmtest.Calls(deny)), "", 2},
	{"a rate limit is waited out", answers(llmtest.Fails(429, "rate_limit_error", "slow down"), llmtest.Calls(deny)), "", 2},
	{"a server error is asked again twice", answers(llmtest.Fails(500, "api_error", "x"), llmtest.Fails(503, "api_error", "x"), llmtest.Calls(deny)), "", 3},
	{"a connection that broke is made again", answers(llmtest.HangsUp(""), llmtest.Calls(deny)), "", 2},
	{"a reply that broke off is asked for again", answers(llmtest.HangsUp(`{"content":[`), llmtest.Calls(deny)), "", 2},
	{"a server that was late itself is asked again", answers(llmtest.Fails(408, "timeout_error", "x"), llmtest.Calls(deny)), "", 2},

	{"a key that is not taken", answers(llmtest.Fails(401, "authentication_error", "invalid key")), "auth-failed", 1},
	{"a key without the right", answers(llmtest.Fails(403, "permission_error", "no")), "auth-failed", 1},
	{"an unknown model", answers(llmtest.Fails(404, "not_found_error", "model: x")), "model-unresolved", 1},
	{"an unknown model as a bad request", answers(llmtest.Raw(400, "application/json", `{"error":{"message":"no","code":"model_not_found"}}`)), "model-unresolved", 1},
	{"a bad request is not repeated", answers(llmtest.Fails(400, "invalid_request_error", "bad")), "rejected", 1},
	{"a request that is too large is not repeated", answers(llmtest.Fails(413, "request_too_large", "bad")), "rejected", 1},
	{"a server that stays late", answers(llmtest.Fails(408, "timeout_error", "x")), "rejected", 3},
	{"a server that stays broken", answers(llmtest.Fails(500, "api_error", "oops")), "server-error", 3},
	{"a gateway's page instead of an error", answers(llmtest.Raw(502, "text/html", "<h1>Bad gateway</h1>")), "server-error", 3},
	{"a server that stays busy", answers(llmtest.Fails(429, "rate_limit_error", "slow")), "rate-limited", 3},
	{"an account without money is not asked again", answers(llmtest.Raw(429, "application/json", `{"error":{"message":"no","code":"insufficient_quota"}}`)), "rate-limited", 1},
	{"a filter before the model", answers(llmtest.Raw(400, "application/json", `{"error":{"message":"no","code":"content_filter"}}`)), "refused", 1},
	{"a connection that always breaks", answers(llmtest.HangsUp("")), "unreachable", 3},
	{"a reply that always breaks off", answers(llmtest.HangsUp(`{"content":[`)), "unreachable", 3},
	{"nothing at all", answers(llmtest.Says("")), "empty", 1},
	{"blanks", answers(llmtest.Says(" \n\t")), "empty", 1},
	{"prose without a call", answers(llmtest.Says("I would deny this.")), "prose", 1},
	{"prose that looks like the call", answers(llmtest.Says(deny)), "prose", 1},
	{"a call of another tool", answers(llmtest.CallsOther("allow", deny)), "wrong-call", 1},
	{"two calls", answers(llmtest.CallsTwice(deny, `{"verdict":"unsure"}`)), "wrong-call", 1},
	{"a call of the tool beside another", answers(llmtest.CallsAll(llmtest.Call{Name: "verdict", Input: deny}, llmtest.Call{Name: "allow", Input: "{}"})), "wrong-call", 1},
	{"a call whose input is no object", answers(llmtest.Calls(`"deny"`)), "wrong-call", 1},
	{"a call whose input is a list", answers(llmtest.Calls(`[` + deny + `]`)), "wrong-call", 1},
	{"a call whose input says two things", answers(llmtest.Calls(`{"verdict":"deny","verdict":"unsure","reason":"x"}`)), "wrong-call", 1},
	{"a call that was cut off", answers(llmtest.CutOff(deny)), "cut-off", 1},
	{"a refusal beside a call", answers(llmtest.Refuses(deny)), "refused", 1},
	{"a web page", answers(llmtest.Raw(200, "text/html", "<h1>hello</h1>")), "malformed", 1},
	{"JSON that is no message", answers(llmtest.Raw(200, "application/json", `{"verdict":"deny"}`)), "malformed", 1},
	{"JSON that ends too early", answers(llmtest.Raw(200, "application/json", `{"content":[{"type":"tool_use","na`)), "malformed", 1},
	{"an empty body", answers(llmtest.Raw(200, "application/json", "")), "malformed", 1},
	{"a redirect is not followed", answers(redirects), "malformed", 1},
	{"a reply without end", answers(llmtest.Raw(200, "application/json", `{"content":[],"pad":"`+strings.Repeat("x", 2<<20)+`"}`)), "malformed", 1},
}

func answers(a ...llmtest.Answer) []llmtest.Answer { return a }

func redirects(w http.ResponseWriter, _ llmtest.Question) {
	w.Header().Set("Location", "/elsewhere")
	w.WriteHeader(http.StatusTemporaryRedirect)
}

func TestReason(t *testing.T) {
	for api, spec := range apis {
		t.Run(string(spec.format), func(t *testing.T) {
			for _, row := range answerRows {
				t.Run(row.name, func(t *testing.T) {
					t.Parallel()
					checkRow(t, api, row)
				})
			}
		})
	}
}

func checkRow(t *testing.T, api int, row answerRow) {
	t.Helper()
	s := llmtest.Start(t, row.answers...)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	call, info, err := provider(t, api, s.URL).Ask(ctx, question())
	checkAnswer(t, call, err, row.reason, deny)
	if n := len(s.Asked()); n != row.attempts || info.Attempts != n {
		t.Errorf("the server was asked %d times, the info says %d, want %d", n, info.Attempts, row.attempts)
	}
	want := apis[api].info("model-1")
	if info.API != want.API || info.ToolChoice != want.ToolChoice || info.ModelID != want.ModelID || info.Latency <= 0 {
		t.Errorf("info = %+v", info)
	}
	counted := Usage{}
	if slices.Contains([]string{"", "empty", "prose", "wrong-call", "cut-off", "refused"}, row.reason) && info.Rounds == 1 {
		counted = Usage{llmtest.InputTokens, llmtest.OutputTokens}
	}
	if info.Usage != counted {
		t.Errorf("usage %+v, want %+v: what came is paid, an answer or not", info.Usage, counted)
	}
}

func checkAnswer(t *testing.T, call ToolCall, err error, reason, input string) {
	t.Helper()
	if got := Reason(err); got != reason {
		t.Fatalf("reason %q, want %q: %v", got, reason, err)
	}
	if reason == "" && string(call.Input) != input {
		t.Fatalf("answer %s, want %s", call.Input, input)
	}
	if reason != "" && call.Input != nil {
		t.Errorf("an answer that is none came with the input %s", call.Input)
	}
}

// TestEveryReason keeps the table above whole: a word that no scripted server
// ever drove might be one that is never given.
func TestEveryReason(t *testing.T) {
	t.Parallel()
	driven := map[string]bool{
		"timeout": true, "aborted": true, "no-time": true, // TestDeadline, TestAborted
		"helper-failed": true,                      // TestHelpers
		"breaker-open":  true, "over-budget": true, // guard_test.go
	}
	for _, row := range answerRows {
		driven[row.reason] = true
	}
	for _, r := range reasons {
		if !driven[r.word] {
			t.Errorf("no row for %q", r.word)
		}
		if got := Reason(fmt.Errorf("asking: %w", r.err)); got != r.word {
			t.Errorf("%v is %q, want %q", r.err, got, r.word)
		}
	}
	if Reason(nil) != "" || Reason(ErrCall) != "call-failed" || Reason(errors.New("odd")) != "call-failed" {
		t.Error("nil is no reason, and what is not known is a failed call")
	}
}

// TestCoarseWords: a record that has only the coarser words goes on to have them.
func TestCoarseWords(t *testing.T) {
	t.Parallel()
	for fine, coarse := range map[error]error{
		ErrEmpty: ErrNoToolCall, ErrProse: ErrNoToolCall, ErrWrongCall: ErrNoToolCall, ErrNoTime: ErrTimeout,
		ErrAborted: ErrCall, ErrRateLimited: ErrCall, ErrRejected: ErrCall, ErrServer: ErrCall, ErrUnreachable: ErrCall, ErrMalformed: ErrCall,
	} {
		if !errors.Is(fine, coarse) || errors.Is(coarse, fine) {
			t.Errorf("%v has to be a %v, and not the other way round", fine, coarse)
		}
	}
	for _, own := range []error{ErrAuth, ErrModel, ErrCutOff, ErrRefused, ErrHelper, ErrBreakerOpen, ErrOverBudget} {
		if errors.Is(own, ErrCall) || errors.Is(own, ErrNoToolCall) || errors.Is(own, ErrTimeout) {
			t.Errorf("%v has a coarser word that it should not have", own)
		}
	}
}

func TestDeadline(t *testing.T) {
	rows := []struct {
		name     string
		answers  []llmtest.Answer
		patience time.Duration
		reason   string
		attempts int
	}{
		{"a server that hangs is given up at the deadline", answers(llmtest.Hangs()), 150 * time.Millisecond, "timeout", 1},
		{"a retry that hangs is a timeout", answers(llmtest.Fails(500, "api_error", "x"), llmtest.Hangs()), 500 * time.Millisecond, "timeout", 2},
		{"a retry that does not fit is not begun", answers(failsFor("3600"), llmtest.Hangs()), time.Minute, "rate-limited", 1},
		{"too little time to begin", answers(llmtest.Calls(deny)), leastTime / 2, "no-time", 0},
		{"a deadline that is over", answers(llmtest.Calls(deny)), -time.Second, "no-time", 0},
		{"a wait that fits is waited", answers(failsFor("1"), llmtest.Calls(deny)), time.Minute, "", 2},
	}
	for api, spec := range apis {
		for _, row := range rows {
			t.Run(string(spec.format)+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				s := llmtest.Start(t, row.answers...)
				ctx, cancel := context.WithTimeout(t.Context(), row.patience)
				defer cancel()
				call, info, err := provider(t, api, s.URL).Ask(ctx, question())
				checkAnswer(t, call, err, row.reason, deny)
				if n := len(s.Asked()); info.Attempts != row.attempts || n != row.attempts {
					t.Errorf("%d attempts, %d arrived, want %d", info.Attempts, n, row.attempts)
				}
			})
		}
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
	for api := range apis {
		call, info, err := provider(t, api, "http://127.0.0.1:1").Ask(t.Context(), question())
		checkAnswer(t, call, err, "unreachable", "")
		if info.Attempts != 3 {
			t.Errorf("%d attempts, want 3", info.Attempts)
		}
	}
}

func TestAborted(t *testing.T) {
	t.Parallel()
	for api := range apis {
		ctx, cancel := context.WithCancel(t.Context())
		s := llmtest.Start(t, func(w http.ResponseWriter, q llmtest.Question) { cancel(); <-q.Left })
		call, info, err := provider(t, api, s.URL).Ask(ctx, question())
		checkAnswer(t, call, err, "aborted", "")
		if info.Attempts != 1 {
			t.Errorf("%d attempts, want 1: nobody wants another", info.Attempts)
		}
		_, info, err = provider(t, api, s.URL).Ask(ctx, question())
		if Reason(err) != "aborted" || info.Attempts != 0 {
			t.Errorf("an Ask that nobody wants left: %d attempts, %v", info.Attempts, err)
		}
	}
}

func TestKeyStaysInside(t *testing.T) {
	t.Parallel()
	for api := range apis {
		for _, a := range []llmtest.Answer{
			llmtest.Fails(400, "some_error", "you sent "+testKey), llmtest.Fails(401, testKey, "no"), llmtest.Fails(404, "x", testKey+testKey),
			llmtest.Fails(500, "x", strings.Repeat("y", maxSaid-20)+testKey), llmtest.Says("the key is " + testKey),
			llmtest.Fails(500, "x", "\x1b[2J\u202e"+testKey), llmtest.Raw(200, testKey, testKey), llmtest.Raw(429, "application/json", `{"error":"`+testKey+`"}`),
		} {
			s := llmtest.Start(t, a)
			_, info, err := provider(t, api, s.URL).Ask(t.Context(), question())
			if err == nil || strings.ContainsAny(err.Error(), "\x1b\u202e\n") || strings.Contains(err.Error(), testKey[:12]) || strings.Contains(info.Text, testKey) {
				t.Errorf("error %v, text %q", err, info.Text)
			}
		}
	}
}

// TestWhatNoAPITakes: a request that no server could answer is not sent.
func TestWhatNoAPITakes(t *testing.T) {
	t.Parallel()
	s := llmtest.Start(t, llmtest.Calls(deny))
	for name, change := range map[string]func(*Request){
		"no model":                    func(r *Request) { r.Model = "" },
		"no question":                 func(r *Request) { r.User = "" },
		"no bound":                    func(r *Request) { r.MaxTokens = 0 },
		"a tool without a name":       func(r *Request) { r.Tool.Name = "" },
		"a schema that is none":       func(r *Request) { r.Tool.Schema = jsontext.Value(`"x"`) },
		"a helper that never answers": func(r *Request) { r.Helpers = []Helper{{Tool: r.Tool}} },
		"a helper of the tool's name": func(r *Request) { r.Helpers = []Helper{{r.Tool, helps("x")}} },
	} {
		for api := range apis {
			r := question()
			change(&r)
			_, info, err := provider(t, api, s.URL).Ask(t.Context(), r)
			if Reason(err) != "call-failed" || info.Attempts != 0 {
				t.Errorf("%s: %d attempts, %v", name, info.Attempts, err)
			}
		}
	}
	if n := len(s.Asked()); n != 0 {
		t.Errorf("the server was asked %d times", n)
	}
}
