package gate

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// ending is how an open ask ended. Its zero value is no ending.
type ending struct {
	result  protocol.FinalChoice
	outcome protocol.Outcome
	by      protocol.Decider
	reason  string
	note    string
	abort   bool
	edited  jsontext.Value
	// approver is the person who answered, whoever decided in the end.
	approver string
	// grant is what that person granted with the answer.
	grant *protocol.Grant
	// trail is what the entry does not hold of the road to this ending: the link
	// that allowed, or what the parent node, and those above it, did with the ask.
	trail []protocol.TrailEntry
	// ruled is what recorded authority says of this moment, where that ended the
	// ask and nobody answered.
	ruled *ruled
}

func (e ending) decided() bool { return e.result.Valid() }

// denial is an ending by the gate's own hand.
func denial(outcome protocol.Outcome, reason string) ending {
	return ending{result: protocol.FinalDeny, outcome: outcome, reason: reason, by: protocol.Decider{Kind: protocol.DeciderGate}}
}

// after keeps on the record who allowed, and what was changed, before an ending by
// the gate's own hand.
func (e ending) after(allow ending) ending {
	e.approver, e.edited, e.note, e.trail = allow.approver, allow.edited, allow.note, allow.trail
	return e
}

// byLink is how a link's verdict ends an ask: the last entry of the trail.
func byLink(t protocol.TrailEntry) ending {
	e := ending{by: protocol.Decider{Kind: protocol.DeciderLink, Name: t.Link}, reason: t.Reason}
	switch {
	case t.Verdict == protocol.ChoiceAllow && !t.Capped && t.Failure == "":
		e.result, e.outcome = protocol.FinalAllow, protocol.AllowedByLink
	case t.Verdict == protocol.ChoiceDeny && t.Failure == "":
		e.result, e.outcome = protocol.FinalDeny, protocol.DeniedByLink
	}
	return e
}

// byTerminal is how a terminal's verdict ends an ask.
func byTerminal(role protocol.TerminalKind, v protocol.TerminalVerdict) ending {
	e := ending{result: v.Verdict, outcome: v.Outcome, reason: v.Reason, note: v.Note, abort: v.Abort, edited: v.EditedInput, approver: v.Approver, grant: v.Grant}
	if v.Approver != "" {
		e.by = protocol.Decider{Kind: protocol.DeciderHuman, Name: v.Approver}
	} else {
		e.by = protocol.Decider{Kind: protocol.DeciderTerminal, Name: string(role)}
	}
	// Only a person allows, and only at a terminal that asks one: an allow that
	// names none is no allow, whoever sent it.
	if e.result == protocol.FinalAllow && (role != protocol.TerminalHuman || v.Approver == "" || v.Outcome != protocol.AllowedByHuman) {
		return denial(protocol.Unavailable, "the terminal allowed without naming an approver")
	}
	return e
}

// overruled is how an allow ends that a rule or a permission module of this
// moment denies. Who allowed, and what was changed, stays on the record.
func (e ending) overruled(by policy.Entry, c checked) ending {
	e.result, e.outcome, e.reason, e.ruled = protocol.FinalDeny, protocol.DeniedByRule, by.Reason, nil
	e.by = protocol.Decider{Kind: protocol.DeciderRule, Name: by.Surface}
	if c.denies(by) {
		e.outcome, e.by = c.outcome, protocol.Decider{Kind: protocol.DeciderModule, Name: c.by}
	}
	return e
}

// finishTime bounds what is done at the end of an ask, so that a gate whose
// JetStream is dead can still leave.
const finishTime = 12 * time.Second

// finishing is the context for the end of an ask: not cut off by what ended the
// walk, but bounded.
func finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), finishTime)
}

// tell says how an open ask ended, to the record's readers and to the faces. An
// id that was decided for another call meanwhile (a malformed ask under it, at a
// gate that did not see this one yet) leaves this call undecided for good:
// nothing is allowed, its asker hears of the conflict, and that is said loudly.
func (g *Gate) tell(p protocol.Pending, d protocol.Decision) {
	if d.CallDigest != p.Digest || d.Agent != p.Ask.Agent {
		g.fail("conflict", "open ask ends undecided: its id was decided for another call", d.Ask, errConflict)
	} else {
		g.review.closed(d)
	}
	if p.Role == protocol.TerminalParent {
		g.review.forwardClosed(d)
		g.takeBack(p, d)
	}
	g.notify(protocol.Notice{Kind: protocol.NoticePromptClosed, Ask: d.Ask, Agent: p.Ask.Agent, Via: p.Via, Outcome: d.Outcome})
}

// interrupted looks at the entry anew and returns the ending it holds.
func (g *Gate) interrupted(ctx context.Context, h *held) (ending, error) {
	now, freezes := time.Now(), g.policy.freezes.current()
	if err := h.update(ctx, func(p *protocol.Pending) { closeEnded(p, freezes, now) }); err != nil {
		return ending{}, err
	}
	return interruption(h.item().Pending, freezes, now), nil
}

// closeEnded takes an entry that has its ending from the desk: a terminal whose
// clock is behind would still accept an answer to an ask that runs out here.
func closeEnded(p *protocol.Pending, freezes layers.Freezes, now time.Time) {
	if interruption(*p, freezes, now).decided() {
		p.Stage = protocol.StageSettling
	}
}

// interruption is the ending that an ask has from outside its road, if any: the
// terminal's verdict first, because an approver was told that it is stored; then
// the agent's cancel; then an operator's freeze; then the deadline.
func interruption(p protocol.Pending, freezes layers.Freezes, now time.Time) ending {
	switch {
	case p.Verdict != nil:
		return byTerminal(p.Role, *p.Verdict)
	case p.Withdrawn != nil:
		return denial(protocol.Cancelled, p.Withdrawn.Reason)
	}
	if by, stopped := freezes.Of(p.Ask.Agent, p.Via, p.Ask.Session); stopped {
		return frozen(by)
	}
	if !now.Before(p.Deadline) {
		return denial(protocol.Expired, "nobody decided within "+p.Deadline.Sub(p.Since).Round(time.Second).String())
	}
	return ending{}
}
