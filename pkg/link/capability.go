package link

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
)

// MaxFields bounds the fields of one log record, in bytes of JSON.
const MaxFields = 32 << 10

// capabilities are the two capabilities of one ask. They die with the verdict:
// a link that keeps them must not act on an ask that is settled.
type capabilities struct {
	nc    *nats.Conn
	ask   string
	query string
	log   string
	over  atomic.Bool
	// life is the ask's own context, so that no capability outlives it whatever
	// context the link hands over.
	life context.Context
}

func newCapabilities(life context.Context, nc *nats.Conn, r protocol.LinkRequest) *capabilities {
	return &capabilities{nc: nc, ask: r.Ask.ID, query: r.Query, log: r.Log, life: life}
}

func (c *capabilities) end() { c.over.Store(true) }

// Check implements Query.
func (c *capabilities) Check(ctx context.Context, q protocol.Query) (protocol.Check, error) {
	check, err := c.check(ctx, q)
	if err != nil {
		return protocol.Check{}, fmt.Errorf("query about ask %s: %w", c.ask, err)
	}
	return check, nil
}

func (c *capabilities) check(ctx context.Context, q protocol.Query) (protocol.Check, error) {
	data, err := protocol.Write(q)
	if err != nil {
		return protocol.Check{}, err
	}
	reply, err := c.request(ctx, c.query, data)
	if err != nil {
		return protocol.Check{}, err
	}
	check, err := protocol.Read[protocol.Check](reply)
	if err != nil {
		return protocol.Check{}, fmt.Errorf("%w: %w", ErrReply, err)
	}
	return check, nil
}

// Review implements Log.
func (c *capabilities) Review(ctx context.Context, event string, fields any) error {
	return c.record(ctx, protocol.LevelReview, event, fields)
}

// Debug implements Log.
func (c *capabilities) Debug(ctx context.Context, event string, fields any) error {
	return c.record(ctx, protocol.LevelDebug, event, fields)
}

func (c *capabilities) record(ctx context.Context, level, event string, fields any) error {
	if err := c.write(ctx, level, event, fields); err != nil {
		return fmt.Errorf("log record %s on ask %s: %w", event, c.ask, err)
	}
	return nil
}

func (c *capabilities) write(ctx context.Context, level, event string, fields any) error {
	raw, err := encodeFields(fields)
	if err != nil {
		return err
	}
	data, err := protocol.Write(protocol.LogRecord{Level: level, Event: event, Fields: raw})
	if err != nil {
		return err
	}
	reply, err := c.request(ctx, c.log, data)
	if err != nil {
		return err
	}
	receipt, err := protocol.Read[protocol.LogReceipt](reply)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrReply, err)
	case receipt.Ask != c.ask:
		return fmt.Errorf("%w: the receipt is for another ask", ErrReply)
	default:
		return nil
	}
}

func encodeFields(fields any) (jsontext.Value, error) {
	if fields == nil {
		return nil, nil
	}
	raw, err := json.Marshal(fields, json.Deterministic(true))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrFields, err)
	case len(raw) > MaxFields:
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", ErrFields, len(raw), MaxFields)
	case jsontext.Value(raw).Kind() != '{':
		return nil, fmt.Errorf("%w: not a JSON object", ErrFields)
	default:
		return raw, nil
	}
}

// request uses a capability once. The reply is a message, or the Fault in an
// error reply.
func (c *capabilities) request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	if c.over.Load() {
		return nil, ErrOver
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.life, func() { cancel(context.Cause(c.life)) })()
	m, err := c.nc.RequestWithContext(ctx, subject, data)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	case m.Header.Get(protocol.HeaderErrorCode) != "":
		return nil, fault(m.Data)
	default:
		return m.Data, nil
	}
}

// fault reads an error reply; one that cannot be read is an error all the same.
func fault(data []byte) error {
	e, err := protocol.Read[protocol.ErrorReply](data)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReply, err)
	}
	return &e.Error
}
