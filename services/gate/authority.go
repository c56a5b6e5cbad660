package gate

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/assent-dev/assent/internal/grants"
	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// authority is the policy in force at this gate, all layers of it, swapped whole
// whenever the bucket ASSENT_POLICY changes.
type authority struct {
	layers  *layers.Store
	log     *slog.Logger
	changed func()
	life    func() uint64 // number of the connection's life
	now     atomic.Pointer[policy.Set]
	read    atomic.Uint64 // life in which now was read, and one
	// freezes are the operators' stops that stand beside the layers; freezing puts
	// those of a new moment in force.
	freezes  *freezes
	freezing func(layers.Freezes)
	// told are the freezes that the log has named, by revision; watch alone uses it.
	told map[layers.Frozen]uint64
}

// present says whether the policy of this moment was read in the connection's
// present life.
func (a *authority) present() bool { return a.read.Load() == a.life()+1 }

// await returns when the policy of this moment was read in the connection's
// present life; errStale when ctx ends before. What is older may have been
// replaced while the gate was away.
func (a *authority) await(ctx context.Context) error {
	for wait := time.Millisecond; !a.present(); wait = min(2*wait, 50*time.Millisecond) {
		select {
		case <-ctx.Done():
			return errStale
		case <-time.After(wait):
		}
	}
	return nil
}

// current is the policy of this moment for whoever no layer but the fleet's
// speaks of; chain, terminal, limits and envelope are the same for all. Never nil
// once the gate serves.
func (a *authority) current() *policy.Snapshot {
	if s := a.now.Load(); s != nil {
		return s.Base()
	}
	return nil
}

// of is the policy of this moment for one who asks.
func (a *authority) of(who policy.Who) *policy.Snapshot { return a.now.Load().For(who) }

// chain are the links that the policy of this moment names; none before there
// is a policy.
func (a *authority) chain() []string {
	if s := a.current(); s != nil {
		return s.Chain()
	}
	return nil
}

// watch follows the bucket until ctx ends and calls ready when the first state
// is in: a gate answers nothing before. What was in force stays so until all
// layers of a new watch are known: half of them would lack the others' denies.
func (a *authority) watch(ctx context.Context, heard func(uint64), ready func()) error {
	life, book, known := a.life(), layers.NewBook(), false
	take := func(e layers.Entry) error {
		heard(e.Revision)
		if e.Modules {
			return nil // no layer: what waits is not ruled again for it here
		}
		err := book.Take(e, func(e layers.Entry) (*policy.Document, error) { return a.layers.LastGood(ctx, e) })
		switch {
		case err != nil:
			a.unknown(e, err)
		case known && e.Freeze != nil:
			a.stop(book)
		case known:
			a.swap(book)
		}
		return err
	}
	return a.layers.Watch(ctx, take, func() {
		known = true
		heard(0)
		a.swap(book)
		a.stop(book) // all of them at once: half of what is frozen would thaw the rest
		a.read.Store(life + 1)
		ready()
	})
}

// unknown clamps what is in force while nobody can tell what a broken layer
// denied. Without anything in force the gate does not begin to serve.
func (a *authority) unknown(e layers.Entry, err error) {
	a.log.Error("THE STORED POLICY IS BROKEN, and what it denied before cannot be read: every allow is clamped to ask", "layer", e.Name(), "revision", e.Revision, "err", e.Err, "history", err)
	if s := a.now.Load(); s != nil {
		a.now.Store(s.Clamp("The stored policy is broken (" + e.Name() + ") and waits to be mended."))
		a.changed()
	}
}

// swap puts what a book holds in force.
func (a *authority) swap(book *layers.Book) {
	set := book.Set()
	a.now.Store(set)
	for _, e := range book.Broken() {
		a.log.Error("THE STORED POLICY IS BROKEN: every allow is clamped to ask until it is mended", "layer", e.Name(), "revision", e.Revision, "err", e.Err)
	}
	stored := book.Layers()
	if len(stored) == 0 || !stored[0].Layer.IsFleet() {
		a.log.Warn("no policy of the fleet layer is stored: everything asks")
	}
	a.log.Info("policy in force", "revision", set.Revision(), "digest", set.Digest(), "layers", len(stored), "chain", set.Base().Chain(), "clamped", set.Clamped() != "")
	a.changed()
}

// stop puts the freezes that a book holds in force.
func (a *authority) stop(book *layers.Book) {
	a.freezing(book.Freezes())
	standing := map[layers.Frozen]uint64{}
	for _, f := range book.Freezes().Standing() {
		standing[f.Frozen] = f.Revision
		if a.told[f.Frozen] == f.Revision {
			continue
		}
		about := []any{"revision", f.Revision, "reason", protocol.Safe(f.Reason(), 400, false), "by", f.Word.By}
		if f.Err != nil {
			about = append(about, "err", f.Err)
		}
		a.log.Warn("FROZEN: nothing is allowed to "+f.Frozen.String(), about...)
	}
	for who := range a.told {
		if _, is := standing[who]; !is {
			a.log.Warn("thawed: the freeze of " + who.String() + " is lifted") // as loud as what it ends
		}
	}
	a.told = standing
}

// mayDelegate is the envelope: whether a link may allow what is open here.
func (r ruled) mayDelegate(ask protocol.Ask) (bool, string) {
	return r.snapshot.LinkMayAllow(r.ruling.Open(), grants.Call(ask))
}
