package bench

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
)

// duties are what the contract has a gate read and write for an ask that links
// decide, beside its record: whether a person has granted the like before and
// whether the ask was decided before, each asked of the stream's leader; which links
// it sees, and how the ask ended, in the review log, whose acknowledgement is not
// waited for.
type duties struct {
	all              form // the subject of the ask's decision, whatever that is
	resolved, closed told
}

// told is a record of the review log.
type told struct{ subject, body form }

func newDuties(subjects protocol.Subjects, d protocol.Decision) (*duties, error) {
	all, err := subjects.DecisionOf(d.Ask)
	if err != nil {
		return nil, err
	}
	out := &duties{all: newForm([]byte(all), d.Ask)}
	out.resolved, err = newTold(subjects, d, protocol.EventChainResolved, `{"links":["bench-1","bench-2","bench-3","bench-4","bench-5"]}`)
	if err != nil {
		return nil, err
	}
	out.closed, err = newTold(subjects, d, protocol.EventRequestApproved, `{"agent":"bench","by":{"kind":"link","name":"bench-1","node":"bench"},"outcome":"allowed_by_link"}`)
	return out, err
}

func newTold(subjects protocol.Subjects, d protocol.Decision, event, fields string) (told, error) {
	subject, err := subjects.Review(d.Ask, event)
	if err != nil {
		return told{}, err
	}
	body, err := protocol.Write(protocol.ReviewRecord{Event: event, Ask: d.Ask, Node: d.Node, Gate: d.Gate, At: time.Now().UTC(), Fields: []byte(fields)})
	return told{newForm([]byte(subject), d.Ask), newForm(body, d.Ask)}, err
}

func (t told) tell(js jetstream.JetStream, id string) error {
	_, err := js.PublishMsgAsync(&nats.Msg{Subject: string(t.subject.with(id)), Data: t.body.with(id)})
	return err
}

// before does what comes before the first link.
func (d *duties) before(ctx context.Context, b *bare, id string) error {
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		for _, err := range bus.ReadStream(ctx, b.nc, "KV_"+protocol.BucketGrants, 1, "$KV."+protocol.BucketGrants+".bench.*") {
			return err // a grant for this call would be one too many, whatever it is
		}
		return nil
	})
	both.Go(func() error {
		_, err := b.decisions.GetLastMsgForSubject(ctx, string(d.all.with(id)))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		return errors.Join(ErrAnswer, err)
	})
	if err := both.Wait(); err != nil {
		return err
	}
	return d.resolved.tell(b.js, id)
}
