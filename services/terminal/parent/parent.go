// Package parent is the terminal of a node that has another one above it: it
// relays an ask to the parent's gates, and brings their decision back.
package parent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/terminal"
)

// attemptTime bounds one request to the parent, whose gates answer within a
// second: what takes longer comes from nobody.
const attemptTime = 1200 * time.Millisecond

// ErrOwnParent: the configuration makes a node its own parent.
var ErrOwnParent = errors.New("a node cannot be its own parent")

// Config is what an operator sets of a terminal that relays.
type Config struct {
	// Node is the child's name, which is also that of its credentials at the
	// parent; Parent is the parent's.
	Node, Parent string
	// URL is where the parent's NATS listens, Creds a credentials file of role
	// child that was issued there.
	URL, Creds string
	// Logger; slog.Default without one.
	Logger *slog.Logger
}

// Terminal relays asks to the parent node. It holds nothing but a connection: the
// source of truth is the parent's record, so any number of them serve one node
// and any of them goes on where another died. Safe for concurrent use.
type Terminal struct {
	node, parent    string
	relay, withdraw string // the parent's subjects for this child
	link            *link
	log             *slog.Logger
}

// New returns a terminal that relays once Run runs. It does not connect: the
// parent may be away. ErrOwnParent for a loop of one node; bus.ErrCreds for a
// credentials file that is not this node's at its parent.
func New(cfg Config) (*Terminal, error) {
	if cfg.Node == cfg.Parent {
		return nil, fmt.Errorf("%w: %s", ErrOwnParent, path(cfg.Node, cfg.Parent))
	}
	if err := protocol.CheckToken("node", cfg.Node); err != nil {
		return nil, err
	}
	above, err := protocol.NewSubjects(cfg.Parent)
	if err != nil {
		return nil, fmt.Errorf("parent: %w", err)
	}
	log := cfg.Logger
	if log == nil {
		log = slog.Default()
	}
	t := &Terminal{node: cfg.Node, parent: cfg.Parent, log: log.With("parent", cfg.Parent)}
	if t.relay, err = above.Relay(cfg.Node); err != nil {
		return nil, err
	}
	if t.withdraw, err = above.Withdraw(cfg.Node); err != nil {
		return nil, err
	}
	t.link = &link{cfg: bus.Config{URL: cfg.URL, Creds: cfg.Creds, Role: protocol.RoleChild, Name: cfg.Node, Logger: log, Timeout: connectTime}, log: t.log, changed: make(chan struct{}, 1)}
	return t, t.link.check()
}

// Kind is parent.
func (t *Terminal) Kind() protocol.TerminalKind { return protocol.TerminalParent }

// End asks the parent once and returns its decision, or terminal.ErrTaken while
// it has none. Any other error is a *protocol.Fault: unavailable where another try
// may help, whatever else where the parent will never take this ask.
func (t *Terminal) End(ctx context.Context, r protocol.TerminalRequest) (protocol.TerminalVerdict, error) {
	ask, err := t.relayed(r, time.Now())
	if err != nil {
		return protocol.TerminalVerdict{}, err
	}
	body, err := protocol.Write(ask)
	if err != nil {
		return protocol.TerminalVerdict{}, unwritable(err)
	}
	answer, err := t.request(ctx, t.relay, body)
	if err != nil {
		return protocol.TerminalVerdict{}, err
	}
	return t.read(ask, answer)
}

// Withdraw takes back an ask that has ended here otherwise.
func (t *Terminal) Withdraw(ctx context.Context, r protocol.TerminalRequest) (protocol.CancelReceipt, error) {
	body, err := protocol.Write(protocol.Cancel{Ask: r.Ask.ID, Reason: "node " + t.node + " does not wait for it any more"})
	if err != nil {
		return protocol.CancelReceipt{}, unwritable(err)
	}
	answer, err := t.request(ctx, t.withdraw, body)
	if err != nil {
		return protocol.CancelReceipt{}, err
	}
	if f := t.fault(r.Ask.ID, answer); f != nil {
		return protocol.CancelReceipt{}, f
	}
	receipt, err := protocol.Read[protocol.CancelReceipt](answer.Data)
	if err == nil && receipt.Ask != r.Ask.ID {
		err = protocol.ErrMismatch
	}
	if err != nil {
		return protocol.CancelReceipt{}, t.unclear(err)
	}
	return receipt, nil
}

