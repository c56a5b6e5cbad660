// Package gate decides asks. This file is the picture: the road of one ask from
// the rules to the record. Each step stands in the file of its name.
package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/pkg/protocol"
)

// call is an ask with what the gate itself knows of it.
type call struct {
	ask       protocol.Ask
	digest    string
	requester protocol.Requester
	askedAt   time.Time
}

// Decide takes one ask down its road and returns its decision, or Progress when
// it is not decided within patience. Whoever gets Progress asks again with the
// same id, here or at any other gate, and joins.
//
// errConflict for an id that is another call's, errNeedProject for a project's
// policy that has to be uploaded first. Any other error means that the
// decision could not be recorded or the ask not stored: the answer is then deny.
func (g *Gate) Decide(ctx context.Context, c call) (reply, error) {
	if known, ok, err := g.join(ctx, c); ok || err != nil {
		return known, err
	}
	if err := g.known(ctx); err != nil {
		return reply{}, err
	}
	if g.limits.tooFast(c, g.policy.current()) {
		return g.limited(c, limitRate), nil
	}

	if stopped, ok, err := g.frozenCall(ctx, c); ok {
		return stopped, err
	}

	ruled, err := g.rule(ctx, c.ask) // recorded authority: rules in layers, most restrictive wins; then grants
	if err != nil {
		return g.unruled(ctx, c, err)
	}
	ruled, known, err := g.recall(ctx, c, ruled)
	switch {
	case ruled.settled():
		return g.record(ctx, ruled.decision(g, c))
	case err != nil || known.decision != nil:
		return known, err
	}

	r, err := g.open(ctx, c, ruled) // decided at once by a link, or durable and owned
	switch {
	case errors.Is(err, errCrowded):
		return g.crowded(ctx, c)
	case err != nil || r.decision != nil:
		return r, err
	}
	return g.wait(ctx, c, g.bear(c, g.times.first))
}

// carry takes an open ask from where it stands to its end. It runs for the ask,
// not for the request: nobody needs to be asking meanwhile.
func (g *Gate) carry(ctx context.Context, h *held) error {
	end, err := g.walkChain(ctx, h) // link 1 → link 2 → … each allow | deny | defer
	if err == nil && !end.decided() {
		end, err = g.settledByNow(ctx, h) // granted, allowed or denied meanwhile: nobody need be asked
	}
	if err == nil && !end.decided() {
		err = h.store() // durable and owned, before anybody waits for a person
	}
	if err == nil && !end.decided() {
		end, err = g.askTerminal(ctx, h) // human | parent | deny → allow, deny, or "taken"
	}
	finish, done := finishing(ctx) // what ended the walk must not cut off the record
	defer done()
	if errors.Is(err, errInterrupted) {
		end, err = g.interrupted(finish, h) // answered, cancelled or past its deadline meanwhile
	}
	if errors.Is(err, protocol.ErrTooLarge) {
		end, err = denial(protocol.Invalid, "The call is too large to be put to a judge or a person."), nil
	}
	if err != nil {
		return err
	}
	if !end.decided() {
		return h.release(finish) // waits for a person; whoever sees the answer settles it
	}
	return g.settle(finish, h, end)
}

// settle ends an open ask: a live allow is ruled once more under the rules of
// this moment, and the decision is recorded.
func (g *Gate) settle(ctx context.Context, h *held, end ending) error {
	p := h.item().Pending
	if err := g.known(ctx); err != nil {
		return fmt.Errorf("settling ask %s: %w", p.Ask.ID, err)
	}
	var text []byte
	d, err := g.conclude(ctx, p, end)
	if err == nil {
		d, text, err = g.commit(ctx, d) // or the one that stands already
	}
	if err != nil {
		return fmt.Errorf("settling ask %s: %w", p.Ask.ID, err)
	}
	return g.end(ctx, h, d, text)
}

// end is what follows a decision on an open ask that stands, whose text is at hand
// where it was written just now: what it grants is stored, whoever asks is woken,
// and only then the entry goes. It may be done again by whoever finds the entry of
// a gate that died over it.
func (g *Gate) end(ctx context.Context, h *held, d protocol.Decision, text []byte) error {
	p := h.item().Pending
	if err := g.remember(ctx, d); err != nil {
		return fmt.Errorf("settling ask %s: %w", p.Ask.ID, err)
	}
	h.decided(d, text)
	g.waiters.wake(d)
	g.tell(p, d)
	if d.Grant != nil {
		g.newGrant(d.Agent) // before the entry goes: whoever finishes this for a dead gate does it too
	}
	return g.close(ctx, h)
}

// reply is what an ask is answered with: a decision or Progress, never both.
type reply struct {
	decision *protocol.Decision
	progress *protocol.Progress
	// recorded is the decision as it was written into the stream just now: the
	// answer is the record, to the letter. Nil where it is not at hand.
	recorded []byte
}
