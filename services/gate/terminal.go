package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// terminalTimeout is how long the gate waits for one reply of a terminal.
const terminalTimeout = 5 * time.Second

// role fixes who ends an ask, once, before its first link. "auto" is a person
// where one sits at the session, also at a subagent's, or is present; else the
// parent node, where this one has one; else nobody: deny. Whoever sits at a
// session of another node is no approver of this one.
func (g *Gate) role(ask protocol.Ask, s *policy.Snapshot) protocol.TerminalKind {
	now := time.Now()
	switch s.Terminal().Kind {
	case policy.TerminalHuman:
		return protocol.TerminalHuman
	case policy.TerminalParent:
		return protocol.TerminalParent
	case policy.TerminalAuto:
		switch {
		case ask.Session.Interactive && len(ask.Hops) == 0, g.presence.anyone(now):
			return protocol.TerminalHuman
		case g.presence.parent(now) != "":
			return protocol.TerminalParent
		}
		return protocol.TerminalDeny
	default:
		return protocol.TerminalDeny
	}
}

// askTerminal puts the ask to its terminal. The zero ending means "taken": a
// person has been asked, and the verdict comes through the entry.
func (g *Gate) askTerminal(ctx context.Context, h *held) (ending, error) {
	p := h.item().Pending
	if p.Role == protocol.TerminalParent {
		return g.askParent(ctx, h)
	}
	if !p.Taken.IsZero() {
		return ending{}, nil // asked before a take-over: nobody is asked twice
	}
	g.review.waiting(p)
	var end ending
	try := func() (err error) {
		end, err = g.terminalRequest(ctx, p)
		return err
	}
	again := backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond), backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(g.times.terminal))
	err := backoff.Retry(try, backoff.WithContext(again, ctx))
	if ctx.Err() != nil {
		return ending{}, context.Cause(ctx)
	}
	if err != nil {
		g.fail("terminal", "terminal does not answer; the ask is denied", p.Ask.ID, err)
		return g.withoutTerminal(ctx, h)
	}
	if !end.decided() {
		h.putToPerson()
		g.review.prompted(p)
	}
	return end, nil
}

// withoutTerminal denies an ask that no terminal took. The entry is closed to
// answers first, by the same compare-and-set that an answer is stored with: one
// that came before stands, and one that comes after is refused aloud. An ask of
// which only the terminal's reply was lost stands before a person already, and
// goes on to wait.
func (g *Gate) withoutTerminal(ctx context.Context, h *held) (ending, error) {
	err := h.update(ctx, func(p *protocol.Pending) {
		if p.Taken.IsZero() {
			p.Stage = protocol.StageSettling
		}
	})
	if err != nil {
		return ending{}, err
	}
	p := h.item().Pending
	if end := interruption(p, g.policy.freezes.current(), time.Now()); end.decided() || !p.Taken.IsZero() {
		return end, nil
	}
	return denial(protocol.Unavailable, fmt.Sprintf("No %s terminal answers.", p.Role)), nil
}

// terminalRequest makes one request. Errors that another try may mend are
// returned as they are; an answer that is no verdict is permanent and denies.
func (g *Gate) terminalRequest(ctx context.Context, p protocol.Pending) (ending, error) {
	subject, err := g.subjects.Terminal(string(p.Role))
	if err != nil {
		return ending{}, backoff.Permanent(err)
	}
	body, err := protocol.Write(terminalRequestOf(p))
	if err != nil {
		return ending{}, backoff.Permanent(err)
	}
	rctx, cancel := context.WithTimeout(ctx, terminalTimeout)
	defer cancel()
	msg, err := g.nc.RequestMsgWithContext(rctx, &nats.Msg{Subject: subject, Data: body})
	if err != nil {
		return ending{}, fmt.Errorf("asking terminal %s: %w", p.Role, err)
	}
	if msg.Header.Get(protocol.HeaderErrorCode) != "" {
		return ending{}, fmt.Errorf("asking terminal %s: %s", p.Role, protocol.Safe(msg.Header.Get(protocol.HeaderError), 200, false))
	}
	return readTerminal(p, msg.Data)
}

func terminalRequestOf(p protocol.Pending) protocol.TerminalRequest {
	return protocol.TerminalRequest{
		Kind: p.Role, Ask: p.Ask, Asks: p.Asks, Units: p.Units, Trail: p.Trail, Suggest: p.Suggest, Deadline: p.Deadline, Prompt: p.Prompt,
	}
}

// readTerminal reads the answer of a terminal: a verdict, or Progress where a
// person is asked. Anything else is deny.
func readTerminal(p protocol.Pending, data []byte) (ending, error) {
	v, verr := protocol.ReadTerminalVerdictFor(p.Ask.ID, data)
	if verr == nil {
		return byTerminal(p.Role, v), nil
	}
	progress, perr := protocol.Read[protocol.Progress](data)
	if perr == nil && progress.Ask == p.Ask.ID && p.Role != protocol.TerminalDeny {
		return ending{}, nil
	}
	return ending{}, backoff.Permanent(errors.Join(verr, perr))
}
