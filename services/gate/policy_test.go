package gate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

const broken = `{"permission":{"*":"allow"`

func TestABrokenPolicyClampsUntilItIsMended(t *testing.T) {
	t.Parallel()
	r := newRig(t, plainPolicy)
	r.denying()
	g := r.gate("g1")
	a := r.agent("ci")
	want(t, a.decide(a.bash("git status")), allow, protocol.AllowedByRule)
	clamped := func(t *testing.T) {
		t.Helper()
		want(t, a.decide(a.bash("git status")), deny, protocol.NoApprover) // asks, and nobody is there
		d := a.decide(a.bash("npm install"))
		want(t, d, deny, protocol.DeniedByRule)
		if d.Reason != "Use pnpm instead" {
			t.Errorf("reason %q", d.Reason)
		}
	}
	for name, doc := range map[string]string{
		"cut off":           broken,
		"an unknown key":    `{"permission":{"*":"allow"},"allowAll":true}`,
		"an unknown action": `{"permission":{"*":"permit"}}`,
		"empty":             ``,
	} {
		t.Run(name+": allows ask, denies stay", func(t *testing.T) {
			g.inForce(r.put(doc))
			clamped(t)
		})
	}
	t.Run("at a gate that starts meanwhile too", func(t *testing.T) {
		g.stop()
		g = r.gate("g2")
		clamped(t)
	})
	t.Run("mended, it is in full force", func(t *testing.T) {
		g.inForce(r.put(plainPolicy))
		want(t, a.decide(a.bash("git status")), allow, protocol.AllowedByRule)
	})
	t.Run("deleted, everything asks", func(t *testing.T) {
		kv := must(r.js.KeyValue(context.Background(), protocol.BucketPolicy))(t)
		if err := kv.Delete(context.Background(), "fleet"); err != nil {
			t.Fatal(err)
		}
		g.inForce(must(r.js.Stream(context.Background(), "KV_"+protocol.BucketPolicy))(t).CachedInfo().State.LastSeq)
		h := a.once(a.bash("git status"))
		if h.progress == nil && h.decision.Outcome != protocol.NoApprover {
			t.Errorf("got %+v", h.decision)
		}
	})
}

func TestWithoutAPolicyEverythingAsks(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	r.denying()
	r.gate("g1")
	a := r.agent("ci")
	for _, ask := range []protocol.Ask{a.bash("git status"), a.call("read", `{"file_path":"/repo/a"}`)} {
		want(t, a.decide(ask), deny, protocol.NoApprover)
	}
}

func TestNothingIsAnsweredBeforeThePolicyIsKnown(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"allow"}}`)
	g := r.newGate("g1", r.Connect(t, protocol.RoleGate, "g1"))
	a := r.agent("ci")
	// The bucket goes between the gate's binding it and its watching it.
	if err := r.js.DeleteKeyValue(context.Background(), protocol.BucketPolicy); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	ready := make(chan struct{})
	go func() { done <- g.Run(ctx, func() { close(ready) }) }()
	ask := must(protocol.Write(a.bash("git status")))(t)
	for deadline := time.Now().Add(700 * time.Millisecond); time.Now().Before(deadline); {
		if _, err := a.nc.Request(must(r.Subjects.Ask("ci"))(t), ask, soon); !errors.Is(err, nats.ErrNoResponders) {
			t.Fatalf("answered without a policy: %v", err)
		}
	}
	select {
	case <-ready:
		t.Fatal("ready without a policy")
	default:
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("a gate that never served left as if it had")
	}
}

func TestAPolicyBucketMadeAnewIsFollowed(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"deny"}}`)
	r.denying()
	for range 5 {
		r.put(`{"permission":{"*":"allow"}}`)
	}
	g := r.gate("g1")
	a := r.agent("ci")
	want(t, a.decide(a.bash("git status")), allow, protocol.AllowedByRule)
	if err := r.js.DeleteKeyValue(context.Background(), protocol.BucketPolicy); err != nil {
		t.Fatal(err)
	}
	if err := node.EnsureStreams(context.Background(), r.js, nodetest.Name, node.StreamLimits{}); err != nil {
		t.Fatal(err)
	}
	g.inForce(r.put(`{"permission":{"*":"deny"}}`))
	want(t, a.decide(a.bash("git status")), deny, protocol.DeniedByRule)
}

func TestAGateNeedsItsOwnNameAndNode(t *testing.T) {
	t.Parallel()
	r := newRig(t, plainPolicy)
	nc := r.Connect(t, protocol.RoleGate, "g1")
	for _, cfg := range []Config{{Node: "main", Name: "a.b"}, {Node: "", Name: "g1"}, {Node: "main", Name: ""}, {Node: "m*", Name: "g1"}} {
		if _, err := New(context.Background(), nc, cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
	t.Run("under another's name it does not serve", func(t *testing.T) {
		g := must(New(context.Background(), nc, Config{Node: nodetest.Name, Name: "g2"}))(t)
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		if err := g.Run(ctx, func() { t.Error("ready") }); err == nil || !strings.Contains(err.Error(), "allow") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("with an agent's credentials it is none", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := New(ctx, r.Connect(t, protocol.RoleAgent, "ci"), Config{Node: nodetest.Name, Name: "ci"}); err == nil {
			t.Error("an agent may be a gate")
		}
	})
}
