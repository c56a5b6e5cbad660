package parent

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/terminal"
)

// read reads what the parent's gate answered: a decision, Progress or an error
// reply. Anything else, however near to an allow, is no answer.
func (t *Terminal) read(ask protocol.Ask, answer *nats.Msg) (protocol.TerminalVerdict, error) {
	if f := t.fault(ask.ID, answer); f != nil {
		return protocol.TerminalVerdict{}, f
	}
	if p, err := protocol.Read[protocol.Progress](answer.Data); err == nil && p.Ask == ask.ID {
		return protocol.TerminalVerdict{}, terminal.ErrTaken
	}
	d, err := protocol.ReadDecisionFor(ask.ID, ask.Agent, answer.Data)
	if err == nil {
		err = t.ours(d)
	}
	if err != nil {
		return protocol.TerminalVerdict{}, t.unclear(err)
	}
	return verdict(d), nil
}

// fault is the error reply that answer is, or nil. Of one for another ask only the
// code counts.
func (t *Terminal) fault(id string, answer *nats.Msg) *protocol.Fault {
	word := answer.Header.Get(protocol.HeaderErrorCode)
	if word == "" {
		return nil
	}
	reply, err := protocol.Read[protocol.ErrorReply](answer.Data)
	if err != nil || reply.Ask != "" && reply.Ask != id {
		return t.unclear(fmt.Errorf("an error reply that cannot be read (%s)", protocol.Safe(word, protocol.MaxToken, false)))
	}
	f := reply.Error
	f.Message = fmt.Sprintf("parent node %s did not take it: %s", t.parent, protocol.Safe(f.Message, 1000, false))
	f.Remedy = protocol.Safe(f.Remedy, 500, false)
	return &f
}

// ours refuses a decision that is not the parent's on what this child relayed:
// an agent of the parent may have asked the like under the same id.
func (t *Terminal) ours(d protocol.Decision) error {
	switch {
	case d.Node != t.parent:
		return fmt.Errorf("%w: the decision is node %s's", protocol.ErrMismatch, protocol.Safe(d.Node, protocol.MaxToken, false))
	case d.Result == protocol.FinalAllow && d.Via != t.node:
		return fmt.Errorf("%w: the decision is not on an ask of this child", protocol.ErrMismatch)
	case d.Result == protocol.FinalAllow && !d.Allowed(), d.Outcome.Allows() != (d.Result == protocol.FinalAllow):
		return errors.New("its outcome and its result do not go together")
	}
	return nil
}

// verdict is the parent's decision as the gate takes it, within the bounds of a
// verdict. What a person granted there holds there.
func verdict(d protocol.Decision) protocol.TerminalVerdict {
	v := protocol.TerminalVerdict{
		Ask: d.Ask, Verdict: d.Result, Outcome: d.Outcome, Approver: d.Approver, At: d.DecidedAt,
		Reason: protocol.Safe(d.Reason, protocol.MaxReason, true), Note: protocol.Safe(d.Note, protocol.MaxReason, true),
		Parent: &protocol.ParentWord{Node: d.Node, DecidedBy: decider(d), Trail: trail(d)},
	}
	if d.Result == protocol.FinalAllow {
		v.EditedInput = d.EditedInput
	} else {
		v.Abort = d.Abort
	}
	return v
}

func decider(d protocol.Decision) protocol.Decider {
	by := d.DecidedBy
	by.Name = protocol.Safe(by.Name, protocol.MaxName, false)
	if !protocol.ValidToken(by.Node) {
		by.Node = d.Node
	}
	return by
}

// trail stamps the parent's own entries with its name; those of nodes above it
// have theirs.
func trail(d protocol.Decision) []protocol.TrailEntry {
	out := make([]protocol.TrailEntry, 0, min(len(d.Trail), protocol.MaxTrail))
	for _, e := range d.Trail[:min(len(d.Trail), protocol.MaxTrail)] {
		if e.Node == "" {
			e.Node = d.Node
		}
		e.Reason = protocol.Safe(e.Reason, protocol.MaxReason, true)
		out = append(out, e)
	}
	return out
}
