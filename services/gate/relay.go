package gate

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
)

// serveRelay takes an ask that a child node relays, and answers it soon enough
// that the child can tell a parent that is slow from one that is dead.
//
// That it is a child that asks, and not an agent that wears a child's name, is
// the border's doing: only the account of child nodes reaches this subject, and
// the sender that the server states must be the subject's.
func (g *Gate) serveRelay(m *nats.Msg) {
	ctx, cancel := context.WithTimeout(context.Background(), serveTime)
	defer cancel()
	child, who, ok := g.asker(m)
	if !ok {
		return
	}
	c, err := g.readRelayed(ctx, child, who, m.Data)
	if err != nil {
		g.answerFault(m, protocol.PeekAskID(m.Data, "id"), *g.misrelayed(ctx, child, m.Data, err))
		return
	}
	var answered sync.Once // one request, one reply
	late := time.AfterFunc(g.times.late, func() { answered.Do(func() { g.answerLate(m, c) }) })
	defer late.Stop()
	r, err := g.Decide(ctx, c)
	answered.Do(func() { g.answerRelayed(m, c, r, err) })
}

// readRelayed reads an ask of a child. Nobody sits at its session who would be an
// approver of this node.
func (g *Gate) readRelayed(ctx context.Context, child string, who protocol.Requester, data []byte) (call, error) {
	now := time.Now().UTC()
	ask, err := protocol.ReadRelayedAsk(child, g.node, data)
	ask.Session.Interactive = false
	if err == nil {
		err = g.checkTime(ctx, ask, now)
	}
	if err != nil {
		return call{}, err
	}
	digest, err := ask.Digest(g.node)
	return call{ask: ask, digest: digest, requester: who, askedAt: now}, err
}

// misrelayed is what a child is told of an ask that is none. It is recorded where
// its id can be read: in a loop that id has a story at this node already.
func (g *Gate) misrelayed(ctx context.Context, child string, data []byte, cause error) *protocol.Fault {
	what, fault := "relay", protocol.Fault{Code: protocol.CodeInvalid, Message: protocol.Safe(cause.Error(), 500, false), Remedy: "mend the ask and send it with a new id"}
	switch {
	case errors.Is(cause, protocol.ErrLoop):
		what, fault.Remedy = "loop", "give each node of the tree one parent that is not below it"
	case errors.Is(cause, protocol.ErrTooLarge):
		fault.Code, fault.Remedy = protocol.CodeTooLarge, "make the call smaller"
	}
	g.count("invalid", what)
	g.log.Warn("relayed ask is refused", "child", child, "err", cause)
	id := protocol.PeekAskID(data, "id")
	sender := call{ask: protocol.Ask{ID: id, Hops: []string{child}}, askedAt: time.Now().UTC()}
	if id != "" && !g.limits.tooFast(sender, g.policy.current()) { // a child must not fill the disk
		g.review.gateError(id, what, cause)
	}
	return &fault
}

// bear is how long a request is kept waiting that may be kept for limit.
func (g *Gate) bear(c call, limit time.Duration) time.Duration {
	if c.ask.Via() != "" {
		return min(limit, g.times.relay)
	}
	return limit
}

// answerLate answers a child before what it asks for is done: with Progress where
// its ask is on disk, which is what Progress promises, and else with the word
// that it is not. What was begun goes on, and the child's next request joins it.
func (g *Gate) answerLate(m *nats.Msg, c call) {
	if s, open := g.mirror.get(c.ask.ID); open && s.stored() && s.digest == c.digest {
		send(g, m, s.progress(c.ask.ID))
		return
	}
	g.count("unavailable", "late")
	g.answerFault(m, c.ask.ID, protocol.Fault{Code: protocol.CodeUnavailable, Message: "the ask could not be stored in time", Remedy: "ask again with the same id"})
}

// answerRelayed answers as for an ask of an agent, but that a failure of this gate
// is no decision: the child asks again, and perhaps another gate.
func (g *Gate) answerRelayed(m *nats.Msg, c call, r reply, err error) {
	if err == nil || errors.Is(err, errConflict) {
		g.answerAsk(m, c, r, err)
		return
	}
	g.answerFault(m, c.ask.ID, protocol.Fault{Code: protocol.CodeUnavailable, Message: unavailableReason(err), Remedy: "ask again with the same id"})
	g.fail("unrecorded", "relayed ask could not be decided on the record", c.ask.ID, err)
}

// serveWithdraw takes back what the same child has relayed, as a cancel does an
// agent's own ask.
func (g *Gate) serveWithdraw(m *nats.Msg) {
	ctx, cancel := context.WithTimeout(context.Background(), serveTime)
	defer cancel()
	child, _, ok := g.asker(m)
	if !ok {
		return
	}
	if c, ok := g.readCancel(m); ok {
		g.answerCancel(ctx, m, c, protocol.Ask{Hops: []string{child}}, func(a protocol.Ask) bool { return a.Via() == child })
	}
}
