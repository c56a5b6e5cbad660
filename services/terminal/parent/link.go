package parent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/version"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Clocks of the connection to the parent.
const (
	connectTime = 2 * time.Second
	soonest     = 100 * time.Millisecond
	latest      = 2 * time.Second
	// signPeriod is how often the terminal tries the parent and says what it found.
	signPeriod = 5 * time.Second
	signTime   = 2 * time.Second
)

var errNever = errors.New("there is no connection yet")

// link is the one connection to the parent's NATS. It is made again without end:
// also when the parent refused the credentials, which an operator may renew in
// place.
type link struct {
	cfg bus.Config
	log *slog.Logger

	changed chan struct{} // a connection has come; room for one

	mu  sync.Mutex
	nc  *nats.Conn // nil while there is none
	why error      // why there is none
}

// check refuses credentials that can never be this child's.
func (l *link) check() error {
	l.why = errNever
	c, err := bus.ReadCreds(l.cfg.Creds)
	if err != nil {
		return fmt.Errorf("credentials at the parent: %w", err)
	}
	if c.Role != l.cfg.Role || c.Name != l.cfg.Name {
		return fmt.Errorf("%w: %s is for %s %s, and the parent has to issue it for child %s: `assent creds issue --role child --name %s` there",
			bus.ErrCreds, l.cfg.Creds, c.Role, c.Name, l.cfg.Name, l.cfg.Name)
	}
	return nil
}

// conn is the connection, if it is up.
func (l *link) conn() (*nats.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.nc == nil:
		return nil, l.why
	case !l.nc.IsConnected():
		return nil, errors.New("the connection is away")
	default:
		return l.nc, nil
	}
}

func (l *link) set(nc *nats.Conn, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if why != nil && (l.why == nil || l.why.Error() != why.Error()) {
		l.log.Warn("no connection to the parent node; asks that go there are denied as unavailable", "err", why)
	}
	l.nc, l.why = nc, why
	if nc == nil {
		return
	}
	l.log.Info("connected to the parent node")
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// keep connects and stays connected until ctx ends.
func (l *link) keep(ctx context.Context) {
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(soonest), backoff.WithMaxInterval(latest), backoff.WithMaxElapsedTime(0))
	for ctx.Err() == nil {
		closed := make(chan error, 1)
		cfg := l.cfg
		cfg.Closed = func(err error) { closed <- err }
		nc, err := bus.Connect(ctx, cfg)
		if err == nil {
			wait.Reset()
			l.set(nc, nil)
			select {
			case err = <-closed: // the parent took the credentials back
			case <-ctx.Done():
				nc.Close()
				<-closed
				return
			}
		}
		l.set(nil, errors.Join(err, errors.New("it is tried again")))
		select {
		case <-ctx.Done():
		case <-time.After(wait.NextBackOff()):
		}
	}
}

// Run keeps the connection until ctx ends. tell, called at once and every few
// seconds, stores this terminal's sign, within its context's time. Run returns
// when both have ended; begun, if not nil, is called once the first sign is
// stored, or could not be.
func (t *Terminal) Run(ctx context.Context, tell func(context.Context, protocol.ParentSign) error, begun func()) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { t.link.keep(ctx) })
	tick := time.NewTicker(signPeriod)
	defer tick.Stop()
	for first := true; ctx.Err() == nil; first = false {
		sctx, cancel := context.WithTimeout(ctx, signTime)
		err := tell(sctx, t.sign(sctx))
		cancel()
		if err != nil && ctx.Err() == nil {
			t.log.Error("it could not be said that this node has a parent; gates may deny what they would send there", "err", err)
		}
		if first && begun != nil {
			begun()
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-t.link.changed:
		}
	}
}

// sign tries the parent with a withdrawal of what was never asked: only a gate
// that serves this child answers it, and nothing comes of it.
func (t *Terminal) sign(ctx context.Context) protocol.ParentSign {
	s := protocol.ParentSign{Parent: t.parent, Release: version.Version, At: time.Now().UTC()}
	_, err := t.Withdraw(ctx, protocol.TerminalRequest{Ask: protocol.Ask{ID: protocol.NewAskID()}})
	if s.Answers = err == nil; err != nil {
		s.Reason = protocol.Safe(err.Error(), protocol.MaxReason, false)
	}
	return s
}
