package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Sub is a subscription whose handlers run side by side, up to a bound. It owns
// their goroutines and its own: Drain waits for them.
type Sub struct {
	nc   *nats.Conn
	sub  *nats.Subscription
	loop chan struct{} // closed when the last message has been handed over
	wg   sync.WaitGroup
	room chan struct{}
	next chan *nats.Msg // to a goroutine that has handled one and waits for another
	idle chan struct{}  // one token for each that waits

	handler, overflow Handler
}

// Handler takes one message.
type Handler func(*nats.Msg)

// Subscribe runs handler for each message on subject, as a member of queue
// unless that is "", side by side. At most limit run at once.
// A message over the limit goes to overflow instead, at once and in the
// subscription's one goroutine, so that it is refused and never queued until
// its asker has gone: overflow must not block. A handler that panics is logged
// and leaves its message unanswered.
//
// A subject that the credentials do not allow is ErrNotAllowed.
func Subscribe(nc *nats.Conn, subject, queue string, limit int, handler, overflow Handler) (*Sub, error) {
	if limit < 1 || handler == nil || overflow == nil {
		return nil, errors.New("subscribing: limit, handler and overflow are needed")
	}
	sub, err := subscribeSync(nc, subject, queue)
	if err != nil {
		return nil, fmt.Errorf("subscribing to %s: %w", subject, err)
	}
	s := &Sub{
		nc: nc, sub: sub, loop: make(chan struct{}), room: make(chan struct{}, limit),
		next: make(chan *nats.Msg), idle: make(chan struct{}, maxIdle),
		handler: handler, overflow: overflow,
	}
	first, err := confirm(nc, sub)
	if err != nil {
		return nil, errors.Join(err, sub.Unsubscribe())
	}
	go s.run(first)
	return s, nil
}

func subscribeSync(nc *nats.Conn, subject, queue string) (*nats.Subscription, error) {
	if queue == "" {
		return nc.SubscribeSync(subject)
	}
	return nc.QueueSubscribeSync(subject, queue)
}

// confirm waits until the server has taken the subscription in or refused it:
// the refusal comes before the answer to the flush. It may already return a
// message.
func confirm(nc *nats.Conn, sub *nats.Subscription) (*nats.Msg, error) {
	if err := nc.FlushTimeout(defaultTimeout); err != nil {
		return nil, fmt.Errorf("subscribing to %s: %w", sub.Subject, err)
	}
	m, err := sub.NextMsg(time.Nanosecond)
	switch {
	case err == nil:
		return m, nil
	case errors.Is(err, nats.ErrTimeout), errors.Is(err, nats.ErrSlowConsumer):
		return nil, nil
	case errors.Is(err, nats.ErrPermissionViolation):
		return nil, fmt.Errorf("%w: %w; these credentials are not for this service", ErrNotAllowed, err)
	default:
		return nil, fmt.Errorf("subscribing to %s: %w", sub.Subject, err)
	}
}

// run hands messages over until the subscription or the connection is closed.
func (s *Sub) run(first *nats.Msg) {
	defer close(s.loop)
	defer close(s.next)
	if first != nil {
		s.take(first)
	}
	for {
		m, err := s.sub.NextMsgWithContext(context.Background())
		switch {
		case err == nil:
			s.take(m)
		case errors.Is(err, nats.ErrBadSubscription), errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrMaxMessages):
			return
		case errors.Is(err, nats.ErrSlowConsumer):
			// Told by the connection's error handler; go on with what is left.
		default:
			// Refused after a reconnect, say. It may be mended by the next one.
			time.Sleep(reconnectWait)
		}
	}
}

func (s *Sub) take(m *nats.Msg) {
	select {
	case s.room <- struct{}{}:
	default:
		s.overflow(m)
		return
	}
	select {
	case s.next <- m:
	default:
		s.wg.Go(func() { s.work(m) })
	}
}

// maxIdle is how many goroutines wait for the next message instead of ending. A
// new one begins with a small stack and copies it several times while it reads
// and rules; one that has done so before has the room.
const maxIdle = 64

// work handles m and then what comes next.
func (s *Sub) work(m *nats.Msg) {
	for m != nil {
		s.handle(m)
		m = s.another()
	}
}

// another waits for the next message; nil when none comes any more, or enough
// others wait.
func (s *Sub) another() *nats.Msg {
	select {
	case s.idle <- struct{}{}:
		defer func() { <-s.idle }()
		return <-s.next
	default:
		return nil
	}
}

// handle runs the handler for one message, which took room before.
func (s *Sub) handle(m *nats.Msg) {
	defer func() { <-s.room }()
	defer func() {
		if p := recover(); p != nil {
			slog.Error("a handler panicked; its message stays unanswered", "subject", m.Subject, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	s.handler(m)
}

// Subject is what was subscribed to.
func (s *Sub) Subject() string { return s.sub.Subject }

// Busy is how many handlers run now.
func (s *Sub) Busy() int { return len(s.room) }

// Drain leaves: no new messages, those already here are handled, and it
// returns when the last handler has. The connection stays open, so that their
// replies go out. ErrDrain when ctx ends first.
func (s *Sub) Drain(ctx context.Context) error {
	if err := s.stop(); err != nil {
		return err
	}
	// The client's own word that the last message was taken.
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for s.sub.IsValid() {
		if !s.nc.IsConnected() {
			// The client would wait for a server that is not there, and no reply
			// could go out: what is still queued will be asked again elsewhere.
			if err := s.sub.Unsubscribe(); err != nil && !gone(err) {
				return fmt.Errorf("draining %s: %w", s.sub.Subject, err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %s still has messages: %w", ErrDrain, s.sub.Subject, context.Cause(ctx))
		}
	}
	done := make(chan struct{})
	go func() { <-s.loop; s.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: handlers of %s still run: %w", ErrDrain, s.sub.Subject, context.Cause(ctx))
	}
}

// stop asks for no more messages and does not wait.
func (s *Sub) stop() error {
	if err := s.sub.Drain(); err != nil && !gone(err) {
		return fmt.Errorf("draining %s: %w", s.sub.Subject, err)
	}
	return nil
}

// gone says that there is nothing left to leave.
func gone(err error) bool {
	return errors.Is(err, nats.ErrBadSubscription) || errors.Is(err, nats.ErrConnectionClosed)
}

// Drain leaves a connection in the one order that loses no reply: first the
// subscriptions stop, then their handlers end, then the connection sends what
// it holds and closes. The connection is closed in any case.
func Drain(ctx context.Context, nc *nats.Conn, subs ...*Sub) error {
	var errs []error
	for _, s := range subs {
		// All stop taking before the first is waited for.
		errs = append(errs, s.stop())
	}
	for _, s := range subs {
		errs = append(errs, s.Drain(ctx))
	}
	return errors.Join(append(errs, closeConn(ctx, nc))...)
}

func closeConn(ctx context.Context, nc *nats.Conn) error {
	defer nc.Close()
	if nc.IsClosed() || !nc.IsConnected() {
		// Drain of a connection that is away just closes it: nothing to send.
		return nil
	}
	if err := nc.Drain(); err != nil {
		return fmt.Errorf("draining the connection: %w", err)
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !nc.IsClosed() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: the connection: %w", ErrDrain, context.Cause(ctx))
		}
	}
	return nil
}
