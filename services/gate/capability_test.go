package gate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

const capabilityPolicy = `{
  "permission": { "*": "ask", "write": "deny", "bash": { "*": "ask", "git status": "allow", "rm *": { "action": "deny", "reason": "No." } } },
  "authorizerChain": ["one"], "linkTimeout": "5s", "terminal": { "kind": "deny" } }`

// holdOpen serves link one: the request is handed to the test, which ends it.
func (r *rig) holdOpen() <-chan linkCall {
	r.t.Helper()
	calls := make(chan linkCall, 8)
	r.link("one", func(c linkCall) { c.accept(); calls <- c })
	return calls
}

func code(f *protocol.Fault) protocol.Code {
	if f == nil {
		return "none"
	}
	return f.Code
}

func TestAQueryIsAnsweredAsTheGateWouldRule(t *testing.T) {
	t.Parallel()
	r := newRig(t, capabilityPolicy)
	r.denying()
	g := r.gate("g1")
	calls := r.holdOpen()
	a := r.agent("ci")
	go a.follow(a.bash("make")) //nolint:errcheck // ended below
	c := receive(t, calls)
	for _, row := range []struct {
		body  string
		state protocol.Action
		why   string
	}{
		{`{"v":1,"surface":"bash","value":"git status"}`, protocol.ActionAllow, ""},
		{`{"v":1,"surface":"bash","value":"rm -rf x"}`, protocol.ActionDeny, "No."},
		{`{"v":1,"surface":"bash","value":"git status; rm x"}`, protocol.ActionDeny, "No."},
		{`{"v":1,"surface":"bash","value":"make"}`, protocol.ActionAsk, ""},
		{`{"v":1,"tool":"write"}`, protocol.ActionDeny, ""},
		{`{"v":1,"tool":"teleport"}`, protocol.ActionAsk, ""},
	} {
		got, fault := queryTo(t, c.nc, c.Query, row.body)
		if fault != nil || got.State != row.state || row.why != "" && got.Reason != row.why {
			t.Errorf("%s: %+v %v, want %s", row.body, got, fault, row.state)
		}
	}
	t.Run("under the rules of this moment", func(t *testing.T) {
		g.inForce(r.put(strings.Replace(capabilityPolicy, `"git status": "allow"`, `"git status": "deny"`, 1)))
		got, fault := queryTo(t, c.nc, c.Query, `{"v":1,"surface":"bash","value":"git status"}`)
		if fault != nil || got.State != protocol.ActionDeny {
			t.Errorf("%+v %v", got, fault)
		}
	})
	for _, body := range []string{`{}`, `junk`, `{"v":1}`, `{"v":1,"tool":"write","surface":"bash"}`, `{"v":1,"surface":"bash","surface":"read"}`} {
		if _, fault := queryTo(t, c.nc, c.Query, body); code(fault) != protocol.CodeInvalid {
			t.Errorf("%s: %v", body, fault)
		}
	}
	c.verdict("deny", "done", "")
}

