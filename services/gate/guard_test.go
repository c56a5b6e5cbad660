package gate

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
)

// The permission table keeps these messages out; the gate drops them all the
// same, for the day on which a table has a hole.
func TestWhatTheBorderDidNotMakeIsNoAsk(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"allow"}}`)
	g := r.gate("g1")
	a := r.agent("ci")
	stated := func(name string) nats.Header {
		return nats.Header{bus.HeaderIdentity: {fmt.Sprintf(`{"acc":%q,"user":%q,"name_tag":%q}`, key(t, nkeys.CreateAccount), key(t, nkeys.CreateUser), name)}}
	}
	twice := stated("ci")
	twice.Add(bus.HeaderIdentity, stated("other").Get(bus.HeaderIdentity))
	const subject = "assent.v1.main.ask.ci"
	for name, row := range map[string]struct {
		m     nats.Msg
		taken int
	}{
		"from the agent":              {nats.Msg{Subject: subject, Reply: "_R_.x.y", Header: stated("ci")}, 1},
		"from another":                {nats.Msg{Subject: subject, Reply: "_R_.x.y", Header: stated("other")}, 0},
		"from nobody":                 {nats.Msg{Subject: subject, Reply: "_R_.x.y"}, 0},
		"with two stated":             {nats.Msg{Subject: subject, Reply: "_R_.x.y", Header: twice}, 0},
		"from inside":                 {nats.Msg{Subject: subject, Reply: "_INBOX.operator.op.x", Header: stated("ci")}, 0},
		"with no reply":               {nats.Msg{Subject: subject, Header: stated("ci")}, 0},
		"with a bucket as its reply":  {nats.Msg{Subject: subject, Reply: "$KV.ASSENT_PENDING.x", Header: stated("ci")}, 0},
		"with a wildcard in reply":    {nats.Msg{Subject: subject, Reply: "_R_.>", Header: stated("ci")}, 0},
		"on another node's subject":   {nats.Msg{Subject: "assent.v1.other.ask.ci", Reply: "_R_.x.y", Header: stated("ci")}, 0},
		"on a subject that is no ask": {nats.Msg{Subject: "assent.v1.main.answer.ci", Reply: "_R_.x.y", Header: stated("ci")}, 0},
	} {
		ask := a.bash("git status")
		row.m.Data = must(protocol.Write(ask))(t)
		g.serveAsk(&row.m) // returns when it is answered, or dropped
		if n := len(r.decisions(ask.ID)); n != row.taken {
			t.Errorf("%s: %d records, want %d", name, n, row.taken)
		}
	}
	for reply, used := range map[string]int{"_INBOX.judge.j.x": 1, "": 0, "$KV.ASSENT_POLICY.fleet": 0, "_INBOX.gate.g1.x": 0, "_INBOX.judge.*.x": 0, "_R_.x": 0} {
		c := g.capabilities.issue(protocol.Pending{Ask: a.bash("make")}, "one", time.Now().Add(time.Minute))
		g.serveQuery(&nats.Msg{Subject: c.query, Reply: reply, Data: []byte(`{"v":1,"tool":"bash"}`)})
		if c.uses != used {
			t.Errorf("reply %q used the capability %d times", reply, c.uses)
		}
		g.capabilities.revoke(c)
	}
}

func key(t *testing.T, create func() (nkeys.KeyPair, error)) string {
	t.Helper()
	return must(must(create())(t).PublicKey())(t)
}
