package link

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
)

const (
	// acceptTime is how long a handler waits for the receipt of its record
	// "accepted"; after it the gate asks another worker.
	acceptTime = 500 * time.Millisecond
	// heedTime is how long a link may take to return once its context has ended,
	// before it counts as stuck.
	heedTime = 100 * time.Millisecond
	// maxCause bounds what a failure's cause may add to an ask's trail, in bytes.
	maxCause = 300
)

// receive takes one request up. It runs for one message at a time, so it never
// waits: either a slot is free, or the gate hears so at once.
func (s *server) receive(m *nats.Msg) {
	// The reply subject is the sender's choice, and this connection may publish
	// wherever it points: only a gate's inbox is answered, with no word to others.
	if !protocol.ReplyFrom(protocol.RoleGate, m.Reply) {
		s.log.Warn("link request dropped: its reply subject is no gate's inbox", "link", s.name, "reply", protocol.Safe(m.Reply, 120, false))
		return
	}
	select {
	case s.slots <- struct{}{}:
	default:
		s.turnAway(m)
		return
	}
	// The slot is free before the answer leaves: a gate that asks again at once
	// must not hear "busy" from a link that has nothing to do.
	free := sync.OnceFunc(func() { <-s.slots })
	s.working.Go(func() {
		defer free()
		s.handle(m, free)
	})
}

func (s *server) turnAway(m *nats.Msg) {
	r, err := s.read(m.Data)
	if err != nil {
		s.refuse(m, err)
		return
	}
	s.answer(m, r.Ask.ID, Unable(FailureBusy, fmt.Sprintf("%d asks are being judged already", s.concurrency)))
}

// handle answers one request: every way through it ends in exactly one answer.
// It returns only when the link has, and the slot stays taken until then,
// however late that is.
func (s *server) handle(m *nats.Msg, free func()) {
	r, err := s.read(m.Data)
	if err != nil {
		free()
		s.refuse(m, err)
		return
	}
	ctx, cancel := context.WithDeadline(s.work, r.Deadline)
	defer cancel()
	if ctx.Err() != nil {
		free()
		s.answer(m, r.Ask.ID, Unable(protocol.FailureExpired, "the request came after its deadline"))
		return
	}
	judged := s.judge(ctx, r, free)
	select {
	case v := <-judged:
		s.answer(m, r.Ask.ID, v)
	case <-ctx.Done():
		s.log.Warn("link did not judge in time", "link", s.name, "ask", r.Ask.ID, "cause", context.Cause(ctx))
		s.answer(m, r.Ask.ID, Unable(protocol.FailureTimeout, "the link had not judged when its time was over"))
		select {
		case <-judged: // it heeds its context
			return
		case <-time.After(heedTime):
		}
		defer s.late()()
		<-judged
	}
}

func (s *server) read(data []byte) (protocol.LinkRequest, error) {
	r, err := protocol.Read[protocol.LinkRequest](data)
	if err != nil {
		return r, err
	}
	if r.Link != s.name {
		return r, fmt.Errorf("%w: the request is for link %q", protocol.ErrMismatch, r.Link)
	}
	for _, capability := range []string{r.Query, r.Log} {
		if sub, err := protocol.ParseSubject(capability); err != nil || sub.Node != s.node {
			return r, fmt.Errorf("%w: a capability of another node", protocol.ErrMismatch)
		}
	}
	return r, nil
}

// judge runs the link in a goroutine of its own, which the caller waits for:
// whatever ends that goroutine, one verdict comes out of the channel.
func (s *server) judge(ctx context.Context, r protocol.LinkRequest, free func()) <-chan protocol.Verdict {
	verdict := make(chan protocol.Verdict, 1)
	go func() {
		v, err := protocol.Verdict{}, errors.New("the link ended its goroutine")
		defer func() { free(); verdict <- s.settle(ctx, r.Ask.ID, v, err) }()
		c := newCapabilities(ctx, s.nc, r)
		defer c.end()
		if err = s.accept(ctx, c); err != nil {
			return
		}
		err = errors.New("the link ended its goroutine")
		v, err = s.call(ctx, r, c)
	}()
	return verdict
}

