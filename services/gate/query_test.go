package gate

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/assent-dev/assent/internal/grants"
	"github.com/assent-dev/assent/pkg/protocol"
)

// queryPolicy asks what no rule speaks of, and a person when asked.
const queryPolicy = `{"permission":{"*":"ask","read":"allow","path":{"*":"allow","/srv/vault/*":"ask"},
  "external_directory":"allow","bash":{"*":"ask","git status":"allow","git status *":"allow","git push --force*":{"action":"deny","reason":"Never."},"deploy *":{"action":"ask","humanOnly":true}}},
  "authorizerChain":["one"],"linkTimeout":"30s","terminal":{"kind":"human"}}`

// TestAQueryStandsAsAnAskWould: what a query is answered is what an ask of the
// same value is ruled, by the same grants, reading of the shell, project's policy
// and paths that the adapter fixed.
func TestAQueryStandsAsAnAskWould(t *testing.T) {
	t.Parallel()
	r := newRig(t, queryPolicy)
	r.person()
	r.gate("g1")
	calls := make(chan linkCall, 8)
	var defers sync.Map
	r.link("one", func(c linkCall) {
		c.accept()
		if _, ok := defers.Load(c.Ask.ID); ok {
			c.verdict("defer", "", "")
			return
		}
		calls <- c
	})
	a, other := r.agent("ci"), r.agent("other")
	give := func(a *agent, v protocol.TerminalVerdict) protocol.Decision {
		ask := a.inTree("git push origin main")
		defers.Store(ask.ID, true)
		return r.give(a, ask, v)
	}
	standing := give(a, granting(protocol.ScopeSession, "git push origin *"))
	limited := granting(protocol.ScopeAgent, "git push *")
	limited.Grant.Uses = 1
	limitedGrant := give(other, limited)

	holdOf := func(a *agent) (linkCall, protocol.Ask) {
		ask := a.inTree("make")
		ask.Paths = []protocol.Path{{Raw: "link", Resolved: "/srv/vault/key"}}
		go a.follow(ask) //nolint:errcheck // ended below
		return receive(t, calls), ask
	}
	c, ask := holdOf(a)
	c2, _ := holdOf(other)
	by := func(d protocol.Decision) string { return "grant:" + d.Ask }
	for _, row := range []struct {
		name   string
		c      linkCall
		body   string
		state  protocol.Action
		origin string
	}{
		{"what a grant covers is allowed by it", c, `{"v":1,"surface":"bash","value":"git push origin main"}`, protocol.ActionAllow, by(standing)},
		{"so is each of several commands", c, `{"v":1,"surface":"bash","value":"git push origin main && git status"}`, protocol.ActionAllow, by(standing)},
		{"a grant with a use left allows too", c2, `{"v":1,"surface":"bash","value":"git push origin main"}`, protocol.ActionAllow, by(limitedGrant)},
		{"a question does not use it up", c2, `{"v":1,"surface":"bash","value":"git push upstream"}`, protocol.ActionAllow, by(limitedGrant)},
		{"what no grant covers is asked", c, `{"v":1,"surface":"bash","value":"git push upstream"}`, protocol.ActionAsk, "fleet"},
		{"one command of several that none covers asks", c, `{"v":1,"surface":"bash","value":"git push origin main && make"}`, protocol.ActionAsk, "fleet"},
		{"a deny stands above every grant", c, `{"v":1,"surface":"bash","value":"git push --force origin"}`, protocol.ActionDeny, "fleet"},
		{"a deny in a substitution is found", c, `{"v":1,"surface":"bash","value":"echo $(git push --force)"}`, protocol.ActionDeny, "fleet"},
		{"what only a person answers stays asked", c, `{"v":1,"surface":"bash","value":"deploy prod"}`, protocol.ActionAsk, "fleet"},
		{"a path in a command counts as it would in a call", c, `{"v":1,"surface":"bash","value":"git status /srv/vault/x"}`, protocol.ActionAsk, "fleet"},
		{"a path counts as what the adapter resolved it to", c, `{"v":1,"surface":"path","value":"link"}`, protocol.ActionAsk, "fleet"},
		{"a path that resolves to nothing else is itself", c, `{"v":1,"surface":"path","value":"notes"}`, protocol.ActionAllow, "fleet"},
		{"the state of a tool is its rules'", c, `{"v":1,"tool":"bash"}`, protocol.ActionAsk, "fleet"},
	} {
		got, fault := queryTo(t, row.c.nc, row.c.Query, row.body)
		if fault != nil || got.State != row.state || !strings.HasPrefix(got.Origin, row.origin) {
			t.Errorf("%s: %+v %v, want %s by %s", row.name, got, fault, row.state, row.origin)
		}
	}
	store := must(grants.New(r.op))(t)
	if held := must(store.Of(t.Context(), "other"))(t); len(held) != 1 || held[0].Uses != 1 {
		t.Errorf("the questions used a grant up: %+v", held)
	}
	t.Run("a grant that is revoked clears nothing from then on", func(t *testing.T) {
		must(store.Revoke(t.Context(), standing.Ask))(t)
		got, fault := queryTo(t, c.nc, c.Query, `{"v":1,"surface":"bash","value":"git push origin main"}`)
		if fault != nil || got.State != protocol.ActionAsk {
			t.Errorf("%+v %v", got, fault)
		}
	})
	t.Run("one that nobody gave clears nothing", func(t *testing.T) {
		forged := *standing.Grant
		forged.Ask = protocol.NewAskID()
		if err := store.Put(t.Context(), forged); err != nil {
			t.Fatal(err)
		}
		got, fault := queryTo(t, c.nc, c.Query, `{"v":1,"surface":"bash","value":"git push origin main"}`)
		if fault != nil || got.State != protocol.ActionAsk {
			t.Errorf("%+v %v", got, fault)
		}
	})
	c.verdict("deny", "done", "")
	c2.verdict("deny", "done", "")
	r.settled(ask.ID)
}

