package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

// serveTime bounds one request from its arrival to its reply.
const serveTime = patience + 2*recordTimeout

// serveAsk takes one ask off the wire and answers it: one request, one reply,
// always with a body.
func (g *Gate) serveAsk(m *nats.Msg) {
	ctx, cancel := context.WithTimeout(context.Background(), serveTime)
	defer cancel()
	agent, who, ok := g.asker(m)
	if !ok {
		return
	}
	c, fault := g.readAsk(ctx, agent, who, m.Data)
	switch {
	case fault.decision != nil:
		g.answer(m, fault.decision)
		if fault.cause != nil {
			g.fail("unrecorded", "malformed ask is denied off the record", fault.decision.Ask, fault.cause)
		}
	case fault.error != nil:
		g.answerFault(m, fault.ask, *fault.error)
	default:
		r, err := g.Decide(ctx, c)
		g.answerAsk(m, c, r, err)
	}
}

// asker says which agent sent a request. A request whose reply subject the
// server did not make, or whose sender the server does not state, is dropped
// without an answer: the reply subject is where the attack would land.
func (g *Gate) asker(m *nats.Msg) (agent string, who protocol.Requester, ok bool) {
	subject, err := protocol.ParseSubject(m.Subject)
	if err != nil || subject.Node != g.node || len(subject.Tokens) != 1 {
		g.drop(m, "bad subject", err)
		return "", who, false
	}
	id, err := g.senders.Of(m)
	if err != nil {
		g.drop(m, "bad reply subject or sender", err)
		return "", who, false
	}
	// Another agent's reply can be led into this agent's subject by the reply
	// subject of its request; then the sender stated here is not this agent.
	if id.Name != subject.Tokens[0] {
		g.drop(m, "sender "+id.Name+" is not the subject's", nil)
		return "", who, false
	}
	return id.Name, protocol.Requester{User: id.Key, Host: id.Host}, true
}

func (g *Gate) drop(m *nats.Msg, why string, err error) {
	g.count("dropped", "request")
	g.log.Warn("request dropped", "subject", m.Subject, "why", why, "err", err)
}

// refusal of an ask that could not be read: a decision where its id could be
// read, an error reply elsewhere.
type refusal struct {
	ask      string
	decision *protocol.Decision
	error    *protocol.Fault
	cause    error // why the decision is not on the record
}

// readAsk reads and checks the ask. A malformed one is decided too, if its id
// can be read: the record then shows what came.
func (g *Gate) readAsk(ctx context.Context, agent string, who protocol.Requester, data []byte) (call, refusal) {
	now := time.Now().UTC()
	ask, err := protocol.ReadAskFor(agent, data)
	if err == nil {
		err = g.checkTime(ctx, ask, now)
	}
	if err != nil {
		return call{}, g.invalid(ctx, agent, who, data, err)
	}
	digest, err := ask.Digest(g.node)
	if err != nil {
		return call{}, g.invalid(ctx, agent, who, data, err)
	}
	return call{ask: ask, digest: digest, requester: who, askedAt: now}, refusal{}
}

// checkTime refuses an id whose time lies too far from now, but for one that is
// open or decided here: whoever asks has waited for a person so long, and the
// longest wait is many days.
func (g *Gate) checkTime(ctx context.Context, ask protocol.Ask, now time.Time) error {
	err := ask.CheckTime(now)
	if err == nil {
		return nil
	}
	if _, open := g.mirror.get(ask.ID); open {
		return nil
	}
	if g.limits.tooFast(call{ask: ask, askedAt: now}, g.policy.current()) {
		return err // and is refused as too fast
	}
	digest, derr := ask.Digest(g.node)
	if d, decided, ferr := g.recorder.Find(ctx, ask.ID); ferr == nil && derr == nil && decided && d.CallDigest == digest {
		return nil
	}
	return err
}

