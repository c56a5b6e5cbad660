package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Outbox puts messages into streams in the order of Send, without anybody
// waiting for the acknowledgements; safe for concurrent use. It is for what must
// not hold its sender up and may be lost with the process.
type Outbox struct{ js jetstream.JetStream }

// NewOutbox lets at most limit messages be unacknowledged; each has within to be.
// failed is told of every message that was sent and not acknowledged, from
// goroutines of the connection: it must be quick and not send itself.
func NewOutbox(nc *nats.Conn, limit int, within time.Duration, failed func(m *nats.Msg, err error)) (*Outbox, error) {
	js, err := jetstream.NewWithAPIPrefix(nc, apiOf(nc), jetstream.WithPublishAsyncMaxPending(limit), jetstream.WithPublishAsyncTimeout(within),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, m *nats.Msg, err error) { failed(m, err) }))
	if err != nil {
		return nil, fmt.Errorf("JetStream: %w", err)
	}
	return &Outbox{js: js}, nil
}

// Send hands m to the connection. An error means that it is not on its way: the
// connection is closed or, after a moment's wait, the outbox still full.
func (o *Outbox) Send(m *nats.Msg, opts ...jetstream.PublishOpt) error {
	if _, err := o.js.PublishMsgAsync(m, opts...); err != nil {
		return fmt.Errorf("sending to a stream: %w", err)
	}
	return nil
}

// Drain waits until every message sent was acknowledged or has failed, or for
// ctx.
func (o *Outbox) Drain(ctx context.Context) error {
	select {
	case <-o.js.PublishAsyncComplete():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d messages of the outbox are not acknowledged: %w", o.js.PublishAsyncPending(), context.Cause(ctx))
	}
}
