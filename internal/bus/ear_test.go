package bus_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

const lookEvery = 200 * time.Millisecond

// ear listens on the policy bucket of a node of its own.
func ear(t *testing.T) (*bus.Ear, jetstream.JetStream, jetstream.KeyValue, <-chan error) {
	t.Helper()
	n := nodetest.Start(t, nodetest.Quiet())
	js, err := bus.JetStream(n.Connect(t, protocol.RoleOperator, "op"))
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), protocol.BucketPolicy)
	if err != nil {
		t.Fatal(err)
	}
	write(t, kv)
	e, told := bus.NewEar(t.Context(), kv), make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); told <- e.Listen(ctx, lookEvery) }()
	t.Cleanup(func() { stop(); <-done })
	return e, js, kv, told
}

func write(t *testing.T, kv jetstream.KeyValue) uint64 {
	t.Helper()
	revision, err := kv.Put(t.Context(), "fleet", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func TestAWatchIsDeafThatDoesNotHearWhatIsWritten(t *testing.T) {
	t.Parallel()
	e, _, kv, told := ear(t)
	e.Heard(0)
	write(t, kv)
	select {
	case err := <-told:
		if !errors.Is(err, bus.ErrDeaf) {
			t.Errorf("told %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("not found out")
	}
}

func TestAWatchIsDeafWhoseBucketWasMadeAnew(t *testing.T) {
	t.Parallel()
	e, js, _, told := ear(t)
	e.Heard(1)
	if err := js.DeleteKeyValue(t.Context(), protocol.BucketPolicy); err != nil {
		t.Fatal(err)
	}
	if err := node.EnsureStreams(t.Context(), js, nodetest.Name, node.StreamLimits{}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-told:
		if !errors.Is(err, bus.ErrDeaf) {
			t.Errorf("told %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("not found out")
	}
}

// What is no deafness must not cut off a watch, or one that is slow to begin
// would never come to an end.
func TestAWatchIsNotDeaf(t *testing.T) {
	t.Parallel()
	for name, hear := range map[string]func(e *bus.Ear, revision uint64){
		"that hears what is written": func(e *bus.Ear, revision uint64) { e.Heard(revision) },
		"that lags and goes on":      func(e *bus.Ear, revision uint64) { e.Heard(revision / 2) },
		"that has shown nothing yet": func(*bus.Ear, uint64) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _, kv, told := ear(t)
			for range 50 {
				hear(e, write(t, kv))
				hear(e, write(t, kv))
				select {
				case err := <-told:
					t.Fatal(err)
				case <-time.After(lookEvery / 10):
				}
			}
		})
	}
}
