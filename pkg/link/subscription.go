package link

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// subscription is one of the worker's subscriptions, and knows when it has
// delivered its last request.
type subscription struct {
	sub    *nats.Subscription
	closed chan struct{}
}

// subscribe takes up requests on subject, as a member of queue if that is not "".
func (s *server) subscribe(subject, queue string) (*subscription, error) {
	sub, err := s.nc.QueueSubscribe(subject, queue, s.receive)
	if err != nil {
		return nil, fmt.Errorf("subscribing to %s: %w", subject, err)
	}
	g := &subscription{sub: sub, closed: make(chan struct{})}
	sub.SetClosedHandler(func(string) { close(g.closed) })
	if err := sub.SetPendingLimits(pendingRequests, pendingBytes); err != nil {
		g.leave(stopTime)
		return nil, fmt.Errorf("subscribing to %s: %w", subject, err)
	}
	return g, nil
}

// leaveGroup leaves the queue group, if the worker is in it.
func (s *server) leaveGroup() {
	s.group.leave(s.grace)
	s.group = nil
}

// leave ends the subscription, if there is one, when everything that it holds
// has been taken up; it waits for that no longer than grace.
func (g *subscription) leave(grace time.Duration) {
	if g == nil {
		return
	}
	if err := g.sub.Drain(); err == nil && g.isClosedWithin(grace) {
		return
	}
	// No drain while the connection is away: what is queued there is late anyway.
	_ = g.sub.Unsubscribe()
	g.isClosedWithin(stopTime)
}

func (g *subscription) isClosedWithin(d time.Duration) bool {
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case <-g.closed:
		return true
	case <-limit.C:
		return false
	}
}
