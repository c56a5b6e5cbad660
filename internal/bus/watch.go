package bus

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/nats-io/nats.go"
)

// watch reports what happens to one connection: nothing about it is silent.
type watch struct {
	log       *slog.Logger
	violation func(error)
	onClosed  func(error)

	mu      sync.Mutex
	refusal error // the server's latest word on the credentials
}

func newWatch(cfg Config, client string) *watch {
	log := cfg.Logger
	if log == nil {
		log = slog.Default()
	}
	w := &watch{log: log.With("connection", client), violation: cfg.Violation, onClosed: cfg.Closed}
	if w.violation == nil {
		w.violation = func(error) {}
	}
	if w.onClosed == nil {
		w.onClosed = func(error) {}
	}
	return w
}

func (w *watch) failed(_ *nats.Conn, sub *nats.Subscription, err error) {
	log := w.log
	if sub != nil {
		log = log.With("subject", sub.Subject)
	}
	switch {
	case errors.Is(err, nats.ErrPermissionViolation):
		log.Error("the server does not allow a subject", "error", err)
		w.violation(err)
	case errors.Is(err, nats.ErrSlowConsumer):
		log.Error("messages were dropped: they came faster than they were taken", "error", err)
	case refused(err):
		w.setRefusal(err)
		log.Error("the server refuses the credentials", "error", err)
	default:
		log.Warn("connection error", "error", err)
	}
}

func (w *watch) disconnected(_ *nats.Conn, err error) {
	if err != nil {
		w.log.Warn("disconnected, trying again", "error", err)
	}
}

func (w *watch) reconnected(nc *nats.Conn) {
	w.setRefusal(nil)
	w.log.Info("connected again", "server", nc.ConnectedUrlRedacted())
}

// closed runs after the last call of failed: both come from the connection's
// one queue of callbacks.
func (w *watch) closed(*nats.Conn) {
	w.mu.Lock()
	err := w.refusal
	w.mu.Unlock()
	if err != nil {
		w.log.Error("closed for good: the server refuses these credentials; issue new ones", "error", err)
		w.onClosed(fmt.Errorf("%w: %w", ErrRefused, err))
		return
	}
	w.log.Debug("closed")
	w.onClosed(nil)
}

func (w *watch) setRefusal(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refusal = err
}

func refused(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) ||
		errors.Is(err, nats.ErrAuthRevoked) || errors.Is(err, nats.ErrAccountAuthExpired)
}
