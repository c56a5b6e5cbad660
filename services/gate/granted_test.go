package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/grants"
	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// grantPolicy asks about everything, denies one thing and keeps one for people.
const grantPolicy = `{"permission":{"*":"ask","bash":{"*":"ask","git push --force*":{"action":"deny","reason":"Never."},"deploy *":{"action":"ask","humanOnly":true}}},"terminal":{"kind":"deny"}}`

// granting is an answer that grants patterns of the shell.
func granting(scope protocol.Scope, patterns ...string) protocol.TerminalVerdict {
	return protocol.TerminalVerdict{Verdict: allow, Grant: &protocol.Grant{Scope: scope, Surface: "bash", Patterns: patterns}}
}

// inTree is an ask in session s2 of root s1, in a project.
func (a *agent) inTree(command string) protocol.Ask {
	ask := a.bash(command)
	ask.Session = protocol.Session{ID: "s2", Parent: "s1", Root: "s1"}
	ask.Project = protocol.Project{ID: "github.com/acme/shop", Root: "/repo"}
	return ask
}

// grantsRig is a node on which a person grants; give answers one ask so, and
// from then on nobody is there to answer.
func grantsRig(t testing.TB) (*rig, *grants.Store) {
	r := newRig(t, strings.Replace(grantPolicy, `"kind":"deny"`, `"kind":"human"`, 1))
	r.person()
	r.denying()
	return r, must(grants.New(r.op))(t)
}

func (r *rig) give(a *agent, ask protocol.Ask, v protocol.TerminalVerdict) protocol.Decision {
	r.t.Helper()
	a.pend(ask)
	r.answer(ask.ID, v)
	d := a.decide(ask)
	r.settled(ask.ID)
	return d
}

// alone puts a policy in force under which what is left open is denied at once.
func (r *rig) alone(gates ...*served) {
	r.t.Helper()
	revision := r.put(grantPolicy)
	for _, g := range gates {
		g.inForce(revision)
	}
}

func TestAGrantIsHonouredByEveryGateAtOnce(t *testing.T) {
	t.Parallel()
	r, store := grantsRig(t)
	g1 := r.gate("g1")
	a := r.agent("ci")
	first := a.bash("git push origin main")
	d := r.give(a, first, granting(protocol.ScopeSession, "git push *"))
	want(t, d, allow, protocol.AllowedByHuman)
	if d.Grant == nil || d.Grant.Ask != first.ID || d.Grant.GrantedBy != "oncall-1" || d.Grant.Agent != "ci" || d.Grant.Node != nodetest.Name || d.Grant.Session != "s1" {
		t.Fatalf("the record holds grant %+v", d.Grant)
	}
	g2 := r.gate("g2")
	g1.stop()
	r.alone(g2)
	ask := a.bash("git push origin dev")
	got := a.decide(ask)
	want(t, got, allow, protocol.AllowedByGrant)
	if got.Gate != "g2" || got.Origin != "grant:"+first.ID || got.MatchedPattern != "git push *" || got.Value != "git push origin dev" ||
		got.DecidedBy.Kind != protocol.DeciderGrant || got.DecidedBy.Name != "oncall-1" || got.Approver != "oncall-1" || got.Policy.Grants != first.ID {
		t.Errorf("record %+v", got)
	}
	if n := len(r.decisions(ask.ID)); n != 1 {
		t.Errorf("%d records", n)
	}
	t.Run("until it is revoked", func(t *testing.T) {
		must(store.Revoke(context.Background(), first.ID))(t)
		want(t, a.decide(a.bash("git push origin dev")), deny, protocol.NoApprover)
	})
}

