package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// authority is the policy in force at this gate, swapped whole whenever the
// bucket ASSENT_POLICY changes.
type authority struct {
	kv      jetstream.KeyValue
	log     *slog.Logger
	changed func()
	life    func() uint64 // number of the connection's life
	now     atomic.Pointer[policy.Snapshot]
	read    atomic.Uint64 // life in which now was read, and one
}

// await returns when the policy of this moment was read in the connection's
// present life; errStale when ctx ends before. What is older may have been
// replaced while the gate was away.
func (a *authority) await(ctx context.Context) error {
	for wait := time.Millisecond; a.read.Load() != a.life()+1; wait = min(2*wait, 50*time.Millisecond) {
		select {
		case <-ctx.Done():
			return errStale
		case <-time.After(wait):
		}
	}
	return nil
}

// current is the policy of this moment. Never nil once the gate serves.
func (a *authority) current() *policy.Snapshot { return a.now.Load() }

// chain are the links that the policy of this moment names; none before there
// is a policy.
func (a *authority) chain() []string {
	if s := a.current(); s != nil {
		return s.Chain()
	}
	return nil
}

// watch follows the bucket until ctx ends and calls ready when the first state
// is in: a gate answers nothing before.
func (a *authority) watch(ctx context.Context, ready func()) error {
	life := a.life()
	w, err := a.kv.Watch(ctx, policy.LayerFleet)
	if err != nil {
		return fmt.Errorf("watching policy: %w", err)
	}
	defer w.Stop()
	for stored := false; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, open := <-w.Updates():
			switch {
			case !open:
				return errWatchEnded
			case e == nil:
				if !stored {
					a.swap(policy.Empty(), "no policy is stored: everything asks")
				}
				a.read.Store(life + 1)
				ready()
			default:
				stored = true
				if err := a.take(ctx, e); err != nil {
					return err
				}
			}
		}
	}
}

var errWatchEnded = errors.New("watching policy: the watch ended")

// take puts a stored document in force. One that does not compile clamps every
// allow to ask until it is mended: at every gate alike, whenever it started. An
// error means that its denies are not known: the watch is begun anew.
func (a *authority) take(ctx context.Context, e jetstream.KeyValueEntry) error {
	if e.Operation() != jetstream.KeyValuePut {
		a.swap(policy.Empty().WithRevision(e.Revision()), "the policy was deleted: everything asks")
		return nil
	}
	s, err := policy.Compile(policy.LayerFleet, e.Value())
	if err == nil {
		a.swap(s.WithRevision(e.Revision()), "")
		return nil
	}
	last, unread := a.lastGood(ctx)
	if unread != nil {
		if last = a.current(); last == nil {
			return unread // a gate without denies must not begin to serve
		}
	}
	a.log.Error("THE STORED POLICY IS BROKEN: every allow is clamped to ask until it is mended", "revision", e.Revision(), "err", err, "denies_of_revision", last.Revision())
	a.swap(last.Clamp("The stored policy is broken and waits to be mended.").WithRevision(e.Revision()), "")
	return unread
}

// lastGood is the newest stored revision that compiles: its denies stay in
// force while a broken one clamps. Empty where there never was one.
func (a *authority) lastGood(ctx context.Context) (*policy.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	history, err := a.kv.History(ctx, policy.LayerFleet)
	if err != nil {
		return nil, fmt.Errorf("reading the policy's history: %w", err)
	}
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].Operation() != jetstream.KeyValuePut {
			continue
		}
		if s, err := policy.Compile(policy.LayerFleet, history[i].Value()); err == nil {
			return s.WithRevision(history[i].Revision()), nil
		}
	}
	return policy.Empty(), nil
}

func (a *authority) swap(s *policy.Snapshot, why string) {
	a.now.Store(s)
	if why != "" {
		a.log.Warn(why)
	}
	a.log.Info("policy in force", "revision", s.Revision(), "digest", s.Digest(), "chain", s.Chain(), "clamped", s.Clamped() != "")
	a.changed()
}

// mayDelegate is the envelope: whether a link may allow what is open here.
func (r ruled) mayDelegate(ask protocol.Ask) (bool, string) {
	return r.snapshot.LinkMayAllow(r.ruling.Open(), policyCall(ask))
}