func (g *Gate) invalid(ctx context.Context, agent string, who protocol.Requester, data []byte, cause error) refusal {
	id := protocol.PeekAskID(data, "id")
	fault := &protocol.Fault{Code: protocol.CodeInvalid, Message: protocol.Safe(cause.Error(), 500, false), Remedy: "mend the ask and send it with a new id"}
	if errors.Is(cause, protocol.ErrTooLarge) {
		fault.Code, fault.Remedy = protocol.CodeTooLarge, "make the call smaller"
	}
	if id == "" {
		g.count("invalid", "ask")
		return refusal{error: fault}
	}
	sum := sha256.Sum256(data)
	c := call{ask: protocol.Ask{ID: id, Agent: agent}, digest: "raw:sha256:" + hex.EncodeToString(sum[:]), requester: who, askedAt: time.Now().UTC()}
	if g.limits.tooFast(c, g.policy.current()) {
		return refusal{decision: g.limited(c, limitRate).decision}
	}
	g.count("invalid", "ask")
	if _, open := g.mirror.get(id); open {
		return refusal{ask: id, error: conflictFault()}
	}
	r, err := g.record(ctx, g.refuse(c, protocol.Invalid, fault.Message))
	switch {
	case errors.Is(err, errConflict):
		return refusal{ask: id, error: conflictFault()}
	case err != nil:
		d := g.refuse(c, protocol.Unavailable, unrecordedReason)
		return refusal{decision: &d, cause: err}
	}
	return refusal{decision: r.decision}
}

const unrecordedReason = "The gate could not record a decision, so nothing is allowed. Ask again later."

func unavailableReason(err error) string {
	if errors.Is(err, errStale) {
		return "The gate has just come back and does not know the policy of this moment yet, so nothing is allowed. Ask again in some seconds."
	}
	return unrecordedReason
}

// refuse is a denial by the gate's own hand.
func (g *Gate) refuse(c call, outcome protocol.Outcome, reason string) protocol.Decision {
	d := g.newDecision(c.ask, c.digest, c.requester, c.askedAt)
	d.Result, d.Outcome, d.Reason = protocol.FinalDeny, outcome, reason
	d.DecidedBy = protocol.Decider{Kind: protocol.DeciderGate, Name: g.name, Node: g.node}
	return d
}

func conflictFault() *protocol.Fault {
	return &protocol.Fault{Code: protocol.CodeConflict, Message: "this ask id belongs to another call", Remedy: "ask with a new id"}
}

// answerAsk answers with what Decide returned; whatever went wrong is a no.
func (g *Gate) answerAsk(m *nats.Msg, c call, r reply, err error) {
	switch {
	case errors.Is(err, errConflict):
		g.answerFault(m, c.ask.ID, *conflictFault())
	case errors.Is(err, errNeedProject):
		g.answerFault(m, c.ask.ID, *needProjectFault())
	case err != nil || r.decision == nil && r.progress == nil:
		d := g.refuse(c, protocol.Unavailable, unavailableReason(err))
		g.answer(m, &d) // first: telling of a failure may take as long as the failure
		g.fail("unrecorded", "ask is denied: it could not be decided on the record", c.ask.ID, err)
	case r.decision != nil && r.recorded != nil:
		g.sent(bus.ReplyWith(g.nc, m, r.recorded))
	case r.decision != nil:
		g.answer(m, r.decision)
	default:
		send(g, m, *r.progress)
	}
}

func (g *Gate) answer(m *nats.Msg, d *protocol.Decision) { send(g, m, *d) }

func (g *Gate) answerFault(m *nats.Msg, ask string, f protocol.Fault) {
	g.sent(bus.ReplyFault(g.nc, m, ask, f))
}

// send answers m with one message.
func send[M any, P protocol.Message[M]](g *Gate, m *nats.Msg, v M) {
	g.sent(bus.Reply[M, P](g.nc, m, v))
}

func (g *Gate) sent(err error) {
	if err != nil {
		g.log.Error("reply not sent; the asker asks again", "err", err)
	}
}

