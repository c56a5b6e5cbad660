package node_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// A scene is a node with something to lose, and a service that answers
// whatever comes wherever it is told to: the server alone must hold.
type scene struct {
	*nodetest.Node
	js jetstream.JetStream // an operator's
	op *nats.Conn

	mu   sync.Mutex
	seen []*nats.Msg
	body string // what services answer
}

const fleetPolicy = `{"permission":{"*":"ask"}}`

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{Node: nodetest.Start(t, nodetest.Quiet())}
	s.op = s.Connect(t, protocol.RoleOperator, "op")
	var err error
	if s.js, err = bus.JetStream(s.op); err != nil {
		t.Fatal(err)
	}
	kv, err := s.js.KeyValue(t.Context(), protocol.BucketPolicy)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), "fleet", []byte(fleetPolicy)); err != nil {
		t.Fatal(err)
	}
	return s
}

// serve answers everything on subjects, as nc, and remembers it.
func (s *scene) serve(t *testing.T, nc *nats.Conn, subjects ...string) {
	t.Helper()
	for _, subject := range subjects {
		sub, err := nc.QueueSubscribe(subject, "q", func(m *nats.Msg) {
			s.mu.Lock()
			s.seen = append(s.seen, m)
			body := s.body
			s.mu.Unlock()
			if m.Reply != "" {
				_ = nc.Publish(m.Reply, []byte(body))
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = sub.Unsubscribe() })
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}

func (s *scene) answerWith(body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.body = body
}

func (s *scene) took() []*nats.Msg {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.seen
	s.seen = nil
	return out
}

// unharmed fails when anything was lost, written or deleted.
func (s *scene) unharmed(t *testing.T) {
	t.Helper()
	kv, err := s.js.KeyValue(t.Context(), protocol.BucketPolicy)
	if err != nil {
		t.Fatal(err)
	}
	e, err := kv.Get(t.Context(), "fleet")
	if err != nil || string(e.Value()) != fleetPolicy {
		t.Errorf("policy: %v %v", e, err)
	}
	for _, name := range []string{protocol.StreamDecisions, protocol.StreamReview} {
		st, err := s.js.Stream(t.Context(), name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := st.CachedInfo().State; got.Msgs != 0 || got.Consumers != 1 {
			t.Errorf("%s holds %d messages and %d consumers, want 0 and 1", name, got.Msgs, got.Consumers)
		}
	}
	for _, bucket := range []string{protocol.BucketPending, protocol.BucketGrants, protocol.BucketProjects} {
		st, err := s.js.Stream(t.Context(), "KV_"+bucket)
		if err != nil || st.CachedInfo().State.Msgs != 0 {
			t.Errorf("%s: %v %v", bucket, st, err)
		}
	}
}

// targets are where an attacker would have an answer land.
var targets = map[string]string{
	"deletes the decision stream":      "$JS.API.STREAM.DELETE.ASSENT_DECISIONS",
	"purges the pending bucket":        "$JS.API.STREAM.PURGE.KV_ASSENT_PENDING",
	"deletes the auditor's consumer":   "$JS.API.CONSUMER.DELETE.ASSENT_DECISIONS.auditor",
	"occupies another ask's decision":  "assent.v1.main.decision." + askID + ".a2.bash.allow",
	"writes the review log":            "assent.v1.main.review." + askID + ".gate_error",
	"overwrites the policy":            "$KV.ASSENT_POLICY.fleet",
	"creates a grant":                  "$KV.ASSENT_GRANTS.g",
	"uploads for another agent":        "assent.v1.main.project.a2",
	"puts a project's policy in place": "$KV.ASSENT_PROJECTS.a2.00",
	"creates a pending entry":          "$KV.ASSENT_PENDING." + askID,
	"withdraws another agent's ask":    "assent.v1.main.cancel.a2",
	"asks as another agent":            "assent.v1.main.ask.a2",
	"relays as a child":                "assent.v1.main.relay.c2",
	"answers as an approver":           "assent.v1.main.answer.p2." + askID,
	"speaks into another agent's room": "_INBOX.agent.a2.x",
}

// bodies are what a service may answer with: an empty body is what the server's
// own API takes for a request to delete.
var bodies = []string{"", "{}", `{"v":1,"ask":"` + askID + `","reason":"x"}`}

func TestAReplySubjectOfAnAccountOutsideHarmsNothing(t *testing.T) {
	t.Parallel()
	attackers := map[string]struct {
		role    protocol.Role
		name    string
		request string
		service protocol.Role
	}{
		"agent asks":            {protocol.RoleAgent, "a1", "assent.v1.main.ask.a1", protocol.RoleGate},
		"agent withdraws":       {protocol.RoleAgent, "a1", "assent.v1.main.cancel.a1", protocol.RoleGate},
		"agent uploads":         {protocol.RoleAgent, "a1", "assent.v1.main.project.a1", protocol.RoleGate},
		"child relays":          {protocol.RoleChild, "c1", "assent.v1.main.relay.c1", protocol.RoleGate},
		"approver answers":      {protocol.RoleApprover, "p1", "assent.v1.main.answer.p1." + askID, protocol.RoleTerminal},
		"approver is present":   {protocol.RoleApprover, "p1", "$KV.ASSENT_PRESENCE.p1", ""},
		"approver reads all":    {protocol.RoleApprover, "p1", "JS.CORE.API.DIRECT.GET.KV_ASSENT_PENDING", ""},
		"approver reads policy": {protocol.RoleApprover, "p1", "JS.CORE.API.DIRECT.GET.KV_ASSENT_POLICY", ""},
		"approver reads one":    {protocol.RoleApprover, "p1", "JS.CORE.API.DIRECT.GET.KV_ASSENT_PENDING.$KV.ASSENT_PENDING.x", ""},
		"auditor reads one":     {protocol.RoleAuditor, "u1", "JS.CORE.API.STREAM.MSG.GET.ASSENT_DECISIONS", ""},
		"auditor reads state":   {protocol.RoleAuditor, "u1", "JS.CORE.API.STREAM.INFO.ASSENT_DECISIONS", ""},
		"auditor pulls":         {protocol.RoleAuditor, "u1", "JS.CORE.API.CONSUMER.MSG.NEXT.ASSENT_DECISIONS.auditor", ""},
		"auditor acknowledges":  {protocol.RoleAuditor, "u1", "$JS.ACK.ASSENT_DECISIONS.auditor.1.1.1.1.0", ""},
		"auditor reads its own": {protocol.RoleAuditor, "u1", "JS.CORE.API.CONSUMER.INFO.ASSENT_DECISIONS.auditor", ""},
	}
	for name, a := range attackers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			gate := s.Connect(t, protocol.RoleGate, "g1")
			terminal := s.Connect(t, protocol.RoleTerminal, "t1")
			for _, k := range []protocol.Kind{protocol.KindAsk, protocol.KindCancel, protocol.KindProject, protocol.KindRelay, protocol.KindWithdraw} {
				s.serve(t, gate, s.Subjects.All(k))
			}
			s.serve(t, terminal, s.Subjects.All(protocol.KindAnswer))
			attacker := s.Connect(t, a.role, a.name)
			heard := 0
			for _, body := range bodies {
				s.answerWith(body)
				for what, target := range targets {
					if err := attacker.PublishRequest(a.request, target, []byte(`{"seq":1,"batch":2}`)); err != nil {
						t.Fatal(err)
					}
					if refusedNow(t, attacker, "Publish to", a.request) {
						t.Fatalf("%s: the request itself was refused: this tests nothing", what)
					}
					s.settled(t, attacker, gate, terminal)
					for _, m := range s.took() {
						heard++
						if m.Subject != a.request || !protocol.ReplyAcross(m.Reply) {
							t.Errorf("%s: a service saw %s asking for an answer at %q", what, m.Subject, m.Reply)
						}
						if id, err := bus.IdentityOf(m); err != nil || id.Name != a.name {
							t.Errorf("%s: identity %+v %v", what, id, err)
						}
					}
				}
			}
			s.unharmed(t)
			want := 0
			if a.service != "" {
				want = len(bodies) * len(targets)
			}
			// The last ones may still be on their way to their handler.
			nodetest.CheckFor(t, 5*time.Second, time.Millisecond, func() error {
				heard += len(s.took())
				if heard != want {
					return fmt.Errorf("services heard %d requests, want %d", heard, want)
				}
				return nil
			})
		})
	}
}