// TestALinkAllowsWhatGrantsLeaveOpen: what a person has granted is not open, so
// the envelope need not reach it; what was not granted is.
func TestALinkAllowsWhatGrantsLeaveOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask","bash":"ask"},"terminal":{"kind":"human"}}`)
	r.person()
	r.denying()
	r.link("one", always("allow", "looks well"))
	g := r.gate("g1")
	a := r.agent("ci")
	given := protocol.TerminalVerdict{Verdict: allow, Grant: &protocol.Grant{Scope: protocol.ScopeAgent, Surface: "external_directory", Patterns: []string{"/srv/data/*"}}}
	r.give(a, a.bash("cat /srv/data/x"), given)
	g.inForce(r.put(`{"permission":{"*":"ask","bash":"ask"},"authorizerChain":["one"],
	  "modelDelegation":{"allowedSurfaces":["bash"]},"terminal":{"kind":"deny"}}`))
	d := a.decide(a.bash("cat /srv/data/y"))
	want(t, d, allow, protocol.AllowedByLink)
	if len(d.Asks) != 1 || d.Asks[0].Surface != "bash" || d.Policy.Grants == "" {
		t.Errorf("asked %+v, by grants %q", d.Asks, d.Policy.Grants)
	}
	want(t, a.decide(a.bash("cat /srv/other/y")), deny, protocol.NoApprover)
}

// TestAQueryTooFastIsToldToWait, and the record of another worker's ask is not
// held up by it.
func TestAQueryTooFastIsToldToWait(t *testing.T) {
	t.Parallel()
	r := newRig(t, capabilityPolicy)
	r.denying()
	g := r.gate("g1")
	calls := r.holdOpen()
	a := r.agent("ci")
	go a.follow(a.bash("make"))      //nolint:errcheck // ended below
	go a.follow(a.bash("make test")) //nolint:errcheck // ended below
	c, c2 := receive(t, calls), receive(t, calls)
	refused := 0
	for began := time.Now(); refused == 0 && time.Since(began) < soon; {
		if _, fault := queryTo(t, c.nc, c.Query, `{"v":1,"tool":"write"}`); fault != nil {
			refused++
			if fault.Code != protocol.CodeUnavailable && fault.Code != protocol.CodeForbidden {
				t.Errorf("%v", fault)
			}
		}
	}
	if refused == 0 {
		t.Error("it was answered without end")
	}
	if _, fault := queryTo(t, c2.nc, c2.Query, `{"v":1,"tool":"write"}`); fault != nil {
		t.Errorf("another ask's capability: %v", fault)
	}
	if failSafes(t, g.Gate, "capability") == 0 {
		t.Error("it was not counted")
	}
	c.verdict("deny", "done", "")
	c2.verdict("deny", "done", "")
}

// failSafes is how often g did something because of what was missing, late or
// broken.
func failSafes(t testing.TB, g *Gate, what string) (n float64) {
	t.Helper()
	all := prometheus.NewRegistry()
	all.MustRegister(g.failSafe)
	for _, family := range must(all.Gather())(t) {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "what" && l.GetValue() == what {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}
