package pending

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go/jetstream"
)

var (
	errEnded    = errors.New("watching pending asks: the watch ended")
	errReplaced = errors.New("watching pending asks: the bucket was made anew")
)

// lookAfter is how often a watch makes sure that its bucket is still the one it
// began with.
const lookAfter = 10 * time.Second

// Change is one change that a watcher sees.
type Change struct {
	ID string
	// Item is the entry as it stands; meaningless when Gone.
	Item Item
	// Gone: the entry was settled and taken away.
	Gone bool
	// Err: the entry is there but cannot be read.
	Err error
}

// Watch calls seen for every entry that is open now, then ready, then seen for
// every change, one at a time, until ctx ends; it returns only then. When the
// watch breaks it is begun anew, everything open is seen and ready called again:
// both must bear it. lost, if not nil, is called with the cause of
// each break.
func (s *Store) Watch(ctx context.Context, seen func(Change), ready func(), lost func(error)) {
	again := backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond), backoff.WithMaxInterval(2*time.Second), backoff.WithMaxElapsedTime(0))
	for ctx.Err() == nil {
		err := s.watchOnce(ctx, seen, func() { again.Reset(); ready() })
		if ctx.Err() != nil {
			return
		}
		if lost != nil {
			lost(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(again.NextBackOff()):
		}
	}
}

func (s *Store) watchOnce(ctx context.Context, seen func(Change), ready func()) error {
	w, err := s.kv.WatchAll(ctx)
	if err != nil {
		return fmt.Errorf("watching pending asks: %w", err)
	}
	defer w.Stop()
	made, err := s.made(ctx)
	if err != nil {
		return fmt.Errorf("watching pending asks: %w", err)
	}
	look := time.NewTicker(s.lookAfter)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
			// A bucket that was restored or made anew counts from one again: the
			// client's watch waits for a sequence that is long in coming, without an
			// error and without end.
			if now, err := s.made(ctx); err == nil && !now.Equal(made) {
				return errReplaced
			}
		case e, open := <-w.Updates():
			if !open {
				return errEnded
			}
			if e == nil {
				ready()
				continue
			}
			seen(change(e))
		}
	}
}

// made is when the bucket was made.
func (s *Store) made(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	info, err := s.kv.Status(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("looking after bucket %s: %w", s.kv.Bucket(), err)
	}
	status, ok := info.(*jetstream.KeyValueBucketStatus)
	if !ok {
		return time.Time{}, fmt.Errorf("looking after bucket %s: %T says nothing of its stream", s.kv.Bucket(), info)
	}
	return status.StreamInfo().Created, nil
}

func change(e jetstream.KeyValueEntry) Change {
	if e.Operation() != jetstream.KeyValuePut {
		return Change{ID: e.Key(), Gone: true}
	}
	item, err := Decode(e.Key(), e.Value(), e.Revision())
	return Change{ID: e.Key(), Item: item, Err: err}
}
