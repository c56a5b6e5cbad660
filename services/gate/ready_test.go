package gate

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
)

// TestReadyIsSaidWhenAGateServesAndWhenThePolicyChanges, and at no other time:
// whoever waits for it sends asks.
func TestReadyIsSaidWhenAGateServesAndWhenThePolicyChanges(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"}}`)
	r.denying()
	notices := make(chan protocol.Notice, 64)
	must(r.op.Subscribe(must(r.Subjects.Event(protocol.NoticeReady))(t), func(m *nats.Msg) {
		n, err := protocol.Read[protocol.Notice](m.Data)
		if err != nil {
			t.Errorf("no notice: %v", err)
		}
		notices <- n
	}))(t)
	flush(t, r.op)
	said := func(what string, nc *nats.Conn) {
		t.Helper()
		if n := receive(t, notices); n.Kind != protocol.NoticeReady || n.Node != "main" || n.At.IsZero() {
			t.Errorf("%s: %+v", what, n)
		}
		flush(t, nc)
		flush(t, r.op)
		if len(notices) != 0 {
			t.Errorf("%s: said %d times more", what, len(notices))
		}
	}
	g := r.newGate("g1", r.Connect(t, protocol.RoleGate, "g1"))
	var early int
	g.policy.changed = func() {
		g.ready()
		if !g.serving.Load() {
			flush(t, g.nc)
			flush(t, r.op)
			early += len(notices)
		}
	}
	g.start()
	if early != 0 {
		t.Error("it was said before the gate served")
	}
	said("a gate begins to serve", g.nc)

	a := r.agent("ci")
	a.decide(a.bash("make"))
	flush(t, g.nc)
	flush(t, r.op)
	if len(notices) != 0 {
		t.Error("it was said for an ask")
	}
	g.inForce(r.put(`{"permission":{"*":"deny"}}`))
	said("the policy changes", g.nc)
	kv := must(r.js.KeyValue(context.Background(), protocol.BucketPolicy))(t)
	g.inForce(must(kv.Put(context.Background(), "agent.reviewer", []byte(`{"permission":{"bash":"deny"}}`)))(t))
	said("a layer is added", g.nc)
	g.inForce(r.put(`{"permission":`))
	said("the policy is broken, and every allow clamped", g.nc)

	second := r.gate("g2")
	said("a second gate begins to serve", second.nc)
}
