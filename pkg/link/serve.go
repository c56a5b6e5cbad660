package link

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Bounds of a serving link.
const (
	// pendingRequests is how many requests may wait in the client. Each is taken
	// up at once, so more than a few waiting ones mean a dead process.
	pendingRequests = 1024
	pendingBytes    = 64 << 20
	// startTime bounds the round trip in which the server says whether the
	// credential may serve the link; stopTime the last one, and how long a link
	// may still run once its context has been ended.
	startTime = 10 * time.Second
	stopTime  = 2 * time.Second

	closedStatus = nats.CLOSED
)

// Serve answers for the link called name on nc until ctx ends; several workers
// may serve the same link, each ask goes to one of them. It announces itself
// for discovery, which grants nothing: gates ask only links that their policy
// names. A worker that cannot work takes no asks until it can: see Health.
//
// When ctx ends Serve takes no more asks, waits for those being judged (see
// Grace), and returns nil; the caller then closes nc. It returns an error when
// the link cannot be served or the connection closes for good: see the
// sentinels of this package.
func Serve(ctx context.Context, nc *nats.Conn, name string, l Link, opts ...Option) error {
	s, err := newServer(ctx, nc, name, l, opts)
	if err != nil {
		return fmt.Errorf("link %q: %w", name, err)
	}
	defer s.endWork(nil)
	if err := s.start(ctx); err != nil {
		return errors.Join(fmt.Errorf("link %s: %w", name, err), s.stop())
	}
	s.ready()
	if err = s.keep(ctx); err != nil {
		err = fmt.Errorf("link %s: %w", name, err)
	}
	return errors.Join(err, s.stop())
}

// server is one link being served.
type server struct {
	config
	name       string
	subject    string
	worker     string // its own name
	ownSubject string
	nc         *nats.Conn
	link       Link

	// Those of the goroutine that runs keep.
	group    *subscription // nil while it is no member of the queue group
	own      *subscription // under the worker's own name; nil where it may not
	service  micro.Service
	health   string            // as announced last
	told     map[string]string // likewise
	checking chan error        // of a health check that runs

	stuck        atomic.Int64  // asks whose link has not returned by the deadline
	stuckChanged chan struct{} // that number is another

	slots   chan struct{}  // one token for each ask being judged
	working sync.WaitGroup // handlers, waited for by stop
	work    context.Context
	endWork context.CancelCauseFunc
}

func newServer(ctx context.Context, nc *nats.Conn, name string, l Link, opts []Option) (*server, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if l == nil {
		return nil, fmt.Errorf("%w: no link function", ErrName)
	}
	if err := checkInbox(nc); err != nil {
		return nil, err
	}
	subjects, err := protocol.NewSubjects(c.node)
	if err != nil {
		return nil, err
	}
	subject, err := subjects.Link(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrName, err)
	}
	worker := rand.Text()
	own, err := subjects.Worker(name, worker)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrName, err)
	}
	s := &server{
		config: c, name: name, subject: subject, worker: worker, ownSubject: own, nc: nc, link: l,
		stuckChanged: make(chan struct{}, 1), slots: make(chan struct{}, c.concurrency),
	}
	// Asks at work outlive ctx: a link that is told to leave finishes them.
	s.work, s.endWork = context.WithCancelCause(context.WithoutCancel(ctx))
	return s, nil
}

// start joins the link's queue group if the worker can work, and then announces
// it.
func (s *server) start(ctx context.Context) error {
	s.health = HealthOK
	if err := s.listenAlone(ctx); err != nil {
		return err
	}
	state := s.condition(ctx)
	if state != HealthOK {
		s.log.Error("link cannot work and takes no asks", "link", s.name, "reason", state)
	} else if err := s.join(ctx); err != nil {
		return err
	}
	if err := s.announce(state); err != nil {
		return err
	}
	return s.flush(ctx)
}

// join joins the link's queue group and makes sure that the server lets it.
func (s *server) join(ctx context.Context) error {
	group, err := s.subscribe(s.subject, s.name)
	if err != nil {
		return err
	}
	s.group = group
	return s.permitted(ctx, s.subject)
}

// listenAlone hears what is for this worker alone. A server whose rights are from
// before there was such a subject refuses; then the worker has no name of its own.
func (s *server) listenAlone(ctx context.Context) error {
	own, err := s.subscribe(s.ownSubject, "")
	if err != nil {
		return err
	}
	err = s.permitted(ctx, s.ownSubject)
	if errors.Is(err, ErrForbidden) {
		own.leave(stopTime)
		s.worker = ""
		return nil
	}
	s.own = own
	return err
}

// permitted waits for the server's word on the subscription: a refusal comes
// asynchronously, and a link that is never asked must not look like one that is.
func (s *server) permitted(ctx context.Context, subject string) error {
	if err := s.flush(ctx); err != nil {
		return err
	}
	err := s.nc.LastError()
	if errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject+`"`) {
		return fmt.Errorf("%w: issue one for it (assent creds issue --role judge --link LINK): %w", ErrForbidden, err)
	}
	return nil
}

func (s *server) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if err := s.nc.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("subscribing to %s: %w", s.subject, err)
	}
	return nil
}

// stop leaves in the order that loses no ask: out of discovery, no more
// requests, handlers done, answers flushed.
func (s *server) stop() error {
	if s.service != nil {
		if err := s.service.Stop(); err != nil && !s.nc.IsClosed() {
			s.log.Warn("link could not leave discovery", "link", s.name, "error", err)
		}
	}
	s.leaveGroup()
	s.own.leave(s.grace)
	if err := s.waitWork(); err != nil {
		return err
	}
	if s.nc.IsClosed() {
		return nil
	}
	if err := s.nc.FlushTimeout(stopTime); err != nil {
		return fmt.Errorf("link %s: sending the last verdicts: %w", s.name, err)
	}
	return nil
}

// waitWork waits for the handlers, then ends their contexts, then gives up on
// those that do not heed it.
func (s *server) waitWork() error {
	done := make(chan struct{})
	go func() {
		s.working.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(s.grace):
		s.endWork(errors.New("the link is being stopped"))
	}
	select {
	case <-done:
		return nil
	case <-time.After(stopTime):
		return fmt.Errorf("link %s: %w: %d still at work", s.name, ErrStuck, len(s.slots))
	}
}
