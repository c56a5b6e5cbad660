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
	// Dutiful: it looks up and tells what every gate must; see duties.
	Dutiful bool
}

// ServeBare answers calls on the node of subjects as a gate would that neither
// reads nor rules. Without links that is: record the decision under the ask's
// id, wait for the stream's acknowledgement, answer with it. It is the least that
// "recorded before answered" costs.
//
// With links it asks one after another before: k + 1 raw round trips and the
// record. The dutiful one does its duties besides. The connection is a gate's.
func ServeBare(nc *nats.Conn, subjects protocol.Subjects, calls ...BareCall) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("opening JetStream: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	decisions, err := js.Stream(ctx, protocol.StreamDecisions)
	if err != nil {
		return fmt.Errorf("opening stream %s: %w", protocol.StreamDecisions, err)
	}
	b := &bare{nc: nc, js: js, decisions: decisions, subjects: subjects}
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
	decisions jetstream.Stream
	subjects  protocol.Subjects
	roads     []road
}

// road is what a bare gate sends for one call, but for the ask's id.
type road struct {
	asks, subject, body, request form
	input                        []byte
	links                        []string
	duties                       *duties // nil: none
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
	r := road{asks: c.Call.body, subject: newForm([]byte(subject), id), body: newForm(body, id), input: c.Call.input}
	if c.Links > 0 {
		err = b.chain(&r, c)
	}
	return r, err
}

// chain fills in what the links are asked.
func (b *bare) chain(r *road, c BareCall) error {
	d, ask := c.Decision, c.Call.ask
	ask.ID = d.Ask
	for i := range c.Links {
		link, err := b.subjects.Link(LinkName(i + 1))
		if err != nil {
			return err
		}
		r.links = append(r.links, link)
	}
	const token = "0123456789abcdef0123456789abcdef"
	query, _ := b.subjects.Query("bench", token) // tokens both
	log, _ := b.subjects.Log("bench", token)
	request, err := protocol.Write(protocol.LinkRequest{Link: LinkName(1), Ask: ask, Asks: d.Asks, Deadline: time.Now().UTC(), Query: query, Log: log})
	if err != nil {
		return err
	}
	r.request = newForm(request, d.Ask)
	if c.Dutiful {
		r.duties, err = newDuties(b.subjects, d)
	}
	return err
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
		if b.walk(ctx, r, id) != nil {
			return
		}
		record := r.body.with(id)
		msg := &nats.Msg{Subject: string(r.subject.with(id)), Data: record}
		if _, err := b.js.PublishMsg(ctx, msg, jetstream.WithMsgID(id)); err != nil {
			return
		}
		_ = m.Respond(record)
		if r.duties != nil {
			_ = r.duties.closed.tell(b.js, id)
		}
		return
	}
}

// walk asks the links of a road.
func (b *bare) walk(ctx context.Context, r road, id string) error {
	if r.duties != nil {
		if err := r.duties.before(ctx, b, id); err != nil {
			return err
		}
	}
	for _, link := range r.links {
		if _, err := request(ctx, b.nc, link, r.request.with(id)); err != nil {
			return err
		}
	}
	return nil
}
