package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/record"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Bounds of a record: long values are cut in the record alone, where the call's
// digest still identifies them.
const (
	recordTimeout  = 3 * time.Second
	recordAttempts = 2
	recordedValue  = 2 << 10
	recordedAsks   = 64
)

// recorder writes decisions to the stream and reads them back.
type recorder struct {
	*record.Reader
	nc       *nats.Conn
	subjects protocol.Subjects
}

// record stores d and returns it once the stream has acknowledged it: no
// decision is heard before. When the ask was decided before, that decision is
// the answer, if it is on the same call. errConflict otherwise; errUnrecorded
// when the stream does not acknowledge.
func (g *Gate) record(ctx context.Context, d protocol.Decision) (reply, error) {
	stored, text, err := g.commit(ctx, d)
	if err != nil {
		return reply{}, err
	}
	if stored.CallDigest != d.CallDigest || stored.Agent != d.Agent {
		return reply{}, fmt.Errorf("recording decision on %s: %w", d.Ask, errConflict)
	}
	return reply{decision: &stored, recorded: text}, nil
}

// store is write for whoever does not need the text.
func (r *recorder) store(ctx context.Context, d protocol.Decision) (protocol.Decision, error) {
	d, _, err := r.write(ctx, d)
	return d, err
}

// write publishes d on the condition that its ask has no decision yet, whatever
// the surface and result: of gates that race, one wins on any number of
// replicas. It returns the decision that stands, and its text if that is d.
func (r *recorder) write(ctx context.Context, d protocol.Decision) (protocol.Decision, []byte, error) {
	trim(&d)
	msg, err := r.message(d)
	if err != nil {
		return protocol.Decision{}, nil, err
	}
	for attempt := 1; ; attempt++ {
		_, err = bus.Publish(ctx, r.nc, msg, protocol.StreamDecisions, recordTimeout)
		if err == nil {
			return d, msg.Data, nil
		}
		if taken(err) {
			// Somebody was first; or it was this very call, and its ack was lost.
			d, err = r.standing(ctx, d.Ask)
			return d, nil, err
		}
		if attempt == recordAttempts || ctx.Err() != nil {
			return protocol.Decision{}, nil, fmt.Errorf("recording decision on %s: %w: %w", d.Ask, errUnrecorded, err)
		}
	}
}

// message is the record of d, on the condition that there is none for its ask.
func (r *recorder) message(d protocol.Decision) (*nats.Msg, error) {
	subject, err := r.subjects.Decision(d.Ask, d.Agent, d.Surface, d.Result)
	if err != nil {
		return nil, fmt.Errorf("recording decision: %w", err)
	}
	all, err := r.subjects.DecisionOf(d.Ask)
	if err != nil {
		return nil, fmt.Errorf("recording decision: %w", err)
	}
	body, err := protocol.Write(d)
	if err != nil {
		return nil, fmt.Errorf("recording decision: %w", err)
	}
	return &nats.Msg{Subject: subject, Data: body, Header: nats.Header{
		jetstream.ExpectedLastSubjSeqHeader: {"0"}, jetstream.ExpectedLastSubjSeqSubjHeader: {all},
	}}, nil
}

// standing is the decision on an ask that must have one.
func (r *recorder) standing(ctx context.Context, id string) (protocol.Decision, error) {
	d, ok, err := r.Find(ctx, id)
	if err == nil && !ok {
		err = fmt.Errorf("decision on %s is stored and cannot be found: %w", id, errUnrecorded)
	}
	return d, err
}

func taken(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	return api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == codeWrongLastSequenceConstant
}

// codeWrongLastSequenceConstant is the server's word for the same refusal when
// the condition is on a subject filter of a replicated stream.
const codeWrongLastSequenceConstant jetstream.ErrorCode = 10164

// Bounds of the input in a record, in bytes.
const (
	recordedInput  = 16 << 10
	recordedString = 1 << 10
)

// trim bounds what a record repeats of a call.
func trim(d *protocol.Decision) {
	d.Value = protocol.Safe(d.Value, recordedValue, true)
	asks := d.Asks[:min(len(d.Asks), recordedAsks)]
	d.Asks = make([]protocol.Entry, 0, len(asks))
	for _, e := range asks {
		e.Value = protocol.Safe(e.Value, recordedValue, true)
		d.Asks = append(d.Asks, e)
	}
}
