package gate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

// desk runs the asks that this gate carries, at most one goroutine for each.
type desk struct {
	mu      sync.Mutex
	running map[string]*job
	stopped bool
	wg      sync.WaitGroup
}

// job is the work on one ask.
type job struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	again  func(context.Context) // came while it ran
}

func newDesk() *desk { return &desk{running: map[string]*job{}} }

// start runs work for ask id. What comes while other work on id runs is run
// behind it, once: the change that it is about may have come too late for the
// other to see. After stop nothing is started.
func (d *desk) start(id string, work func(context.Context)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return
	}
	if j, busy := d.running[id]; busy {
		j.again = work
		return
	}
	j := &job{}
	j.ctx, j.cancel = context.WithCancelCause(context.Background())
	d.running[id] = j
	d.wg.Go(func() {
		for work != nil {
			work(j.ctx)
			work = d.next(id, j)
		}
	})
}

// next ends one piece of work of j and returns the one behind it, if any.
func (d *desk) next(id string, j *job) func(context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	j.cancel(nil)
	work := j.again
	if work == nil || d.stopped {
		delete(d.running, id)
		return nil
	}
	j.again = nil
	j.ctx, j.cancel = context.WithCancelCause(context.Background())
	return work
}

// interrupt tells the work on id to look at the entry again.
func (d *desk) interrupt(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if j, ok := d.running[id]; ok {
		j.cancel(errInterrupted)
	}
}

// stop ends all work and waits for it: each ask is released for another gate.
func (d *desk) stop() {
	d.mu.Lock()
	d.stopped = true
	for _, j := range d.running {
		j.cancel(errStopping)
	}
	d.mu.Unlock()
	d.wg.Wait()
}

// open makes the ask durable and owned by this gate, and begins to carry it on.
// The role and the chain are fixed here, before the first link.
// errCrowded where its agent has as many open as it may.
func (g *Gate) open(ctx context.Context, c call, r ruled) error {
	done, room := g.mirror.reserve(payer(c.ask), c.ask.ID, r.snapshot.Limits().Pending)
	if !room {
		return errCrowded
	}
	defer done()
	p := g.newPending(c, r)
	item, err := g.pending.Create(ctx, p)
	if errors.Is(err, pending.ErrExists) {
		// Another gate was faster: join its ask, if it is the same call.
		return g.sameCall(ctx, c)
	}
	if errors.Is(err, protocol.ErrTooLarge) {
		_, rerr := g.record(ctx, g.refuse(c, protocol.Invalid, "The call is too large to be put to a judge or a person."))
		return rerr
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUnrecorded, err)
	}
	// Only now is it certain that no other gate can decide unseen: a decision
	// made before the entry was created is in the stream, and a later one would
	// have had to create the entry first. Without this look, a retry that comes
	// after the settlement would ask a person twice.
	d, decided, err := g.recorder.Find(ctx, c.ask.ID)
	if err != nil || decided {
		return errors.Join(err, g.pending.Delete(ctx, c.ask.ID), g.sameDecision(c, d, decided))
	}
	g.mirror.put(item)
	h := g.keep(item)
	if item.Role == protocol.TerminalParent {
		g.review.delegated(item.Pending, r.snapshot.Chain(), g.presence.parent(time.Now()))
	}
	g.run(h)
	return nil
}

func (g *Gate) sameCall(ctx context.Context, c call) error {
	item, err := g.pending.Get(ctx, c.ask.ID)
	if errors.Is(err, pending.ErrGone) {
		return nil // settled meanwhile: wait finds the decision
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUnrecorded, err)
	}
	if item.Digest != c.digest || item.Ask.Agent != c.ask.Agent {
		return errConflict
	}
	return nil
}

func (g *Gate) sameDecision(c call, d protocol.Decision, decided bool) error {
	if decided && (d.CallDigest != c.digest || d.Agent != c.ask.Agent) {
		return errConflict
	}
	return nil
}

func (g *Gate) newPending(c call, r ruled) protocol.Pending {
	now := time.Now().UTC()
	s := r.snapshot
	wait := s.Terminal().MaxWait
	if w := c.ask.MaxWait(); w > 0 {
		wait = min(wait, w)
	}
	role, chain := g.role(c.ask, s), s.Chain()
	if role == protocol.TerminalParent {
		chain = nil // one chain for an ask: the parent's
	}
	p := protocol.Pending{
		Ask: c.ask, Digest: c.digest, Node: g.node, Via: c.ask.Via(), Requester: c.requester,
		Asks: r.open(), Units: r.units(), Suggest: r.ruling.Suggest, Prompt: r.prompt(c.ask), Policy: r.ref(),
		Role: role, Chain: chain, Since: now, Deadline: now.Add(wait), Owner: g.name, Lease: now.Add(g.times.lease),
	}
	p.Stage = nextStage(p)
	return p
}

