package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Ask asks until there is a decision or ctx ends. It fills in the id if there
// is none, the version, the source and the agent; set the id yourself
// (protocol.NewAskID) to be able to Cancel, or to ask again after a restart:
// the same id always ends in the same decision.
//
// A gate that shows no sign of life is looked for during the patience. Once a
// gate has said that the ask is pending, Ask goes on until ctx ends, through
// restarts of gates and of NATS: the ask is stored, and any gate can answer it.
// What the gate lacks of a project's own is uploaded (ProjectPolicy, ProjectOwn).
//
// Errors wrap ErrAsk, ErrUnavailable, ErrReply or ErrEnded, or are a
// *protocol.Fault, which is the gate's own refusal with a remedy.
func (c *Client) Ask(ctx context.Context, a protocol.Ask) (protocol.Decision, error) {
	data, err := c.fill(&a)
	if err != nil {
		return protocol.Decision{}, err
	}
	search, uploads := newSearch(c.patience), 0
	for {
		began := time.Now()
		r, err := c.exchange(ctx, c.ask, a.ID, data)
		if project, wanted := c.wanted(a, err); wanted && uploads < maxUploads {
			if err := c.hand(ctx, a, project); err != nil {
				return protocol.Decision{}, err
			}
			uploads++
			continue
		}
		pause := c.pace - time.Since(began)
		switch {
		case err == nil && r.decision != nil:
			return *r.decision, nil
		case err == nil && r.progress != nil:
			search.found(*r.progress)
			c.progress(*r.progress)
		case err == nil:
			return protocol.Decision{}, fmt.Errorf("%w: neither a decision nor a sign of life", ErrReply)
		case ctx.Err() != nil:
			return protocol.Decision{}, search.ended(ctx, a.ID)
		default:
			if pause, err = search.lost(err); err != nil {
				return protocol.Decision{}, err
			}
		}
		if !sleep(ctx, pause) {
			return protocol.Decision{}, search.ended(ctx, a.ID)
		}
	}
}

// Cancel withdraws a pending ask. It says false when the ask was decided
// before; then ask again with the same id to hear the decision. Errors as for
// Ask.
func (c *Client) Cancel(ctx context.Context, id, reason string) (bool, error) {
	data, err := protocol.Write(protocol.Cancel{Ask: id, Reason: protocol.Safe(reason, protocol.MaxReason-len("…"), true)})
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrAsk, err)
	}
	search := newSearch(c.patience)
	for {
		r, err := c.exchange(ctx, c.cancel, id, data)
		switch {
		case err == nil && r.receipt != nil:
			return r.receipt.Cancelled, nil
		case err == nil:
			return false, fmt.Errorf("%w: no receipt for the withdrawal", ErrReply)
		case ctx.Err() != nil:
			return false, search.ended(ctx, id)
		}
		pause, err := search.lost(err)
		if err != nil {
			return false, err
		}
		if !sleep(ctx, pause) {
			return false, search.ended(ctx, id)
		}
	}
}

func (c *Client) fill(a *protocol.Ask) ([]byte, error) {
	if a.Agent != "" && a.Agent != c.agent {
		return nil, fmt.Errorf("%w: it names agent %q, this client asks as %q", ErrAsk, a.Agent, c.agent)
	}
	a.V, a.Agent = protocol.CurrentVersion, c.agent
	if a.ID == "" {
		a.ID = protocol.NewAskID()
	}
	if a.Source == "" {
		a.Source = protocol.SourceToolCall
	}
	data, err := protocol.Write(*a)
	if errors.Is(err, protocol.ErrTooLarge) {
		return nil, fmt.Errorf("%w: %w: make the tool's input smaller, or put it into several calls", ErrAsk, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAsk, err)
	}
	return data, nil
}

// exchange is one request with a deadline of its own, and its reply, strictly
// read.
func (c *Client) exchange(ctx context.Context, subject, id string, data []byte) (reply, error) {
	msg, err := c.request(ctx, subject, data)
	if err != nil {
		return reply{}, err
	}
	return readReply(id, c.agent, msg)
}

func (c *Client) request(ctx context.Context, subject string, data []byte) (*nats.Msg, error) {
	round, stop := context.WithTimeout(ctx, c.round)
	defer stop()
	msg, err := c.nc.RequestMsgWithContext(round, &nats.Msg{Subject: subject, Data: data})
	if err != nil {
		return nil, c.explain(subject, err)
	}
	return msg, nil
}

// explain gives a failed request a cause that a person can act on.
func (c *Client) explain(subject string, err error) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return silence{fmt.Errorf("no gate listens on %s: %w: start one with `assent up` or `assent gate`", subject, err)}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		// The server reports a forbidden subject beside the request, never as
		// its reply.
		if last := c.nc.LastError(); errors.Is(last, nats.ErrPermissionViolation) && strings.Contains(last.Error(), subject) {
			return fmt.Errorf("the credentials may not ask on %s: %w", subject, last)
		}
		return silence{fmt.Errorf("no answer on %s within %s: %w", subject, c.round, err)}
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrConnectionDraining):
		return fmt.Errorf("the connection to NATS is closed: %w", errors.Join(err, c.nc.LastError()))
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%w: the NATS server takes no message of this size: %w", ErrAsk, err)
	case errors.Is(err, context.Canceled):
		return err
	default:
		return silence{fmt.Errorf("NATS does not carry the request: %w", err)}
	}
}
