package shellcommand

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/judge/denials"
)

// What needs no model: a model that is asked fails the row.
func TestRuledWithoutAModel(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name, policy, command string
		want                  protocol.Choice
		reason                string
	}{
		{"each command in it is allowed", listed, "bash -c 'git status && make test'", protocol.ChoiceAllow, "the rules allow each of the 2 commands in it"},
		{"a shell in a shell", listed, `sh -c 'bash -lc "git status; ls"'`, protocol.ChoiceAllow, "2 commands"},
		{"behind a time limit", listed, "timeout 60 bash -c 'npm test'", protocol.ChoiceAllow, "the one command in it"},
		{"in a directory of the project", listed, "cd web && bash -c 'npm test'", protocol.ChoiceAllow, "2 commands"},
		{"under a policy that allows all but a few", open, "bash -c 'git status; frob'", protocol.ChoiceAllow, "2 commands"},
		{"eval of a literal", open, "eval 'git status'", protocol.ChoiceAllow, "the one command in it"},

		{"a command that no rule names", listed, "bash -c 'git status; frob x'", protocol.ChoiceDefer, "the rules do not allow frob x"},
		{"a command that a rule asks about", open, "bash -c 'git status; rm -rf x'", protocol.ChoiceDefer, "the rules do not allow rm -rf x"},
		{"a rule that speaks of the carrier", strings.Replace(open, `"rm *":"ask"`, `"bash -c *":"ask"`, 1), "bash -c 'git status'", protocol.ChoiceDefer, "what carries"},
		{"a rule on two commands side by side", strings.Replace(open, `"rm *":"ask"`, `"git *;*":"ask","git status*\n*":"ask"`, 1), "bash -c 'git status\nls'", protocol.ChoiceDefer, "its commands together"},
		{"a path that is open too", strings.Replace(open, `"external_directory":"allow"`, `"external_directory":"ask"`, 1), "bash -c 'cat /srv/x'", protocol.ChoiceDefer, "external_directory /srv/x"},
		{"a file by a path rule", strings.Replace(open, `"path":{"*":"allow"}`, `"path":{"*":"allow","*.key":"ask"}`, 1), "bash -c 'cat a.key'", protocol.ChoiceDefer, "path"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			state, r := call(t, compiled(t, row.policy), row.command)
			m := claiming(t)
			v := verdictOn(t, judgeWith(m), r)
			if state != policy.Ask || v.Verdict != row.want || !strings.Contains(v.Reason, row.reason) || v.Failure != "" {
				t.Errorf("the rules alone: %s; verdict %+v", state, v)
			}
			if len(m.asked) != 0 {
				t.Errorf("the model was asked %q", m.asked[0].User)
			}
			if got := r.Log.(*log).review; len(got) != 1 || !strings.Contains(got[0], `"modelCalled":false`) || !strings.Contains(got[0], `"latencyMs":null`) {
				t.Errorf("records %q", got)
			}
		})
	}
}

// A deny rests on what the gate says of a command now, in the words of its rule.
func TestADeniedCommandIsADeny(t *testing.T) {
	t.Parallel()
	allowing, denying := compiled(t, open), compiled(t, listed)
	for name, row := range map[string]struct {
		command string
		model   *model
	}{
		"found by our own reading":  {"bash -c 'git status; git push origin'", claiming(t)},
		"found by a model":          {"stdbuf --x git push origin", claiming(t, "git push origin")},
		"found beside what is none": {"awk 'BEGIN{system(\"git push\")}'", claiming(t, "awk", "git push", "rm -rf nowhere")},
		"found in a partial list":   {"ssh host 'git push'", &model{input: `{"commands":["git push"],"complete":false}`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, r := call(t, allowing, row.command)
			r.Query = &gateRules{t: t, policy: denying} // the rules have become stricter since
			v := verdictOn(t, judgeWith(row.model), r)
			if v.Verdict != protocol.ChoiceDeny || !strings.HasPrefix(v.Reason, "git push") || !strings.Contains(v.Reason, "Pushing is for people.") {
				t.Errorf("%+v", v)
			}
		})
	}
	// What a model makes up denies nothing, nor what stands in a comment.
	for _, text := range []string{"stdbuf --x git status", "# never git push origin\nstdbuf --x git status # git push origin",
		"bash <<'E'\ngit status # never git push origin\nE", "stdbuf -oL echo 'git push origin'"} {
		_, r := call(t, allowing, text)
		r.Query = &gateRules{t: t, policy: denying}
		if v := verdictOn(t, judgeWith(claiming(t, "git push origin")), r); v.Verdict != protocol.ChoiceDefer {
			t.Errorf("%q: %+v", text, v)
		}
	}
}

