package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Clocks of an ask that the parent node decides.
const (
	// forwardTimeout bounds one request to the terminal, which itself gives the
	// parent 1.2 s.
	forwardTimeout = 1500 * time.Millisecond
	// forwardPause is the least time from one request to the next: a parent or a
	// terminal that answers at once is not to be hammered.
	forwardPause = 100 * time.Millisecond
	// takeBackTime bounds the word to the parent that nobody waits any more,
	// takeBackPause is the first pause before it is said again.
	takeBackTime  = 2 * time.Second
	takeBackPause = 100 * time.Millisecond
)

// askParent asks the terminal for the parent's decision again and again until
// there is one, under this gate's lease: should the gate or the terminal die, the
// next goes on, and the parent knows the ask by its id and asks nobody twice.
//
// A parent that gives no good answer for times.parent, dead or never there, is no
// refusal: the ask ends as unavailable. One that is over a limit has not looked at
// the ask, so it is asked on for that long, too.
func (g *Gate) askParent(ctx context.Context, h *held) (ending, error) {
	p := h.item().Pending
	good, limit := time.Now(), g.terminalPatience()
	var full time.Time // since when the parent says that it is over a limit
	var cause error
	for {
		turn := time.Now()
		end, err := g.forward(ctx, p, min(forwardTimeout, time.Until(good.Add(limit))))
		if ctx.Err() != nil {
			return ending{}, context.Cause(ctx)
		}
		var fault *protocol.Fault
		switch {
		case err == nil && end.outcome == protocol.RateLimited && (full.IsZero() || time.Since(full) < g.times.parent):
			if full.IsZero() {
				full = time.Now()
			}
			good, limit, cause = time.Now(), g.terminalPatience(), nil
		case err == nil && end.decided():
			return end, nil
		case err == nil:
			good, limit, cause, full = time.Now(), g.terminalPatience(), nil, time.Time{}
		case errors.As(err, &fault) && fault.Code != protocol.CodeUnavailable:
			g.fail("parent", "the parent node does not take the ask; it is denied", p.Ask.ID, err)
			return denial(protocol.Unavailable, "Nobody has refused this call, and nobody has looked at it: "+fault.Message), nil
		case fault != nil:
			limit, cause = g.times.parent, err // the terminal is there: it is the parent that is not
		case cause == nil:
			cause = err
		}
		if err != nil && time.Since(good) >= limit {
			g.fail("parent", "the parent node could not be reached; the ask is denied", p.Ask.ID, cause)
			return denial(protocol.Unavailable, g.unreached()), nil
		}
		if err := pause(ctx, forwardPause-time.Since(turn)); err != nil {
			return ending{}, err
		}
	}
}

// terminalPatience is how long the terminal that relays may be away: one that
// restarts costs nobody an ask. Where none has given a sign there is none.
func (g *Gate) terminalPatience() time.Duration {
	if g.presence.parent(time.Now()) == "" {
		return g.times.parent
	}
	return g.times.terminal
}

func (g *Gate) unreached() string {
	name := g.presence.parent(time.Now())
	if name == "" {
		return "Nobody has refused this call: it is for the parent node to decide, and no terminal of this node has a parent."
	}
	return "Nobody has refused this call: the parent node " + name + ", which decides here, could not be reached."
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// forward makes one request. The zero ending means that the parent has not
// decided yet. A *protocol.Fault is the terminal's own word; any other error says
// that no terminal has answered in a form that counts.
func (g *Gate) forward(ctx context.Context, p protocol.Pending, limit time.Duration) (ending, error) {
	msg, err := g.askRelay(ctx, terminalRequestOf(p), limit)
	if err != nil {
		return ending{}, err
	}
	if v, err := protocol.ReadTerminalVerdictFor(p.Ask.ID, msg.Data); err == nil {
		return byParent(p, v, time.Now()), nil
	}
	progress, err := protocol.Read[protocol.Progress](msg.Data)
	if err == nil && progress.Ask != p.Ask.ID {
		err = protocol.ErrMismatch
	}
	if err != nil {
		return ending{}, fmt.Errorf("the terminal's answer is none: %w", err)
	}
	return ending{}, nil
}

// askRelay makes one request to the terminal that relays.
func (g *Gate) askRelay(ctx context.Context, r protocol.TerminalRequest, limit time.Duration) (*nats.Msg, error) {
	subject, err := g.subjects.Terminal(string(protocol.TerminalParent))
	if err != nil {
		return nil, err
	}
	body, err := protocol.Write(r)
	if err != nil {
		return nil, &protocol.Fault{Code: protocol.CodeInvalid, Message: "it cannot be put to the terminal"}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	msg, err := g.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: body})
	if err != nil {
		return nil, fmt.Errorf("asking terminal %s: %w", r.Kind, err)
	}
	if msg.Header.Get(protocol.HeaderErrorCode) == "" {
		return msg, nil
	}
	reply, err := protocol.Read[protocol.ErrorReply](msg.Data)
	if err != nil {
		return nil, fmt.Errorf("the terminal's error reply is none: %w", err)
	}
	reply.Error.Message = protocol.Safe(reply.Error.Message, 1000, false)
	return nil, &reply.Error
}

