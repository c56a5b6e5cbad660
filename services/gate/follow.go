package gate

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// followBucket runs watch on kv until ctx ends, again and again: when it breaks,
// when the connection has come back, and when the bucket is not the one it began
// with any more.
func (g *Gate) followBucket(ctx context.Context, kv jetstream.KeyValue, watch func(context.Context) error) {
	for ctx.Err() == nil {
		life := g.connection.number()
		guarded, cancel := g.connection.within(ctx)
		done := make(chan struct{})
		go func() { defer close(done); defer cancel(); g.lookAfter(guarded, kv) }()
		err := watch(guarded)
		cancel()
		<-done
		if ctx.Err() != nil {
			return
		}
		if life != g.connection.number() {
			continue // the connection came back: at once
		}
		g.log.Warn("watch broke and is begun anew", "what", kv.Bucket(), "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// lookAfter returns when kv was made anew, or ctx ends. A bucket that was
// restored or made anew counts from one again: the client's watch would wait
// without end for a revision that is long in coming, deaf to every policy until
// then.
func (g *Gate) lookAfter(ctx context.Context, kv jetstream.KeyValue) {
	tick := time.NewTicker(g.times.look)
	defer tick.Stop()
	began := made(ctx, kv)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		switch now := made(ctx, kv); {
		case began.IsZero():
			began = now
		case !now.IsZero() && !now.Equal(began):
			return
		}
	}
}

// made is when kv was made; the zero time where that cannot be told now.
func made(ctx context.Context, kv jetstream.KeyValue) time.Time {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	status, err := kv.Status(ctx)
	if err != nil {
		return time.Time{}
	}
	if s, ok := status.(*jetstream.KeyValueBucketStatus); ok {
		return s.StreamInfo().Created
	}
	return time.Time{}
}
