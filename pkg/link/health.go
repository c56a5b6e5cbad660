package link

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
		var err error
		if s.nc.IsClosed() {
			return fmt.Errorf("%w (last error: %v)", ErrClosed, s.nc.LastError())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-gone:
			continue
		case <-s.changed:
			err = s.announce(s.health)
		case <-look.C:
			err = s.examine(ctx)
		case <-s.stuckChanged:
			err = s.examine(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// examine finds out how the worker is and acts on a change.
func (s *server) examine(ctx context.Context) error {
	state := s.condition(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if placed, err := s.place(ctx, state); err != nil || !placed {
		return err
	}
	if state != s.health {
		s.sayHealth(state)
	}
	return s.announce(state)
}

// place joins the queue group or leaves it, as state wants it. What the worker has
// taken up already, it ends. placed is false where it should have joined and could
// not: it tries again.
func (s *server) place(ctx context.Context, state string) (placed bool, err error) {
	if state != HealthOK {
		s.leaveGroup()
		return true, nil
	}
	if s.group != nil {
		return true, nil
	}
	err = s.join(ctx)
	if err == nil || errors.Is(err, ErrForbidden) || ctx.Err() != nil {
		return err == nil, err
	}
	s.log.Warn("link can work and could not join; it tries again", "link", s.name, "error", err)
	s.leaveGroup()
	return false, nil
}

func (s *server) sayHealth(state string) {
	if state == HealthOK {
		s.log.Info("link can work and takes asks", "link", s.name)
	} else {
		s.log.Error("link cannot work and takes no more asks", "link", s.name, "reason", state)
	}
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

// announce tells discovery how the worker is, if that is new. The new word stands
// before the old one goes: at no moment does the link look like one that does not
// run.
func (s *server) announce(health string) error {
	word := s.word(health)
	was := s.service
	if was != nil && maps.Equal(word, s.told) {
		return nil
	}
	service, err := micro.AddService(s.nc, micro.Config{
		Name: protocol.ServiceLink, Version: s.version, Description: "a judge in the chain of an Assent node",
		Metadata: word,
	})
	if err != nil {
		return fmt.Errorf("%w: announcing the link: %w", ErrName, err)
	}
	s.service, s.health, s.told = service, health, word
	if was != nil {
		if err := was.Stop(); err != nil && !s.nc.IsClosed() {
			s.log.Warn("link's earlier word is still in discovery", "link", s.name, "error", err)
		}
	}
	return nil
}

// word is all that the worker says of itself. What State adds cannot take the
// place of what is said here.
func (s *server) word(health string) map[string]string {
	word := map[string]string{}
	if s.state != nil {
		state := s.state()
		keys := slices.DeleteFunc(slices.Sorted(maps.Keys(state)), func(k string) bool { return !protocol.ValidToken(k) })
		for _, k := range keys[:min(len(keys), maxState)] {
			word[k] = protocol.Safe(state[k], maxHealth, false)
		}
	}
	word["link"], word["node"], word["version"], word[MetadataHealth] = s.name, s.node, s.version, health
	delete(word, MetadataWorker)
	if s.worker != "" {
		word[MetadataWorker] = s.worker
	}
	return word
}

// late counts an ask whose link has not returned by its deadline, and done takes
// it back when it has. A worker all of whose slots are lost that way would turn
// every ask away.
func (s *server) late() (done func()) {
	s.stuck.Add(1)
	tell(s.stuckChanged)
	return func() {
		s.stuck.Add(-1)
		tell(s.stuckChanged)
	}
}

// tell says that something is another; who has been told already, and has not
// looked yet, is not told twice.
func tell(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}
