// Package record reads decisions back from the stream ASSENT_DECISIONS, the only
// place that knows whether an ask is decided.
package record

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/pkg/protocol"
)

// timeout bounds one look into the stream.
const timeout = 3 * time.Second

// maxBytes is the size limit of a decision.
const maxBytes = 1 << 20

// ErrUnreadable: the stream could not be read, or holds something in the ask's
// place that is no decision on it. Never a reason to decide.
var ErrUnreadable = errors.New("record cannot be read")

// Reader looks decisions up; safe for concurrent use.
type Reader struct {
	stream   jetstream.Stream
	subjects protocol.Subjects
}

// Open binds the stream of the node of subjects.
func Open(ctx context.Context, js jetstream.JetStream, subjects protocol.Subjects) (*Reader, error) {
	stream, err := js.Stream(ctx, protocol.StreamDecisions)
	if err != nil {
		return nil, fmt.Errorf("opening stream %s: %w", protocol.StreamDecisions, err)
	}
	return &Reader{stream: stream, subjects: subjects}, nil
}

// Find returns the decision on ask id; ok is false when there is none. It is
// read through the stream's leader: a replica may not know it yet. What cannot
// be read as a decision on this very ask is ErrUnreadable, never a decision.
func (r *Reader) Find(ctx context.Context, id string) (d protocol.Decision, ok bool, err error) {
	all, err := r.subjects.DecisionOf(id)
	if err != nil {
		return protocol.Decision{}, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	msg, err := r.stream.GetLastMsgForSubject(ctx, all)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return protocol.Decision{}, false, nil
	}
	if err != nil {
		return protocol.Decision{}, false, fmt.Errorf("looking up decision on %s: %w: %w", id, ErrUnreadable, err)
	}
	d, err = protocol.Read[protocol.Decision](msg.Data, protocol.MaxBytes(maxBytes))
	if err != nil {
		return protocol.Decision{}, false, fmt.Errorf("decision on %s in the stream is broken: %w: %w", id, ErrUnreadable, err)
	}
	if d.Ask != id {
		return protocol.Decision{}, false, fmt.Errorf("the stream holds ask %s in the place of %s: %w", d.Ask, id, ErrUnreadable)
	}
	return d, true, nil
}
