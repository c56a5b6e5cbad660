package gate

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/pkg/protocol"
)

// freezes are the operators' stops in force at this gate, and the allows that it
// is recording. Whoever asks it to confirm a freeze hears so only when no allow
// from before is on its way any more: looked at before the freeze and recorded
// behind it, such an allow would belie the confirmation.
type freezes struct {
	mu  sync.Mutex
	now layers.Freezes
	// age counts the changes; passing are the allows on their way, by the age at
	// which they were looked at.
	age     uint64
	passing map[uint64]*passage
}

// passage are the allows that passed at one age.
type passage struct {
	under int
	// unsure is until when one may still arrive whose record was never
	// acknowledged.
	unsure time.Time
}

// lateRecord is how long a record may be under way whose acknowledgement the gate
// has given up on: a message that a server holds longer than that is none that it
// took from this connection.
const lateRecord = 10 * time.Second

func newFreezes() *freezes { return &freezes{passing: map[uint64]*passage{}} }

// swap puts the freezes of a new moment in force.
func (f *freezes) swap(now layers.Freezes) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now, f.age = now, f.age+1
}

func (f *freezes) current() layers.Freezes {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// of is the freeze that an ask falls under, if any.
func (f *freezes) of(agent, via string, s protocol.Session) (layers.Freeze, bool) {
	return f.current().Of(agent, via, s)
}

// pass lets an allow through to the record unless it is frozen. done must be
// called when its record stands or failed; unsure says that nobody knows which.
func (f *freezes) pass(d protocol.Decision) (done func(unsure bool), by layers.Freeze, frozen bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if by, frozen = f.now.Of(d.Agent, d.Via, d.Session); frozen {
		return nil, by, true
	}
	age, p := f.age, f.passing[f.age]
	if p == nil {
		p = &passage{}
		f.passing[age] = p
	}
	p.under++
	return func(unsure bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		p.under--
		if unsure {
			p.unsure = time.Now().Add(lateRecord)
		}
	}, layers.Freeze{}, false
}

// settledBefore says whether no allow is on its way that was looked at before age.
func (f *freezes) settledBefore(age uint64, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for at, p := range f.passing {
		switch {
		case p.under == 0 && !now.Before(p.unsure):
			delete(f.passing, at)
		case at < age:
			return false
		}
	}
	return true
}

// at is the revision that a key is known at, and the age of that.
func (f *freezes) at(key string) (revision, age uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now.Revision(key), f.age
}

// frozen is how an ask ends that falls under a freeze.
func frozen(by layers.Freeze) ending {
	return denial(protocol.Frozen, protocol.Safe(by.Reason(), protocol.MaxReason, true))
}

// frozenCall answers an ask that falls under a freeze; ok is false for any other.
func (g *Gate) frozenCall(ctx context.Context, c call) (r reply, ok bool, err error) {
	d := g.newDecision(c.ask, c.digest, c.requester, c.askedAt)
	by, ok := g.policy.freezes.of(d.Agent, d.Via, d.Session)
	if !ok {
		return reply{}, false, nil
	}
	end := frozen(by)
	d.Result, d.Outcome, d.Reason, d.DecidedBy = end.result, end.outcome, end.reason, end.by
	d.DecidedBy.Name, d.DecidedBy.Node = g.name, g.node
	r, err = g.record(ctx, d)
	return r, true, err
}

// commit records d; in place of an allow that a freeze stops at this last moment,
// the denial that the freeze makes of it. It returns the decision that stands, and
// its text if that is this one.
//
// Every allow comes through here, whoever gave it and whenever the freeze came.
func (g *Gate) commit(ctx context.Context, d protocol.Decision) (protocol.Decision, []byte, error) {
	if d.Result != protocol.FinalAllow {
		return g.recorder.write(ctx, d)
	}
	// By the freezes of this moment: the gate may have been away since it ruled.
	if err := g.known(ctx); err != nil {
		return protocol.Decision{}, nil, fmt.Errorf("recording decision on %s: %w", d.Ask, err)
	}
	done, by, stopped := g.policy.freezes.pass(d)
	if stopped {
		return g.recorder.write(ctx, g.stopped(d, by))
	}
	stored, text, err := g.recorder.write(ctx, d)
	done(err != nil)
	return stored, text, err
}

// stopped is an allow as a freeze leaves it. Who allowed, and what was changed,
// stays on the record; what was granted with it is not.
func (g *Gate) stopped(d protocol.Decision, by layers.Freeze) protocol.Decision {
	end := frozen(by)
	d.Result, d.Outcome, d.Reason, d.Grant = end.result, end.outcome, end.reason, nil
	d.DecidedBy = end.by
	d.DecidedBy.Name, d.DecidedBy.Node = g.name, g.node
	return d
}

// freezing puts freezes in force and ends the open asks that fall under them.
func (g *Gate) freezing(now layers.Freezes) {
	g.policy.freezes.swap(now)
	for _, id := range g.mirror.freeze(now) {
		// Ours is interrupted, and what nobody carries is taken up; what another gate
		// carries is that gate's to end.
		g.desk.interrupt(id)
		if s, open := g.mirror.get(id); open && s.due(time.Now()) {
			g.takeUp(id)
		}
	}
}

// serveConfirm tells an operator when this gate acts by a freeze, or by its end.
func (g *Gate) serveConfirm(m *nats.Msg) {
	if !protocol.ReplyFrom(protocol.RoleOperator, m.Reply) {
		g.drop(m, "reply subject is no operator's inbox", nil)
		return
	}
	c, err := protocol.Read[protocol.Confirm](m.Data)
	if err != nil {
		g.answerFault(m, "", protocol.Fault{Code: protocol.CodeInvalid, Message: protocol.Safe(err.Error(), 500, false)})
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), g.times.patience)
	defer cancel()
	revision, err := g.confirm(ctx, c)
	if err != nil {
		g.count("confirm", "late")
		g.log.Warn("freeze is not confirmed", "key", c.Key, "revision", c.Revision, "err", err)
		g.answerFault(m, "", protocol.Fault{Code: protocol.CodeUnavailable, Message: protocol.Safe(err.Error(), 500, false), Remedy: "ask again in a moment"})
		return
	}
	send(g, m, protocol.Confirmed{Gate: g.name, Key: c.Key, Revision: revision})
}

// confirm waits until this gate acts by c's revision of a freeze's key, or by a
// newer one, and until no allow from before is on its way. errStale where it
// cannot tell what is in force, errBehind where it does not get there in time.
func (g *Gate) confirm(ctx context.Context, c protocol.Confirm) (uint64, error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		if err := g.policy.await(ctx); err != nil {
			return 0, err
		}
		revision, age := g.policy.freezes.at(c.Key)
		if revision >= c.Revision && g.policy.freezes.settledBefore(age, time.Now()) {
			return revision, nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: key %s is known at revision %d, asked about %d", errBehind, c.Key, revision, c.Revision)
		case <-g.stopping:
			return 0, errStopping
		case <-time.After(wait):
		}
	}
}
