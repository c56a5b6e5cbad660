package pending

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/bus"
)

var errEnded = errors.New("watching pending asks: the watch ended")

// lookAfter is how often a watch makes sure that it hears what happens in its
// bucket.
const lookAfter = time.Second

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
	within, cancel := context.WithCancel(ctx)
	ear, deaf := bus.NewEar(within, s.kv), make(chan error, 1)
	go func() { defer cancel(); deaf <- ear.Listen(within, s.lookAfter) }()
	err := s.hear(within, ear.Heard, seen, ready)
	cancel()
	return errors.Join(<-deaf, err)
}

// hear hands over what the watch shows until ctx ends or the watch breaks.
func (s *Store) hear(ctx context.Context, heard func(uint64), seen func(Change), ready func()) error {
	w, err := s.kv.WatchAll(ctx)
	if err != nil {
		return fmt.Errorf("watching pending asks: %w", err)
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, open := <-w.Updates():
			switch {
			case !open:
				return errEnded
			case e == nil:
				heard(0)
				ready()
			default:
				heard(e.Revision())
				seen(change(e))
			}
		}
	}
}

func change(e jetstream.KeyValueEntry) Change {
	if e.Operation() != jetstream.KeyValuePut {
		return Change{ID: e.Key(), Gone: true}
	}
	item, err := Decode(e.Key(), e.Value(), e.Revision())
	return Change{ID: e.Key(), Item: item, Err: err}
}
