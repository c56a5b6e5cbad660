// Package desk is what a face needs: the asks that wait for a person, a way to
// answer them, and the sign that an approver is there. Every face, from a
// one-line command to a screen, stands on it.
package desk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

// How a face keeps up: by notices, and by looking again, since a notice may be
// lost; and how often it says that its approver is there.
const (
	LookAgain    = 2 * time.Second
	presenceBeat = 20 * time.Second
	answerTime   = 10 * time.Second
)

// Desk is one approver's view of a node. Safe for concurrent use. The
// connection stays the caller's.
type Desk struct {
	nc       *nats.Conn
	subjects protocol.Subjects
	approver string
}

// New returns the desk of approver, whose credentials nc has.
func New(nc *nats.Conn, node, approver string) (*Desk, error) {
	subjects, err := protocol.NewSubjects(node)
	if err != nil {
		return nil, err
	}
	return &Desk{nc: nc, subjects: subjects, approver: approver}, nil
}

// Approver is the name under which this desk answers.
func (d *Desk) Approver() string { return d.approver }

// Pending returns every open ask, oldest first. Entries that cannot be read are
// left out and returned as an error beside the others.
func (d *Desk) Pending(ctx context.Context) ([]pending.Item, error) {
	entries, err := bus.LastPerKey(ctx, d.nc, protocol.BucketPending)
	if err != nil {
		return nil, err
	}
	var items []pending.Item
	var broken []error
	for _, e := range entries {
		item, err := pending.Decode(e.Key, e.Value, e.Revision)
		if err != nil {
			broken = append(broken, err)
			continue
		}
		items = append(items, item)
	}
	sortByAge(items)
	return items, errors.Join(broken...)
}

// Waiting says whether item can be answered by a person now.
func Waiting(item pending.Item, now time.Time) bool {
	return item.Role == protocol.TerminalHuman && item.AtTerminal() && item.Verdict == nil && item.Withdrawn == nil && now.Before(item.Deadline)
}

// Answer sends the approver's answer and returns the receipt: whether it
// stands, and else who was first. A *protocol.Fault says that it was refused in
// another way. Any other error leaves it open whether it stands: look again, or
// send it again, which is safe.
func (d *Desk) Answer(ctx context.Context, a protocol.Answer) (protocol.AnswerReceipt, error) {
	a.Approver = d.approver
	subject, err := d.subjects.Answer(d.approver, a.Ask)
	if err != nil {
		return protocol.AnswerReceipt{}, err
	}
	body, err := protocol.Write(a)
	if err != nil {
		return protocol.AnswerReceipt{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	msg, err := d.nc.RequestWithContext(ctx, subject, body)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return protocol.AnswerReceipt{}, fmt.Errorf("no terminal takes answers on node %s: is `assent up` or `assent terminal` running?", d.subjects.Node())
	case err != nil:
		return protocol.AnswerReceipt{}, fmt.Errorf("sending the answer: %w", err)
	}
	if fault, err := protocol.Read[protocol.ErrorReply](msg.Data); err == nil {
		return protocol.AnswerReceipt{}, &fault.Error
	}
	receipt, err := protocol.Read[protocol.AnswerReceipt](msg.Data)
	if err != nil || receipt.Ask != a.Ask {
		return protocol.AnswerReceipt{}, fmt.Errorf("the terminal's reply is no receipt for ask %s: %w", a.Ask, err)
	}
	return receipt, nil
}

// listenTime bounds how long a desk waits for the server to say that it is heard.
const listenTime = 5 * time.Second

// Notices calls seen for every live notice until ctx ends; listening, if there is
// any, once it hears them.
func (d *Desk) Notices(ctx context.Context, seen func(protocol.Notice), listening ...func()) error {
	sub, err := d.nc.SubscribeSync(d.subjects.All(protocol.KindEvent))
	if err != nil {
		return fmt.Errorf("listening for notices: %w", err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // the connection's end does the same
	if err := d.nc.FlushTimeout(listenTime); err != nil && ctx.Err() == nil {
		return fmt.Errorf("listening for notices: %w", err)
	}
	for _, f := range listening {
		f()
	}
	for {
		msg, err := sub.NextMsgWithContext(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, nats.ErrSlowConsumer):
			continue // notices were lost: whoever listens looks again anyway
		case err != nil:
			return fmt.Errorf("listening for notices: %w", err)
		}
		if n, err := protocol.Read[protocol.Notice](msg.Data); err == nil {
			seen(n)
		}
	}
}

// Present says that the approver is there, until ctx ends, and then that it has
// left.
func (d *Desk) Present(ctx context.Context) error {
	subject := "$KV." + protocol.BucketPresence + "." + d.approver
	beat := time.NewTicker(presenceBeat)
	defer beat.Stop()
	for {
		rctx, cancel := context.WithTimeout(ctx, answerTime)
		_, err := d.nc.RequestWithContext(rctx, subject, []byte(`{"v":1}`))
		cancel()
		if err != nil && ctx.Err() == nil && d.nc.IsConnected() {
			return fmt.Errorf("saying that %s is present: %w", d.approver, err)
		}
		select {
		case <-ctx.Done():
			return d.leave(subject)
		case <-beat.C:
		}
	}
}

func (d *Desk) leave(subject string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	msg := &nats.Msg{Subject: subject, Header: nats.Header{"KV-Operation": {"DEL"}}}
	if _, err := d.nc.RequestMsgWithContext(ctx, msg); err != nil && d.nc.IsConnected() {
		return fmt.Errorf("saying that %s has left: %w", d.approver, err)
	}
	return nil
}

// Closing listens for the notice that ask id is decided, from before it returns:
// an answer that is sent then may be carried out within a millisecond. The channel
// gets its outcome at most once; stop ends the listening and waits for its end.
func (d *Desk) Closing(ctx context.Context, id string) (closed <-chan protocol.Outcome, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	found := make(chan protocol.Outcome, 1)
	listening, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		// Without notices the caller's own patience ends the wait.
		_ = d.Notices(ctx, func(n protocol.Notice) {
			if n.Kind == protocol.NoticePromptClosed && n.Ask == id {
				select {
				case found <- n.Outcome:
				default:
				}
			}
		}, func() { close(listening) })
	}()
	select {
	case <-listening:
	case <-done:
	}
	return found, func() { cancel(); <-done }
}