func TestACapabilityIsOneWorkersForOneAsk(t *testing.T) {
	t.Parallel()
	const q = `{"v":1,"surface":"bash","value":"git status"}`
	r := newRig(t, capabilityPolicy)
	r.denying()
	g := r.gate("g1")
	calls := r.holdOpen()
	a := r.agent("ci")
	ask := a.bash("make")
	heardOf := make(chan protocol.Decision, 1)
	go func() { d, _ := a.follow(ask); heardOf <- d }()
	c := receive(t, calls)
	other := r.Connect(t, protocol.RoleJudge, "intruder")
	t.Run("its own worker may", func(t *testing.T) {
		if _, fault := queryTo(t, c.nc, c.Query, q); fault != nil {
			t.Error(fault)
		}
		if receipt, fault := c.log("review", "one.looked"); fault != nil || !receipt.Kept {
			t.Errorf("%+v %v", receipt, fault)
		}
	})
	t.Run("another worker may not", func(t *testing.T) {
		if _, fault := queryTo(t, other, c.Query, q); code(fault) != protocol.CodeForbidden {
			t.Errorf("query: %v", fault)
		}
		if _, fault := logTo(t, other, c.Log, "review", "one.looked"); code(fault) != protocol.CodeForbidden {
			t.Errorf("log: %v", fault)
		}
	})
	t.Run("a query token does not log, nor a log token query", func(t *testing.T) {
		last := func(s string) string { return s[strings.LastIndex(s, ".")+1:] }
		if _, fault := logTo(t, c.nc, must(r.Subjects.Log("g1", last(c.Query)))(t), "review", "x"); code(fault) != protocol.CodeForbidden {
			t.Errorf("log: %v", fault)
		}
		if _, fault := queryTo(t, c.nc, must(r.Subjects.Query("g1", last(c.Log)))(t), q); code(fault) != protocol.CodeForbidden {
			t.Errorf("query: %v", fault)
		}
	})
	t.Run("a guessed token is none", func(t *testing.T) {
		if _, fault := queryTo(t, other, must(r.Subjects.Query("g1", strings.Repeat("0", 32)))(t), q); code(fault) != protocol.CodeForbidden {
			t.Errorf("query: %v", fault)
		}
	})
	t.Run("the gate's own events are refused, in any dress", func(t *testing.T) {
		for _, event := range []string{protocol.EventChainResolved, protocol.EventChainDelegated, protocol.EventChainUnregistered, protocol.EventRequestWaiting,
			protocol.EventRequestApproved, protocol.EventRequestDenied, "forwarded_permission.approved", protocol.EventGateError, protocol.EventRateLimited} {
			if _, fault := c.log("review", event); code(fault) != protocol.CodeForbidden {
				t.Errorf("%s: %v", event, fault)
			}
		}
	})
	t.Run("debug is kept only where the policy says so", func(t *testing.T) {
		if receipt, fault := c.log("debug", "one.before"); fault != nil || receipt.Kept {
			t.Errorf("%+v %v", receipt, fault)
		}
		g.inForce(r.put(strings.Replace(capabilityPolicy, `"linkTimeout"`, `"debugLog": true, "linkTimeout"`, 1)))
		if receipt, fault := c.log("debug", "one.after"); fault != nil || !receipt.Kept {
			t.Errorf("%+v %v", receipt, fault)
		}
	})
	t.Run("what is no log record is refused", func(t *testing.T) {
		for _, body := range []string{"junk", `{"v":1,"level":"loud","event":"x"}`, `{"v":1,"level":"review","event":"a b"}`, `{"v":1,"level":"review","event":"x","fields":"` + strings.Repeat("a", maxLogRecord) + `"}`} {
			m := must(c.nc.Request(c.Log, []byte(body), soon))(t)
			if f, err := protocol.Read[protocol.ErrorReply](m.Data); err != nil || f.Error.Code != protocol.CodeInvalid || f.Ask != ask.ID {
				t.Errorf("%.40s: %s", body, m.Data)
			}
		}
	})
	t.Run("a hostile reply subject is neither answered nor followed", func(t *testing.T) { hostileReply(t, r, c) })

	c.verdict("deny", "done", "")
	want(t, receive(t, heardOf), deny, protocol.DeniedByLink)
	r.settled(ask.ID)
	t.Run("after the verdict it is dead", func(t *testing.T) {
		if _, fault := queryTo(t, c.nc, c.Query, q); code(fault) != protocol.CodeForbidden {
			t.Errorf("query: %v", fault)
		}
		if _, fault := c.log("review", "one.late"); code(fault) != protocol.CodeForbidden {
			t.Errorf("log: %v", fault)
		}
	})
	var kept []string
	for _, rec := range r.reviews(ask.ID) {
		if rec.Link != "" {
			kept = append(kept, rec.Link+" "+rec.Event)
			if rec.Gate != "g1" || rec.Ask != ask.ID || string(rec.Fields) != `{"x":1}` {
				t.Errorf("stamped %+v", rec)
			}
		}
	}
	if got := strings.Join(kept, ", "); got != "one one.looked, one one.after" {
		t.Errorf("kept: %s", got)
	}
}

// hostileReply asks with reply subjects that point into buckets and streams.
func hostileReply(t *testing.T, r *rig, c linkCall) {
	before := must(r.js.Stream(t.Context(), "KV_"+protocol.BucketPolicy))(t).CachedInfo().State.LastSeq
	for _, reply := range []string{"$KV.ASSENT_POLICY.fleet", "$JS.API.STREAM.DELETE.ASSENT_DECISIONS", "_INBOX.gate.g1.x.y", "_INBOX.judge.judge-one.*", "_INBOX.judge.x y.z", ""} {
		for _, subject := range []string{c.Query, c.Log} {
			if err := c.nc.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Data: []byte(`{"v":1,"surface":"bash","value":"x"}`)}); err != nil {
				t.Logf("the client itself refuses %q: %v", reply, err)
			}
		}
	}
	if _, fault := queryTo(t, c.nc, c.Query, `{"v":1,"surface":"bash","value":"x"}`); fault != nil { // behind all of them
		t.Error(fault)
	}
	if after := must(r.js.Stream(t.Context(), "KV_"+protocol.BucketPolicy))(t).CachedInfo().State.LastSeq; after != before {
		t.Errorf("the policy was written: %d, then %d", before, after)
	}
	must(r.js.Stream(t.Context(), protocol.StreamDecisions))(t)
}

