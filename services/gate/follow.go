package gate

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/bus"
)

// followBucket runs watch on kv until ctx ends, again and again: when it breaks,
// when the connection has come back, and when it is deaf. watch reports each
// revision that it is shown.
func (g *Gate) followBucket(ctx context.Context, kv jetstream.KeyValue, watch func(ctx context.Context, heard func(uint64)) error) {
	for ctx.Err() == nil {
		life := g.connection.number()
		guarded, cancel := g.connection.within(ctx)
		ear, deaf := bus.NewEar(guarded, kv), make(chan error, 1)
		go func() { defer cancel(); deaf <- ear.Listen(guarded, g.times.look) }()
		err := watch(guarded, ear.Heard)
		cancel()
		why := <-deaf
		if ctx.Err() != nil {
			return
		}
		if life != g.connection.number() {
			continue // the connection came back: at once
		}
		g.log.Warn("watch broke and is begun anew", "what", kv.Bucket(), "err", errors.Join(why, err))
		if why != nil {
			continue // the bucket itself answers: at once
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}
