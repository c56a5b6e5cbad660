package node_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// What an asker writes into headers reaches the gate, so a gate must never copy
// headers; and nothing of it reaches a stream by itself.
func TestHeadersOfAnAskReachTheGateAndNothingElse(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	gate := s.Connect(t, protocol.RoleGate, "g1")
	s.serve(t, gate, "assent.v1.main.ask.*")
	agent := s.Connect(t, protocol.RoleAgent, "a1")
	msg := nats.NewMsg("assent.v1.main.ask.a1")
	for k, v := range map[string]string{
		"Nats-Msg-Id": "x", "Nats-Rollup": "all", "Nats-TTL": "1s", "Nats-Expected-Stream": "S",
		"Nats-Expected-Last-Sequence": "9", "KV-Operation": "DEL", "Nats-Schedule": "@every 1s",
	} {
		msg.Header.Set(k, v)
	}
	if _, err := agent.RequestMsg(msg, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	seen := s.took()
	if len(seen) != 1 || seen[0].Header.Get("Nats-Rollup") != "all" {
		t.Fatalf("the gate saw %v", seen)
	}
	s.settled(t, agent, gate)
	s.unharmed(t)
}

// A trace of a message's way goes where its sender says, so the sender needs
// the right to publish there.
func TestATraceGoesOnlyWhereItsSenderMayPublish(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	gate := s.Connect(t, protocol.RoleGate, "g1")
	s.serve(t, gate, "assent.v1.main.ask.*")
	agent := s.Connect(t, protocol.RoleAgent, "a1")
	for _, dest := range []string{"_INBOX.operator.op.trace", "_INBOX.agent.a1.trace", "assent.v1.main.ask.a2", "$KV.ASSENT_POLICY.fleet"} {
		msg := nats.NewMsg("assent.v1.main.ask.a1")
		msg.Header.Set("Nats-Trace-Dest", dest)
		if err := agent.PublishMsg(msg); err != nil {
			t.Fatal(err)
		}
		if !refusedNow(t, agent, "Publish to", dest) {
			t.Errorf("a trace to %s was not refused", dest)
		}
	}
	s.settled(t, gate)
	if seen := s.took(); len(seen) != 0 {
		t.Errorf("the gate saw %d asks", len(seen))
	}
	s.unharmed(t)
}

// An approver may write its own presence. No header may make that more.
func TestAnApproverCannotDeclareOthersAbsent(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p1, p2 := s.Connect(t, protocol.RoleApprover, "p1"), s.Connect(t, protocol.RoleApprover, "p2")
	if _, err := p2.Request("$KV.ASSENT_PRESENCE.p2", []byte("{}"), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	for header, value := range map[string]string{"Nats-Rollup": "all", "KV-Operation": "PURGE", "Nats-TTL": "1s", "Nats-Msg-Id": "x", "Nats-Expected-Last-Sequence": "0"} {
		msg := nats.NewMsg("$KV.ASSENT_PRESENCE.p1")
		msg.Header.Set(header, value)
		if _, err := p1.RequestMsg(msg, 5*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	live, err := bus.LastPerKey(t.Context(), s.op, protocol.BucketPresence)
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range live {
		if kv.Key == "p2" {
			return
		}
	}
	t.Errorf("p2 is gone; left: %v", live)
}

func TestTheRecordCannotBeShortened(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx := t.Context()
	gate := s.Connect(t, protocol.RoleGate, "g1")
	js, err := bus.JetStream(gate)
	if err != nil {
		t.Fatal(err)
	}
	subject, err := s.Subjects.Decision(askID, "a1", "bash", protocol.FinalDeny)
	if err != nil {
		t.Fatal(err)
	}
	rollup := nats.NewMsg(subject)
	rollup.Header.Set("Nats-Rollup", "all")
	if _, err := js.Publish(ctx, subject, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := js.PublishMsg(ctx, rollup); err == nil {
		t.Error("a roll-up was taken")
	}
	st, err := s.js.Stream(ctx, protocol.StreamDecisions)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.DeleteMsg(ctx, 1); err == nil {
		t.Error("an operator deleted a record")
	}
	if err := st.Purge(ctx); err == nil {
		t.Error("an operator purged the record")
	}
	cfg := st.CachedInfo().Config
	cfg.DenyDelete, cfg.DenyPurge = false, false
	if _, err := s.js.UpdateStream(ctx, cfg); err == nil {
		t.Error("an operator lifted the stream's protection")
	}
	info, err := st.Info(ctx)
	if err != nil || info.State.Msgs != 1 {
		t.Errorf("%d records, %v", info.State.Msgs, err)
	}
}

func TestAnAgentReadsOnlyItsOwnAnswers(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	gate := s.Connect(t, protocol.RoleGate, "g1")
	s.serve(t, gate, "assent.v1.main.ask.*")
	a1, a2 := s.Connect(t, protocol.RoleAgent, "a1"), s.Connect(t, protocol.RoleAgent, "a2")
	own, err := a2.SubscribeSync("_INBOX.agent.a2.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := a2.Flush(); err != nil {
		t.Fatal(err)
	}
	// Its own inbox may be given to somebody else's ear only by naming it: a1's
	// answer goes where a1 wants, so a1 can tell a2 but a2 cannot take.
	if _, err := a1.Request("assent.v1.main.ask.a1", nil, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	s.settled(t, a1, a2, gate)
	if n, _, err := own.Pending(); err != nil || n != 0 {
		t.Errorf("a2 heard %d messages, %v", n, err)
	}
}

// An agent may name another's inbox for its own answer. The server cannot tell,
// so a client must check whose ask a reply is about.
func TestAnAnswerCanBeSentIntoAnotherAgentsRoomButSaysWhoseItIs(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	gate := s.Connect(t, protocol.RoleGate, "g1")
	sub, err := gate.Subscribe("assent.v1.main.ask.*", func(m *nats.Msg) {
		id, err := bus.IdentityOf(m)
		if err != nil {
			t.Error(err)
		}
		_ = gate.Publish(m.Reply, []byte(id.Name))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // the test is over
	a1, a2 := s.Connect(t, protocol.RoleAgent, "a1"), s.Connect(t, protocol.RoleAgent, "a2")
	room, err := a2.SubscribeSync("_INBOX.agent.a2.x")
	if err != nil {
		t.Fatal(err)
	}
	s.settled(t, gate, a2)
	if err := a1.PublishRequest("assent.v1.main.ask.a1", "_INBOX.agent.a2.x", nil); err != nil {
		t.Fatal(err)
	}
	if m, err := room.NextMsg(5 * time.Second); err != nil || string(m.Data) != "a1" {
		t.Errorf("%v %v: if it no longer arrives, a guard of the clients can go", m, err)
	}
}

func TestNoticesReachTheDeskAndNobodyElse(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var rooms []*nats.Subscription
	for _, nc := range []*nats.Conn{s.Connect(t, protocol.RoleApprover, "p1"), s.op} {
		sub, err := nc.SubscribeSync("assent.v1.main.event.*")
		if err != nil {
			t.Fatal(err)
		}
		s.settled(t, nc)
		rooms = append(rooms, sub)
	}
	for _, role := range []protocol.Role{protocol.RoleGate, protocol.RoleTerminal} {
		nc := s.Connect(t, role, "x")
		if err := nc.Publish("assent.v1.main.event.ui_prompt", []byte(role)); err != nil {
			t.Fatal(err)
		}
		for _, room := range rooms {
			if m, err := room.NextMsg(5 * time.Second); err != nil || string(m.Data) != string(role) || m.Subject != "assent.v1.main.event.ui_prompt" {
				t.Errorf("%s: %v %v", role, m, err)
			}
		}
	}
}

// Two links on one connection answer the same discovery request on the same
// reply subject. The judge's right to answer must have room for both.
func TestTwoLinksOnOneConnectionAreBothDiscovered(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	judge := s.Connect(t, protocol.RoleJudge, "j1")
	for _, link := range []string{"l1", "l2", "l3"} {
		svc, err := micro.AddService(judge, micro.Config{Name: protocol.ServiceLink, Version: "1.0.0", QueueGroup: link, Metadata: map[string]string{"link": link}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = svc.Stop() })
	}
	s.settled(t, judge)
	for _, asker := range []*nats.Conn{s.Connect(t, protocol.RoleGate, "g1"), s.op} {
		inbox := asker.NewInbox()
		sub, err := asker.SubscribeSync(inbox)
		if err != nil {
			t.Fatal(err)
		}
		if err := asker.PublishRequest("$SRV.INFO."+protocol.ServiceLink, inbox, nil); err != nil {
			t.Fatal(err)
		}
		links := map[string]bool{}
		for range 3 {
			m, err := sub.NextMsg(5 * time.Second)
			if err != nil {
				t.Fatalf("%d links answered: %v", len(links), err)
			}
			for _, l := range []string{"l1", "l2", "l3"} {
				if strings.Contains(string(m.Data), `"link":"`+l+`"`) {
					links[l] = true
				}
			}
		}
		if len(links) != 3 {
			t.Errorf("discovered %v", links)
		}
	}
}

func TestGatesAndTerminalsAreDiscoveredByOperators(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for role, service := range map[protocol.Role]string{protocol.RoleGate: "assent-gate", protocol.RoleTerminal: "assent-terminal"} {
		svc, err := micro.AddService(s.Connect(t, role, "x"), micro.Config{Name: service, Version: "1.0.0"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = svc.Stop() })
		nodetest.CheckFor(t, 5*time.Second, 10*time.Millisecond, func() error {
			_, err := s.op.Request("$SRV.PING."+service, nil, time.Second)
			return err
		})
	}
}

func TestAJudgeAnswersOnlyWhatItWasAsked(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	gate := s.Connect(t, protocol.RoleGate, "g1")
	judge := s.Connect(t, protocol.RoleJudge, "j1")
	replies := make(chan string, 1)
	sub, err := judge.Subscribe("assent.v1.main.link.l1", func(m *nats.Msg) {
		replies <- m.Reply
		_ = judge.Publish(m.Reply, []byte("defer"))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // the test is over
	s.settled(t, judge)
	if m, err := gate.Request("assent.v1.main.link.l1", nil, 5*time.Second); err != nil || string(m.Data) != "defer" {
		t.Fatalf("%v %v", m, err)
	}
	reply := <-replies
	guess := reply[:strings.LastIndex(reply, ".")+1] + "AAAAAAAA"
	if err := judge.Publish(guess, []byte("allow")); err != nil {
		t.Fatal(err)
	}
	if !refusedNow(t, judge, "Publish to", guess) {
		t.Error("a judge may write to a reply subject that it was not given")
	}
}

func TestAMessageOverTheBorderHasASize(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	gate := s.Connect(t, protocol.RoleGate, "g1")
	s.serve(t, gate, "assent.v1.main.project.*")
	s.serve(t, gate, "assent.v1.main.relay.*")
	for _, row := range []struct {
		nc      *nats.Conn
		subject string
		limit   int
	}{
		{s.Connect(t, protocol.RoleAgent, "a1"), "assent.v1.main.project.a1", node.AgentPayload},
		{s.Connect(t, protocol.RoleChild, "c1"), "assent.v1.main.relay.c1", node.BorderPayload},
	} {
		if _, err := row.nc.Request(row.subject, make([]byte, row.limit-1024), 5*time.Second); err != nil {
			t.Errorf("%s, within the limit: %v", row.subject, err)
		}
		s.took()
		if _, err := row.nc.Request(row.subject, make([]byte, row.limit+1), time.Second); err == nil {
			t.Errorf("%s: a message over the limit was answered", row.subject)
		}
	}
	if seen := s.took(); len(seen) != 0 {
		t.Errorf("the gate saw %d messages", len(seen))
	}
}

func TestDecisionsRaceToOnePerAsk(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	gates := []jetstream.JetStream{}
	for _, g := range []string{"g1", "g2"} {
		js, err := bus.JetStream(s.Connect(t, protocol.RoleGate, g))
		if err != nil {
			t.Fatal(err)
		}
		gates = append(gates, js)
	}
	const asks = 50
	results := make(chan error, 2*asks)
	for range asks {
		id := protocol.NewAskID()
		of, err := s.Subjects.DecisionOf(id)
		if err != nil {
			t.Fatal(err)
		}
		for i, choice := range []protocol.FinalChoice{protocol.FinalAllow, protocol.FinalDeny} {
			subject, err := s.Subjects.Decision(id, "a1", "bash", choice)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_, err := gates[i].Publish(context.Background(), subject, []byte("{}"), jetstream.WithExpectLastSequenceForSubject(0, of))
				results <- err
			}()
		}
	}
	stored := 0
	for range 2 * asks {
		err := <-results
		var api *jetstream.APIError
		switch {
		case err == nil:
			stored++
		case errors.As(err, &api) && (api.ErrorCode == 10071 || api.ErrorCode == 10164):
		default:
			t.Error(err)
		}
	}
	if stored != asks {
		t.Errorf("%d decisions for %d asks", stored, asks)
	}
}
