package terminal

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// counting is a terminal and an answerer that only count.
type counting struct{ asked, answered int }

func (c *counting) Kind() protocol.TerminalKind { return protocol.TerminalHuman }

func (c *counting) End(context.Context, protocol.TerminalRequest) (protocol.TerminalVerdict, error) {
	c.asked++
	return protocol.TerminalVerdict{}, ErrTaken
}

func (c *counting) Answer(_ context.Context, a protocol.Answer) (protocol.AnswerReceipt, error) {
	c.answered++
	return protocol.AnswerReceipt{Ask: a.Ask, Accepted: true}, nil
}

// The permission table keeps these messages out; the service refuses them all
// the same, for the day on which a table has a hole.
func TestWhatTheBorderDidNotMakeReachesNobody(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Quiet())
	var c counting
	s, err := New(n.Connect(t, protocol.RoleTerminal, "t1"), nodetest.Name, nodetest.Logger(t), &c, &c)
	if err != nil {
		t.Fatal(err)
	}
	id := protocol.NewAskID()
	ask := protocol.Ask{V: protocol.CurrentVersion, ID: id, Agent: "ci", Tool: protocol.Tool{Name: "bash", Input: []byte(`{}`)}}
	request, err := protocol.Write(protocol.TerminalRequest{Kind: protocol.TerminalHuman, Ask: ask, Deadline: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for reply, asked := range map[string]int{
		"_INBOX.gate.g1.x": 1, "": 0, "$KV.ASSENT_PENDING." + id: 0, "_INBOX.judge.j.x": 0, "_INBOX.gate.g1.>": 0, "_INBOX.gate": 0, "_R_.x.y": 0,
	} {
		c = counting{}
		s.serveRequest(&nats.Msg{Subject: "assent.v1.main.terminal.human", Reply: reply, Data: request})
		if c.asked != asked {
			t.Errorf("reply %q: asked %d times, want %d", reply, c.asked, asked)
		}
	}

	answer, err := protocol.Write(protocol.Answer{Ask: id, Verdict: protocol.FinalAllow, Approver: "oncall-1"})
	if err != nil {
		t.Fatal(err)
	}
	subject := "assent.v1.main.answer.oncall-1." + id
	stated := func(name string) nats.Header {
		return nats.Header{bus.HeaderIdentity: {fmt.Sprintf(`{"acc":%q,"user":%q,"name_tag":%q}`, key(t, nkeys.CreateAccount), key(t, nkeys.CreateUser), name)}}
	}
	twice := stated("oncall-1")
	twice.Add(bus.HeaderIdentity, twice.Get(bus.HeaderIdentity))
	for name, row := range map[string]struct {
		m        nats.Msg
		answered int
	}{
		"from the approver":         {nats.Msg{Subject: subject, Reply: "_R_.x.y", Header: stated("oncall-1")}, 1},
		"from another":              {nats.Msg{Subject: subject, Reply: "_R_.x.y", Header: stated("oncall-2")}, 0},
		"from nobody":               {nats.Msg{Subject: subject, Reply: "_R_.x.y"}, 0},
		"with two stated":           {nats.Msg{Subject: subject, Reply: "_R_.x.y", Header: twice}, 0},
		"from inside":               {nats.Msg{Subject: subject, Reply: "_INBOX.operator.op.x", Header: stated("oncall-1")}, 0},
		"without a reply":           {nats.Msg{Subject: subject, Header: stated("oncall-1")}, 0},
		"to a bucket":               {nats.Msg{Subject: subject, Reply: "$KV.ASSENT_POLICY.fleet", Header: stated("oncall-1")}, 0},
		"on a subject for no ask":   {nats.Msg{Subject: "assent.v1.main.answer.oncall-1.x", Reply: "_R_.x.y", Header: stated("oncall-1")}, 0},
		"on another ask's subject":  {nats.Msg{Subject: "assent.v1.main.answer.oncall-1." + protocol.NewAskID(), Reply: "_R_.x.y", Header: stated("oncall-1")}, 0},
		"under another's body name": {nats.Msg{Subject: "assent.v1.main.answer.oncall-2." + id, Reply: "_R_.x.y", Header: stated("oncall-2")}, 0},
	} {
		c = counting{}
		row.m.Data = answer
		s.serveAnswer(&row.m)
		if c.answered != row.answered {
			t.Errorf("%s: %d answers, want %d", name, c.answered, row.answered)
		}
	}
}

func key(t *testing.T, create func() (nkeys.KeyPair, error)) string {
	t.Helper()
	kp, err := create()
	if err != nil {
		t.Fatal(err)
	}
	public, err := kp.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return public
}