// settled waits until everything that the attack set off has arrived: each
// connection has answered, the server has read those answers, and whatever they
// set off in turn is before what is flushed next.
func (s *scene) settled(t *testing.T, conns ...*nats.Conn) {
	t.Helper()
	for range 3 {
		for _, nc := range append(conns, s.op) {
			if err := nc.FlushTimeout(5 * time.Second); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAReplySubjectThatTheServerReservesIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	conns := map[string]*nats.Conn{
		"assent.v1.main.ask.a1":     s.Connect(t, protocol.RoleAgent, "a1"),
		"assent.v1.main.relay.c1":   s.Connect(t, protocol.RoleChild, "c1"),
		"assent.v1.main.query.g1.c": s.Connect(t, protocol.RoleJudge, "j1"),
		"$KV.ASSENT_PRESENCE.p1":    s.Connect(t, protocol.RoleApprover, "p1"),
	}
	gate := s.Connect(t, protocol.RoleGate, "g1")
	s.serve(t, gate, "assent.v1.main.ask.*", "assent.v1.main.relay.*", "assent.v1.main.query.g1.*")
	for subject, nc := range conns {
		for _, reply := range []string{"_R_.abc.def", "$JS.ACK.ASSENT_DECISIONS.auditor.1.1.1.1.0", "_GR_.abc.def.x"} {
			if err := nc.PublishRequest(subject, reply, []byte("x")); err != nil {
				t.Fatal(err)
			}
			if !refusedNow(t, nc, "Publish with Reply of", reply) {
				t.Errorf("%s with reply %s was not refused", subject, reply)
			}
		}
	}
	s.settled(t, gate)
	for _, m := range s.took() {
		t.Errorf("a service saw %s with reply %s", m.Subject, m.Reply)
	}
}

// Inside CORE the server does not rewrite reply subjects. What stops a judge is
// that a gate holds no right to answer just anywhere, and that it looks.
func TestAJudgesReplySubjectIsStoppedByRightsOrByCode(t *testing.T) {
	t.Parallel()
	rows := []struct {
		what, reply string
		// stopped: the server refuses even a gate that does not look.
		stopped bool
	}{
		{"overwrites the policy", "$KV.ASSENT_POLICY.fleet", true},
		{"deletes the decision stream", "$JS.API.STREAM.DELETE.ASSENT_DECISIONS", true},
		{"answers an agent", "_INBOX.agent.a1.x", true},
		{"asks as an agent", "assent.v1.main.ask.a1", true},
		{"occupies an ask's decision", "assent.v1.main.decision." + askID + ".a2.bash.allow", false},
		{"creates a pending entry", "$KV.ASSENT_PENDING." + askID, false},
		{"creates a grant", "$KV.ASSENT_GRANTS.g", false},
		{"answers another link's question", "_INBOX.gate.g1.tok", false},
		{"asks another link", "assent.v1.main.link.l2", false},
		{"speaks to an operator", "_INBOX.operator.op.x", false},
	}
	s := newScene(t)
	gate := s.Connect(t, protocol.RoleGate, "g1")
	judge := s.Connect(t, protocol.RoleJudge, "j1")
	for _, row := range rows {
		t.Run(row.what, func(t *testing.T) {
			sub, err := gate.SubscribeSync("assent.v1.main.query.g1.*")
			if err != nil {
				t.Fatal(err)
			}
			defer sub.Unsubscribe() //nolint:errcheck // the test is over
			if err := gate.Flush(); err != nil {
				t.Fatal(err)
			}
			if err := judge.PublishRequest("assent.v1.main.query.g1.cap", row.reply, []byte("{}")); err != nil {
				t.Fatal(err)
			}
			m, err := sub.NextMsg(5 * time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if m.Reply != row.reply {
				t.Fatalf("the gate sees reply %q", m.Reply)
			}
			if protocol.ReplyFrom(protocol.RoleJudge, m.Reply) || protocol.ReplyAcross(m.Reply) {
				t.Errorf("the gate's own check lets %q through", m.Reply)
			}
			if _, err := bus.IdentityOf(m); err == nil {
				t.Error("an identity inside CORE is believed")
			}
			if row.stopped {
				if err := gate.Publish(m.Reply, nil); err != nil {
					t.Fatal(err)
				}
				if !refusedNow(t, gate, "Publish to", m.Reply) {
					t.Error("the server lets the gate answer there")
				}
			}
		})
	}
	s.unharmed(t)
	reply := judge.NewInbox()
	if !protocol.ReplyFrom(protocol.RoleJudge, reply) {
		t.Errorf("a judge's own inbox %q is refused", reply)
	}
}
