package llm

import (
	"context"
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"
)

// BreakerConfig says when a model that fails is left alone. A zero field is its
// default.
type BreakerConfig struct {
	// Failures in a row open the breaker; 3.
	Failures int
	// Rate of failures opens it too, 0 to 1, once Least calls came back within
	// Window; 0.5, 10 and one minute.
	Rate   float64
	Least  int
	Window time.Duration
	// Open is how long the model is left alone; one minute. Then one call is let
	// through, and its end closes the breaker or opens it again.
	Open time.Duration
	// Patience is the least time that a call must have been given for its timeout
	// to count; one second. An agent that asks with next to no time left must not
	// be able to take the judge away from everybody else.
	Patience time.Duration
}

func (c BreakerConfig) orDefault() BreakerConfig {
	c.Failures = orElse(c.Failures, 3)
	c.Rate = orElse(c.Rate, 0.5)
	c.Least = orElse(c.Least, 10)
	c.Window = orElse(c.Window, time.Minute)
	c.Open = orElse(c.Open, time.Minute)
	c.Patience = orElse(c.Patience, time.Second)
	return c
}

func orElse[T int | float64 | time.Duration](v, other T) T {
	if v <= 0 {
		return other
	}
	return v
}

// buckets divide the window: its oldest calls leave it one bucket at a time.
const buckets = 6

var (
	// errFailed and errIgnored are what the breaker is told of a call: one that
	// counts against the model, and one that says nothing of it.
	errFailed  = errors.New("failed")
	errIgnored = errors.New("ignored")
)

// newBreaker's functions are called with the breaker locked. inARow counts the
// failures in a row: the breaker's own count of them fades with the window, and
// a model that is asked rarely would be waited for each time.
func newBreaker(c BreakerConfig, inARow func() int, changed func(to gobreaker.State)) *gobreaker.CircuitBreaker[reply] {
	return gobreaker.NewCircuitBreaker[reply](gobreaker.Settings{
		MaxRequests: 1, Interval: c.Window, BucketPeriod: max(c.Window/buckets, 1), Timeout: c.Open,
		ReadyToTrip: func(n gobreaker.Counts) bool {
			back := n.TotalFailures + n.TotalSuccesses
			return inARow() >= c.Failures ||
				int(back) >= c.Least && float64(n.TotalFailures) >= c.Rate*float64(back)
		},
		OnStateChange: func(_ string, _, to gobreaker.State) { changed(to) },
		IsExcluded:    func(err error) bool { return errors.Is(err, errIgnored) },
	})
}

// reply is what became of one Ask.
type reply struct {
	call ToolCall
	info Info
	err  error
	ran  bool
}

// against is what the breaker is told of an Ask that was given that much time.
// A model that answered, but not as it should, is up: what an ask says can make
// it refuse or ramble, and three such asks must not switch a judge off.
func (c BreakerConfig) against(err error, given time.Duration) error {
	switch Reason(err) {
	case "", "empty", "prose", "wrong-call", "cut-off", "refused":
		return nil
	case "timeout":
		if given < c.Patience {
			return errIgnored
		}
		return errFailed
	case "auth-failed", "model-unresolved", "rate-limited", "server-error", "unreachable", "malformed":
		return errFailed
	default: // the caller's doing: gave up, had no time or money, asked for what cannot be asked
		return errIgnored
	}
}

// given is how much time ctx leaves; a day without a deadline.
func given(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline)
	}
	return 24 * time.Hour
}
