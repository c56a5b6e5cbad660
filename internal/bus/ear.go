package bus

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrDeaf: a watch of a bucket does not hear what happens there any more.
var ErrDeaf = errors.New("the watch is deaf")

// askState bounds one look at a bucket.
const askState = 3 * time.Second

// Ear makes sure that a watch of a bucket hears. A watch is a consumer in
// memory on one server. When that server is lost the connection of who watches
// may well live on, at another one, and the client finds out by the silence
// alone, ten seconds and more later: till then a gate would allow by a policy
// that was replaced. When the bucket is made anew, which counts from one again,
// it would not find out at all.
type Ear struct {
	kv    jetstream.KeyValue
	began atomic.Bool // the watch has shown something
	heard atomic.Uint64
	first bucketState
}

type bucketState struct {
	made time.Time
	last uint64
}

// NewEar looks how far kv has come: call it right before the watch begins. A
// bucket that cannot be looked at now is looked at by Listen.
func NewEar(ctx context.Context, kv jetstream.KeyValue) *Ear {
	e := &Ear{kv: kv}
	e.first, _ = e.state(ctx)
	return e
}

// Heard notes a revision that the watch has shown; 0 that it has shown all there
// was when it began. Safe beside Listen.
func (e *Ear) Heard(revision uint64) {
	e.began.Store(true)
	if revision > e.heard.Load() { // one watch shows one at a time
		e.heard.Store(revision)
	}
}

// Listen returns an ErrDeaf when the bucket has gone on and the watch has shown
// nothing for every, or when it is not the bucket that it was; nil when ctx ends.
// A watch that shows one revision after another only lags, and one that has shown
// nothing yet is still beginning: cut off under load, it would never come to an
// end. While the bucket cannot be looked at nothing can be told: it has no leader,
// so nobody writes there either.
func (e *Ear) Listen(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	due, before := e.first.last, uint64(0) // what must be heard by the next look, and what was by this one
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := e.state(ctx)
		if err != nil {
			continue
		}
		if e.first.made.IsZero() {
			e.first = now
		}
		heard := e.heard.Load()
		switch {
		case !now.made.Equal(e.first.made):
			return fmt.Errorf("%w: bucket %s was made anew", ErrDeaf, e.kv.Bucket())
		case due > e.first.last && heard < due && heard == before && e.began.Load():
			return fmt.Errorf("%w: bucket %s is at revision %d, it was shown %d", ErrDeaf, e.kv.Bucket(), now.last, heard)
		}
		due, before = now.last, heard
	}
}

// state asks the bucket's leader, not whatever replica is near.
func (e *Ear) state(ctx context.Context) (bucketState, error) {
	ctx, cancel := context.WithTimeout(ctx, askState)
	defer cancel()
	status, err := e.kv.Status(ctx)
	if err != nil {
		return bucketState{}, fmt.Errorf("looking at bucket %s: %w", e.kv.Bucket(), err)
	}
	s, ok := status.(*jetstream.KeyValueBucketStatus)
	if !ok {
		return bucketState{}, fmt.Errorf("looking at bucket %s: %T says nothing of its stream", e.kv.Bucket(), status)
	}
	info := s.StreamInfo()
	return bucketState{made: info.Created, last: info.State.LastSeq}, nil
}
