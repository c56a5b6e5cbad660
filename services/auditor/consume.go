package auditor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Times of the consumer.
const (
	// pullTime is how long one pull waits for messages. A pull that outlives its
	// asker swallows messages until they are due again, so it is short.
	pullTime = 2 * time.Second
	// linger is how long a batch waits for company before it is synced.
	linger = 2 * time.Millisecond
	// askTime bounds a question about the consumer.
	askTime = 5 * time.Second
	// maxPause is the longest pause between attempts.
	maxPause = 30 * time.Second
)

// consumer moves one stream into a Log.
type consumer struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	cfg    Config
	stream string
	out    Log
	stats  *streamStats
	found  func() // called when the consumer is found
	log    *slog.Logger
}

// run pulls until ctx ends (nil) or the connection is closed for good.
func (c *consumer) run(ctx context.Context) error {
	pauses := newPauses()
	for ctx.Err() == nil {
		err := c.follow(ctx, pauses.Reset)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if c.nc.IsClosed() {
			return errClosed
		}
		pause := pauses.NextBackOff()
		c.stats.trouble(err)
		c.log.Error("cannot read the record; it waits in the stream", "error", err, "next_attempt_in", pause.Round(time.Millisecond))
		sleep(ctx, pause)
	}
	return nil
}

// follow finds the consumer and pulls batch after batch. working is called when
// the server has answered.
func (c *consumer) follow(ctx context.Context, working func()) error {
	askCtx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	cons, err := c.js.Consumer(askCtx, c.stream, Durable)
	if err != nil {
		return fmt.Errorf("looking for the consumer %q, which the node makes: %w", Durable, err)
	}
	c.found()
	for ctx.Err() == nil {
		if err := c.pull(ctx, cons); err != nil {
			return err
		}
		if err := c.measure(ctx, cons); err != nil {
			return err
		}
		working()
	}
	return nil
}

// pull asks for up to a batch and stores it in as few syncs as it comes in.
func (c *consumer) pull(ctx context.Context, cons jetstream.Consumer) error {
	pullCtx, cancel := context.WithTimeout(ctx, pullTime)
	defer cancel()
	got, err := cons.Fetch(c.cfg.Batch, jetstream.FetchContext(pullCtx))
	if err != nil {
		return fmt.Errorf("pulling: %w", err)
	}
	for {
		batch, open := gather(got.Messages(), c.cfg.Batch)
		if err := c.keep(ctx, cons, batch); err != nil {
			return err
		}
		if !open {
			break
		}
	}
	if err := got.Error(); err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("pulling: %w", err)
	}
	return nil
}

// gather waits for a message and takes with it those that come right after.
// open is false when no more will come.
func gather(from <-chan jetstream.Msg, limit int) (batch []jetstream.Msg, open bool) {
	m, open := <-from
	if !open {
		return nil, false
	}
	batch = append(batch, m)
	wait := time.NewTimer(linger)
	defer wait.Stop()
	for len(batch) < limit {
		select {
		case m, open := <-from:
			if !open {
				return batch, false
			}
			batch = append(batch, m)
		case <-wait.C:
			return batch, true
		}
	}
	return batch, true
}

// keep writes a batch and acknowledges it, in this order.
func (c *consumer) keep(ctx context.Context, cons jetstream.Consumer, batch []jetstream.Msg) error {
	if len(batch) == 0 {
		return nil
	}
	records := make([]Record, 0, len(batch))
	for _, m := range batch {
		r, err := c.record(m)
		if err != nil {
			return err
		}
		records = append(records, r)
	}
	written, err := c.write(ctx, cons, records)
	if err != nil {
		return err
	}
	c.stats.stored(written, len(records)-written)
	for _, m := range batch {
		if err := m.Ack(); err != nil {
			// It comes again, and is known.
			c.log.Warn("acknowledging a record that is written", "error", err)
			return fmt.Errorf("acknowledging: %w", err)
		}
	}
	return nil
}

func (c *consumer) record(m jetstream.Msg) (Record, error) {
	meta, err := m.Metadata()
	if err != nil {
		return Record{}, fmt.Errorf("a message without a place in the stream, on %s: %w", m.Subject(), err)
	}
	r := NewRecord(c.cfg.Node, Message{Stream: c.stream, Seq: meta.Sequence.Stream, At: meta.Timestamp, Subject: m.Subject(), Data: m.Data()})
	if r.Broken != "" {
		c.stats.broken()
		c.log.Error("a broken record stands in the stream; it is kept as it is", "seq", r.Seq, "subject", r.Subject, "why", r.Broken)
	}
	return r, nil
}

// write tries until the records are on disk. When ctx has ended, the attempt
// under way is the last, and what it could not write is not acknowledged.
func (c *consumer) write(ctx context.Context, cons jetstream.Consumer, records []Record) (int, error) {
	attempt := func() (int, error) { return c.out.Append(records) }
	failed := func(err error, pause time.Duration) {
		c.stats.writeFailed(err)
		c.log.Error("the review log cannot be written; nothing is acknowledged", "error", err, "records", len(records), "next_attempt_in", pause.Round(time.Millisecond))
		if err := c.measure(ctx, cons); err != nil {
			c.log.Debug("measuring the lag", "error", err)
		}
	}
	written, err := backoff.RetryNotifyWithData(attempt, backoff.WithContext(newPauses(), ctx), failed)
	if err != nil {
		return 0, fmt.Errorf("leaving %d records unacknowledged: %w", len(records), err)
	}
	return written, nil
}

// measure asks how many records are not acknowledged yet.
func (c *consumer) measure(ctx context.Context, cons jetstream.Consumer) error {
	if ctx.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	info, err := cons.Info(ctx)
	if err != nil {
		return fmt.Errorf("asking for the lag: %w", err)
	}
	c.stats.lag(behind(info))
	return nil
}

func newPauses() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(maxPause),
		backoff.WithMaxElapsedTime(0), // never give up
	)
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
