package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/llm"
)

// answer is one line of a recording: what became of one question.
type answer struct {
	Key string `json:"key"`
	// Input is the tool call; nothing where Failure says why there is none.
	Input jsontext.Value `json:"input,omitzero"`
	// Failure is the word of llm.Reason, Error the text.
	Failure string `json:"failure,omitempty"`
	Error   string `json:"error,omitempty"`
	// Helpers are the tools that the model called on the way, in order.
	Helpers []helped `json:"helpers,omitempty"`
	Info    info     `json:"info"`
}

// helped is one call of a helper.
type helped struct {
	Tool   string         `json:"tool"`
	Input  jsontext.Value `json:"input"`
	Output string         `json:"output"`
}

// info is llm.Info as the file writes it.
type info struct {
	API        string  `json:"api"`
	ToolChoice string  `json:"tool_choice"`
	ModelID    string  `json:"model_id"`
	Attempts   int     `json:"attempts"`
	Rounds     int     `json:"rounds,omitzero"`
	Input      int64   `json:"input_tokens,omitzero"`
	Output     int64   `json:"output_tokens,omitzero"`
	MS         float64 `json:"ms,omitzero"`
	Text       string  `json:"text,omitempty"`
}

func infoOf(i llm.Info) info {
	return info{API: i.API, ToolChoice: i.ToolChoice, ModelID: i.ModelID, Attempts: i.Attempts, Rounds: i.Rounds,
		Input: i.Usage.Input, Output: i.Usage.Output, MS: float64(i.Latency.Microseconds()) / 1000, Text: i.Text}
}

func (i info) info() llm.Info {
	return llm.Info{API: i.API, ToolChoice: i.ToolChoice, ModelID: i.ModelID, Attempts: i.Attempts, Rounds: i.Rounds,
		Usage: llm.Usage{Input: i.Input, Output: i.Output}, Latency: time.Duration(i.MS * float64(time.Millisecond)), Text: i.Text}
}

// failures are the errors of a provider that a recording can hold; each has a
// word of its own.
var failures = []error{
	llm.ErrAuth, llm.ErrModel, llm.ErrTimeout, llm.ErrNoTime, llm.ErrEmpty, llm.ErrProse, llm.ErrWrongCall, llm.ErrCutOff, llm.ErrRefused,
	llm.ErrHelper, llm.ErrBreakerOpen, llm.ErrOverBudget, llm.ErrRateLimited, llm.ErrRejected, llm.ErrServer, llm.ErrUnreachable,
	llm.ErrMalformed, llm.ErrCall,
}

// failed is a recorded failure: the text of then, the sentinel of now.
type failed struct {
	text string
	err  error
}

func (f *failed) Error() string { return f.text }
func (f *failed) Unwrap() error { return f.err }

func failureOf(word, text string) (error, bool) {
	for _, err := range failures {
		if llm.Reason(err) == word {
			return &failed{text: text, err: err}, true
		}
	}
	return nil, false
}

// check refuses a line that is no answer: played, it would count as one.
func (a answer) check() error {
	if a.Key == "" {
		return errors.New(`it has no "key"`)
	}
	if (a.Input == nil) == (a.Failure == "") {
		return errors.New(`want either "input" or "failure"`)
	}
	if a.Input != nil && a.Input.Kind() != '{' {
		return errors.New(`"input" is no object`)
	}
	if _, known := failureOf(a.Failure, a.Error); a.Failure != "" && !known {
		return fmt.Errorf("unknown failure %q", a.Failure)
	}
	return nil
}

// play gives the answer once more. The helpers are called as the model called
// them: a judge may learn from what it is asked, and what it answers must be what
// the model heard.
func (a answer) play(ctx context.Context, r llm.Request) (llm.ToolCall, llm.Info, error) {
	for n, h := range a.Helpers {
		said, err := call(ctx, r.Helpers, h)
		if err != nil {
			return llm.ToolCall{}, a.Info.info(), fmt.Errorf("%w: %s: call %d of %s: %w", ErrStale, a.Key, n+1, h.Tool, err)
		}
		if said != h.Output {
			return llm.ToolCall{}, a.Info.info(), fmt.Errorf("%w: %s: call %d of %s answers %q, and answered %q when it was recorded", ErrStale, a.Key, n+1, h.Tool, said, h.Output)
		}
	}
	if a.Failure != "" {
		err, _ := failureOf(a.Failure, a.Error)
		return llm.ToolCall{}, a.Info.info(), err
	}
	return llm.ToolCall{Input: a.Input.Clone()}, a.Info.info(), nil
}

func call(ctx context.Context, helpers []llm.Helper, h helped) (string, error) {
	for _, have := range helpers {
		if have.Name == h.Tool {
			return have.Answer(ctx, h.Input.Clone())
		}
	}
	return "", errors.New("it is not offered any more")
}