// What is not this link's business, or cannot be answered by taking a text apart.
func TestNotLookedInto(t *testing.T) {
	t.Parallel()
	s := compiled(t, listed)
	rows := []struct {
		name string
		r    func() link.Request
		miss string
	}{
		{"a command that rules ask about in plain", func() link.Request { _, r := call(t, s, "frob x"); return r }, ""},
		{"another tool", func() link.Request { _, r := callOf(t, s, "write", `{"file_path":"/repo/a","content":"x"}`); return r }, ""},
		{"what only a person may allow", func() link.Request {
			_, r := call(t, s, "bash -c 'git status'")
			r.Asks[0].HumanOnly = true
			return r
		}, missHumanOnly},
		{"an argument beside the command", func() link.Request {
			_, r := callOf(t, s, "bash", `{"command":"bash -c 'git status'","stdin":"rm -rf x"}`)
			return r
		}, missFloor},
		{"another directory in the input", func() link.Request {
			_, r := callOf(t, s, "bash", `{"command":"bash -c 'git status'","working_directory":"/srv"}`)
			return r
		}, missFloor},
		{"a text for a program that runs", func() link.Request {
			_, r := callOf(t, s, "write_stdin", `{"chars":"bash -c 'git status'"}`)
			return r
		}, missFloor},
		{"units of another text", func() link.Request {
			_, r := call(t, s, "bash -c 'git status'")
			r.Ask.Tool.Input = jsontext.Value(`{"command":"bash -c 'rm -rf x'"}`)
			return r
		}, missReading},
		{"no command at all", func() link.Request {
			_, r := call(t, s, "bash -c 'git status'")
			r.Ask.Tool.Input = jsontext.Value(`{"command":17}`)
			return r
		}, missNoCommand},
		{"two commands in one input", func() link.Request {
			_, r := call(t, s, "bash -c 'git status'")
			r.Ask.Tool.Input = jsontext.Value(`{"command":["ls"],"cmd":["bash","-c","git status"]}`)
			return r
		}, missNoCommand},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r, m := row.r(), claiming(t, "git status")
			v := verdictOn(t, judgeWith(m), r)
			if v.Verdict != protocol.ChoiceDefer || v.Failure != "" || len(m.asked) != 0 {
				t.Errorf("%+v, the model was asked %d times", v, len(m.asked))
			}
			got := r.Log.(*log)
			want := []string(nil)
			if row.miss != "" {
				want = []string{fmt.Sprintf(`model_judge.short_circuit {"requestId":%q,"reason":%q}`, askID, row.miss)}
			}
			if !slices.Equal(got.debug, want) || len(got.review) != 0 {
				t.Errorf("records %q, %q", got.debug, got.review)
			}
		})
	}
	for name, r := range map[string]func() (policy.Action, link.Request){
		"a list of words": func() (policy.Action, link.Request) {
			return callOf(t, s, "shell", `{"command":["bash","-lc","git status && ls 'a b'"]}`)
		},
		"another tool's name": func() (policy.Action, link.Request) {
			return callOf(t, s, "exec_command", `{"cmd":"bash -c 'git status'"}`)
		},
		"arguments that change nothing": func() (policy.Action, link.Request) {
			return callOf(t, s, "bash", `{"command":"bash -c 'git status'","description":"rm","timeout":5000}`)
		},
		"a list of words with quotes in it": func() (policy.Action, link.Request) {
			return callOf(t, s, "shell", `{"command":["bash","-c","grep 'it'\\''s' f"]}`)
		},
	} {
		if _, r := r(); verdictOn(t, judgeWith(claiming(t)), r).Verdict != protocol.ChoiceAllow {
			t.Errorf("%s is not allowed", name)
		}
	}
}