// run carries h on in a goroutine of the desk.
func (g *Gate) run(h *held) {
	g.desk.start(h.item().Ask.ID, func(ctx context.Context) { g.carryOn(ctx, h) })
}

// carryOn carries h to its end or gives it up, never neither.
func (g *Gate) carryOn(ctx context.Context, h *held) {
	p := h.item().Pending
	defer g.broken(p.Ask.ID)
	work, cancel := context.WithDeadlineCause(ctx, p.Deadline, errInterrupted)
	defer cancel()
	err := g.holding(work, h)
	switch {
	case err == nil:
	case errors.Is(err, errStopping):
		g.hand(h)
	case errors.Is(err, errLost):
		g.count("lease", "lost")
		g.log.Warn("lease was lost; whoever finds it lapsed carries the ask on", "ask", p.Ask.ID, "err", err)
	default:
		// The lease is left to lapse, and the ask is tried again then: given up at
		// once it would be taken up at once, and a stream that refuses be hammered.
		g.fail("carry", "ask could not be carried on; it stays pending and is tried again", p.Ask.ID, err)
	}
}

// holding carries h on while its lease is renewed beside it. What is written at
// the end must not be cut off by the interruption that led to it.
func (g *Gate) holding(ctx context.Context, h *held) error {
	work, interrupt := context.WithCancelCause(ctx)
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { h.renew(renewing, func(err error) { interrupt(fmt.Errorf("%w: %w", errLost, err)) }) })
	defer wg.Wait()
	defer stop()
	defer interrupt(nil)
	return g.carry(work, h)
}

// hand gives an ask up for another gate, or for this one when it looks again.
func (g *Gate) hand(h *held) {
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	if err := h.release(ctx); err != nil && !errors.Is(err, errLost) {
		g.log.Warn("lease is left to lapse", "ask", h.item().Ask.ID, "err", err)
	}
}

// seen takes in one change of the bucket.
func (g *Gate) seen(c pending.Change) {
	switch {
	case c.Err != nil:
		g.mirror.drop(c.ID)
		g.fail("pending_broken", "pending entry cannot be read; it is not acted on", c.ID, c.Err)
	case c.Gone:
		g.mirror.drop(c.ID)
		g.gone(c.ID)
	default:
		s := g.mirror.put(c.Item)
		if s.ended || s.frozen {
			g.desk.interrupt(c.ID)
		}
		if s.due(time.Now()) {
			g.takeUp(c.ID)
		}
		g.missed(c.ID, s)
	}
}

// gone wakes those who wait here for an ask that is not open any more.
func (g *Gate) gone(id string) {
	if g.waiters.waiting(id) {
		g.desk.start("wake "+id, func(ctx context.Context) { g.wakeDecided(ctx, id) })
	}
}

// wakeDecided hands a decision that another gate recorded to those who wait
// here.
func (g *Gate) wakeDecided(ctx context.Context, id string) {
	if d, ok, err := g.recorder.Find(ctx, id); err == nil && ok {
		g.waiters.wake(d)
	}
}

// takeUp claims an ask that is due and carries it on from where it stands.
func (g *Gate) takeUp(id string) {
	g.desk.start(id, func(ctx context.Context) {
		// Not cut off: the claim's own change shows an ask that ended, and so
		// interrupts. Cut off there it would own the ask and not know it.
		h, err := g.claim(context.WithoutCancel(ctx), id)
		switch {
		case err == nil:
			g.resume(ctx, h)
		case errors.Is(err, pending.ErrGone):
			g.mirror.drop(id) // the watch missed its end
		case !errors.Is(err, errLost):
			g.fail("claim", "ask could not be taken up; it is tried again", id, err)
		}
	})
}

// resume carries on what was taken up, unless it is decided already: its gate
// died between the record and the end of the entry, or it is the trace of a retry
// that came behind the decision. By the rules of this moment such an ask may be
// open again, but nobody may be asked about it, nor told that an answer counts. One
// that is answered meets the record when it is settled.
func (g *Gate) resume(ctx context.Context, h *held) {
	p := h.item().Pending
	if p.Verdict != nil {
		g.carryOn(ctx, h)
		return
	}
	defer g.broken(p.Ask.ID)
	finish, done := finishing(ctx)
	defer done()
	d, decided, err := g.recorder.Find(finish, p.Ask.ID)
	switch {
	case err == nil && !decided:
		g.carryOn(ctx, h)
		return
	case err == nil:
		err = g.end(finish, p, d)
	}
	if err != nil {
		g.fail("claim", "ask that was taken up could not be looked up in the record, or ended by it; it is tried again", p.Ask.ID, err)
	}
}

// sweep looks for asks that are due until ctx ends.
func (g *Gate) sweep(ctx context.Context) {
	tick := time.NewTicker(g.times.sweep)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for _, id := range g.mirror.due(now) {
				g.takeUp(id)
			}
			g.limits.forget(now)
			g.again.forget(now)
			g.uploads.forget(now)
			g.withdrawals.forget(now)
		}
	}
}
