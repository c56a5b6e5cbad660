package llm

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// retryPolicy bounds how often and how long a call is repeated.
type retryPolicy struct {
	// repeats is for a whole Ask, however many rounds it has.
	repeats int
	first   time.Duration
	longest time.Duration
}

var defaultRetry = retryPolicy{repeats: 2, first: 200 * time.Millisecond, longest: 2 * time.Second}

// retries are what is left of a policy in one Ask.
type retries struct {
	left  int
	waits backoff.BackOff
}

func (p retryPolicy) begin() *retries {
	return &retries{left: p.repeats, waits: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(p.first), backoff.WithMaxInterval(p.longest), backoff.WithMaxElapsedTime(0))}
}

// do calls once, and again while the error is passing and both the wait and
// another attempt as long as the last fit before ctx's deadline: a retry that
// cannot end in time would only turn a clear error into a timeout.
func (r *retries) do(ctx context.Context, once func() error) error {
	for {
		start := time.Now()
		err := once()
		var again *passing
		if err == nil || !errors.As(err, &again) {
			return err
		}
		wait := max(r.waits.NextBackOff(), again.after)
		if r.left <= 0 || !fits(ctx, wait+time.Since(start)) {
			return again.err
		}
		r.left--
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return again.err
		}
	}
}

func fits(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || time.Until(deadline) > d)
}