const opaqueText = "stdbuf -oL git status | cat"

// Whatever a model says or does not say: the verdict, and the record's fields.
func TestWhatTheModelMakesOfIt(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name    string
		model   *model
		want    protocol.Choice
		failure string
		record  string
	}{
		{"a faithful list", claiming(t, "git status", "cat"), protocol.ChoiceAllow, "", `"verdict":"allow","deferReason":null,"rounds":1,"inputTokens":900,"outputTokens":40,"commands":2`},
		{"a faithful list with blanks around", claiming(t, " git status ", "cat\n"), protocol.ChoiceAllow, "", `"deferReason":null`},
		{"a list with more in the answer", &model{input: `{"commands":["git status","cat"],"complete":true,"note":"x"}`}, protocol.ChoiceAllow, "", `"deferReason":null`},

		{"a list that is too short", claiming(t, "git status"), protocol.ChoiceDefer, "", `"deferReason":"unfaithful"`},
		{"a list of other commands", claiming(t, "git status", "ls"), protocol.ChoiceDefer, "", `"deferReason":"unfaithful"`},
		{"no list", &model{input: `{"complete":true}`}, protocol.ChoiceDefer, "", `"deferReason":"unfaithful"`},
		{"a list without a word on whether it is complete", &model{input: `{"commands":["git status","cat"]}`}, protocol.ChoiceDefer, "", `"deferReason":"incomplete"`},
		{"doubt", &model{input: `{"commands":["git status","cat"],"complete":false}`}, protocol.ChoiceDefer, "", `"deferReason":"incomplete"`},
		{"a verdict of its own", &model{input: `{"verdict":"allow","complete":true}`}, protocol.ChoiceDefer, "", `"deferReason":"unfaithful"`},
		{"a list of things that are no text", &model{input: `{"commands":[1,2],"complete":true}`}, protocol.ChoiceDefer, causeMalformed, `"deferReason":"malformed-decomposition"`},
		{"complete in other letters", &model{input: `{"commands":["git status","cat"],"Complete":true}`}, protocol.ChoiceDefer, "", `"deferReason":"incomplete"`},
		{"complete said twice", &model{input: `{"commands":["git status","cat"],"complete":false,"complete":true}`}, protocol.ChoiceDefer, causeMalformed, `"deferReason":"malformed-decomposition"`},
		{"a list without end", claiming(t, slices.Repeat([]string{"cat"}, maxPieces+1)...), protocol.ChoiceDefer, causeMalformed, `"deferReason":"malformed-decomposition"`},
	}
	for _, failure := range []error{llm.ErrTimeout, llm.ErrNoTime, llm.ErrEmpty, llm.ErrProse, llm.ErrWrongCall, llm.ErrCutOff, llm.ErrRefused, llm.ErrHelper,
		llm.ErrBreakerOpen, llm.ErrOverBudget, llm.ErrAborted, llm.ErrRateLimited, llm.ErrRejected, llm.ErrServer, llm.ErrUnreachable, llm.ErrMalformed} {
		word := llm.Reason(failure)
		rows = append(rows, struct {
			name    string
			model   *model
			want    protocol.Choice
			failure string
			record  string
		}{"no answer: " + word, &model{err: fmt.Errorf("asking: %w", failure)}, protocol.ChoiceDefer, word, fmt.Sprintf(`"verdict":"defer","deferReason":%q,"modelReason":%q`, word, word)})
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			_, r := call(t, compiled(t, listed), opaqueText)
			v := verdictOn(t, judgeWith(row.model), r)
			if v.Verdict != row.want || v.Failure != row.failure {
				t.Errorf("%+v", v)
			}
			got := r.Log.(*log)
			front := fmt.Sprintf(`model_judge.decision {"requestId":%q,"modelCalled":true,"modelId":"anthropic/claude-haiku-4-5","latencyMs":1.5,"api":"anthropic-messages","toolChoice":`, askID)
			if len(got.review) != 1 || !strings.HasPrefix(got.review[0], front) || !strings.Contains(got.review[0], row.record) {
				t.Errorf("record %q,\nwant %s … %s", got.review, front, row.record)
			}
			if len(got.debug) != 1 || !strings.HasPrefix(got.debug[0], "model_judge.model_reply ") {
				t.Errorf("debug %q", got.debug)
			}
		})
	}
	for _, cause := range []error{llm.ErrAuth, llm.ErrModel} {
		_, r := call(t, compiled(t, listed), opaqueText)
		v := verdictOn(t, judgeWith(llm.Unavailable{Info: llm.AnthropicInfo("claude-haiku-4-5"), Cause: cause}), r)
		if v.Verdict != protocol.ChoiceDefer || v.Failure != llm.Reason(cause) || !strings.Contains(r.Log.(*log).review[0], `"modelCalled":false`) {
			t.Errorf("%v: %+v, %q", cause, v, r.Log.(*log).review)
		}
	}
}

