package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// leastTime is what the quickest answer needs; with less left nothing is sent.
	leastTime = 50 * time.Millisecond
	// maxTurnCalls and maxHelperCalls bound what a model may ask of its helpers in
	// one turn and in one Ask; maxHelperAnswer what it is told, in bytes.
	maxTurnCalls    = 16
	maxHelperCalls  = 64
	maxHelperAnswer = 4096
	// overhead is what a server may add to a request of its own, in tokens: how
	// tools are explained to the model.
	overhead = 1024
)

// conversation is one Ask in the words of one API.
type conversation interface {
	// say sends all that was said so far and returns the model's turn. forced
	// binds the model to the tool; else it may call any. With an error the turn
	// holds what the server still said of it.
	say(ctx context.Context, forced bool) (turn, error)
	// answered adds the model's turn and what its helpers answered, call by call.
	answered(t turn, answers []string)
}

// turn is what a model said at once, whatever the API.
type turn struct {
	calls []call
	text  string
	stop  stop
	usage Usage
}

type call struct {
	id, name string
	input    jsontext.Value
}

// sdkError is what an SDK returned instead of a reply, to be sorted by failure.
type sdkError struct{ err error }

func (e *sdkError) Error() string { return e.err.Error() }

// stop says why the model stopped.
type stop int

const (
	// stopUnknown is a word that this version does not know, or none: no answer.
	stopUnknown stop = iota
	stopDone
	stopLength
	stopRefusal
)

// caller is what the providers have in common.
type caller struct {
	key   string
	retry retryPolicy
}

// ask leads one conversation to its end.
func (c *caller) ask(ctx context.Context, r Request, info Info, conv conversation) (ToolCall, Info, error) {
	start := time.Now()
	answer, err := c.converse(ctx, r, &info, conv)
	info.Latency = time.Since(start)
	if err != nil {
		return ToolCall{}, info, err
	}
	return answer, info, nil
}

func (c *caller) converse(ctx context.Context, r Request, info *Info, conv conversation) (ToolCall, error) {
	retries := c.retry.begin()
	size, asked := requestSize(r), 0
	for round := 1; ; round++ {
		forced := len(r.Helpers) == 0 || round >= r.Rounds
		var t turn
		err := retries.do(ctx, func() (err error) {
			t, err = c.attempt(ctx, info, Usage{Input: size, Output: int64(r.MaxTokens)}, func(ctx context.Context) (turn, error) { return conv.say(ctx, forced) })
			return err
		})
		if err != nil {
			return ToolCall{}, err
		}
		info.Rounds++
		info.Text = clip(c.redact(t.text), maxText)
		if err := t.check(); err != nil {
			return ToolCall{}, err
		}
		if len(t.calls) == 1 && t.calls[0].name == r.Tool.Name {
			return ToolCall{Input: t.calls[0].input}, nil
		}
		if asked += len(t.calls); forced || len(t.calls) > maxTurnCalls || asked > maxHelperCalls {
			return ToolCall{}, fmt.Errorf("%w: %d calls, want one of %s", ErrWrongCall, len(t.calls), r.Tool.Name)
		}
		answers, err := askHelpers(ctx, r.Helpers, t.calls)
		if err != nil {
			return ToolCall{}, err
		}
		conv.answered(t, answers)
		size += t.size(answers)
	}
}

// attempt makes one call, and accounts for it.
func (c *caller) attempt(ctx context.Context, info *Info, most Usage, say func(context.Context) (turn, error)) (turn, error) {
	if !fits(ctx, leastTime) {
		if errors.Is(ctx.Err(), context.Canceled) {
			return turn{}, ErrAborted
		}
		return turn{}, ErrNoTime
	}
	settle, err := reserve(ctx, most)
	if err != nil {
		return turn{}, err
	}
	info.Attempts++
	within, x := withExchange(ctx)
	t, err := say(within)
	if raw := new(sdkError); errors.As(err, &raw) {
		err = c.failure(ctx, x, raw.err)
	}
	if err == nil && x.garbled() {
		t, err = turn{}, fmt.Errorf("%w: the reply is no JSON", ErrMalformed)
	}
	t.usage = Usage{max(t.usage.Input, 0), max(t.usage.Output, 0)} // tokens that a server gives back would buy more calls
	info.Usage = info.Usage.plus(t.usage)
	settle(x.used(t.usage, most))
	return t, err
}

