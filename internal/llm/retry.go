package llm

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// retryPolicy bounds how often and how long a call is repeated.
type retryPolicy struct {
	attempts int
	first    time.Duration
	longest  time.Duration
}

var defaultRetry = retryPolicy{attempts: 3, first: 200 * time.Millisecond, longest: 2 * time.Second}

// passing marks an error that may not come again, and what the server said to
// wait; 0 = nothing.
type passing struct {
	err   error
	after time.Duration
}

func (p *passing) Error() string { return p.err.Error() }
func (p *passing) Unwrap() error { return p.err }

// do calls once, and again while the error is passing and both the wait and
// another attempt as long as the last fit before ctx's deadline: a retry that
// cannot end in time would only turn a clear error into a timeout.
func (p retryPolicy) do(ctx context.Context, once func() error) error {
	waits := backoff.NewExponentialBackOff(backoff.WithInitialInterval(p.first), backoff.WithMaxInterval(p.longest), backoff.WithMaxElapsedTime(0))
	for attempt := 1; ; attempt++ {
		start := time.Now()
		err := once()
		var again *passing
		if err == nil || !errors.As(err, &again) {
			return err
		}
		wait := max(waits.NextBackOff(), again.after)
		if attempt == p.attempts || !fits(ctx, wait+time.Since(start)) {
			return again.err
		}
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

// retryAfter is how long the server asks to wait; 0 if it does not say.
func retryAfter(r *http.Response) time.Duration {
	if r == nil {
		return 0
	}
	const longest = 24 * 60 * 60
	if s, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil && s > 0 {
		return time.Duration(min(s, longest)) * time.Second
	}
	return 0
}
