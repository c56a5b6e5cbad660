package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
)

// startTime is how long one service may take until it serves.
const startTime = 60 * time.Second

// service is one long-running part of a process, on a connection of its own.
type service struct {
	name string
	bus  bus.Config
	// run serves until its context ends, and calls ready once when it serves.
	run func(ctx context.Context, nc *nats.Conn, ready func()) error
}

// running is a service that has been started.
type running struct {
	service
	cancel context.CancelCauseFunc
	done   chan struct{}
	err    error // valid once done is closed
}

// runServices starts services one after another, each when the one before it
// serves, calls serving when all do, and runs them until ctx ends or one of
// them fails. They stop in reverse order, each drained before the next.
func runServices(ctx context.Context, log *slog.Logger, services []service, serving func(context.Context) error) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var up []*running
	defer func() {
		for i := len(up) - 1; i >= 0; i-- {
			up[i].cancel(nil)
			<-up[i].done
			err = errors.Join(err, up[i].err)
		}
	}()
	for _, s := range services {
		r, err := s.start(ctx, log, fail)
		if r != nil {
			up = append(up, r)
		}
		if err != nil {
			return err
		}
	}
	if serving != nil {
		if err := serving(ctx); err != nil {
			return err
		}
	}
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// start connects and runs one service, and returns when it serves. A service
// that ends before it is told to ends all: half a node would look alive.
func (s service) start(ctx context.Context, log *slog.Logger, fail context.CancelCauseFunc) (*running, error) {
	// The service's own context does not end with the caller's: it is stopped in
	// its turn.
	sctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s.bus.Logger = log
	s.bus.Closed = func(err error) {
		if err != nil {
			fail(fmt.Errorf("%s: %w", s.name, err))
		}
	}
	nc, err := bus.Connect(ctx, s.bus)
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("starting %s: %w", s.name, err)
	}
	r := &running{service: s, cancel: cancel, done: make(chan struct{})}
	ready := make(chan struct{})
	go func() {
		defer close(r.done)
		r.err = s.run(sctx, nc, func() { close(ready) })
		r.err = errors.Join(r.err, drain(nc))
		if r.err != nil {
			r.err = fmt.Errorf("%s: %w", s.name, r.err)
		}
		if sctx.Err() == nil {
			fail(fmt.Errorf("%s ended unexpectedly", s.name))
		}
	}()
	limit := time.NewTimer(startTime)
	defer limit.Stop()
	select {
	case <-ready:
		return r, nil
	case <-r.done:
		return r, fmt.Errorf("%s did not start", s.name)
	case <-ctx.Done():
		return r, context.Cause(ctx)
	case <-limit.C:
		return r, fmt.Errorf("%s does not serve after %s", s.name, startTime)
	}
}

func drain(nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return bus.Drain(ctx, nc)
}