// relayed is the ask as the parent gets it: the facts that the child has fixed,
// the way it took, and the time that is left. What the child holds open for a
// person alone binds the parent too.
func (t *Terminal) relayed(r protocol.TerminalRequest, now time.Time) (protocol.Ask, error) {
	ask := r.Ask
	ask.Hops = append(slices.Clone(ask.Hops), t.node)
	if i := slices.Index(ask.Hops, t.parent); i >= 0 || slices.Contains(r.Ask.Hops, t.node) {
		return protocol.Ask{}, &protocol.Fault{Code: protocol.CodeInvalid,
			Message: "the nodes' parents make a loop: " + path(append(ask.Hops, t.parent)...),
			Remedy:  "give one of them another parent, or none"}
	}
	if len(ask.Hops) > protocol.MaxHops {
		return protocol.Ask{}, &protocol.Fault{Code: protocol.CodeInvalid,
			Message: fmt.Sprintf("more than %d nodes would have relayed it: %s", protocol.MaxHops, path(append(ask.Hops, t.parent)...))}
	}
	ask.HumanOnly = ask.HumanOnly || slices.ContainsFunc(r.Asks, func(e protocol.Entry) bool { return e.HumanOnly })
	ask.Prompt = handedOn(r)
	// The parent's own clock then ends what nobody withdraws.
	ask.MaxWaitMS = max(r.Deadline.Sub(now).Milliseconds(), 1)
	return ask, nil
}

// handedOn is how the parent is to put the ask to a person: in the words of the
// permission module that asks for one, here or further below. The parent cannot
// turn a check of a node below off, so it hears no id of one.
func handedOn(r protocol.TerminalRequest) *protocol.Prompt {
	if r.Ask.Prompt == nil && !slices.ContainsFunc(r.Asks, protocol.Entry.ByModule) {
		return nil
	}
	p := r.Prompt.Shown()
	p.Check = ""
	return &p
}

// path is the way of an ask from node to node, as texts name it.
func path(nodes ...string) string { return strings.Join(nodes, " → ") }

func (t *Terminal) request(ctx context.Context, subject string, body []byte) (*nats.Msg, error) {
	nc, err := t.link.conn()
	if err != nil {
		return nil, t.away(err)
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	answer, err := nc.RequestWithContext(ctx, subject, body)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, t.away(errors.New("its NATS is there, but no gate serves it"))
	case errors.Is(err, context.DeadlineExceeded):
		return nil, t.away(errors.New("no answer"))
	case err != nil:
		return nil, t.away(err)
	}
	return answer, nil
}

// away says that nobody at the parent has answered, which may pass.
func (t *Terminal) away(cause error) *protocol.Fault {
	return unavailable(fmt.Sprintf("parent node %s is not there: %v", t.parent, cause))
}

// unclear says that what answered cannot be relied on.
func (t *Terminal) unclear(cause error) *protocol.Fault {
	return unavailable(fmt.Sprintf("what parent node %s has sent is no answer: %v", t.parent, cause))
}

func unavailable(text string) *protocol.Fault {
	return &protocol.Fault{Code: protocol.CodeUnavailable, Message: text}
}

// unwritable is an ask that no parent would take.
func unwritable(cause error) *protocol.Fault {
	code := protocol.CodeInvalid
	if errors.Is(cause, protocol.ErrTooLarge) {
		code = protocol.CodeTooLarge
	}
	return &protocol.Fault{Code: code, Message: fmt.Sprintf("it cannot be relayed: %v", cause)}
}

// Terminal is what a gate is promised of it.
var _ terminal.Withdrawer = (*Terminal)(nil)
