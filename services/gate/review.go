package gate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/pkg/protocol"
)

// review writes the review log: what happened to an ask on its way. A record of
// it that cannot be kept is loud and counted, but holds nothing up: the
// decision itself is the record that must stand.
type review struct {
	js       jetstream.JetStream
	subjects protocol.Subjects
	gate     string
	failed   func(id string, err error)
}

// write keeps one record and waits for the stream's acknowledgement. With once,
// which names it, the stream keeps the first of that name only: a gate that takes
// an ask over does not know how far the other one's story went.
func (r *review) write(ctx context.Context, rec protocol.ReviewRecord, once ...string) error {
	rec.Node, rec.Gate, rec.At = r.subjects.Node(), r.gate, time.Now().UTC()
	subject, err := r.subjects.Review(rec.Ask, rec.Event)
	if err != nil {
		return fmt.Errorf("review record: %w", err)
	}
	body, err := protocol.Write(rec)
	if err != nil {
		return fmt.Errorf("review record: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	var opts []jetstream.PublishOpt
	for _, name := range once {
		opts = append(opts, jetstream.WithMsgID(rec.Node+"."+rec.Ask+"."+rec.Event+"."+name))
	}
	if _, err := r.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: body}, opts...); err != nil {
		return fmt.Errorf("review record %s: %w", rec.Event, err)
	}
	return nil
}

// note is write for the gate's own events.
func (r *review) note(ctx context.Context, id, event string, fields any, once ...string) {
	b, err := json.Marshal(fields, json.Deterministic(true))
	if err == nil {
		err = r.write(ctx, protocol.ReviewRecord{Event: event, Ask: id, Fields: b}, once...)
	}
	if err != nil {
		r.failed(id, err)
	}
}

// resolved says which of the links named are seen running, before any is asked;
// nothing where none is.
func (r *review) resolved(ctx context.Context, p protocol.Pending, running []string) {
	var seen []string
	for _, link := range p.Chain {
		if slices.Contains(running, link) {
			seen = append(seen, link)
		}
	}
	if len(seen) > 0 {
		r.note(ctx, p.Ask.ID, protocol.EventChainResolved, map[string]any{"links": seen}, "chain")
	}
}

// delegated says that the parent node is to decide, and which links are passed
// over for that; of an empty chain nothing is said.
func (r *review) delegated(ctx context.Context, p protocol.Pending, chain []string, parent string) {
	if len(chain) > 0 {
		r.note(ctx, p.Ask.ID, protocol.EventChainDelegated, map[string]any{"links": chain, "parent": parent})
	}
	r.note(ctx, p.Ask.ID, protocol.EventForwardCreated, map[string]any{"parent": parent, "deadline": p.Deadline, "agent": p.Ask.Agent, "hops": p.Ask.Hops})
}

// forwardClosed tells how an ask ended that was for the parent to decide.
func (r *review) forwardClosed(ctx context.Context, d protocol.Decision) {
	event := protocol.EventForwardDenied
	if d.Allowed() {
		event = protocol.EventForwardApproved
	}
	r.note(ctx, d.Ask, event, map[string]any{"outcome": d.Outcome, "by": d.DecidedBy, "approver": d.Approver})
}

// unregistered says that a link was skipped; health is why it takes no asks, where
// it says so itself.
func (r *review) unregistered(ctx context.Context, id, link, health string) {
	fields := map[string]any{"link": link}
	if health != "" {
		fields["health"] = health
	}
	r.note(ctx, id, protocol.EventChainUnregistered, fields, link)
}

func (r *review) waiting(ctx context.Context, p protocol.Pending) {
	r.note(ctx, p.Ask.ID, protocol.EventRequestWaiting, from(p.Ask, map[string]any{"terminal": p.Role, "deadline": p.Deadline}))
}

// prompted says that a person is asked about the call of an agent below a child
// node.
func (r *review) prompted(ctx context.Context, p protocol.Pending) {
	if p.Via != "" {
		r.note(ctx, p.Ask.ID, protocol.EventForwardPrompted, from(p.Ask, map[string]any{"terminal": p.Role, "hops": p.Ask.Hops}))
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
func (r *review) closed(ctx context.Context, d protocol.Decision) {
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
	r.note(ctx, d.Ask, event, fields)
}

func (r *review) limited(ctx context.Context, d protocol.Decision, which string) {
	fields := map[string]any{"limit": which, "agent": d.Agent}
	if d.Via != "" {
		fields["via"] = d.Via
	}
	r.note(ctx, d.Ask, protocol.EventRateLimited, fields)
}

func (r *review) gateError(ctx context.Context, id, what string, cause error) {
	r.note(ctx, id, protocol.EventGateError, map[string]any{"what": what, "error": protocol.Safe(cause.Error(), 1000, false)})
}
