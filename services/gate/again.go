package gate

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

const (
	// revisitors is how many waiting asks a gate looks at beside each other.
	revisitors = 4
	// newlyGranted is how long after a grant the asks of its agent are looked at
	// as they come to wait: longer than the watch may lag behind.
	newlyGranted = 10 * time.Second
)

// again is what is to be ruled once more, because a grant or a policy came after
// the ask was opened. What is lost of it costs a person an answer, and nothing
// else: the rules of that moment stand before every allow in any case.
type again struct {
	mu      sync.Mutex
	queue   []string
	queued  map[string]bool      // never more than asks wait
	granted map[string]time.Time // by agent, when this gate stored a grant
	more    chan struct{}
}

func newAgain() *again {
	return &again{queued: map[string]bool{}, granted: map[string]time.Time{}, more: make(chan struct{}, 1)}
}

// add queues asks, each once, in the order given.
func (a *again) add(ids ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range ids {
		if !a.queued[id] {
			a.queued[id] = true
			a.queue = append(a.queue, id)
		}
	}
	a.nudge()
}

// next takes one ask from the queue.
func (a *again) next() (id string, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) == 0 {
		return "", false
	}
	id, a.queue = a.queue[0], a.queue[1:]
	delete(a.queued, id)
	a.nudge() // another one may take the next
	return id, true
}

// nudge wakes one who waits, if there is anything to do.
func (a *again) nudge() {
	if len(a.queue) > 0 {
		select {
		case a.more <- struct{}{}:
		default: // there is a nudge already
		}
	}
}

func (a *again) note(agent string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.granted[agent] = now
}

func (a *again) lately(agent string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return now.Sub(a.granted[agent]) < newlyGranted
}

// forget drops the agents to whom nothing was granted for a while.
func (a *again) forget(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for agent, at := range a.granted {
		if now.Sub(at) >= newlyGranted {
			delete(a.granted, agent)
		}
	}
}

// newPolicy has every ask that waits for a person looked at again.
func (g *Gate) newPolicy() { g.again.add(g.mirror.waiting("")...) }

// newGrant has the agent's asks that wait looked at again, and those that come to
// wait in the next seconds: one that was ruled before the grant was stored may not
// have reached this gate's mirror yet.
func (g *Gate) newGrant(agent string) {
	g.again.note(agent, time.Now())
	g.again.add(g.mirror.waiting(agent)...)
}

// missed has an ask looked at again that came to wait after the news it may be
// settled by.
func (g *Gate) missed(id string, s summary) {
	if s.waits() && (s.policy != g.policy.current().Revision() || g.again.lately(s.agent, time.Now())) {
		g.again.add(id)
	}
}

// revisit looks at what is queued until ctx ends.
func (g *Gate) revisit(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.again.more:
		}
		for id, ok := g.again.next(); ok && ctx.Err() == nil; id, ok = g.again.next() {
			g.ruleAgain(ctx, id)
		}
	}
}

// ruleAgain settles an ask that waits for a person, if nobody needs to be asked
// any more. It is looked at before it is claimed: most stay as they are.
func (g *Gate) ruleAgain(ctx context.Context, id string) {
	defer g.broken(id, nil)
	item, err := g.pending.Get(ctx, id)
	switch {
	case errors.Is(err, pending.ErrGone), errors.Is(err, pending.ErrBroken): // the watch has told
		return
	case err == nil && (item.Owner != "" || !g.takesAnswer(item.Pending)):
		return
	case err == nil && !g.needsNobody(ctx, item.Pending):
		return
	}
	var h *held
	if err == nil {
		h, err = g.claimToSettle(context.WithoutCancel(ctx), id)
	}
	switch {
	case err == nil:
		g.carryOn(context.WithoutCancel(ctx), h)
	case ctx.Err() == nil && !errors.Is(err, errLost):
		g.count("again", "error")
		g.log.Warn("ask that waits could not be ruled again; it goes on waiting", "ask", id, "err", err)
	}
}

// takesAnswer says whether nothing has ended p yet.
func (g *Gate) takesAnswer(p protocol.Pending) bool {
	return !interruption(p, g.policy.freezes.current(), time.Now()).decided()
}

// claimToSettle takes over an ask that waits for a person, and closes it to
// answers: one that was accepted and then overtaken by a grant would be a lie to
// whoever gave it.
func (g *Gate) claimToSettle(ctx context.Context, id string) (*held, error) {
	return g.claimIf(ctx, id, func(p *protocol.Pending) error {
		if !g.takesAnswer(*p) {
			return errLost
		}
		p.Stage = protocol.StageSettling
		return nil
	})
}