func TestAGrantReachesNobodyElse(t *testing.T) {
	t.Parallel()
	r, _ := grantsRig(t)
	g := r.gate("g1")
	ci, other := r.agent("ci"), r.agent("ci-2")
	for scope, pattern := range map[protocol.Scope]string{
		protocol.ScopeSession: "make session*", protocol.ScopeTree: "make tree*", protocol.ScopeProject: "make project*", protocol.ScopeAgent: "make agent*",
	} {
		want(t, r.give(ci, ci.inTree("make "+string(scope)+" a"), granting(scope, pattern)), allow, protocol.AllowedByHuman)
	}
	r.alone(g)
	place := func(a *agent, scope string, change func(*protocol.Ask)) protocol.Ask {
		ask := a.inTree("make " + scope + " b")
		change(&ask)
		return ask
	}
	sibling := func(k *protocol.Ask) { k.Session.ID = "s3" }
	tree := func(k *protocol.Ask) { k.Session = protocol.Session{ID: "s1"} }
	elsewhere := func(k *protocol.Ask) {
		k.Session = protocol.Session{ID: "x", Root: "y"}
		k.Project = protocol.Project{ID: "other"}
	}
	nowhere := func(k *protocol.Ask) { k.Session, k.Project = protocol.Session{}, protocol.Project{} }
	away := func(k *protocol.Ask) { k.Session = protocol.Session{ID: "x", Root: "y"} }
	for name, row := range map[string]struct {
		ask     protocol.Ask
		by      *agent
		granted bool
	}{
		"a session's grant in that session":           {place(ci, "session", func(*protocol.Ask) {}), ci, true},
		"a tree's grant in a session beside":          {place(ci, "tree", sibling), ci, true},
		"a tree's grant at its root":                  {place(ci, "tree", tree), ci, true},
		"a project's grant in another session":        {place(ci, "project", away), ci, true},
		"an agent's grant elsewhere":                  {place(ci, "agent", elsewhere), ci, true},
		"an agent's grant where nothing is said":      {place(ci, "agent", nowhere), ci, true},
		"a session's grant in another":                {place(ci, "session", sibling), ci, false},
		"a session's grant where none is said":        {place(ci, "session", nowhere), ci, false},
		"a tree's grant in another":                   {place(ci, "tree", away), ci, false},
		"a project's grant in another":                {place(ci, "project", elsewhere), ci, false},
		"a project's grant where none is said":        {place(ci, "project", nowhere), ci, false},
		"an agent's grant by another":                 {place(other, "agent", func(*protocol.Ask) {}), other, false},
		"a session's grant by another that claims it": {place(other, "session", func(*protocol.Ask) {}), other, false},
		"a project's grant by another in it":          {place(other, "project", func(*protocol.Ask) {}), other, false},
	} {
		d := row.by.decide(row.ask)
		if d.Allowed() != row.granted || row.granted && d.Outcome != protocol.AllowedByGrant {
			t.Errorf("%s: %s (%s)", name, d.Result, d.Outcome)
		}
	}
}

func TestAGrantLiftsNothingButAnAsk(t *testing.T) {
	t.Parallel()
	r, _ := grantsRig(t)
	g := r.gate("g1")
	a := r.agent("ci")
	want(t, r.give(a, a.bash("git push origin"), granting(protocol.ScopeAgent, "git *")), allow, protocol.AllowedByHuman)
	r.alone(g)
	for command, outcome := range map[string]protocol.Outcome{
		"git push":                     protocol.AllowedByGrant,
		"git push origin main":         protocol.AllowedByGrant,
		"git fetch":                    protocol.AllowedByGrant,
		"git push --force":             protocol.DeniedByRule, // a deny
		"git -c core.pager=x log":      protocol.NoApprover,   // a floor
		"git push && make":             protocol.NoApprover,   // another command beside
		"deploy x":                     protocol.NoApprover,   // only a person
		"make":                         protocol.NoApprover,
		"git push $(git push --force)": protocol.DeniedByRule,
	} {
		if d := a.decide(a.bash(command)); d.Outcome != outcome {
			t.Errorf("%s: %s, want %s", command, d.Outcome, outcome)
		}
	}
	t.Run("and no clamp", func(t *testing.T) {
		g.inForce(r.put(broken))
		want(t, a.decide(a.bash("git push")), deny, protocol.NoApprover)
	})
}

