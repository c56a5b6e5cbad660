package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/llm"
)

// model answers as the test says.
type model func(ctx context.Context, r llm.Request) (llm.ToolCall, llm.Info, error)

func (m model) Ask(ctx context.Context, r llm.Request) (llm.ToolCall, llm.Info, error) {
	return m(ctx, r)
}

const mark = "0123456789abcdef0123456789abcdef"

func fenced(mark, data string) string {
	return "facts-" + mark + "\n" + data + "\nfacts-" + mark
}

func question() llm.Request {
	return llm.Request{Model: "m", System: "judge", User: fenced(mark, `{"path":"/a"}`), MaxTokens: 400,
		Tool: llm.Tool{Name: "verdict", Description: "gives it", Schema: jsontext.Value(`{"type":"object"}`)}}
}

func key(t *testing.T, r llm.Request) string {
	t.Helper()
	k, err := Key(r)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestOneQuestionHasOneKey(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*llm.Request){
		"nothing changes":            func(*llm.Request) {},
		"another mark":               func(r *llm.Request) { r.User = fenced(strings.Repeat("ef", 16), `{"path":"/a"}`) },
		"one round said or not said": func(r *llm.Request) { r.Rounds = 1 },
	} {
		r := question()
		change(&r)
		if key(t, r) != key(t, question()) {
			t.Errorf("%s: another key", name)
		}
	}
}

func TestAnotherQuestionHasAnotherKey(t *testing.T) {
	t.Parallel()
	seen := map[string]string{key(t, question()): "the question itself"}
	for name, change := range map[string]func(*llm.Request){
		"another model":              func(r *llm.Request) { r.Model = "n" },
		"another prompt":             func(r *llm.Request) { r.System += "." },
		"another fact":               func(r *llm.Request) { r.User = fenced(mark, `{"path":"/b"}`) },
		"another word at the fence":  func(r *llm.Request) { r.User = strings.ReplaceAll(r.User, "facts", "data") },
		"a digest among the facts":   func(r *llm.Request) { r.User = fenced(mark, `{"path":"/`+strings.Repeat("ab", 16)+`"}`) },
		"another digest there":       func(r *llm.Request) { r.User = fenced(mark, `{"path":"/`+strings.Repeat("cd", 16)+`"}`) },
		"another limit":              func(r *llm.Request) { r.MaxTokens++ },
		"another schema":             func(r *llm.Request) { r.Tool.Schema = jsontext.Value(`{}`) },
		"another tool":               func(r *llm.Request) { r.Tool.Name = "v" },
		"a helper":                   func(r *llm.Request) { r.Helpers = []llm.Helper{{Tool: llm.Tool{Name: "check"}}} },
		"a helper that is described": func(r *llm.Request) { r.Helpers = []llm.Helper{{Tool: llm.Tool{Name: "check", Description: "d"}}} },
		"more rounds":                func(r *llm.Request) { r.Rounds = 3 },
	} {
		r := question()
		change(&r)
		k := key(t, r)
		if other := seen[k]; other != "" {
			t.Errorf("%s: the key of %s", name, other)
		}
		seen[k] = name
	}
}

// recorded asks a model through a tape and reads what was written.
func recorded(t *testing.T, m model, questions ...llm.Request) *Recording {
	t.Helper()
	var out bytes.Buffer
	tape := NewTape(&out)
	for _, q := range questions {
		_, _, _ = tape.Provider(m).Ask(t.Context(), q)
	}
	if err := tape.Err(); err != nil {
		t.Fatal(err)
	}
	rec, err := Read(&out)
	if err != nil {
		t.Fatalf("%v in\n%s", err, out.Bytes())
	}
	return rec
}

func TestWhatWasAnsweredIsAnsweredAgain(t *testing.T) {
	t.Parallel()
	want := llm.Info{API: "a", ToolChoice: "tool", ModelID: "p/m", Attempts: 2, Rounds: 1, Usage: llm.Usage{Input: 120, Output: 7},
		Latency: 1250 * time.Millisecond, Text: "hm"}
	rec := recorded(t, func(context.Context, llm.Request) (llm.ToolCall, llm.Info, error) {
		return llm.ToolCall{Input: jsontext.Value(`{"verdict":"deny"}`)}, want, nil
	}, question())
	again := question()
	again.User = fenced(strings.Repeat("09", 16), `{"path":"/a"}`)
	call, info, err := rec.Ask(t.Context(), again)
	if err != nil || string(call.Input) != `{"verdict":"deny"}` || !reflect.DeepEqual(info, want) {
		t.Errorf("%s %+v %v", call.Input, info, err)
	}
	if rec.Len() != 1 || rec.Unused() != 0 {
		t.Errorf("%d answers, %d unused", rec.Len(), rec.Unused())
	}
}

func TestEachFailureComesBackAsItself(t *testing.T) {
	t.Parallel()
	for _, cause := range failures {
		word := llm.Reason(cause)
		rec := recorded(t, func(context.Context, llm.Request) (llm.ToolCall, llm.Info, error) {
			return llm.ToolCall{}, llm.Info{Attempts: 1}, fmt.Errorf("%w: status 5", cause)
		}, question())
		call, info, err := rec.Ask(t.Context(), question())
		if !errors.Is(err, cause) || llm.Reason(err) != word || !strings.Contains(err.Error(), "status 5") || call.Input != nil || info.Attempts != 1 {
			t.Errorf("%s: %v (%s), call %s, %+v", word, err, llm.Reason(err), call.Input, info)
		}
	}
}