// settle makes a verdict of whatever came of the link.
func (s *server) settle(ctx context.Context, id string, v protocol.Verdict, err error) protocol.Verdict {
	switch {
	case err != nil && ctx.Err() != nil:
		return Unable(protocol.FailureTimeout, "the link's time was over")
	case err == nil && v.Ask != "" && v.Ask != id:
		err = errors.New("the link judged another ask")
		fallthrough
	case err != nil:
		s.log.Warn("link failed", "link", s.name, "ask", id, "error", err)
		return unable(err)
	default:
		return v
	}
}

// accept tells the gate that a worker is at work. A gate that refuses the
// record has no such ask open, so nothing is judged; one that is slow to take
// it may still be waiting for the verdict.
func (s *server) accept(ctx context.Context, c *capabilities) error {
	ctx, cancel := context.WithTimeout(ctx, acceptTime)
	defer cancel()
	err := c.Debug(ctx, protocol.EventAccepted, nil)
	if fault := new(protocol.Fault); errors.As(err, &fault) {
		return err
	}
	if err != nil {
		s.log.Warn("no receipt for the record that an ask was taken up", "link", s.name, "ask", c.ask, "error", err)
	}
	return nil
}

// call runs the link. A panic is an error: one bad ask must not take the others
// of this process with it.
func (s *server) call(ctx context.Context, r protocol.LinkRequest, c *capabilities) (v protocol.Verdict, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("link panicked", "link", s.name, "ask", r.Ask.ID, "panic", p, "stack", string(debug.Stack()))
			v, err = protocol.Verdict{}, fmt.Errorf("the link panicked: %v", p)
		}
	}()
	return s.link(ctx, Request{Ask: r.Ask, Asks: r.Asks, Units: r.Units, PolicyRevision: r.PolicyRevision, Deadline: r.Deadline, Query: c, Log: c})
}

func unable(cause error) protocol.Verdict {
	return Unable(protocol.FailureError, protocol.Safe(cause.Error(), maxCause, false))
}

// answer sends v for ask id. A verdict that no gate could read is a defer.
func (s *server) answer(m *nats.Msg, id string, v protocol.Verdict) {
	v.Ask = id
	data, err := protocol.Write(v)
	if err != nil {
		s.log.Error("link gave no verdict", "link", s.name, "ask", id, "error", err)
		v = Unable(protocol.FailureMalformed, protocol.Safe(err.Error(), maxCause, false))
		v.Ask = id
		data, err = protocol.Write(v)
	}
	if err == nil {
		err = m.Respond(data)
	}
	if err != nil {
		s.log.Error("verdict not sent", "link", s.name, "ask", id, "error", err)
	}
}

// refuse answers a request that is none with an error reply, which a gate
// counts as a malformed defer.
func (s *server) refuse(m *nats.Msg, cause error) {
	code := protocol.CodeInvalid
	if errors.Is(cause, protocol.ErrTooLarge) {
		code = protocol.CodeTooLarge
	}
	text := protocol.Safe(cause.Error(), maxCause, false)
	s.log.Warn("link request refused", "link", s.name, "error", text)
	data, err := protocol.Write(protocol.ErrorReply{Error: protocol.Fault{Code: code, Message: text, Remedy: "ask link " + s.name + " with a link request of version 1"}})
	if err == nil {
		reply := nats.NewMsg(m.Reply)
		reply.Header.Set(protocol.HeaderErrorCode, string(code))
		reply.Header.Set(protocol.HeaderError, text)
		reply.Data = data
		err = s.nc.PublishMsg(reply)
	}
	if err != nil {
		s.log.Error("refusal not sent", "link", s.name, "error", err)
	}
}