func TestACapabilityIsUsedUp(t *testing.T) {
	t.Parallel()
	table := newCapabilities("g1", must(protocol.NewSubjects(nodetest.Name))(t))
	now := time.Now()
	c := table.issue(protocol.Pending{}, "one", now.Add(time.Hour))
	for i := range maxUses {
		kind, token := protocol.KindQuery, c.tokens[0]
		if i%2 == 1 {
			kind, token = protocol.KindLog, c.tokens[1]
		}
		now = now.Add(time.Second / maxPerSecond)
		if _, fault := table.use(kind, token, "_INBOX.judge.j.1.2", now); fault != nil {
			t.Fatalf("use %d: %v", i+1, fault)
		}
	}
	if _, fault := table.use(protocol.KindQuery, c.tokens[0], "_INBOX.judge.j.1.2", now.Add(time.Minute)); code(fault) != protocol.CodeForbidden {
		t.Errorf("one more: %v", fault)
	}
}

// TestACapabilityIsUsedNoFasterThanItsPace: over it the answer says to wait, uses
// nothing up, and another ask's capability is not slowed.
func TestACapabilityIsUsedNoFasterThanItsPace(t *testing.T) {
	t.Parallel()
	table := newCapabilities("g1", must(protocol.NewSubjects(nodetest.Name))(t))
	now := time.Now()
	c, other := table.issue(protocol.Pending{}, "one", now.Add(time.Hour)), table.issue(protocol.Pending{}, "one", now.Add(time.Hour))
	taken := func(c *capability, at time.Time) (n int) {
		for i := range maxUses {
			kind, token := protocol.KindQuery, c.tokens[0]
			if i%2 == 1 {
				kind, token = protocol.KindLog, c.tokens[1]
			}
			_, fault := table.use(kind, token, "_INBOX.judge.j.1.2", at)
			if fault == nil {
				n++
			} else if fault.Code != protocol.CodeUnavailable || fault.Remedy == "" {
				t.Fatalf("use %d: %v", i+1, fault)
			}
		}
		return n
	}
	for _, row := range []struct {
		name string
		c    *capability
		at   time.Time
		want int
	}{
		{"a burst at once", c, now, maxBurst},
		{"nothing more in that moment", c, now, 0},
		{"another ask's meanwhile", other, now, maxBurst},
		{"so many a second later", c, now.Add(time.Second), maxPerSecond},
		{"never more than a burst", c, now.Add(time.Minute), maxBurst},
	} {
		if got := taken(row.c, row.at); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
	if c.uses != 2*maxBurst+maxPerSecond {
		t.Errorf("%d uses are counted", c.uses)
	}
}

func TestACapabilityExpires(t *testing.T) {
	t.Parallel()
	table := newCapabilities("g1", must(protocol.NewSubjects(nodetest.Name))(t))
	now := time.Now()
	c := table.issue(protocol.Pending{}, "one", now)
	for at, want := range map[time.Duration]protocol.Code{-time.Nanosecond: "none", 0: protocol.CodeExpired, time.Hour: protocol.CodeExpired} {
		if _, fault := table.use(protocol.KindQuery, c.tokens[0], "_INBOX.judge.j.1", now.Add(at)); code(fault) != want {
			t.Errorf("%s: %v, want %s", at, fault, want)
		}
	}
	table.revoke(c)
	if _, fault := table.use(protocol.KindQuery, c.tokens[0], "_INBOX.judge.j.1", now.Add(-time.Hour)); code(fault) != protocol.CodeForbidden {
		t.Errorf("revoked: %v", fault)
	}
	if len(table.out) != 0 {
		t.Errorf("%d left", len(table.out))
	}
}

func TestCapabilityTokensAreSecret(t *testing.T) {
	t.Parallel()
	table := newCapabilities("g1", must(protocol.NewSubjects(nodetest.Name))(t))
	seen := map[string]bool{}
	for range 1000 {
		c := table.issue(protocol.Pending{}, "one", time.Now())
		for _, token := range c.tokens {
			if len(token) != 32 || seen[token] {
				t.Fatalf("token %q", token)
			}
			seen[token] = true
		}
		if c.query != fmt.Sprintf("assent.v1.main.query.g1.%s", c.tokens[0]) || c.log != fmt.Sprintf("assent.v1.main.log.g1.%s", c.tokens[1]) {
			t.Fatalf("subjects %s, %s", c.query, c.log)
		}
	}
}
