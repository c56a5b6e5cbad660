package pending_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

// story is what a watcher saw, one word a change.
type story struct {
	mu  sync.Mutex
	saw []string
}

func (s *story) seen(c pending.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.Err != nil:
		s.saw = append(s.saw, c.ID+" broken")
	case c.Gone:
		s.saw = append(s.saw, c.ID+" gone")
	default:
		s.saw = append(s.saw, c.ID+" "+c.Item.Stage)
	}
}

func (s *story) has(words ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.saw
	for _, w := range words {
		at := -1
		for i, got := range rest {
			if got == w {
				at = i
				break
			}
		}
		if at < 0 {
			return fmt.Errorf("no %q in %v", w, s.saw)
		}
		rest = rest[at+1:]
	}
	return nil
}

func TestAWatchShowsWhatIsOpenAndWhatChanges(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	b := open(t)
	before := b.create(entry())
	broken := protocol.NewAskID()
	b.write(broken, "junk")
	var s story
	ready := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.gate.Watch(ctx, s.seen, func() { close(ready) }, nil)
	}()
	<-ready
	if err := s.has(before.Ask.ID+" terminal:human", broken+" broken"); err != nil {
		t.Error(err)
	}
	later := b.create(entry())
	await := func(words ...string) {
		t.Helper()
		nodetest.CheckFor(t, soon, 5*time.Millisecond, func() error { return s.has(words...) })
	}
	await(later.Ask.ID + " terminal:human") // a watch shows the latest state, and may leave out those between
	if _, err := b.terminal.Update(ctx, later.Ask.ID, func(p *protocol.Pending) error { p.Stage = "settling"; return nil }); err != nil {
		t.Fatal(err)
	}
	await(later.Ask.ID + " settling")
	if err := b.gate.Delete(ctx, later.Ask.ID); err != nil {
		t.Fatal(err)
	}
	await(later.Ask.ID+" terminal:human", later.Ask.ID+" settling", later.Ask.ID+" gone")
	cancel()
	<-done
}

func TestAWatchThatBreaksIsBegunAnew(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	b := open(t)
	nc := b.node.Connect(t, protocol.RoleGate, "w")
	store := b.store(nc)
	store.LookAfter(100 * time.Millisecond)
	item := b.create(entry())
	var s story
	var readied, lost atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		store.Watch(ctx, s.seen, func() { readied.Add(1) }, func(error) { lost.Add(1) })
	}()
	nodetest.CheckFor(t, soon, 5*time.Millisecond, func() error { return s.has(item.Ask.ID + " terminal:human") })
	// The bucket goes and comes again: the consumer under the watch dies with it.
	op := b.node.Connect(t, protocol.RoleOperator, "op")
	js, err := bus.JetStream(op)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteKeyValue(ctx, protocol.BucketPending); err != nil {
		t.Fatal(err)
	}
	if err := node.EnsureStreams(ctx, js, nodetest.Name, node.StreamLimits{}); err != nil {
		t.Fatal(err)
	}
	again := entry()
	again.Stage = "link:again"
	if _, err := b.terminal.Create(ctx, again); err != nil {
		t.Fatal(err)
	}
	nodetest.CheckFor(t, soon, 20*time.Millisecond, func() error { return s.has(again.Ask.ID + " link:again") })
	cancel()
	<-done
	if readied.Load() < 2 || lost.Load() < 1 {
		t.Errorf("ready %d times, lost %d times", readied.Load(), lost.Load())
	}
}