func TestTheModelMayAskTheGate(t *testing.T) {
	t.Parallel()
	_, r := call(t, compiled(t, listed), opaqueText)
	m := claiming(t, "git status", "cat")
	answers := map[string]string{}
	m.first = func(ctx context.Context, q llm.Request) error {
		for _, row := range []struct{ tool, input string }{
			{helperCommand, `{"command":"git status"}`}, {helperCommand, `{"command":"git push"}`}, {helperCommand, `{"command":"frob"}`}, {helperTool, `{"tool":"bash"}`},
			{helperCommand, `{}`}, {helperCommand, `{"command":"a","tool":"b"}`}, {helperTool, `{"tool":"` + strings.Repeat("x", 300) + `"}`}, {helperCommand, `{"command":"` + strings.Repeat("x", 300) + `"}`},
		} {
			at := slices.IndexFunc(q.Helpers, func(h llm.Helper) bool { return h.Name == row.tool })
			got, err := q.Helpers[at].Answer(ctx, jsontext.Value(row.input))
			if err != nil {
				return err
			}
			answers[row.input] = got
		}
		return nil
	}
	if v := verdictOn(t, judgeWith(m), r); v.Verdict != protocol.ChoiceAllow {
		t.Fatalf("%+v", v)
	}
	for input, want := range map[string]string{
		`{"command":"git status"}`: `{"state":"allow","matched_pattern":"git status *"}`, `{"command":"git push"}`: `{"state":"deny","matched_pattern":"git push *"}`,
		`{"command":"frob"}`: `{"state":"ask","matched_pattern":"*"}`, `{"tool":"bash"}`: `{"state":"ask","matched_pattern":"*"}`,
	} {
		if answers[input] != want {
			t.Errorf("%s: %s", input, answers[input])
		}
	}
	refused := 0
	for _, a := range answers {
		if strings.HasPrefix(a, `{"error":`) {
			refused++
		}
	}
	if refused != 4 {
		t.Errorf("%d questions were refused: %v", refused, answers)
	}
	// Its questions are bounded, and one that the gate does not answer ends all.
	bounded, asked := claiming(t, "git status", "cat"), 0
	bounded.first = func(ctx context.Context, q llm.Request) error {
		for i := range 3 * maxHelp {
			if got, err := q.Helpers[0].Answer(ctx, jsontext.Value(fmt.Sprintf(`{"command":"c%d"}`, i))); err != nil || strings.Contains(got, "no more questions") {
				return err
			}
			asked++
		}
		return nil
	}
	_, r = call(t, compiled(t, listed), opaqueText)
	if v := verdictOn(t, judgeWith(bounded), r); v.Verdict != protocol.ChoiceAllow || asked != maxHelp {
		t.Errorf("%d questions, %+v", asked, v)
	}
}

