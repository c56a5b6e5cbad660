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

// recall looks, side by side, what a person has allowed before and whether this
// very ask was decided before: no link is asked about one that was.
func (g *Gate) recall(ctx context.Context, c call, r ruled) (ruled, reply, error) {
	if r.settled() {
		return r, reply{}, nil
	}
	var known reply
	var err error
	var wg sync.WaitGroup
	wg.Go(func() { known, _, err = g.standing(ctx, c) })
	r = g.granted(ctx, c, r)
	wg.Wait()
	if err != nil && !errors.Is(err, errConflict) {
		err = fmt.Errorf("%w: %w", errUnrecorded, err)
	}
	return r, known, err
}

// open begins to carry an ask on, and returns when it is decided or stored,
// whichever comes first: no decision with no error says that it is stored, or open
// already. The role and the chain are fixed here, before the first link.
//
// errCrowded where its agent has as many open as it may.
func (g *Gate) open(ctx context.Context, c call, r ruled) (reply, error) {
	h := g.hold(c, g.newPending(c, r))
	p := h.item().Pending
	switch here, room := g.mirror.begin(h.item(), &h.fate, r.snapshot.Limits().Pending); {
	case here: // it came twice at once, and is joined
		return reply{}, g.sameHere(c)
	case !room:
		return reply{}, errCrowded
	}
	if p.Role == protocol.TerminalParent {
		g.review.delegated(p, r.snapshot.Chain(), g.presence.parent(time.Now()))
	}
	if !g.run(h) {
		g.mirror.unopened(p.Ask.ID, &h.fate)
		return reply{}, errStopping
	}
	select {
	case <-g.stopping: // not when its time comes: whoever asks is to hear now that it is pending
		_ = h.store() // what is wrong with it, whoever carries it finds too
	case <-h.fate.known:
	case <-ctx.Done():
	}
	return h.fate.wait(ctx)
}

// hold makes an ask this gate's own that is in its memory alone. That it cannot be
// stored ends the walk, and is said behind that (see carryOn): a link may have
// decided at that moment, and then that is what became of it.
func (g *Gate) hold(c call, p protocol.Pending) *held {
	h := g.keep(pending.Item{Pending: p})
	h.store = sync.OnceValue(func() error {
		err := g.store(h, c)
		if err == nil {
			h.fate.is(reply{}, nil)
		}
		return err
	})
	return h
}

// store makes an open ask durable: from then on any gate can carry it through.
// errElsewhere where another gate has it, or has decided it; errConflict with it
// where that was another call.
//
// A gate that dies before takes the ask with it, as it takes one that it rules:
// nobody but a link has heard of it, and its adapter, which gets no answer, asks
// the next gate with the same id.
func (g *Gate) store(h *held, c call) error {
	ctx, cancel := context.WithTimeout(context.Background(), g.times.patience)
	defer cancel()
	created, err := h.create(ctx)
	switch {
	case errors.Is(err, pending.ErrExists):
		return errors.Join(errElsewhere, g.sameCall(ctx, c))
	case errors.Is(err, protocol.ErrTooLarge):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", errUnrecorded, err)
	case !created: // it has ended
		return nil
	}
	// Only now is it certain that no other gate decides unseen: a decision made
	// before the entry was created is in the stream, and whoever makes a later one
	// looks for the entry then and takes it away (see close). Without this look, a
	// retry that comes after the settlement would ask a person twice.
	d, decided, err := g.recorder.Find(ctx, c.ask.ID)
	switch {
	case err != nil:
		return errors.Join(fmt.Errorf("%w: %w", errUnrecorded, err), g.pending.Delete(ctx, c.ask.ID))
	case decided:
		_, conflict := g.own(c, d)
		return errors.Join(errElsewhere, conflict, g.pending.Delete(ctx, c.ask.ID))
	}
	g.mirror.stored(h.item(), &h.fate)
	return nil
}

// unlessJoined is what an asker is told of an ask that could not be stored: one
// that another gate has is joined.
func unlessJoined(err error) error {
	if errors.Is(err, errElsewhere) && !errors.Is(err, errConflict) && !errors.Is(err, errUnrecorded) {
		return nil
	}
	return err
}

// sameHere says what is wrong with joining the ask that came with this id at the
// same moment. Where it is decided already, wait finds that.
func (g *Gate) sameHere(c call) error {
	if s, open := g.mirror.get(c.ask.ID); open && !s.isOf(c) {
		return errConflict
	}
	return nil
}

// sameCall says what is wrong with joining the entry that stands for an ask.
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

// close takes a settled ask away from whoever looks for open ones. Where it was
// never stored, another gate may have stored it to which it came at the same
// moment: that one looked for a decision before there was any, and would put to a
// person what is decided. Its entry goes when it is seen.
func (g *Gate) close(ctx context.Context, h *held) error {
	id := h.item().Ask.ID
	if stored := h.end(); stored || g.mirror.settle(id, time.Now()) {
		return g.pending.Delete(ctx, id)
	}
	g.gone(id)
	return nil
}

// late takes away the entry of an ask that was decided here before it was stored
// anywhere.
func (g *Gate) late(id string) {
	g.desk.start("late "+id, func(ctx context.Context) {
		if err := g.pending.Delete(context.WithoutCancel(ctx), id); err != nil {
			g.fail("late", "entry of an ask that is decided could not be taken away; whoever has it settles it", id, err)
		}
	})
}