func TestAQuestionThatWasNotRecordedIsNamed(t *testing.T) {
	t.Parallel()
	rec := recorded(t, func(context.Context, llm.Request) (llm.ToolCall, llm.Info, error) {
		return llm.ToolCall{Input: jsontext.Value(`{}`)}, llm.Info{}, nil
	}, question())
	other := question()
	other.System = "another prompt"
	call, _, err := rec.Ask(t.Context(), other)
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), key(t, other)) || call.Input != nil {
		t.Errorf("%s, %v", call.Input, err)
	}
	if rec.Unused() != 1 {
		t.Errorf("%d unused, want 1", rec.Unused())
	}
}

// asking is a model that calls the helper before it answers.
func asking(ctx context.Context, r llm.Request) (llm.ToolCall, llm.Info, error) {
	said, err := r.Helpers[0].Answer(ctx, jsontext.Value(`{"command":"ls"}`))
	if err != nil {
		return llm.ToolCall{}, llm.Info{}, llm.ErrHelper
	}
	return llm.ToolCall{Input: jsontext.Value(`{"heard":"` + said + `"}`)}, llm.Info{Rounds: 2}, nil
}

func helping(name, says string, asked *[]string) llm.Request {
	r := question()
	r.Rounds = 3
	r.Helpers = []llm.Helper{{Tool: llm.Tool{Name: name}, Answer: func(_ context.Context, in jsontext.Value) (string, error) {
		*asked = append(*asked, string(in))
		if says == "" {
			return "", errors.New("the gate is away")
		}
		return says, nil
	}}}
	return r
}

func TestToolsAreAskedAgainAsTheModelAskedThem(t *testing.T) {
	t.Parallel()
	var asked []string
	rec := recorded(t, asking, helping("check", "allow", &asked))
	call, info, err := rec.Ask(t.Context(), helping("check", "allow", &asked))
	if err != nil || string(call.Input) != `{"heard":"allow"}` || info.Rounds != 2 {
		t.Errorf("%s, %+v, %v", call.Input, info, err)
	}
	if want := []string{`{"command":"ls"}`, `{"command":"ls"}`}; !reflect.DeepEqual(asked, want) {
		t.Errorf("asked %q", asked)
	}
}

func TestAToolThatAnswersOtherwiseMakesTheRecordingStale(t *testing.T) {
	t.Parallel()
	var asked []string
	for name, says := range map[string]string{"another answer": "deny", "no answer": ""} {
		rec := recorded(t, asking, helping("check", "allow", &asked))
		call, _, err := rec.Ask(t.Context(), helping("check", says, &asked))
		if !errors.Is(err, ErrStale) || call.Input != nil {
			t.Errorf("%s: %s, %v", name, call.Input, err)
		}
	}
}

func TestOneQuestionIsPutToTheModelOnce(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	var out bytes.Buffer
	tape := NewTape(&out)
	p := tape.Provider(model(func(context.Context, llm.Request) (llm.ToolCall, llm.Info, error) {
		return llm.ToolCall{Input: jsontext.Value(fmt.Sprintf(`{"n":%d}`, calls.Add(1)))}, llm.Info{}, nil
	}))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if call, _, err := p.Ask(t.Context(), question()); err != nil || string(call.Input) != `{"n":1}` {
				t.Errorf("%s, %v", call.Input, err)
			}
		})
	}
	all.Wait()
	if calls.Load() != 1 || bytes.Count(out.Bytes(), []byte("\n")) != 1 {
		t.Errorf("%d calls, recording\n%s", calls.Load(), out.Bytes())
	}
}

func TestWhatTheCallerGaveUpIsNotRecorded(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	tape := NewTape(&out)
	first := true
	p := tape.Provider(model(func(context.Context, llm.Request) (llm.ToolCall, llm.Info, error) {
		if first {
			first = false
			return llm.ToolCall{}, llm.Info{}, llm.ErrAborted
		}
		return llm.ToolCall{Input: jsontext.Value(`{}`)}, llm.Info{}, nil
	}))
	if _, _, err := p.Ask(t.Context(), question()); !errors.Is(err, llm.ErrAborted) || out.Len() != 0 {
		t.Errorf("%v, recorded %s", err, out.Bytes())
	}
	if _, _, err := p.Ask(t.Context(), question()); err != nil || out.Len() == 0 {
		t.Errorf("%v, recorded %s", err, out.Bytes())
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestARecordingThatCannotBeWrittenSaysSo(t *testing.T) {
	t.Parallel()
	tape := NewTape(full{})
	_, _, err := tape.Provider(model(func(context.Context, llm.Request) (llm.ToolCall, llm.Info, error) {
		return llm.ToolCall{Input: jsontext.Value(`{}`)}, llm.Info{}, nil
	})).Ask(t.Context(), question())
	if err != nil || tape.Err() == nil || !strings.Contains(tape.Err().Error(), "disk full") {
		t.Errorf("answer: %v, tape: %v", err, tape.Err())
	}
}

func TestRecordingsThatAreNone(t *testing.T) {
	t.Parallel()
	good := `{"key":"k","input":{},"info":{"api":"a","tool_choice":"t","model_id":"m","attempts":1}}`
	if rec, err := Read(strings.NewReader("\n" + good + "\n")); err != nil || rec.Len() != 1 {
		t.Fatalf("%v", err)
	}
	for name, text := range map[string]string{
		"no JSON":              "junk",
		"cut short":            good[:40],
		"a key twice in it":    `{"key":"k","key":"l","input":{}}`,
		"an unknown field":     `{"key":"k","input":{},"verdict":"allow"}`,
		"no key":               `{"input":{}}`,
		"neither":              `{"key":"k"}`,
		"both":                 `{"key":"k","input":{},"failure":"timeout"}`,
		"no object":            `{"key":"k","input":"allow"}`,
		"an unknown failure":   `{"key":"k","failure":"tired"}`,
		"two answers to a key": good + "\n" + good,
	} {
		_, err := Read(strings.NewReader(text))
		if !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