func TestAGrantThatIsNoGrantIsNotGiven(t *testing.T) {
	t.Parallel()
	r, store := grantsRig(t)
	r.gate("g1")
	a := r.agent("ci")
	for name, v := range map[string]protocol.TerminalVerdict{
		"wider than what was open": granting(protocol.ScopeAgent, "make *", "rm *"),
		"on another surface":       {Verdict: allow, Grant: &protocol.Grant{Scope: protocol.ScopeAgent, Surface: "read", Patterns: []string{"*"}}},
		"for every command":        granting(protocol.ScopeAgent, "*"),
		"ended already":            {Verdict: allow, Grant: &protocol.Grant{Scope: protocol.ScopeAgent, Surface: "bash", Patterns: []string{"make *"}, Expires: "2020-01-01T00:00:00Z"}},
		"for no project":           granting(protocol.ScopeProject, "make *"),
		"on a changed call": {Verdict: allow, EditedInput: []byte(`{"command":"make"}`),
			Grant: &protocol.Grant{Scope: protocol.ScopeAgent, Surface: "bash", Patterns: []string{"make *"}}},
	} {
		d := r.give(a, a.bash("make x"), v)
		want(t, d, allow, protocol.AllowedByHuman)
		if d.Grant != nil {
			t.Errorf("%s: it is on record as %+v", name, d.Grant)
		}
		if r.count(d.Ask, protocol.EventGateError) == 0 {
			t.Errorf("%s: refused in silence", name)
		}
	}
	if d := r.give(a, a.bash("deploy x"), granting(protocol.ScopeAgent, "deploy *")); d.Grant != nil {
		t.Errorf("for what only a person answers: %+v", d.Grant)
	}
	if all := must(store.All(context.Background()))(t); len(all) > 0 {
		t.Errorf("stored: %+v", all)
	}
}

func TestAnEndedGrantClearsNothing(t *testing.T) {
	t.Parallel()
	r, _ := grantsRig(t)
	g := r.gate("g1")
	a := r.agent("ci")
	v := granting(protocol.ScopeAgent, "make *")
	end := time.Now().Add(3 * time.Second)
	v.Grant.Expires = end.UTC().Format(time.RFC3339Nano)
	want(t, r.give(a, a.bash("make x"), v), allow, protocol.AllowedByHuman)
	r.alone(g)
	if d := a.decide(a.bash("make y")); time.Now().Before(end) && d.Outcome != protocol.AllowedByGrant {
		t.Errorf("before its end: %s", d.Outcome)
	}
	until(t, "ended", func() error {
		if d := a.decide(a.bash("make z")); d.Outcome != protocol.NoApprover { // not rate_limited either
			return fmt.Errorf("%s", d.Outcome)
		}
		return nil
	})
	if time.Now().Before(end) {
		t.Error("it ended early")
	}
}

func TestUsesAreCountedOnceEach(t *testing.T) {
	t.Parallel()
	r, store := grantsRig(t)
	gates := []*served{r.gate("g1"), r.gate("g2")}
	a := r.agent("ci")
	const uses, calls = 3, 12
	v := granting(protocol.ScopeAgent, "make *")
	v.Grant.Uses = uses
	d := r.give(a, a.bash("make x"), v)
	want(t, d, allow, protocol.AllowedByHuman)
	r.alone(gates...)
	t.Run("a call that comes again uses nothing up", func(t *testing.T) {
		ask := a.bash("make again")
		for range 3 {
			want(t, a.decide(ask), allow, protocol.AllowedByGrant)
		}
		if all := must(store.All(context.Background()))(t); len(all) != 1 || all[0].Uses != uses-1 {
			t.Errorf("left: %+v", all)
		}
	})
	t.Run("calls that race share what is left", func(t *testing.T) {
		outcomes := make([]protocol.Decision, calls)
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() { outcomes[i], _ = a.follow(a.bash(fmt.Sprintf("make %d", i))) })
		}
		wg.Wait()
		granted := 0
		for _, d := range outcomes {
			if d.Outcome == protocol.AllowedByGrant {
				granted++
			} else if d.Allowed() {
				t.Errorf("%s", d.Outcome)
			}
		}
		if granted == 0 || granted > uses-1 {
			t.Errorf("%d calls were granted, %d were left", granted, uses-1)
		}
	})
	until(t, "used up", func() error {
		if d := a.decide(a.bash("make more")); d.Allowed() {
			return fmt.Errorf("%s", d.Outcome)
		}
		return nil
	})
	if all := must(store.All(context.Background()))(t); len(all) > 0 {
		t.Errorf("left: %+v", all)
	}
	t.Run("and it is not given again", func(t *testing.T) {
		if err := store.Put(context.Background(), *d.Grant); err != nil {
			t.Fatal(err)
		}
		want(t, a.decide(a.bash("make more")), deny, protocol.NoApprover)
	})
}

