package eval

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/llm"
)

// Spent is what a case cost at the model.
type Spent struct {
	// Questions are those that were put, Calls what left for the server because
	// of them: retries and rounds.
	Questions, Calls int
	// Answered are the questions that the model answered with the forced tool.
	Answered int
	Latency  time.Duration
	Usage    llm.Usage
}

// Metered counts what is asked of next for the case whose context it is asked
// with.
func Metered(next llm.Provider) llm.Provider { return meter{next} }

type meter struct{ next llm.Provider }

// Ask implements llm.Provider.
func (m meter) Ask(ctx context.Context, r llm.Request) (llm.ToolCall, llm.Info, error) {
	call, info, err := m.next.Ask(ctx, r)
	if t, ok := ctx.Value(tallyKey{}).(*tally); ok {
		t.add(info, err)
	}
	return call, info, err
}

type tallyKey struct{}

func withTally(ctx context.Context, t *tally) context.Context {
	return context.WithValue(ctx, tallyKey{}, t)
}

// tally is what one case has cost so far.
type tally struct {
	mu    sync.Mutex
	spent Spent
	errs  []error
}

func (t *tally) add(i llm.Info, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spent.Questions++
	t.spent.Calls += i.Attempts
	t.spent.Latency += i.Latency
	t.spent.Usage.Input += i.Usage.Input
	t.spent.Usage.Output += i.Usage.Output
	if err != nil {
		t.errs = append(t.errs, err)
		return
	}
	t.spent.Answered++
}

func (t *tally) sum() Spent {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.spent
}

// broken returns the first error that is one of those: a link makes a defer of
// it, as of any error, and that defer would be counted as the model's.
func (t *tally) broken(those ...error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, err := range t.errs {
		for _, that := range those {
			if errors.Is(err, that) {
				return err
			}
		}
	}
	return nil
}
