package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/llm"
)

// Tape writes answers down as they come. Safe for concurrent use.
type Tape struct {
	mu    sync.Mutex
	out   io.Writer
	err   error
	asked map[string]*slot
}

// slot is a question that was asked; done closes when its answer stands.
type slot struct {
	done chan struct{}
	// kept: answer was written down.
	kept   bool
	answer answer
}

// NewTape returns a tape that writes to out, a line an answer.
func NewTape(out io.Writer) *Tape { return &Tape{out: out, asked: map[string]*slot{}} }

// Err is the first error of writing.
func (t *Tape) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Provider asks next, and writes down what it answers. A question that was asked
// before is answered from the tape: a run must be what its recording will say.
func (t *Tape) Provider(next llm.Provider) llm.Provider { return recorder{t, next} }

type recorder struct {
	tape *Tape
	next llm.Provider
}

// Ask implements llm.Provider.
func (rec recorder) Ask(ctx context.Context, r llm.Request) (llm.ToolCall, llm.Info, error) {
	key, err := Key(r)
	if err != nil {
		return llm.ToolCall{}, llm.Info{}, err
	}
	for {
		s, first := rec.tape.slot(key)
		if first {
			return rec.ask(ctx, r, key, s)
		}
		select {
		case <-s.done:
		case <-ctx.Done():
			return llm.ToolCall{}, llm.Info{}, ended(ctx)
		}
		if s.kept {
			return s.answer.play(ctx, r)
		}
	}
}

func ended(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return llm.ErrTimeout
	}
	return llm.ErrAborted
}

func (t *Tape) slot(key string) (s *slot, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s = t.asked[key]; s != nil {
		return s, false
	}
	s = &slot{done: make(chan struct{})}
	t.asked[key] = s
	return s, true
}

func (rec recorder) ask(ctx context.Context, r llm.Request, key string, s *slot) (llm.ToolCall, llm.Info, error) {
	a := answer{Key: key}
	defer func() { rec.tape.end(s, a) }()
	heard := listening(r.Helpers)
	r.Helpers = heard.helpers
	call, i, err := rec.next.Ask(ctx, r)
	a.Info, a.Helpers = infoOf(i), heard.said()
	if err == nil {
		a.Input = call.Input.Clone()
	} else {
		a.Failure, a.Error = llm.Reason(err), err.Error()
	}
	return call, i, err
}

// end writes a down. What the caller gave up says nothing of the model, and is
// asked again.
func (t *Tape) end(s *slot, a answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer close(s.done)
	if a.check() != nil {
		delete(t.asked, a.Key)
		return
	}
	s.kept, s.answer = true, a
	if t.err != nil {
		return
	}
	line, err := json.Marshal(a, json.Deterministic(true))
	if err == nil {
		_, err = t.out.Write(append(line, '\n'))
	}
	if err != nil {
		t.err = fmt.Errorf("writing the recording: %w", err)
	}
}

// listener are helpers that write down what they were asked and said.
type listener struct {
	helpers []llm.Helper
	mu      sync.Mutex
	calls   []helped
}

func listening(helpers []llm.Helper) *listener {
	l := &listener{}
	for _, h := range helpers {
		answer := h.Answer
		h.Answer = func(ctx context.Context, input jsontext.Value) (string, error) {
			said, err := answer(ctx, input)
			if err == nil {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.calls = append(l.calls, helped{h.Name, input.Clone(), said})
			}
			return said, err
		}
		l.helpers = append(l.helpers, h)
	}
	return l
}

func (l *listener) said() []helped {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls)
}
