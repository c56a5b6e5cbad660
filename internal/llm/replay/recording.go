package replay

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/assent-dev/assent/internal/jsonwords"
	"github.com/assent-dev/assent/internal/llm"
)

// maxLine bounds one line of a recording, in bytes.
const maxLine = 4 << 20

// Recording gives recorded answers, and is an llm.Provider for any model that
// it has answers of. Safe for concurrent use.
type Recording struct {
	answers map[string]answer
	mu      sync.Mutex
	used    map[string]bool
}

// Read reads a recording. Errors wrap ErrFile and name the line.
func Read(in io.Reader) (*Recording, error) {
	rec := &Recording{answers: map[string]answer{}, used: map[string]bool{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var a answer
		err := json.Unmarshal(lines.Bytes(), &a, json.RejectUnknownMembers(true))
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrFile, n, jsonwords.Of(err))
		}
		if err = a.check(); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrFile, n, err)
		}
		if _, twice := rec.answers[a.Key]; twice {
			return nil, fmt.Errorf("%w: line %d: a second answer to %s", ErrFile, n, a.Key)
		}
		rec.answers[a.Key] = a
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("%w: a line has more than %d bytes", ErrFile, maxLine)
	} else if err != nil {
		return nil, fmt.Errorf("reading a recording: %w", err)
	}
	return rec, nil
}

// Ask implements llm.Provider. It waits for nothing: the latency in its Info is
// that of the recorded call.
func (rec *Recording) Ask(ctx context.Context, r llm.Request) (llm.ToolCall, llm.Info, error) {
	key, err := Key(r)
	if err != nil {
		return llm.ToolCall{}, llm.Info{}, err
	}
	a, ok := rec.answers[key]
	if !ok {
		return llm.ToolCall{}, llm.Info{ModelID: r.Model}, fmt.Errorf("%w: %s", ErrMissing, key)
	}
	rec.mu.Lock()
	rec.used[key] = true
	rec.mu.Unlock()
	return a.play(ctx, r)
}

// Len is how many answers there are.
func (rec *Recording) Len() int { return len(rec.answers) }

// Unused is how many answers nobody has asked for.
func (rec *Recording) Unused() int {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return len(rec.answers) - len(rec.used)
}
