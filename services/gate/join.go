package gate

import (
	"context"
	"time"

	"github.com/assent-dev/assent/pkg/protocol"
)

// join answers an ask that is open already, here or at another gate; ok is
// false for one that this gate does not know to be open. It may be decided
// already: then the record refuses a second decision and says which stands.
func (g *Gate) join(ctx context.Context, c call) (r reply, ok bool, err error) {
	s, open := g.mirror.get(c.ask.ID)
	if !open {
		return reply{}, false, nil
	}
	if !s.isOf(c) {
		// Each costs a look into the record, which everybody's asks need.
		if g.limits.tooFast(c, g.policy.current()) {
			return g.limited(c, limitRate), true, nil
		}
		// It may be the trace of another call that came under the id of this one
		// after its decision, and is on its way out again.
		if r, ok, err := g.standing(ctx, c); ok {
			return r, true, err
		}
		return reply{}, true, errConflict
	}
	r, err = g.wait(ctx, c, g.bear(c, g.times.patience))
	return r, true, err
}

// isOf says whether c is the call that is open.
func (s summary) isOf(c call) bool { return s.digest == c.digest && s.agent == c.ask.Agent }

// lag is how long the mirror may need to show what is in the bucket.
const lag = 100 * time.Millisecond

// lastLook bounds the look into the record before Progress: with patience it
// stays within the contract's 5 s, even where JetStream is dead.
const lastLook = 800 * time.Millisecond

// wait waits for the decision on an open ask, for limit at most, and else
// answers Progress: the ask is pending, and a record that cannot be read now
// decides nothing, neither yes nor no.
func (g *Gate) wait(ctx context.Context, c call, limit time.Duration) (reply, error) {
	decided, leave, ok := g.waiters.await(c.ask.ID, maxWaiting)
	if !ok {
		g.count("waiting", "full")
		p := g.progress(c)
		return reply{progress: &p}, nil
	}
	defer leave()
	if r, err := g.opened(ctx, c); err != nil || r.decision != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		_, open := g.mirror.get(c.ask.ID)
		var look <-chan time.Time
		if !open {
			// Settled before this wait began, so that nobody will wake it; or the
			// mirror does not show it yet.
			if r, ok, err := g.standing(ctx, c); ok {
				return r, err
			}
			look = time.After(lag)
		}
		select {
		case d := <-decided:
			return g.own(c, d)
		case <-look:
			continue
		case <-g.stopping:
		case <-ctx.Done():
		}
		return g.meanwhile(ctx, c)
	}
}

// opened waits until an ask that is in this gate's memory alone is stored, or is
// decided, or could not be stored: before that Progress would promise too much.
func (g *Gate) opened(ctx context.Context, c call) (reply, error) {
	s, open := g.mirror.get(c.ask.ID)
	if !open || s.fate == nil {
		return reply{}, nil
	}
	r, err := s.fate.wait(ctx)
	if err != nil || r.decision == nil {
		return reply{}, err
	}
	return g.own(c, *r.decision)
}

// meanwhile answers an ask that is not decided yet.
func (g *Gate) meanwhile(ctx context.Context, c call) (reply, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	if r, ok, err := g.standing(ctx, c); ok {
		return r, err
	} else if err != nil {
		g.count("record", "unread")
		g.log.Warn("the record could not be read; the asker is told that its ask is pending", "ask", c.ask.ID, "err", err)
	}
	p := g.progress(c)
	return reply{progress: &p}, nil
}

// progress is how far an ask that was stored has come. As it stands now, not as it
// stood when a wait began: it may have gone past a link that nobody runs since,
// and a person is waited for.
func (g *Gate) progress(c call) protocol.Progress {
	s, open := g.mirror.get(c.ask.ID)
	if !open {
		s = summary{stage: protocol.StageSettling, since: c.askedAt}
	}
	return s.progress(c.ask.ID)
}

// standing looks the decision up in the stream; ok is false when there is none
// or, with an error, when it cannot be told.
func (g *Gate) standing(ctx context.Context, c call) (r reply, ok bool, err error) {
	d, decided, err := g.recorder.Find(ctx, c.ask.ID)
	if err != nil || !decided {
		return reply{}, false, err
	}
	r, err = g.own(c, d)
	return r, true, err
}

// own hands a decision to the one whose call it is about.
func (g *Gate) own(c call, d protocol.Decision) (reply, error) {
	if d.CallDigest != c.digest || d.Agent != c.ask.Agent {
		return reply{}, errConflict
	}
	return reply{decision: &d}, nil
}