// refuseFull answers an ask that came over the bound of what runs here at once.
func (g *Gate) refuseFull(m *nats.Msg) {
	g.count("unavailable", "full")
	if protocol.ReplyAcross(m.Reply) {
		g.answerFault(m, protocol.PeekAskID(m.Data, "id"), protocol.Fault{Code: protocol.CodeUnavailable, Message: "this gate is full", Remedy: "ask again in a moment, with the same id"})
	}
}

func (g *Gate) dropFull(m *nats.Msg) { g.drop(m, "too many at once", nil) }

// serveCancel withdraws an agent's own open ask. The entry is marked and
// whoever carries it settles it: a cancel is an event to be recorded.
func (g *Gate) serveCancel(m *nats.Msg) {
	ctx, cancel := context.WithTimeout(context.Background(), serveTime)
	defer cancel()
	agent, _, ok := g.asker(m)
	if !ok {
		return
	}
	if c, ok := g.readCancel(m); ok {
		g.answerCancel(ctx, m, c, protocol.Ask{Agent: agent}, func(a protocol.Ask) bool { return a.Agent == agent && a.Via() == "" })
	}
}

// readCancel reads a withdrawal; where it is none, that is answered.
func (g *Gate) readCancel(m *nats.Msg) (protocol.Cancel, bool) {
	c, err := protocol.Read[protocol.Cancel](m.Data)
	if err != nil {
		g.answerFault(m, protocol.PeekAskID(m.Data, "ask"), protocol.Fault{Code: protocol.CodeInvalid, Message: protocol.Safe(err.Error(), 500, false), Remedy: "send {\"v\":1,\"ask\":ID,\"reason\":TEXT}"})
	}
	return c, err == nil
}

// answerCancel withdraws an ask for whom it is one of, as mine says; from is who
// that is.
func (g *Gate) answerCancel(ctx context.Context, m *nats.Msg, c protocol.Cancel, from protocol.Ask, mine func(protocol.Ask) bool) {
	done, err := false, error(errCrowded)
	if !g.withdrawsTooFast(payer(from)) {
		done, err = g.withdraw(ctx, c, mine)
	}
	if errors.Is(err, errCrowded) { // not on record: that is what it would fill
		g.count("rate_limited", "withdraw")
		g.answerFault(m, c.Ask, protocol.Fault{Code: protocol.CodeUnavailable, Message: "too many withdrawals at once", Remedy: "try again in a moment"})
		return
	}
	if err != nil {
		g.fail("cancel", "ask could not be withdrawn", c.Ask, err)
		g.answerFault(m, c.Ask, protocol.Fault{Code: protocol.CodeUnavailable, Message: "the ask could not be withdrawn", Remedy: "try again"})
		return
	}
	send(g, m, protocol.CancelReceipt{Ask: c.Ask, Cancelled: done})
}

var errNotOpen = errors.New("ask cannot be withdrawn any more")

// withdraw says whether the ask is withdrawn. One that is not mine looks like
// one that does not exist.
func (g *Gate) withdraw(ctx context.Context, c protocol.Cancel, mine func(protocol.Ask) bool) (bool, error) {
	settled, leave, ok := g.waiters.await(c.Ask, maxWithdrawing)
	if !ok {
		return false, errCrowded
	}
	defer leave()
	err := g.markWithdrawn(ctx, c, mine)
	switch {
	case errors.Is(err, pending.ErrGone), errors.Is(err, errNotOpen):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("withdrawing ask: %w", err)
	}
	return g.withdrawn(ctx, c.Ask, settled)
}

// markWithdrawn marks the entry of an ask. One that has none and no decision may be
// open in a gate's memory, here or elsewhere: soon it has one or the other.
func (g *Gate) markWithdrawn(ctx context.Context, c protocol.Cancel, mine func(protocol.Ask) bool) error {
	mark := func() error {
		_, err := g.pending.Update(ctx, c.Ask, func(p *protocol.Pending) error {
			if !mine(p.Ask) || p.Verdict != nil {
				return errNotOpen
			}
			if p.Withdrawn == nil {
				p.Withdrawn = &c
			}
			return nil
		})
		return err
	}
	err := mark()
	if !errors.Is(err, pending.ErrGone) {
		return err
	}
	if _, decided, ferr := g.recorder.Find(ctx, c.Ask); ferr != nil || decided {
		return errors.Join(err, ferr)
	}
	if perr := pause(ctx, g.times.brief+lag); perr != nil {
		return perr
	}
	return mark()
}

