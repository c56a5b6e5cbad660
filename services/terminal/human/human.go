// Package human is the terminal that asks a person: it keeps the ask open for
// any approver to answer, and the first answer stands.
package human

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/internal/grants"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/terminal"
)

// Decisions looks up what was decided on an ask that is not open any more.
type Decisions interface {
	Find(ctx context.Context, id string) (protocol.Decision, bool, error)
}

// Terminal puts asks to people. Its source of truth is the bucket of pending
// asks; it holds nothing itself, so any number of them serve one node.
type Terminal struct {
	pending   *pending.Store
	decisions Decisions
	prompted  func(protocol.Ask)
}

// New returns a terminal over the pending asks. prompted is called once for
// each ask that is put to people, to tell the faces.
func New(p *pending.Store, d Decisions, prompted func(protocol.Ask)) *Terminal {
	return &Terminal{pending: p, decisions: d, prompted: prompted}
}

// Kind is human.
func (t *Terminal) Kind() protocol.TerminalKind { return protocol.TerminalHuman }

// End marks the ask as put to people and returns terminal.ErrTaken, or the
// verdict when it stands already. A gate that asks twice, or a second gate
// after a take-over, prompts nobody again.
func (t *Terminal) End(ctx context.Context, r protocol.TerminalRequest) (protocol.TerminalVerdict, error) {
	var first bool
	now := time.Now().UTC()
	item, err := t.pending.Update(ctx, r.Ask.ID, func(p *protocol.Pending) error {
		// The same instant is this very change, whose acknowledgement was lost.
		if first = p.Taken.IsZero() || p.Taken.Equal(now); first {
			p.Taken = now
		}
		return nil
	})
	if err != nil {
		return protocol.TerminalVerdict{}, fmt.Errorf("putting ask %s to people: %w", r.Ask.ID, err)
	}
	if item.Verdict != nil {
		return *item.Verdict, nil
	}
	if first {
		t.prompted(r.Ask)
	}
	return protocol.TerminalVerdict{}, terminal.ErrTaken
}

// refused is why an answer does not stand. Its text is the approver's to read.
type refused struct{ receipt protocol.AnswerReceipt }

func (r *refused) Error() string { return r.receipt.Error }

// Answer stores an approver's answer if it is the first on an ask that is put
// to people. The receipt says whether it stands, and else who was first or what
// was wrong. An error means that nothing is known: the approver tries again.
func (t *Terminal) Answer(ctx context.Context, a protocol.Answer) (protocol.AnswerReceipt, error) {
	v := verdict(a, time.Now().UTC())
	_, err := t.pending.Update(ctx, a.Ask, func(p *protocol.Pending) error {
		if p.Verdict != nil && p.Verdict.Approver == v.Approver && p.Verdict.At.Equal(v.At) {
			return nil // this very answer, whose acknowledgement was lost
		}
		if err := answerable(*p, v.At); err != nil {
			return err
		}
		if err := grants.Check(*p, v, v.At); err != nil {
			// The answer without the grant would let the approver believe in one.
			return &refused{refusal(a.Ask, err.Error())}
		}
		p.Verdict = &v
		return nil
	})
	var no *refused
	switch {
	case errors.As(err, &no):
		return no.receipt, nil
	case errors.Is(err, pending.ErrGone):
		return t.late(ctx, a.Ask)
	case err != nil:
		return protocol.AnswerReceipt{}, fmt.Errorf("storing answer to %s: %w", a.Ask, err)
	}
	return protocol.AnswerReceipt{Ask: a.Ask, Accepted: true, AnsweredBy: v.Approver, Verdict: v.Verdict, At: v.At}, nil
}

// answerable says why p takes no answer, as a *refused.
func answerable(p protocol.Pending, now time.Time) error {
	switch {
	case p.Verdict != nil:
		r := refusal(p.Ask.ID, "answered already by "+p.Verdict.Approver)
		r.AnsweredBy, r.Verdict, r.At = p.Verdict.Approver, p.Verdict.Verdict, p.Verdict.At
		return &refused{r}
	case p.Withdrawn != nil:
		return &refused{refusal(p.Ask.ID, "the agent has withdrawn this ask")}
	case !now.Before(p.Deadline):
		return &refused{refusal(p.Ask.ID, "this ask expired at "+p.Deadline.Format(time.RFC3339))}
	case p.Role == protocol.TerminalParent:
		return &refused{refusal(p.Ask.ID, "this ask is not for a person here: it is answered at the parent node, under the same id")}
	case p.Role != protocol.TerminalHuman:
		return &refused{refusal(p.Ask.ID, "this ask is not for a person: it ends at "+string(p.Role))}
	case p.Stage == protocol.StageSettling:
		return &refused{refusal(p.Ask.ID, "this ask is being decided at this moment, by the rules or by a grant: look again")}
	case !p.AtTerminal():
		return &refused{refusal(p.Ask.ID, "this ask is not before a person yet: it stands at "+p.Stage)}
	default:
		return nil
	}
}

// late answers an approver whose ask is not open any more: aloud, with who
// decided it.
func (t *Terminal) late(ctx context.Context, id string) (protocol.AnswerReceipt, error) {
	d, ok, err := t.decisions.Find(ctx, id)
	if err != nil {
		return protocol.AnswerReceipt{}, err
	}
	if !ok {
		return refusal(id, "no ask with this id is pending or decided"), nil
	}
	r := refusal(id, fmt.Sprintf("decided already: %s (%s)", d.Result, d.Outcome))
	r.Verdict, r.At = d.Result, d.DecidedAt
	if d.DecidedBy.Kind == protocol.DeciderHuman { // what rules, links and grants are called is nobody's name
		r.AnsweredBy = d.DecidedBy.Name
	}
	return r, nil
}

func verdict(a protocol.Answer, now time.Time) protocol.TerminalVerdict {
	outcome := protocol.DeniedByHuman
	if a.Verdict == protocol.FinalAllow {
		outcome = protocol.AllowedByHuman
	}
	return protocol.TerminalVerdict{
		Ask: a.Ask, Verdict: a.Verdict, Outcome: outcome, Reason: a.Reason, Note: a.Note, Abort: a.Abort,
		EditedInput: a.EditedInput, Grant: a.Grant, Approver: a.Approver, At: now,
	}
}

func refusal(id, why string) protocol.AnswerReceipt {
	return protocol.AnswerReceipt{Ask: id, Error: why}
}