// A gate that dies between the record of an answer and the grant loses no grant,
// and makes none that the record does not hold.
func TestAGrantIsCarriedThroughWithItsAnswer(t *testing.T) {
	t.Parallel()
	r, store := grantsRig(t)
	g1 := r.gate("g1")
	a := r.agent("ci")
	answered, recorded := a.bash("make answered x"), a.bash("make recorded x")
	for _, ask := range []protocol.Ask{answered, recorded} {
		a.pend(ask)
	}
	g1.kill()
	r.answer(answered.ID, granting(protocol.ScopeAgent, "make answered *"))
	r.answer(recorded.ID, granting(protocol.ScopeAgent, "make recorded *"))
	// What the dead gate would have done next, and no more: the decision.
	dead := r.newGate("g1", r.Connect(t, protocol.RoleGate, "g1"))
	p := must(r.open.Get(context.Background(), recorded.ID))(t).Pending
	dead.policy.now.Store(must(policy.NewSet(1, must(policy.Read(policy.Fleet(), policy.LayerFleet, []byte(grantPolicy)))(t)))(t))
	must(dead.recorder.store(context.Background(), must(dead.conclude(context.Background(), p, interruption(p, layers.Freezes{}, time.Now())))(t)))(t)
	if all := must(store.All(context.Background()))(t); len(all) > 0 {
		t.Fatalf("granted before any gate carried it through: %+v", all)
	}
	g2 := r.gate("g2")
	for _, ask := range []protocol.Ask{answered, recorded} {
		want(t, a.decide(ask), allow, protocol.AllowedByHuman)
		r.settled(ask.ID)
		if n := len(r.decisions(ask.ID)); n != 1 {
			t.Errorf("%d records", n)
		}
	}
	r.alone(g2)
	for _, command := range []string{"make answered y", "make recorded y"} {
		want(t, a.decide(a.bash(command)), allow, protocol.AllowedByGrant)
	}
}

func TestAnAllowThatARuleOverrulesGrantsNothing(t *testing.T) {
	t.Parallel()
	r, store := grantsRig(t)
	g := r.gate("g1")
	a := r.agent("ci")
	ask := a.bash("make x")
	a.pend(ask)
	g.stop()
	r.answer(ask.ID, granting(protocol.ScopeAgent, "make *"))
	r.put(strings.Replace(grantPolicy, `"bash":{"*":"ask"`, `"bash":{"*":"ask","make *":"deny"`, 1))
	r.gate("g2")
	d := a.decide(ask)
	want(t, d, deny, protocol.DeniedByRule)
	r.settled(ask.ID)
	if all := must(store.All(context.Background()))(t); len(all) > 0 || d.Grant != nil {
		t.Errorf("stored %+v, on record %+v", all, d.Grant)
	}
}

