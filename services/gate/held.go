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

// held is an open ask that this gate owns. Its changes fail with errLost once
// another gate has taken it over.
type held struct {
	gate  string
	brief time.Duration
	lease time.Duration
	in    *pending.Store
	// store makes an ask that is new durable, once; see Gate.store.
	store func() error
	fate  fate

	mu      sync.Mutex
	current pending.Item // as it stands in the bucket; revision 0: it does not
	over    bool         // it has ended, and is not to be stored any more
	taken   time.Time    // when a terminal said that a person is asked
}

func (g *Gate) keep(item pending.Item) *held {
	return &held{
		gate: g.name, brief: g.times.brief, lease: g.times.lease, in: g.pending, current: item,
		store: func() error { return nil }, fate: newFate(),
	}
}

func (h *held) item() pending.Item {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current
}

// create stores the ask where it is not stored yet and has not ended; created is
// false for any other.
func (h *held) create(ctx context.Context) (created bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || h.current.Revision != 0 {
		return false, nil
	}
	p := h.current.Pending
	if p.Owner != "" { // it may have waited here behind other work on its id
		p.Lease = time.Now().UTC().Add(h.lease)
	}
	item, err := h.in.Create(ctx, p)
	if err != nil {
		return false, err
	}
	h.current = item
	return true, nil
}

// end notes that the ask has ended, and says whether it is stored. Storing that is
// under way is waited for; what comes behind stores nothing.
func (h *held) end() (stored bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	return h.current.Revision != 0
}

// putToPerson notes the terminal's word that a person is asked. It reaches the
// entry with the next change, should the terminal not have written it there:
// whoever takes the ask over must know.
func (h *held) putToPerson() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken = time.Now().UTC()
}

// update changes the entry if it is still this gate's; of an ask that is not stored
// yet, what will be. change may run more than once and must bear it. The end of ctx
// does not cut it off, the bound of the store does: a write whose fate is unknown
// could leave an ask owned by a gate that does not know it.
func (h *held) update(ctx context.Context, change func(*protocol.Pending)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	mine := func(p *protocol.Pending) error {
		if p.Owner != h.gate {
			return errLost
		}
		p.Lease = time.Now().UTC().Add(h.lease)
		if p.Taken.IsZero() {
			p.Taken = h.taken
		}
		change(p)
		return nil
	}
	if h.current.Revision == 0 {
		return mine(&h.current.Pending)
	}
	item, err := h.in.UpdateFrom(context.WithoutCancel(ctx), h.current, mine)
	if errors.Is(err, pending.ErrGone) {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	if err != nil {
		return err
	}
	h.current = item
	return nil
}

// release gives the ask up without ending it: it waits for a person, or for
// another gate. It is open to answers again, if a freeze that closed it is over.
func (h *held) release(ctx context.Context) error {
	if err := h.update(ctx, func(p *protocol.Pending) { p.Owner, p.Lease, p.Stage = "", time.Time{}, nextStage(*p) }); err != nil {
		return err
	}
	return h.store()
}

// renew has the ask stored when it has been open for a while, and keeps its lease
// then, until ctx ends. It calls lost when it could not.
func (h *held) renew(ctx context.Context, lost func(error)) {
	if pause(ctx, h.brief) != nil {
		return
	}
	if err := h.store(); err != nil {
		lost(err)
		return
	}
	tick := time.NewTicker(h.lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := h.update(ctx, func(*protocol.Pending) {}); err != nil && ctx.Err() == nil {
				lost(fmt.Errorf("%w: %w", errLost, err))
				return
			}
		}
	}
}

// claim takes over an ask that nobody owns at this moment. errLost when
// somebody was faster, and pending.ErrGone with it when the ask is settled.
func (g *Gate) claim(ctx context.Context, id string) (*held, error) {
	return g.claimIf(ctx, id, func(*protocol.Pending) error { return nil })
}

// claimIf is claim with a change of the entry in the same step, unless that says
// no.
func (g *Gate) claimIf(ctx context.Context, id string, change func(*protocol.Pending) error) (*held, error) {
	item, err := g.pending.Update(ctx, id, func(p *protocol.Pending) error {
		now := time.Now().UTC()
		if !p.Ownerless(now) {
			return errLost
		}
		p.Owner, p.Lease = g.name, now.Add(g.times.lease)
		p.Stage = nextStage(*p) // whoever closed it to answers did not end it
		closeEnded(p, g.policy.freezes.current(), now)
		return change(p)
	})
	if errors.Is(err, pending.ErrGone) {
		return nil, fmt.Errorf("%w: %w", errLost, err)
	}
	if err != nil {
		return nil, fmt.Errorf("claiming ask %s: %w", id, err)
	}
	return g.keep(item), nil
}