// check finds in a turn what makes it no answer. One that was cut off may hold
// a call that looks whole, so the reason it stopped comes first.
func (t turn) check() error {
	switch t.stop {
	case stopDone:
	case stopRefusal:
		return ErrRefused
	case stopLength:
		return ErrCutOff
	default:
		return fmt.Errorf("%w: the model stopped for an unknown reason", ErrMalformed)
	}
	if len(t.calls) == 0 {
		if strings.TrimSpace(t.text) == "" {
			return ErrEmpty
		}
		return ErrProse
	}
	for _, c := range t.calls {
		// Two members of one name would be read differently here and elsewhere.
		if c.input.Kind() != '{' || !c.input.IsValid() {
			return fmt.Errorf("%w: the input is no object", ErrWrongCall)
		}
	}
	return nil
}

func (t turn) size(answers []string) int64 {
	n := len(t.text)
	for _, c := range t.calls {
		n += len(c.id) + len(c.name) + len(c.input)
	}
	for _, a := range answers {
		n += len(a)
	}
	return int64(n)
}

// requestSize bounds the tokens that a server counts as read: none is shorter
// than a byte.
func requestSize(r Request) int64 {
	n := len(r.System) + len(r.User) + toolSize(r.Tool) + overhead
	for _, h := range r.Helpers {
		n += toolSize(h.Tool)
	}
	return int64(n)
}

func toolSize(t Tool) int { return len(t.Name) + len(t.Description) + len(t.Schema) }

// askHelpers answers the calls in order. A model that calls its verdict beside
// a helper has not waited for what the helper says.
func askHelpers(ctx context.Context, helpers []Helper, calls []call) ([]string, error) {
	by := make(map[string]Helper, len(helpers))
	for _, h := range helpers {
		by[h.Name] = h
	}
	for _, c := range calls {
		if by[c.name].Answer == nil {
			return nil, fmt.Errorf("%w: no such tool beside others", ErrWrongCall)
		}
	}
	answers := make([]string, 0, len(calls))
	for _, c := range calls {
		answer, err := by[c.name].Answer(ctx, c.input)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrHelper, c.name, err)
		}
		if len(answer) > maxHelperAnswer {
			return nil, fmt.Errorf("%w: %s: its answer is longer than %d bytes", ErrHelper, c.name, maxHelperAnswer)
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// checkRequest refuses what no API could be asked, and returns the schema of
// every tool as strict tools take it: that of Tool first.
func checkRequest(r Request) ([]tool, error) {
	if r.Model == "" || r.User == "" || r.MaxTokens < 1 {
		return nil, fmt.Errorf("%w: a model, a question and a bound are needed", ErrCall)
	}
	all := []Tool{r.Tool}
	for _, h := range r.Helpers {
		if h.Answer == nil {
			return nil, fmt.Errorf("%w: tool %s has nobody who answers", ErrCall, h.Name)
		}
		all = append(all, h.Tool)
	}
	seen := map[string]bool{"": true}
	tools := make([]tool, 0, len(all))
	for _, t := range all {
		if seen[t.Name] {
			return nil, fmt.Errorf("%w: two tools of the name %q, or one without", ErrCall, t.Name)
		}
		seen[t.Name] = true
		schema, err := strictSchema(t.Schema)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.Name, err)
		}
		tools = append(tools, tool{t.Name, t.Description, schema})
	}
	return tools, nil
}

// tool is a Tool whose schema has been checked and taken apart.
type tool struct {
	name, description string
	schema            []member
}

// fields is the schema as an SDK takes it. Only its top level loses its order.
func (t tool) fields() map[string]any {
	out := make(map[string]any, len(t.schema))
	for _, m := range t.schema {
		out[m.name] = jsonRaw(m.value)
	}
	return out
}
