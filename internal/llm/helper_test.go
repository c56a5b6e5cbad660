package llm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/llm/llmtest"
)

func helps(answer string) func(context.Context, jsontext.Value) (string, error) {
	return func(context.Context, jsontext.Value) (string, error) { return answer, nil }
}

func checks(command string) llmtest.Call {
	quoted, _ := jsontext.AppendQuote(nil, command)
	return llmtest.Call{Name: "check", Input: `{"command":` + string(quoted) + `}`}
}

func withHelper(rounds int, answer func(context.Context, jsontext.Value) (string, error)) Request {
	r := question()
	r.Rounds = rounds
	r.Helpers = []Helper{{Tool{"check", "asks the engine", jsontext.Value(
		`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"],"additionalProperties":false}`)}, answer}}
	return r
}

func TestHelpers(t *testing.T) {
	check := llmtest.CallsAll(checks("ls"))
	verdict := llmtest.CallsOther("verdict", deny)
	fails := func(context.Context, jsontext.Value) (string, error) { return "", errors.New("no engine") }
	hangs := func(ctx context.Context, _ jsontext.Value) (string, error) { <-ctx.Done(); return "", ctx.Err() }
	many := make([]llmtest.Call, maxTurnCalls+1)
	for i := range many {
		many[i] = checks("ls")
	}
	rows := []struct {
		name    string
		rounds  int
		helper  func(context.Context, jsontext.Value) (string, error)
		answers []llmtest.Answer
		reason  string
		turns   int
	}{
		{"a verdict at once", 3, helps("allow"), answers(verdict), "", 1},
		{"a verdict after one check", 3, helps("allow"), answers(check, verdict), "", 2},
		{"a verdict in the last round, forced", 3, helps("allow"), answers(check, check, llmtest.Calls(deny)), "", 3},
		{"several checks in one turn", 2, helps("allow"), answers(llmtest.CallsAll(checks("ls"), checks("pwd")), verdict), "", 2},
		{"a server error between the rounds", 3, helps("allow"), answers(check, llmtest.Fails(500, "x", "x"), verdict), "", 2},
		{"an empty answer of a helper", 2, helps(""), answers(check, verdict), "", 2},

		{"a check in the last round", 2, helps("allow"), answers(check), "wrong-call", 2},
		{"a check where the verdict is forced", 1, helps("allow"), answers(check), "wrong-call", 1},
		{"a check where the rounds are unset", 0, helps("allow"), answers(check), "wrong-call", 1},
		{"a verdict that did not wait for the check beside it", 3, helps("allow"), answers(llmtest.CallsAll(checks("ls"), llmtest.Call{Name: "verdict", Input: deny})), "wrong-call", 1},
		{"a tool that nobody offered", 3, helps("allow"), answers(llmtest.CallsOther("bash", `{}`)), "wrong-call", 1},
		{"an input that is no object", 3, helps("allow"), answers(llmtest.CallsOther("check", `"ls"`)), "wrong-call", 1},
		{"more checks than a turn may hold", 3, helps("allow"), answers(llmtest.CallsAll(many...)), "wrong-call", 1},
		{"more checks than an ask may hold", 9, helps("allow"), answers(llmtest.CallsAll(many[1:]...)), "wrong-call", 5},
		{"prose between the rounds", 3, helps("allow"), answers(check, llmtest.Says("Let me think.")), "prose", 2},
		{"a turn that is cut off between the rounds", 3, helps("allow"), answers(check, llmtest.CutOff(deny)), "cut-off", 2},
		{"a helper that fails", 3, fails, answers(check, verdict), "helper-failed", 1},
		{"a helper that says too much", 3, helps(strings.Repeat("x", maxHelperAnswer+1)), answers(check, verdict), "helper-failed", 1},
		{"a helper that is late", 3, hangs, answers(check, verdict), "helper-failed", 1},
		{"a server that breaks between the rounds", 3, helps("allow"), answers(check, llmtest.Fails(500, "x", "x")), "server-error", 1},
	}
	for api, spec := range apis {
		for _, row := range rows {
			t.Run(string(spec.format)+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				s := llmtest.Start(t, row.answers...)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				call, info, err := provider(t, api, s.URL).Ask(ctx, withHelper(row.rounds, row.helper))
				checkAnswer(t, call, err, row.reason, deny)
				want := Usage{int64(row.turns * llmtest.InputTokens), int64(row.turns * llmtest.OutputTokens)}
				if info.Rounds != row.turns || info.Usage != want {
					t.Errorf("%d rounds, usage %+v; want %d, %+v", info.Rounds, info.Usage, row.turns, want)
				}
			})
		}
	}
}

// TestRounds: what the helpers said reaches the model, in order, and the
// verdict is forced in the last round only.
func TestRounds(t *testing.T) {
	t.Parallel()
	for api, spec := range apis {
		s := llmtest.Start(t, llmtest.CallsAll(checks("ls"), checks(`rm "x"`)), llmtest.CallsAll(checks("pwd")), llmtest.Calls(deny))
		var heard []string
		r := withHelper(3, func(_ context.Context, in jsontext.Value) (string, error) {
			heard = append(heard, string(in))
			return "said " + string(in), nil
		})
		if _, _, err := provider(t, api, s.URL).Ask(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if want := []string{checks("ls").Input, checks(`rm "x"`).Input, checks("pwd").Input}; !slices.Equal(heard, want) {
			t.Errorf("%s: the helper heard %q, want %q", spec.format, heard, want)
		}
		for i, q := range s.Asked() {
			choice, forced := spec.free, ""
			if i == 2 {
				choice, forced = spec.forced, "verdict"
			}
			if q.Choice != choice || q.Forced != forced || q.Parallel == (i == 2) || len(q.Tools) != 2 {
				t.Errorf("%s, round %d: choice %q of %q, parallel %t", spec.format, i+1, q.Choice, q.Forced, q.Parallel)
			}
			want := []string{"said " + checks("ls").Input, "said " + checks(`rm "x"`).Input, "said " + checks("pwd").Input}[:[]int{0, 2, 3}[i]]
			if !slices.Equal(q.Results, want) {
				t.Errorf("%s, round %d: results %q, want %q", spec.format, i+1, q.Results, want)
			}
		}
	}
}