func TestAGateThatDoesNotAnswerIsNoYes(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{"without a model": "bash -c 'git status'", "after a model": opaqueText} {
		_, r := call(t, compiled(t, listed), command)
		r.Query = &gateRules{t: t, policy: compiled(t, listed), err: errors.New("gone")}
		v := verdictOn(t, judgeWith(claiming(t, "git status", "cat")), r)
		if v.Verdict != protocol.ChoiceDefer || v.Failure != causeQuery || !strings.Contains(r.Log.(*log).review[0], `"deferReason":"query-failed"`) {
			t.Errorf("%s: %+v, %q", name, v, r.Log.(*log).review)
		}
	}
}

func TestATextIsShownWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		command, cause string
		limit          int
	}{
		"a secret in it":    {"stdbuf -oL git log --grep=sk-ant-api03-abcdefghijklmnopqrstuv", causeMasked, 0},
		"longer than shown": {"stdbuf -oL git log " + strings.Repeat("a", 900), causeTooLarge, 800},
	} {
		_, r := call(t, compiled(t, listed), row.command)
		m := claiming(t, strings.TrimPrefix(row.command, "stdbuf -oL "))
		j := judgeWith(m)
		j.set.Limit = row.limit
		if v := verdictOn(t, j, r); v.Verdict != protocol.ChoiceDefer || v.Failure != row.cause || len(m.asked) != 0 {
			t.Errorf("%s: %+v, asked %d times", name, v, len(m.asked))
		}
		if name == "longer than shown" {
			j.set.Limit = 0
			if v := verdictOn(t, j, r); v.Verdict != protocol.ChoiceAllow {
				t.Errorf("shown whole: %+v", v)
			}
		}
	}
}

func TestTheModelsTimeEndsBeforeTheAsks(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ timeout, deadline, want time.Duration }{
		"its own time is shorter": {2 * time.Second, time.Minute, 2 * time.Second},
		"the ask's is shorter":    {time.Minute, 8 * time.Second, 8*time.Second - answerTime},
	} {
		_, r := call(t, compiled(t, listed), opaqueText)
		m, began := claiming(t, "git status", "cat"), time.Now()
		r.Deadline = began.Add(row.deadline)
		j := judgeWith(m)
		j.set.Timeout = row.timeout
		verdictOn(t, j, r)
		if got := m.until[0].Sub(began); got < row.want-time.Millisecond || got > row.want+time.Second {
			t.Errorf("%s: the model has %s", name, got)
		}
	}
}

func TestADenialIsRemembered(t *testing.T) {
	t.Parallel()
	held := denials.New(10, time.Minute)
	if held == nil {
		t.Fatal("no cache")
	}
	ask := func(command string, m *model, deny bool) (protocol.Verdict, *log) {
		_, r := call(t, compiled(t, strings.Replace(open, `"rm *":"ask"`, `"rm -rf *":"ask"`, 1)), command)
		if deny {
			r.Query = &gateRules{t: t, policy: compiled(t, strings.Replace(open, `"rm *":"ask"`, `"cat *":"deny"`, 1))}
		}
		j := judgeWith(m)
		j.set.Denials = held
		return verdictOn(t, j, r), r.Log.(*log)
	}
	first, second := claiming(t, "cat f"), claiming(t, "cat f")
	text := `rm "$(cat f)" x`
	v1, _ := ask(text, first, true)
	v2, l := ask(text, second, true)
	if v1.Verdict != protocol.ChoiceDeny || v2 != v1 || len(first.asked) != 1 || len(second.asked) != 0 || !strings.Contains(l.review[0], `"cached":true`) {
		t.Errorf("%+v, then %+v, asked %d and %d times, %q", v1, v2, len(first.asked), len(second.asked), l.review)
	}
	// Never what was allowed, deferred or failed.
	for _, m := range []*model{claiming(t, "git status", "cat"), claiming(t, "git status"), {err: llm.ErrTimeout}} {
		before := held.Len()
		ask(opaqueText, m, false)
		ask(opaqueText, m, false)
		if len(m.asked) != 2 || held.Len() != before {
			t.Errorf("asked %d times, %d are held", len(m.asked), held.Len())
		}
	}
}
