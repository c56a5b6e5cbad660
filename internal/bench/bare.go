package bench

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
)

// BareCall is one call that a bare gate answers, as which decision, after asking
// so many links.
type BareCall struct {
	Call     Call
	Decision protocol.Decision
	Links    int
}

// ServeBare answers calls on the node of subjects as a gate would that neither
// reads nor rules. Without links that is: record the decision under the ask's
// id, wait for the stream's acknowledgement, answer with it. It is the least that
// "recorded before answered" costs.
//
// With links it is the least that an open ask costs which any gate can carry on:
// look whether a grant covers it, store its entry, look whether it was decided
// before, ask one link after another and store between two what the first said;
// record, answer, take the entry away. The connection is a gate's.
func ServeBare(nc *nats.Conn, subjects protocol.Subjects, calls ...BareCall) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("opening JetStream: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	entries, err := js.KeyValue(ctx, protocol.BucketPending)
	if err != nil {
		return fmt.Errorf("opening bucket %s: %w", protocol.BucketPending, err)
	}
	decisions, err := js.Stream(ctx, protocol.StreamDecisions)
	if err != nil {
		return fmt.Errorf("opening stream %s: %w", protocol.StreamDecisions, err)
	}
	b := &bare{nc: nc, js: js, entries: entries, decisions: decisions, subjects: subjects}
	for _, c := range calls {
		road, err := b.road(c)
		if err != nil {
			return fmt.Errorf("serving a bare gate: %w", err)
		}
		b.roads = append(b.roads, road)
	}
	drop := func(*nats.Msg) {}
	_, err = bus.Subscribe(nc, subjects.All(protocol.KindAsk), protocol.QueueGate, maxCallers, b.serve, drop)
	return err
}

type bare struct {
	nc        *nats.Conn
	js        jetstream.JetStream
	entries   jetstream.KeyValue
	decisions jetstream.Stream
	subjects  protocol.Subjects
	roads     []road
}

// road is what a bare gate sends for one call, but for the ask's id.
type road struct {
	asks, subject, body, all, entry, request form
	input                                    []byte
	links                                    []string
}

func (b *bare) road(c BareCall) (road, error) {
	d, id := c.Decision, c.Decision.Ask
	body, err := protocol.Write(d)
	if err != nil {
		return road{}, err
	}
	subject, err := b.subjects.Decision(id, d.Agent, d.Surface, d.Result)
	if err != nil {
		return road{}, err
	}
	all, err := b.subjects.DecisionOf(id)
	if err != nil {
		return road{}, err
	}
	r := road{asks: c.Call.body, subject: newForm([]byte(subject), id), body: newForm(body, id), all: newForm([]byte(all), id), input: c.Call.input}
	if c.Links == 0 {
		return r, nil
	}
	err = b.open(&r, c)
	return r, err
}

// open fills in what an open ask needs.
func (b *bare) open(r *road, c BareCall) error {
	now, d := time.Now().UTC(), c.Decision
	ask := c.Call.ask
	ask.ID = d.Ask
	var chain []string
	for i := range c.Links {
		chain = append(chain, LinkName(i+1))
		link, err := b.subjects.Link(chain[i])
		if err != nil {
			return err
		}
		r.links = append(r.links, link)
	}
	entry, err := protocol.Write(protocol.Pending{
		Ask: ask, Digest: d.CallDigest, Node: d.Node, Requester: d.Requester, Asks: d.Asks, Policy: d.Policy, Role: protocol.TerminalDeny,
		Chain: chain, Stage: "link:" + LinkName(1), Since: now, Deadline: now.Add(time.Hour), Owner: "bench", Lease: now.Add(protocol.LeaseTime),
	})
	if err != nil {
		return err
	}
	const token = "0123456789abcdef0123456789abcdef"
	query, _ := b.subjects.Query("bench", token) // tokens both
	log, _ := b.subjects.Log("bench", token)
	request, err := protocol.Write(protocol.LinkRequest{Link: LinkName(1), Ask: ask, Asks: d.Asks, Deadline: now.Add(time.Hour), Query: query, Log: log})
	if err != nil {
		return err
	}
	r.entry, r.request = newForm(entry, d.Ask), newForm(request, d.Ask)
	return nil
}

// serve leaves unanswered whatever fails: whoever asks fails with it.
func (b *bare) serve(m *nats.Msg) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	for _, r := range b.roads {
		id, ok := r.asks.idOf(m.Data)
		if !ok || !bytes.Contains(m.Data, r.input) {
			continue
		}
		if len(r.links) > 0 && b.walk(ctx, r, id) != nil {
			return
		}
		record := r.body.with(id)
		msg := &nats.Msg{Subject: string(r.subject.with(id)), Data: record}
		if _, err := b.js.PublishMsg(ctx, msg, jetstream.WithMsgID(id)); err != nil {
			return
		}
		_ = m.Respond(record)
		if len(r.links) > 0 {
			_ = b.entries.Purge(ctx, id)
		}
		return
	}
}

// walk takes an open ask through its links.
func (b *bare) walk(ctx context.Context, r road, id string) error {
	for _, err := range bus.ReadStream(ctx, b.nc, "KV_"+protocol.BucketGrants, 1, "$KV."+protocol.BucketGrants+".bench.*") {
		return err // a grant for this call would be one too many, whatever it is
	}
	revision, err := b.entries.Create(ctx, id, r.entry.with(id))
	if err != nil {
		return err
	}
	if _, err := b.decisions.GetLastMsgForSubject(ctx, string(r.all.with(id))); err == nil {
		return ErrAnswer
	}
	for i, link := range r.links {
		if i > 0 {
			if revision, err = b.entries.Update(ctx, id, r.entry.with(id), revision); err != nil {
				return err
			}
		}
		if _, err := request(ctx, b.nc, link, r.request.with(id)); err != nil {
			return err
		}
	}
	return nil
}
