package gate

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// hears bounds how long a gate may be deaf; the client alone finds out after ten
// seconds.
const hears = 6 * time.Second

// deafen takes away the consumers under every watch of a bucket, as the loss of
// the server does that holds them: the gate's connection, at another server,
// lives on.
func (r *rig) deafen(bucket string) {
	r.t.Helper()
	s := must(r.js.Stream(context.Background(), "KV_"+bucket))(r.t)
	names := s.ConsumerNames(context.Background())
	n := 0
	for name := range names.Name() {
		if err := s.DeleteConsumer(context.Background(), name); err != nil {
			r.t.Fatal(err)
		}
		n++
	}
	if err := names.Err(); err != nil || n == 0 {
		r.t.Fatalf("%d consumers: %v", n, err)
	}
}

func TestAGateWhoseWatchIsLostHearsOfADenySoon(t *testing.T) {
	t.Parallel()
	r := newRig(t, plainPolicy)
	g := r.gate("g1")
	a := r.agent("ci")
	want(t, a.decide(a.bash("git status")), allow, protocol.AllowedByRule)
	r.deafen(protocol.BucketPolicy)
	revision := r.put(`{"permission":{"*":"deny"}}`)
	nodetest.CheckFor(t, hears, 10*time.Millisecond, func() error {
		if got := g.policy.current().Revision(); got != revision {
			return fmt.Errorf("revision %d, want %d", got, revision)
		}
		return nil
	})
	want(t, a.decide(a.bash("git status")), deny, protocol.DeniedByRule)
}

func TestAGateWhoseWatchIsLostSettlesAnAnswerSoon(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"},"terminal":{"kind":"human"}}`)
	r.gate("g1")
	r.person()
	a := r.agent("ci")
	ask := a.bash("make")
	a.pend(ask)
	r.deafen(protocol.BucketPending)
	r.answer(ask.ID, yes())
	began := time.Now()
	want(t, a.decide(ask), allow, protocol.AllowedByHuman)
	if took := time.Since(began); took > hears {
		t.Errorf("settled after %s", took)
	}
}

func TestADecidedAskWhoseEntryComesBackAsksNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"},"terminal":{"kind":"human"}}`)
	r.gate("g1")
	person := r.person()
	a := r.agent("ci")
	ask := a.bash("make")
	a.pend(ask)
	left := must(r.open.Get(context.Background(), ask.ID))(t).Pending
	r.answer(ask.ID, yes())
	want(t, a.decide(ask), allow, protocol.AllowedByHuman)
	r.settled(ask.ID)
	// A gate died right after it had made the entry for a late retry.
	left.Taken, left.Owner, left.Lease = time.Time{}, "dead", time.Now().UTC()
	must(r.open.Create(context.Background(), left))(t)
	r.settled(ask.ID)
	if n := person.times(ask.ID); n != 1 {
		t.Errorf("the person was asked %d times", n)
	}
}