// byParent is how the parent's decision ends an ask here. Its outcome and its
// words pass through; who decided, and where, stays on the record, with the way
// there.
func byParent(p protocol.Pending, v protocol.TerminalVerdict, now time.Time) ending {
	w := v.Parent
	if w == nil {
		return denial(protocol.Unavailable, "the parent's terminal does not say who decided")
	}
	hop := protocol.TrailEntry{Node: w.Node, Verdict: protocol.ChoiceDeny, Reason: string(v.Outcome), MS: milliseconds(now.Sub(p.Since))}
	if v.Verdict == protocol.FinalAllow {
		hop.Verdict = protocol.ChoiceAllow
	}
	e := ending{
		result: v.Verdict, outcome: v.Outcome, reason: v.Reason, note: v.Note, abort: v.Abort, edited: v.EditedInput, approver: v.Approver,
		by:    protocol.Decider{Kind: protocol.DeciderParent, Name: w.DecidedBy.Name, Node: w.DecidedBy.Node},
		trail: append([]protocol.TrailEntry{hop}, w.Trail...),
	}
	byPerson := v.Outcome == protocol.AllowedByHuman && v.Approver != ""
	switch {
	case e.result != protocol.FinalAllow:
		return e
	case v.Outcome == protocol.AllowedByHuman && !byPerson:
		return denial(protocol.Unavailable, "the parent node "+w.Node+" allowed in a person's name and names none").after(e)
	case !byPerson && forAPerson(p):
		// Neither a rule nor a link nor yolo answers it, wherever they are.
		return denial(protocol.Unavailable, "Only a person may allow this call, and at the parent node "+w.Node+" none did.").after(e)
	case !now.Before(p.Deadline):
		return denial(protocol.Expired, "the parent node "+w.Node+" allowed too late").after(e)
	}
	return e
}

// forAPerson says whether something that is open here only a person may allow.
func forAPerson(p protocol.Pending) bool {
	return p.Ask.HumanOnly || slices.ContainsFunc(p.Asks, func(e protocol.Entry) bool { return e.HumanOnly })
}

// takeBack tells the parent, in the background and as well as it can, that nobody
// waits for its word any more, so that the prompt there closes. Where it cannot,
// the time that the ask was relayed with ends it there.
func (g *Gate) takeBack(p protocol.Pending, d protocol.Decision) {
	if slices.ContainsFunc(d.Trail, func(e protocol.TrailEntry) bool { return e.Node != "" }) {
		return // the parent has decided, whatever a rule here has made of it
	}
	r := terminalRequestOf(p)
	r.Withdraw = true
	g.desk.start("take back "+p.Ask.ID, func(ctx context.Context) {
		// Not cut off when the gate stops: it has its own bound.
		if err := g.takeBackUntil(context.WithoutCancel(ctx), r); err != nil {
			g.count("parent", "not_taken_back")
			g.log.Warn("ask could not be taken back from the parent; it ends there by its deadline", "ask", p.Ask.ID, "err", err)
		}
	})
}

// takeBackUntil says so again until the parent has heard it, or the time for it is
// over. An ask that the parent does not know may still be on its way there: the
// request that relayed it was given up here, not by who carries it, and coming
// behind the word that takes it back it would stand before a person for hours.
// One that the parent has decided it does not know either. An error is that of the
// last try.
func (g *Gate) takeBackUntil(ctx context.Context, r protocol.TerminalRequest) error {
	ctx, cancel := context.WithTimeout(ctx, takeBackTime)
	defer cancel()
	for wait := takeBackPause; ; wait *= 2 {
		msg, err := g.askRelay(ctx, r, forwardTimeout)
		if err == nil {
			var receipt protocol.CancelReceipt
			if receipt, err = protocol.Read[protocol.CancelReceipt](msg.Data); err == nil && receipt.Cancelled && receipt.Ask == r.Ask.ID {
				return nil
			}
		}
		if pause(ctx, wait) != nil {
			return err
		}
	}
}
