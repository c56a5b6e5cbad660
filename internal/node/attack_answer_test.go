package node_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
)

func TestAForgedIdentityIsOverwritten(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	gate := s.Connect(t, protocol.RoleGate, "g1")
	s.serve(t, gate, "assent.v1.main.ask.*")
	creds := s.Creds(t, protocol.RoleAgent, "a1")
	agent := s.ConnectAs(t, creds, bus.Config{})
	who, err := bus.ParseCreds(creds)
	if err != nil {
		t.Fatal(err)
	}
	forged := `{"acc":"AAAA","user":"UAAA","name_tag":"a2","svc":"CORE"}`
	for _, key := range []string{bus.HeaderIdentity, strings.ToLower(bus.HeaderIdentity), "NATS-REQUEST-INFO"} {
		msg := nats.NewMsg("assent.v1.main.ask.a1")
		msg.Header[key] = []string{forged, forged}
		msg.Data = []byte("{}")
		if _, err := agent.RequestMsg(msg, 5*time.Second); err != nil {
			t.Fatal(err)
		}
		seen := s.took()
		if len(seen) != 1 {
			t.Fatalf("%d messages", len(seen))
		}
		id, err := bus.IdentityOf(seen[0])
		if err != nil {
			// Refusing is as good as seeing through it.
			t.Logf("%s: refused: %v", key, err)
			continue
		}
		if id.Name != "a1" || id.Key != who.Key || strings.HasPrefix(id.Account, "AAAA") {
			t.Errorf("%s: believed %+v", key, id)
		}
	}
}

func TestAnAgentHearsOneAnswerToOneAsk(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	gate := s.Connect(t, protocol.RoleGate, "g1")
	agent := s.Connect(t, protocol.RoleAgent, "a1")
	sub, err := gate.Subscribe("assent.v1.main.ask.*", func(m *nats.Msg) {
		for i := range 4 {
			_ = gate.Publish(m.Reply, fmt.Append(nil, i))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // the test is over
	s.settled(t, gate)
	inbox := agent.NewInbox()
	got, err := agent.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.PublishRequest("assent.v1.main.ask.a1", inbox, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	m, err := got.NextMsg(5 * time.Second)
	if err != nil || string(m.Data) != "0" {
		t.Fatalf("%v %v", m, err)
	}
	s.settled(t, gate, agent)
	if n, _, err := got.Pending(); err != nil || n != 0 {
		t.Errorf("%d more answers, %v", n, err)
	}
}

func TestNobodyThereIsToldAtOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	rows := map[string]*nats.Conn{
		"assent.v1.main.ask.a1":             s.Connect(t, protocol.RoleAgent, "a1"),
		"assent.v1.main.relay.c1":           s.Connect(t, protocol.RoleChild, "c1"),
		"assent.v1.main.answer.p1." + askID: s.Connect(t, protocol.RoleApprover, "p1"),
		"assent.v1.main.link.gone":          s.Connect(t, protocol.RoleGate, "g1"),
		"assent.v1.main.query.g9.cap":       s.Connect(t, protocol.RoleJudge, "j1"),
	}
	for subject, nc := range rows {
		start := time.Now()
		_, err := nc.Request(subject, []byte("{}"), 5*time.Second)
		if err != nats.ErrNoResponders || time.Since(start) > 2*time.Second {
			t.Errorf("%s: %v after %s, want no responders at once", subject, err, time.Since(start))
		}
	}
}

func TestWhoMayAnswerCanOnlyPretendToBeAbsent(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	gate := s.Connect(t, protocol.RoleGate, "g1")
	judge := s.Connect(t, protocol.RoleJudge, "j1")
	sub, err := judge.Subscribe("assent.v1.main.link.l1", func(m *nats.Msg) {
		_ = m.RespondMsg(&nats.Msg{Header: nats.Header{"Status": {"503"}}})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // the test is over
	s.settled(t, judge)
	if _, err := gate.Request("assent.v1.main.link.l1", nil, 5*time.Second); err != nats.ErrNoResponders {
		t.Errorf("got %v: a judge that plays dead must look like one that is missing", err)
	}
}
