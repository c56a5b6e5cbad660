package gate

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// limitWindow is how long an agent that is over a limit is spoken of once.
const limitWindow = 10 * time.Second

// The limits, as the policy names them.
const (
	limitRate    = "asksPerSecond"
	limitPending = "pending"
)

// limits bound how fast one agent may ask, so that it does not fill the disk.
type limits struct {
	mu     sync.Mutex
	agents map[string]*bucket
}

type bucket struct {
	*rate.Limiter
	used, told time.Time
}

func newLimits() *limits { return &limits{agents: map[string]*bucket{}} }

// payer is on whose account an ask is counted: its agent's or, together with all
// others that it relays, a child node's. A credential of a child can give its
// agents any number of names.
func payer(ask protocol.Ask) string {
	if via := ask.Via(); via != "" {
		return "/" + via // no agent has that name
	}
	return ask.Agent
}

// tooFast says whether c comes faster than its agent may ask.
func (l *limits) tooFast(c call, s *policy.Snapshot) bool {
	return !l.bucket(payer(c.ask), s.Limits().AsksPerSecond, c.askedAt).AllowN(c.askedAt, 1)
}

// withdrawsTooFast says whether withdrawals come faster than there can be asks to
// withdraw. Each costs a look into the bucket, and room that others need.
func (g *Gate) withdrawsTooFast(payer string) bool {
	now, limit := time.Now(), g.policy.current().Limits()
	return !g.withdrawals.bucket(payer, max(limit.AsksPerSecond, limit.Pending), now).AllowN(now, 1)
}

func (l *limits) bucket(agent string, perSecond int, now time.Time) *bucket {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.agents[agent]
	if b == nil || b.Burst() != perSecond {
		b = &bucket{Limiter: rate.NewLimiter(rate.Limit(perSecond), perSecond)}
		l.agents[agent] = b
	}
	b.used = now
	return b
}

// tell says whether agent's being over has to be recorded now: once a window.
func (l *limits) tell(agent string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.agents[agent]
	if b == nil || now.Sub(b.told) < limitWindow {
		return false
	}
	b.told = now
	return true
}

// forget drops the agents that have not asked for a while; their buckets are
// full again.
func (l *limits) forget(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for agent, b := range l.agents {
		if now.Sub(b.used) > 10*limitWindow {
			delete(l.agents, agent)
		}
	}
}

// crowded answers an ask that would be open beside too many others of its
// agent: by its decision, if it comes again after it was settled.
func (g *Gate) crowded(ctx context.Context, c call) (reply, error) {
	if r, decided, err := g.standing(ctx, c); decided || err != nil {
		return r, err
	}
	return g.limited(c, limitPending), nil
}

// limited answers an ask that is over a limit: deny, not stored, so the id is
// not used up.
func (g *Gate) limited(c call, which string) reply {
	g.count("rate_limited", which)
	d := g.newDecision(c.ask, c.digest, c.requester, c.askedAt)
	d.Result, d.Outcome, d.Reason = protocol.FinalDeny, protocol.RateLimited, overLimit(c.ask, which)
	d.DecidedBy = protocol.Decider{Kind: protocol.DeciderGate, Node: g.node}
	if g.limits.tell(payer(c.ask), c.askedAt) {
		g.review.limited(d, which)
	}
	return reply{decision: &d}
}

func overLimit(ask protocol.Ask, which string) string {
	if via := ask.Via(); via != "" {
		return "Node " + via + " is over its limit at its parent: " + which + "."
	}
	return "This agent is over its limit: " + which + "."
}
