package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A stream whose leader is being elected has nobody who answers for a moment.
const (
	leaderWait     = 250 * time.Millisecond
	leaderAttempts = 3
)

// Publish puts msg into a stream and returns its sequence there once the stream
// named has acknowledged it, within limit or until ctx ends, whichever comes
// first: what ctx's own end cuts short it cuts short no sooner than the server
// answers. A refusal of the stream is a *jetstream.APIError, and everything that
// is no acknowledgement by that stream an error.
//
// It is jetstream's PublishMsg for the road that every ask takes: no context and
// no timer of its own for each message.
func Publish(ctx context.Context, nc *nats.Conn, msg *nats.Msg, stream string, limit time.Duration) (uint64, error) {
	deadline, over := time.Now().Add(limit), nats.ErrTimeout
	if until, ok := ctx.Deadline(); ok && until.Before(deadline) {
		// The clock may reach it a moment before ctx says so.
		deadline, over = until, context.DeadlineExceeded
	}
	for attempt := 1; ; attempt++ {
		left := time.Until(deadline)
		if err := ctx.Err(); err != nil || left <= 0 {
			return 0, fmt.Errorf("publishing to %s: %w", stream, errors.Join(err, over))
		}
		ack, err := nc.RequestMsg(msg, left)
		if err == nil {
			return readAck(ack.Data, stream)
		}
		if errors.Is(err, nats.ErrTimeout) {
			return 0, fmt.Errorf("publishing to %s: %w", stream, errors.Join(err, over))
		}
		if !errors.Is(err, nats.ErrNoResponders) || attempt > leaderAttempts {
			return 0, fmt.Errorf("publishing to %s: %w", stream, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(leaderWait, time.Until(deadline))):
		}
	}
}

// readAck reads a stream's answer: the acknowledgement of the stream that was
// meant, or its refusal.
func readAck(data []byte, stream string) (uint64, error) {
	var ack struct {
		Stream string              `json:"stream"`
		Seq    uint64              `json:"seq"`
		Error  *jetstream.APIError `json:"error"`
	}
	switch err := json.Unmarshal(data, &ack); {
	case err != nil:
		return 0, fmt.Errorf("publishing to %s: its answer is no acknowledgement: %w", stream, err)
	case ack.Error != nil:
		return 0, fmt.Errorf("publishing to %s: %w", stream, ack.Error)
	case ack.Stream != stream || ack.Seq == 0:
		return 0, fmt.Errorf("publishing to %s: the answer does not acknowledge it: %q, sequence %d", stream, ack.Stream, ack.Seq)
	}
	return ack.Seq, nil
}
