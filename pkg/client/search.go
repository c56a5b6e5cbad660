package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/assent-dev/assent/pkg/protocol"
)

// silence is a failure that another try may mend: nobody answered, so nothing
// was said about the ask.
type silence struct{ error }

func (s silence) Unwrap() error { return s.error }

// leastTries is how often a gate is looked for whatever the patience: of two
// gates one may be stuck, and the server picks blindly.
const leastTries = 2

// search decides how long silence is borne.
type search struct {
	wait     *backoff.ExponentialBackOff
	patience time.Duration
	began    time.Time
	tries    int
	// pending is the last sign of life; with one, the ask is stored, and silence
	// is borne as long as the caller wants.
	pending *protocol.Progress
}

func newSearch(patience time.Duration) *search {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(0),
	)
	return &search{wait: b, patience: patience, began: time.Now()}
}

func (s *search) found(p protocol.Progress) {
	s.pending, s.tries = &p, 0
	s.wait.Reset()
}

// lost takes a failed round: how long to pause before the next, or the error to
// end with.
func (s *search) lost(err error) (time.Duration, error) {
	var quiet silence
	if !errors.As(err, &quiet) {
		return 0, final(err)
	}
	s.tries++
	if s.pending == nil && s.tries >= leastTries && time.Since(s.began) >= s.patience {
		return 0, fmt.Errorf("%w: %w", ErrUnavailable, quiet.error)
	}
	return s.wait.NextBackOff(), nil
}

// final gives an error that no other try can mend its sentinel.
func final(err error) error {
	var fault *protocol.Fault
	if errors.Is(err, ErrReply) || errors.Is(err, ErrAsk) || errors.As(err, &fault) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

func (s *search) ended(ctx context.Context, id string) error {
	where := "no gate has answered"
	if s.pending != nil {
		where = "pending at " + protocol.Safe(s.pending.Stage, protocol.MaxName, false)
	}
	return fmt.Errorf("%w: ask %s, %s: %w", ErrEnded, id, where, context.Cause(ctx))
}

// sleep waits for d; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
