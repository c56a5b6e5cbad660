package gate

import (
	"context"
	"errors"
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
// other to see. After stop nothing is started: false.
func (d *desk) start(id string, work func(context.Context)) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return false
	}
	if j, busy := d.running[id]; busy {
		j.again = work
		return true
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
	return true
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

// run carries h on in a goroutine of the desk; false where the gate stops.
func (g *Gate) run(h *held) bool {
	return g.desk.start(h.item().Ask.ID, func(ctx context.Context) { g.carryOn(ctx, h) })
}

// carryOn carries h to its end or gives it up, never neither.
func (g *Gate) carryOn(ctx context.Context, h *held) {
	p := h.item().Pending
	defer g.broken(p.Ask.ID, nil)
	work, cancel := context.WithDeadlineCause(ctx, p.Deadline, errInterrupted)
	defer cancel()
	err := g.holding(work, h)
	defer func() { h.leftBy(err) }()
	defer g.mirror.unopened(p.Ask.ID, &h.fate) // before: whoever hears so may ask again at once
	switch {
	case err == nil, errors.Is(err, errElsewhere):
	case errors.Is(err, errStopping):
		g.hand(h)
	case h.store() != nil: // whoever has asked hears so
	case errors.Is(err, errBroken): // which is said
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
// the end must not be cut off by the interruption that led to it. A panic is an
// error of it: an ask that breaks the gate before it is stored is to be stored.
func (g *Gate) holding(ctx context.Context, h *held) (err error) {
	defer g.broken(h.item().Ask.ID, &err)
	work, interrupt := context.WithCancelCause(ctx)
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { h.renew(renewing, interrupt) })
	defer wg.Wait()
	defer stop()
	defer interrupt(nil)
	return g.carry(work, h)
}

// hand gives an ask up for another gate, or for this one when it looks again.
func (g *Gate) hand(h *held) {
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	if err := h.release(ctx); err != nil && !errors.Is(err, errLost) && !errors.Is(err, errElsewhere) {
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
		g.mirror.gone(c.ID)
		g.gone(c.ID)
	default:
		s := g.mirror.put(c.Item)
		if s.late {
			g.late(c.ID)
			return
		}
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
	defer g.broken(p.Ask.ID, nil)
	finish, done := finishing(ctx)
	defer done()
	d, decided, err := g.recorder.Find(finish, p.Ask.ID)
	switch {
	case err == nil && !decided:
		g.carryOn(ctx, h)
		return
	case err == nil:
		err = g.end(finish, h, d, nil)
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
			g.mirror.forgetSettled(now)
			g.again.forget(now)
			g.uploads.forget(now)
			g.withdrawals.forget(now)
		}
	}
}