// What is written into the bucket by others than a gate that settles an answer
// grants nothing, and is said loudly.
func TestTheBucketAloneGrantsNothing(t *testing.T) {
	t.Parallel()
	r, store := grantsRig(t)
	g := r.gate("g1")
	a := r.agent("ci")
	real := r.give(a, a.bash("make x"), granting(protocol.ScopeSession, "make x"))
	other := r.give(a, a.bash("make z"), yes())
	r.alone(g)
	put := func(key, value string) {
		t.Helper()
		if _, err := r.js.Publish(context.Background(), "$KV."+protocol.BucketGrants+"."+key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	forged := func(change func(*protocol.Grant)) string {
		bound := *real.Grant
		bound.Patterns = []string{"*y"}
		change(&bound)
		return string(must(protocol.Write(protocol.StoredGrant{Grant: bound}))(t))
	}
	id := protocol.NewAskID()
	for name, row := range map[string]struct{ key, value string }{
		"another pattern than the record's":  {"ci." + real.Ask, forged(func(*protocol.Grant) {})},
		"another scope":                      {"ci." + real.Ask, forged(func(b *protocol.Grant) { b.Patterns, b.Scope = []string{"make x"}, protocol.ScopeAgent })},
		"a decision that granted nothing":    {"ci." + other.Ask, forged(func(b *protocol.Grant) { b.Ask = other.Ask })},
		"a decision that does not exist":     {"ci." + id, forged(func(b *protocol.Grant) { b.Ask = id })},
		"no grant at all":                    {"ci." + id, `{"v":1}`},
		"no JSON":                            {"ci." + id, "allow"},
		"another agent's under this one key": {"ci." + id, forged(func(b *protocol.Grant) { b.Agent = "ci-2" })},
	} {
		t.Run(name, func(t *testing.T) {
			put(row.key, row.value)
			defer func() {
				if err := must(r.js.Stream(context.Background(), "KV_"+protocol.BucketGrants))(t).Purge(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			ask := a.bash("make y")
			if name == "another scope" {
				ask = a.bash("make x")
				ask.Session.ID = "another"
			}
			want(t, a.decide(ask), deny, protocol.NoApprover)
			until(t, "said", func() error {
				if r.count(ask.ID, protocol.EventGateError) == 0 {
					return fmt.Errorf("events %q", r.events(ask.ID))
				}
				return nil
			})
		})
	}
	if all := must(store.All(context.Background()))(t); len(all) > 0 {
		t.Errorf("left: %+v", all)
	}
}

func TestAPartlyGrantedCallIsAskedAboutTheRest(t *testing.T) {
	t.Parallel()
	r, store := grantsRig(t)
	r.gate("g1")
	a := r.agent("ci")
	first := r.give(a, a.bash("cat x"), granting(protocol.ScopeAgent, "cat *"))
	want(t, first, allow, protocol.AllowedByHuman)
	ask := a.bash("cat /srv/data/a/b")
	a.pend(ask)
	p := must(r.open.Get(context.Background(), ask.ID))(t).Pending
	if len(p.Asks) == 0 || slices.ContainsFunc(p.Asks, func(e protocol.Entry) bool { return e.Surface == "bash" }) || p.Policy.Grants != first.Ask {
		t.Errorf("asks %+v, grants %q", p.Asks, p.Policy.Grants)
	}
	if !slices.Equal(p.Suggest, []string{"/srv/data/a/*"}) {
		t.Errorf("suggested %q", p.Suggest)
	}
	r.answer(ask.ID, yes())
	d := a.decide(ask)
	want(t, d, allow, protocol.AllowedByHuman)
	if d.Policy.Grants != first.Ask {
		t.Errorf("the record does not say what was granted: %+v", d.Policy)
	}
	if all := must(store.All(context.Background()))(t); len(all) != 1 {
		t.Errorf("left: %+v", all)
	}
}

// Grants that cannot be read clear nothing: the call is asked about, not denied
// and not allowed.
func TestUnreadableGrantsAskAPerson(t *testing.T) {
	t.Parallel()
	r, _ := grantsRig(t)
	r.gate("g1")
	a := r.agent("ci")
	want(t, r.give(a, a.bash("make x"), granting(protocol.ScopeAgent, "make *")), allow, protocol.AllowedByHuman)
	if err := r.js.DeleteStream(context.Background(), "KV_"+protocol.BucketGrants); err != nil {
		t.Fatal(err)
	}
	ask := a.bash("make y")
	a.pend(ask)
	r.answer(ask.ID, no("not now"))
	want(t, a.decide(ask), deny, protocol.DeniedByHuman)
	if r.count(ask.ID, protocol.EventGateError) == 0 {
		t.Error("in silence")
	}
}
