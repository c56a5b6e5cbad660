package nodetest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAClusterKeepsWhatItAcknowledgedWhateverServerIsLost(t *testing.T) {
	t.Parallel()
	c := nodetest.StartCluster(t)
	gate := c.Connect(t, protocol.RoleGate, "g1")
	js, err := bus.JetStream(gate)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), protocol.BucketPending)
	if err != nil {
		t.Fatal(err)
	}
	info, err := js.Stream(t.Context(), protocol.StreamDecisions)
	if err != nil || info.CachedInfo().Config.Replicas != nodetest.Servers {
		t.Fatalf("the decisions have no three replicas: %v %+v", err, info)
	}
	for i := range nodetest.Servers {
		key := protocol.NewAskID()
		put(t, kv, key)
		c.Stop(i)
		if c.Healthy() == nil {
			t.Fatalf("healthy without server %d", i)
		}
		read(t, kv, key)
		during := protocol.NewAskID()
		put(t, kv, during)
		c.Start(i)
		nodetest.CheckFor(t, 30*time.Second, 20*time.Millisecond, c.Healthy)
		read(t, kv, key)
		read(t, kv, during)
	}
}

func TestAClusterHasTheRightsOfANode(t *testing.T) {
	t.Parallel()
	c := nodetest.StartCluster(t)
	other, err := node.OpenAuthority(nodetest.Dir(t), nodetest.Name)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := other.Issue(protocol.RoleAgent, "ci", node.IssueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodetest.Servers {
		agent, err := c.Dial(bus.Config{URL: c.URLOf(i), CredsBytes: c.Creds(t, protocol.RoleAgent, "ci")})
		if err != nil {
			t.Fatal(err)
		}
		defer agent.Close()
		if _, err := bus.LastPerKey(t.Context(), agent, protocol.BucketPending); err == nil {
			t.Errorf("server %d lets an agent read the pending asks", i)
		}
		_, err = c.Dial(bus.Config{URL: c.URLOf(i), CredsBytes: stranger})
		if !errors.Is(err, bus.ErrRefused) {
			t.Errorf("server %d takes credentials of another node: %v", i, err)
		}
		desk, err := c.Dial(bus.Config{URL: c.URLOf(i), CredsBytes: c.Creds(t, protocol.RoleApprover, "p1")})
		if err != nil {
			t.Fatal(err)
		}
		defer desk.Close()
		if _, err := bus.LastPerKey(t.Context(), desk, protocol.BucketPending); err != nil {
			t.Errorf("server %d does not let an approver read the pending asks: %v", i, err)
		}
	}
}

// put and read try until a leader is there, as services do.
func put(t *testing.T, kv jetstream.KeyValue, key string) {
	t.Helper()
	nodetest.CheckFor(t, 30*time.Second, 20*time.Millisecond, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := kv.Put(ctx, key, []byte("kept"))
		return err
	})
}

func read(t *testing.T, kv jetstream.KeyValue, key string) {
	t.Helper()
	nodetest.CheckFor(t, 30*time.Second, 20*time.Millisecond, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := kv.Get(ctx, key)
		return err
	})
}
