package link

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/assent-dev/assent/pkg/protocol"
)

// healthTime bounds one run of a health check.
const healthTime = 2 * time.Second

// keep serves until ctx ends or the connection closes for good. A worker that
// cannot work is no member of the queue group, so that gates ask another one; it
// says why to those who list running links, and joins again when it can.
func (s *server) keep(ctx context.Context) error {
	gone := s.nc.StatusChanged(nats.CLOSED)
	defer s.nc.RemoveStatusListener(gone)
	look := time.NewTicker(s.healthEvery)
	defer look.Stop()
	for {
		if s.nc.IsClosed() {
			return fmt.Errorf("%w (last error: %v)", ErrClosed, s.nc.LastError())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-gone:
			continue
		case <-look.C:
		case <-s.stuckChanged:
		}
		if err := s.examine(ctx); err != nil {
			return err
		}
	}
}

// examine finds out how the worker is and acts on a change.
func (s *server) examine(ctx context.Context) error {
	state := s.condition(ctx)
	if state == s.health || ctx.Err() != nil {
		return nil
	}
	if (state == HealthOK) != (s.sub != nil) {
		if err := s.enter(ctx, state); err != nil {
			return err
		}
	}
	return s.announce(state)
}

// enter joins the queue group or leaves it. What the worker has taken up
// already, it ends.
func (s *server) enter(ctx context.Context, state string) error {
	if state != HealthOK {
		s.log.Error("link cannot work and takes no more asks", "link", s.name, "reason", state)
		s.leave()
		s.sub = nil
		return nil
	}
	err := s.join(ctx)
	switch {
	case err == nil:
		s.log.Info("link can work and takes asks", "link", s.name)
	case ctx.Err() == nil && !errors.Is(err, ErrForbidden):
		s.log.Warn("link can work and could not join; it tries again", "link", s.name, "error", err)
		s.leave()
		s.sub = nil
		return nil
	}
	return err
}

// condition is HealthOK, or why the worker cannot work.
func (s *server) condition(ctx context.Context) string {
	switch stuck := int(s.stuck.Load()); {
	case s.unable != "":
		return s.unable
	case stuck >= s.concurrency:
		return fmt.Sprintf("all %d asks that it may judge at once are stuck past their deadline", stuck)
	case s.check == nil:
		return HealthOK
	}
	if s.checking == nil {
		s.checking = make(chan error, 1)
		s.working.Go(func() { s.checking <- s.checked() })
	}
	limit := time.NewTimer(healthTime)
	defer limit.Stop()
	select {
	case err := <-s.checking:
		s.checking = nil
		if err != nil {
			return protocol.Safe("its health check fails: "+err.Error(), maxHealth, false)
		}
		return HealthOK
	case <-limit.C:
		return "its health check does not return" // it is not begun again before it does
	case <-ctx.Done():
		return s.health
	}
}

func (s *server) checked() (err error) {
	ctx, cancel := context.WithTimeout(s.work, healthTime)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	return s.check(ctx)
}

// announce tells discovery how the worker is. The new word stands before the old
// one goes: at no moment does the link look like one that does not run.
func (s *server) announce(state string) error {
	was := s.service
	service, err := micro.AddService(s.nc, micro.Config{
		Name: protocol.ServiceLink, Version: s.version, Description: "a judge in the chain of an Assent node",
		Metadata: map[string]string{"link": s.name, "node": s.node, "version": s.version, MetadataHealth: state},
	})
	if err != nil {
		return fmt.Errorf("%w: announcing the link: %w", ErrName, err)
	}
	s.service, s.health = service, state
	if was != nil {
		if err := was.Stop(); err != nil && !s.nc.IsClosed() {
			s.log.Warn("link's earlier word is still in discovery", "link", s.name, "error", err)
		}
	}
	return nil
}

// late counts an ask whose link has not returned by its deadline, and done takes
// it back when it has. A worker all of whose slots are lost that way would turn
// every ask away.
func (s *server) late() (done func()) {
	s.stuck.Add(1)
	s.tellStuck()
	return func() {
		s.stuck.Add(-1)
		s.tellStuck()
	}
}

func (s *server) tellStuck() {
	select {
	case s.stuckChanged <- struct{}{}:
	default: // told already, and not looked at yet
	}
}
