package gate

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// principal is one who asks: an agent here, or one below a child. All in these
// tests have one name, one session and one project.
type principal struct {
	name string
	ask  func(command string) protocol.Ask
	once func(protocol.Ask) heard
	end  func(id string) protocol.CancelReceipt
}

// principals are agents of one name in five places.
func (r *rig) principals() []principal {
	a, c1, c2 := r.agent("ci"), r.child("child1"), r.child("child2")
	namesake := r.child("ci") // a node that has the agent's name
	below := func(c *child, name string, way ...string) principal {
		return principal{name, func(command string) protocol.Ask { return c.bash("ci", command, way...) }, c.once, c.withdraw}
	}
	return []principal{
		{"here", a.bash, a.once, a.cancel},
		below(c1, "child1"), below(c2, "child2"), below(namesake, "node ci"),
		below(c1, "low below child1", "low"), below(c1, "other below child1", "other"),
	}
}

func (p principal) pend(r *rig, ask protocol.Ask) {
	r.t.Helper()
	if h := p.once(ask); h.progress == nil {
		r.t.Fatalf("%s: want Progress, got %+v", p.name, h)
	}
	r.waiting(ask.ID)
}

// TestAGrantReachesNobodyElsesAgent: a child cannot use what was granted to an
// agent of this node, nor the other way, nor one child what was another's: of all
// agents of one name, in every scope, only the one that asked has the grant.
func TestAGrantReachesNobodyElsesAgent(t *testing.T) {
	t.Parallel()
	r, _ := grantsRig(t)
	g := r.gate("g1")
	all := r.principals()
	for i, p := range all {
		for _, scope := range []protocol.Scope{protocol.ScopeSession, protocol.ScopeTree, protocol.ScopeAgent} {
			ask := p.ask(fmt.Sprintf("tool%d-%s now", i, scope))
			p.pend(r, ask)
			r.answer(ask.ID, granting(scope, fmt.Sprintf("tool%d-%s *", i, scope)))
			r.settled(ask.ID)
			d := r.decisions(ask.ID)[0]
			want(t, d, allow, protocol.AllowedByHuman)
			if d.Grant == nil || d.Grant.Via != ask.Via() || !slices.Equal(d.Grant.Hops, ask.Hops) {
				t.Fatalf("%s: granted %+v", p.name, d.Grant)
			}
		}
	}
	r.alone(g)
	for i, giver := range all {
		for j, user := range all {
			for _, scope := range []protocol.Scope{protocol.ScopeSession, protocol.ScopeTree, protocol.ScopeAgent} {
				h := user.once(user.ask(fmt.Sprintf("tool%d-%s again", i, scope)))
				outcome := protocol.NoApprover
				if i == j {
					outcome = protocol.AllowedByGrant
				}
				if h.decision == nil || h.decision.Outcome != outcome {
					t.Errorf("granted to the agent %s in scope %s, used by the agent %s: %+v, want %s", giver.name, scope, user.name, h.decision, outcome)
				}
			}
		}
	}
}

// TestOneIdIsOneCallersAlone: whoever else comes with the id of an ask hears
// neither its Progress nor its decision, takes nothing back, and makes no second
// record; open or decided.
func TestOneIdIsOneCallersAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, treePolicy+`}`)
	r.person()
	r.gate("g1")
	all := r.principals()
	for i, owner := range all {
		ask := owner.ask("make")
		owner.pend(r, ask)
		intrude := func(when string) {
			for j, p := range all {
				theirs := p.ask("make")
				theirs.ID = ask.ID
				if h := p.once(theirs); (i == j) == (h.code() == protocol.CodeConflict) {
					t.Errorf("%s ask of the agent %s, asked about by the agent %s: %+v", when, owner.name, p.name, h)
				}
				// Of two below one child the child may take back both: it carries them.
				if theirs.Via() != ask.Via() && p.end(ask.ID).Cancelled {
					t.Errorf("%s ask of the agent %s, taken back by the agent %s", when, owner.name, p.name)
				}
			}
		}
		intrude("open")
		r.answer(ask.ID, yes())
		r.settled(ask.ID)
		intrude("decided")
		got := r.decisions(ask.ID)
		if len(got) != 1 {
			t.Fatalf("%d records", len(got))
		}
		want(t, got[0], allow, protocol.AllowedByHuman)
	}
}