// withdrawn says whether an ask whose entry is marked ends as withdrawn. A
// decision may have been on its way into the record when the mark was set: the
// agent must not hear that it withdrew what was denied, or allowed. An error
// means that the record did not say it in time: the mark stands, and whoever
// settles the ask finds it.
func (g *Gate) withdrawn(ctx context.Context, id string, settled <-chan protocol.Decision) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, g.times.patience)
	defer cancel()
	for {
		if d, decided, err := g.recorder.Find(ctx, id); err == nil && decided {
			return d.Outcome == protocol.Cancelled, nil
		}
		select {
		case d := <-settled:
			return d.Outcome == protocol.Cancelled, nil
		case <-time.After(lag):
		case <-g.stopping:
			return false, errStopping
		case <-ctx.Done():
			return false, fmt.Errorf("withdrawing ask: how it ended is not on record yet: %w", ctx.Err())
		}
	}
}

// serveQuery answers a judge's query within its capability.
func (g *Gate) serveQuery(m *nats.Msg) {
	c, ok := g.capabilityOf(m, protocol.KindQuery)
	if !ok {
		return
	}
	q, err := protocol.Read[protocol.Query](m.Data)
	if err != nil {
		g.answerFault(m, c.ask.ID, protocol.Fault{Code: protocol.CodeInvalid, Message: protocol.Safe(err.Error(), 500, false)})
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), serveTime)
	defer cancel()
	answer, err := g.check(ctx, c, q)
	if err != nil {
		g.fail("query", "a link's query could not be answered", c.ask.ID, err)
		g.answerFault(m, c.ask.ID, protocol.Fault{Code: protocol.CodeUnavailable, Message: "the project's own policy cannot be read"})
		return
	}
	send(g, m, answer)
}

// maxLogRecord bounds one log record of a judge, in bytes.
const maxLogRecord = 64 << 10

// serveLog keeps a judge's log record within its capability.
func (g *Gate) serveLog(m *nats.Msg) {
	ctx, cancel := context.WithTimeout(context.Background(), serveTime)
	defer cancel()
	c, ok := g.capabilityOf(m, protocol.KindLog)
	if !ok {
		return
	}
	r, err := protocol.Read[protocol.LogRecord](m.Data, protocol.MaxBytes(maxLogRecord))
	if err != nil {
		g.answerFault(m, c.ask.ID, protocol.Fault{Code: protocol.CodeInvalid, Message: protocol.Safe(err.Error(), 500, false)})
		return
	}
	kept, fault := g.write(ctx, c, r)
	if fault != nil {
		g.answerFault(m, c.ask.ID, *fault)
		return
	}
	send(g, m, protocol.LogReceipt{Ask: c.ask.ID, Kept: kept})
}

// capabilityOf finds the capability that a request uses. A reply subject that
// is no judge's inbox is an attack and gets no answer.
func (g *Gate) capabilityOf(m *nats.Msg, kind protocol.Kind) (*capability, bool) {
	subject, err := protocol.ParseSubject(m.Subject)
	if err != nil || subject.Kind != kind {
		g.drop(m, "bad subject", err)
		return nil, false
	}
	if !protocol.ReplyFrom(protocol.RoleJudge, m.Reply) {
		g.drop(m, "reply subject is no judge's inbox", nil)
		return nil, false
	}
	c, fault := g.capabilities.use(kind, subject.Tokens[1], m.Reply, time.Now())
	if fault != nil {
		g.count("capability", string(fault.Code))
		g.answerFault(m, "", *fault)
		return nil, false
	}
	return c, true
}
