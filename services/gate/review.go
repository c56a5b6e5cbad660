package gate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
)

// review writes the review log: what happened to an ask on its way. A record of
// it that cannot be kept is loud and counted, but holds nothing up: the
// decision itself is the record that must stand.
type review struct {
	js       jetstream.JetStream
	outbox   *bus.Outbox
	subjects protocol.Subjects
	gate     string
	failed   func(id string, err error)
}

// maxUnacknowledged is how many of the gate's own records may be on their way.
const maxUnacknowledged = 4096

func newReview(nc *nats.Conn, js jetstream.JetStream, subjects protocol.Subjects, gate string, failed func(id string, err error)) (*review, error) {
	outbox, err := bus.NewOutbox(nc, maxUnacknowledged, recordTimeout, func(m *nats.Msg, err error) {
		id := ""
		if s, serr := protocol.ParseSubject(m.Subject); serr == nil {
			id = s.Tokens[0]
		}
		failed(id, err)
	})
	if err != nil {
		return nil, err
	}
	return &review{js: js, outbox: outbox, subjects: subjects, gate: gate, failed: failed}, nil
}

// write keeps one record and waits for the stream's acknowledgement.
func (r *review) write(ctx context.Context, rec protocol.ReviewRecord, opts ...jetstream.PublishOpt) error {
	msg, err := r.message(rec)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if _, err := r.js.PublishMsg(ctx, msg, opts...); err != nil {
		return fmt.Errorf("review record %s: %w", rec.Event, err)
	}
	return nil
}

// note writes the gate's own events, in their order, and does not wait for the
// stream. once names a record of which the stream keeps the first only: a gate
// that takes an ask over does not know how far the other one's story went.
func (r *review) note(id, event string, fields any, once ...string) {
	rec, err := ownEvent(id, event, fields)
	var msg *nats.Msg
	if err == nil {
		msg, err = r.message(rec)
	}
	if err == nil {
		err = r.outbox.Send(msg, r.once(id, event, once)...)
	}
	if err != nil {
		r.failed(id, err)
	}
}

func ownEvent(id, event string, fields any) (protocol.ReviewRecord, error) {
	b, err := json.Marshal(fields, json.Deterministic(true))
	return protocol.ReviewRecord{Event: event, Ask: id, Fields: b}, err
}

func (r *review) once(id, event string, names []string) (opts []jetstream.PublishOpt) {
	for _, name := range names {
		opts = append(opts, jetstream.WithMsgID(r.subjects.Node()+"."+id+"."+event+"."+name))
	}
	return opts
}

func (r *review) message(rec protocol.ReviewRecord) (*nats.Msg, error) {
	rec.Node, rec.Gate, rec.At = r.subjects.Node(), r.gate, time.Now().UTC()
	subject, err := r.subjects.Review(rec.Ask, rec.Event)
	if err != nil {
		return nil, fmt.Errorf("review record: %w", err)
	}
	body, err := protocol.Write(rec)
	if err != nil {
		return nil, fmt.Errorf("review record: %w", err)
	}
	return &nats.Msg{Subject: subject, Data: body}, nil
}

// resolved says which of the links named are seen running, before any is asked;
// nothing where none is. What a link writes about the ask comes through this gate
// and this connection, and so stands behind it.
func (r *review) resolved(p protocol.Pending, running []string) {
	var seen []string
	for _, link := range p.Chain {
		if slices.Contains(running, link) {
			seen = append(seen, link)
		}
	}
	if len(seen) > 0 {
		r.note(p.Ask.ID, protocol.EventChainResolved, map[string]any{"links": seen}, "chain")
	}
}

// delegated says that the parent node is to decide, and which links are passed
// over for that; of an empty chain nothing is said.
func (r *review) delegated(p protocol.Pending, chain []string, parent string) {
	if len(chain) > 0 {
		r.note(p.Ask.ID, protocol.EventChainDelegated, map[string]any{"links": chain, "parent": parent}, "chain")
	}
	r.note(p.Ask.ID, protocol.EventForwardCreated, map[string]any{"parent": parent, "deadline": p.Deadline, "agent": p.Ask.Agent, "hops": p.Ask.Hops}, "created")
}

// forwardClosed tells how an ask ended that was for the parent to decide.
func (r *review) forwardClosed(d protocol.Decision) {
	event := protocol.EventForwardDenied
	if d.Allowed() {
		event = protocol.EventForwardApproved
	}
	r.note(d.Ask, event, map[string]any{"outcome": d.Outcome, "by": d.DecidedBy, "approver": d.Approver}, "end")
}

// unregistered says that a link was skipped; health is why it takes no asks, where
// it says so itself.
func (r *review) unregistered(id, link, health string) {
	fields := map[string]any{"link": link}
	if health != "" {
		fields["health"] = health
	}
	r.note(id, protocol.EventChainUnregistered, fields, link)
}

func (r *review) waiting(p protocol.Pending) {
	r.note(p.Ask.ID, protocol.EventRequestWaiting, from(p.Ask, map[string]any{"terminal": p.Role, "deadline": p.Deadline}))
}

// prompted says that a person is asked about the call of an agent below a child
// node.
func (r *review) prompted(p protocol.Pending) {
	if p.Via != "" {
		r.note(p.Ask.ID, protocol.EventForwardPrompted, from(p.Ask, map[string]any{"terminal": p.Role, "hops": p.Ask.Hops}))
	}
}

// from adds whose an ask is to the fields of a record.
func from(ask protocol.Ask, fields map[string]any) map[string]any {
	fields["agent"] = ask.Agent
	if via := ask.Via(); via != "" {
		fields["via"] = via
	}
	return fields
}

// closed tells how an open ask ended.
func (r *review) closed(d protocol.Decision) {
	event := protocol.EventRequestDenied
	if d.Allowed() {
		event = protocol.EventRequestApproved
	}
	fields := map[string]any{"outcome": d.Outcome, "by": d.DecidedBy, "agent": d.Agent}
	if d.Via != "" {
		fields["via"] = d.Via
	}
	if d.Grant != nil {
		fields["grant"] = d.Grant
	}
	r.note(d.Ask, event, fields, "end")
}

func (r *review) limited(d protocol.Decision, which string) {
	fields := map[string]any{"limit": which, "agent": d.Agent}
	if d.Via != "" {
		fields["via"] = d.Via
	}
	r.note(d.Ask, protocol.EventRateLimited, fields)
}

func (r *review) gateError(id, what string, cause error) {
	r.note(id, protocol.EventGateError, map[string]any{"what": what, "error": protocol.Safe(cause.Error(), 1000, false)})
}

// moduleFailed says, once for an ask and a check, that the check could say nothing:
// an ask that waits is ruled again and again.
func (r *review) moduleFailed(id, check, why string) {
	if protocol.CheckAskID(id) != nil {
		return
	}
	check = protocol.Safe(check, protocol.MaxName, false)
	r.note(id, protocol.EventGateError, map[string]any{"what": "module", "check": check, "error": why}, check)
}