// TestAnAskThatPosesAsAnothers: on the subject of an agent hops are refused, and a
// child is no other child, whatever the ask says.
func TestAnAskThatPosesAsAnothers(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"allow"}}`)
	r.gate("g1")
	a, c := r.agent("child1"), r.child("child1") // an agent that has a child's name
	posing := a.bash("make")
	posing.Hops = []string{"child1"}
	h := a.raw(posing.ID, must(json.Marshal(&posing))(t))
	if h.decision == nil || !strings.Contains(h.decision.Reason, "hops") {
		t.Fatalf("%+v", h)
	}
	want(t, *h.decision, deny, protocol.Invalid)
	for name, hops := range map[string][]string{"no way": nil, "another child's": {"child2"}, "not the last": {"child1", "child2"}} {
		ask := c.bash("child1", "make")
		ask.Hops = hops
		if h := c.once(ask); h.code() != protocol.CodeInvalid || !strings.Contains(h.fault.Error.Message, "credential") {
			t.Errorf("%s: %+v", name, h)
		}
		if n := len(r.decisions(ask.ID)); n != 0 {
			t.Errorf("%s: %d records", name, n)
		}
	}
	want(t, a.decide(a.bash("make")), allow, protocol.AllowedByRule)
	want(t, c.decide(c.bash("child1", "make")), allow, protocol.AllowedByRule)
}

// TestAChildReachesNothingElse: with a child's credentials nobody asks as an agent
// or as another child, answers, writes what is stored, or reads what another hears.
func TestAChildReachesNothingElse(t *testing.T) {
	t.Parallel()
	r := newRig(t, treePolicy+`}`)
	r.person()
	r.gate("g1")
	var refused atomic.Int32
	c := r.child("child1")
	c.nc.SetErrorHandler(func(*nats.Conn, *nats.Subscription, error) { refused.Add(1) })
	other, a := r.child("child2"), r.agent("ci")
	open := other.bash("ci", "make")
	other.pend(open)
	theirs, own := other.bash("ci", "git status"), a.bash("git status")
	taking := must(protocol.Write(protocol.Cancel{Ask: open.ID, Reason: "x"}))(t)
	saying := []byte(fmt.Sprintf(`{"v":1,"ask":%q,"verdict":"allow","approver":"child1"}`, open.ID))
	subjects := map[string][]byte{
		must(r.Subjects.Ask("ci"))(t):                     must(protocol.Write(own))(t),
		must(r.Subjects.Ask("child1"))(t):                 must(protocol.Write(own))(t),
		must(r.Subjects.Cancel("ci"))(t):                  taking,
		must(r.Subjects.Relay("child2"))(t):               must(protocol.Write(theirs))(t),
		must(r.Subjects.Withdraw("child2"))(t):            taking,
		must(r.Subjects.Answer("child1", open.ID))(t):     saying,
		"$KV." + protocol.BucketPending + "." + open.ID:   saying,
		"$KV." + protocol.BucketPolicy + ".fleet":         []byte(`{"permission":{"*":"allow"}}`),
		"$KV." + protocol.BucketPresence + ".child1":      []byte("{}"),
		"$KV." + protocol.BucketGrants + ".ci." + open.ID: saying,
	}
	for subject, body := range subjects {
		before := refused.Load()
		if m, err := c.nc.Request(subject, body, 300*time.Millisecond); err == nil {
			t.Errorf("%s is answered: %s", subject, m.Data)
		}
		until(t, subject+" is refused", func() error {
			if refused.Load() == before {
				return fmt.Errorf("nothing refused")
			}
			return nil
		})
	}
	for _, subject := range []string{"_INBOX.child.child2.>", "_INBOX.>", "_R_.>", ">", "assent.v1.main.>"} {
		before := refused.Load()
		must(c.nc.SubscribeSync(subject))(t)
		until(t, subject+" is refused", func() error {
			if refused.Load() == before {
				return fmt.Errorf("nothing refused")
			}
			return nil
		})
	}
	for _, id := range []string{theirs.ID, own.ID} {
		if n := len(r.decisions(id)); n != 0 {
			t.Errorf("ask %s has %d records", id, n)
		}
	}
	if p := r.stored(open.ID); p.Verdict != nil || p.Withdrawn != nil {
		t.Errorf("the open ask has ended: %+v", p)
	}
	want(t, c.decide(c.bash("ci", "git status")), allow, protocol.AllowedByRule) // what it may, it can
}

// TestWhatTheChildrensBorderDidNotMakeIsNoAsk: as for agents, for the day on which
// the table has a hole.
func TestWhatTheChildrensBorderDidNotMakeIsNoAsk(t *testing.T) {
	t.Parallel()
	r := newRig(t, treePolicy+`}`)
	r.person()
	g := r.gate("g1")
	c := r.child("child1")
	stated := func(name string) nats.Header {
		return nats.Header{bus.HeaderIdentity: {fmt.Sprintf(`{"acc":%q,"user":%q,"name_tag":%q}`, key(t, nkeys.CreateAccount), key(t, nkeys.CreateUser), name)}}
	}
	for name, row := range map[string]struct {
		reply, sender, node string
		taken               bool
	}{
		"from the child":             {"_R_.x.y", "child1", nodetest.Name, true},
		"from another":               {"_R_.x.y", "child2", nodetest.Name, false},
		"from nobody":                {"_R_.x.y", "", nodetest.Name, false},
		"from inside":                {"_INBOX.operator.op.x", "child1", nodetest.Name, false},
		"with no reply":              {"", "child1", nodetest.Name, false},
		"with a bucket as its reply": {"$KV.ASSENT_PENDING.x", "child1", nodetest.Name, false},
		"on another node's subject":  {"_R_.x.y", "child1", "edge", false},
	} {
		open, ask := c.bash("ci", "make"), c.bash("ci", "git status")
		c.pend(open)
		m := func(kind, body string) *nats.Msg {
			m := &nats.Msg{Subject: "assent.v1." + row.node + "." + kind + ".child1", Reply: row.reply, Data: []byte(body)}
			if row.sender != "" {
				m.Header = stated(row.sender)
			}
			return m
		}
		g.serveRelay(m("relay", string(must(protocol.Write(ask))(t))))
		if got := len(r.decisions(ask.ID)) == 1; got != row.taken {
			t.Errorf("%s: ruled is %v", name, got)
		}
		g.serveWithdraw(m("withdraw", fmt.Sprintf(`{"v":1,"ask":%q,"reason":""}`, open.ID)))
		if d := r.decisions(open.ID); (len(d) == 1) != row.taken {
			t.Errorf("%s: taken back is %v", name, len(d))
		}
	}
}

// TestAChildIsBoundedAsAWhole: any number of agents below it share its limits, and
// it takes nobody else's room.
func TestAChildIsBoundedAsAWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t, treePolicy+`,"limits":{"asksPerSecond":50,"pending":3}}`)
	r.person()
	r.gate("g1")
	c, other, a := r.child("child1"), r.child("child2"), r.agent("ci")
	for i := range 3 {
		c.pend(c.bash(fmt.Sprintf("ci-%d", i), "make", "low"))
	}
	for i := range 3 {
		ask := c.bash(fmt.Sprintf("more-%d", i), "make", fmt.Sprintf("low%d", i))
		d := c.decide(ask)
		want(t, d, deny, protocol.RateLimited)
		if !strings.Contains(d.Reason, "child1") || len(r.decisions(ask.ID)) != 0 {
			t.Errorf("reason %q, %d records", d.Reason, len(r.decisions(ask.ID)))
		}
	}
	want(t, c.decide(c.bash("ci-9", "git status")), allow, protocol.AllowedByRule) // what is not open needs no room
	other.pend(other.bash("ci-0", "make"))
	a.pend(a.bash("make"))
}

func TestAChildThatAsksTooFastIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"allow"},"limits":{"asksPerSecond":4,"pending":3}}`)
	r.gate("g1")
	c, other, a := r.child("child1"), r.child("child2"), r.agent("ci-0")
	var limited atomic.Int32
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if c.decide(c.bash(fmt.Sprintf("ci-%d", i), "make")).Outcome == protocol.RateLimited {
				limited.Add(1)
			}
		})
	}
	wg.Wait()
	if n := limited.Load(); n < 8 {
		t.Errorf("%d of 20 refused at 4 a second", n)
	}
	want(t, other.decide(other.bash("ci-0", "make")), allow, protocol.AllowedByRule)
	want(t, a.decide(a.bash("make")), allow, protocol.AllowedByRule)
}