// needsNobody says whether the rules and grants of this moment would settle p.
// Nothing is used up by it.
func (g *Gate) needsNobody(ctx context.Context, p protocol.Pending) bool {
	r, err := g.ruleOpen(ctx, p, spendNothing)
	return err == nil && r.settled()
}

// ruleOpen rules an open ask as one that comes now is ruled.
func (g *Gate) ruleOpen(ctx context.Context, p protocol.Pending, use spend) (ruled, error) {
	if err := g.known(ctx); err != nil {
		return ruled{}, err
	}
	r, err := g.ruleEntry(ctx, p, p.Ask)
	if err != nil {
		return ruled{}, err
	}
	return g.cleared(ctx, callOf(p), r, use), nil
}

// callOf is the call that an entry is about.
func callOf(p protocol.Pending) call {
	return call{ask: p.Ask, digest: p.Digest, requester: p.Requester, askedAt: p.Since}
}

// settledByNow ends an ask without anybody, where what was granted or written
// into the policy since it was opened leaves nothing to ask. The zero ending
// means that somebody has to be asked.
func (g *Gate) settledByNow(ctx context.Context, h *held) (ending, error) {
	p := h.item().Pending
	if p.Stage != protocol.StageSettling {
		if !g.hasNews(p) || !g.needsNobody(ctx, p) {
			return ending{}, nil
		}
		if err := h.update(ctx, g.closeToAnswers); err != nil {
			return ending{}, err
		}
		if p = h.item().Pending; p.Stage != protocol.StageSettling {
			return ending{}, errInterrupted
		}
	}
	r, err := g.ruleOpen(ctx, p, g.use)
	if err == nil && r.settled() {
		return byRuling(r, r.decision(g, callOf(p))), nil
	}
	if err != nil {
		g.count("again", "error")
		g.log.Warn("ask could not be ruled again; a person decides", "ask", p.Ask.ID, "err", err)
	}
	// Used up by another call, revoked or overtaken by another policy meanwhile.
	return ending{}, h.update(ctx, func(p *protocol.Pending) { p.Stage = nextStage(*p) })
}

// hasNews says whether a grant or a policy may have come since p was ruled: where
// links took their time, or another gate fell silent over an ask that a person has
// before them. What falls between is seen when the ask waits.
func (g *Gate) hasNews(p protocol.Pending) bool {
	return len(p.Chain) > 0 || !p.Taken.IsZero() || p.Policy.Revision != g.policy.current().Revision()
}

// closeToAnswers closes an ask to answers that nobody has answered or ended.
func (g *Gate) closeToAnswers(p *protocol.Pending) {
	if g.takesAnswer(*p) {
		p.Stage = protocol.StageSettling
	}
}

// byRuling is how recorded authority ends an ask that was open, with the decision
// that it would be for one that comes now.
func byRuling(r ruled, d protocol.Decision) ending {
	return ending{result: d.Result, outcome: d.Outcome, reason: d.Reason, by: d.DecidedBy, approver: d.Approver, ruled: &r}
}

// ruledAs writes into d what settled it, if that was recorded authority.
func (e ending) ruledAs(d *protocol.Decision) {
	if e.ruled == nil {
		return
	}
	e.ruled.describe(d)
	if len(e.ruled.ruling.Cleared) > 0 && d.Outcome == protocol.AllowedByGrant {
		d.Asks = entries(e.ruled.ruling.Cleared)
	}
}

// broken keeps one call that breaks the gate from breaking every gate in turn; err,
// if not nil, becomes errBroken.
func (g *Gate) broken(id string, err *error) {
	if broke := recover(); broke != nil {
		if err != nil {
			*err = errBroken
		}
		g.log.Error("carrying an ask panicked", "ask", id, "panic", broke, "stack", string(debug.Stack()))
		g.fail("panic", "ask could not be carried on; it stays pending and is tried again", id, fmt.Errorf("panic: %v", broke))
	}
}

// waiting are the asks that wait for a person, oldest first; of one agent or, for
// "", of all.
func (m *mirror) waiting(agent string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []string
	for id, s := range m.open {
		if s.waits() && (agent == "" || s.agent == agent) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids) // an id begins with its time
	return ids
}

// waits: nobody carries it on, and a person has been asked.
func (s summary) waits() bool { return s.owner == "" && s.taken && !s.ended && !s.frozen }
