package gate

import (
	"context"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/grants"
	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/pkg/protocol"
)

// muting is an answer that turns a check off for the session.
func muting(check string) protocol.TerminalVerdict {
	return protocol.TerminalVerdict{Verdict: allow, Grant: &protocol.Grant{Scope: protocol.ScopeSession, Surface: "module", Patterns: []string{check}}}
}

// TestDontAskAgain: an approver turns one check's requests off for one session, on
// the record; what it blocks stays blocked, and all others ask on.
func TestDontAskAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, human(modulesPolicy()))
	r.person()
	r.denying()
	tag := scriptedCheck{name: "tag", says: map[string]string{"git tag": "request", "git push": "request", "git both": "request", "git gc": "block", "git x": "fail", "make": "request"}}
	other := scriptedCheck{name: "other", level: module.LevelFleet, says: map[string]string{"git log": "request", "git both": "request", "git tag": ""}}
	m := newModules(tag, other)
	g := r.checking("g1", m)
	a, neighbour := r.agent("ci"), r.agent("ci-2")
	first := r.give(a, a.bash("git tag"), muting("user:m/tag"))
	want(t, first, allow, protocol.AllowedByHuman)
	if first.Grant == nil || first.Grant.Surface != "module" || first.Grant.Session != "s1" || first.Grant.GrantedBy != "oncall-1" {
		t.Fatalf("the record holds %+v", first.Grant)
	}
	revision := r.put(modulesPolicy()) // from here on nobody is there
	g.inForce(revision)
	elsewhere := func(ask protocol.Ask) protocol.Ask { ask.Session.ID = "s2"; return ask }
	for name, row := range map[string]struct {
		ask     protocol.Ask
		by      *agent
		outcome protocol.Outcome
		muted   bool
	}{
		"the same call":                     {a.bash("git tag"), a, protocol.AllowedByRule, true},
		"another call that it asks about":   {a.bash("git push"), a, protocol.AllowedByRule, true},
		"what it says nothing of":           {a.bash("git fetch"), a, protocol.AllowedByRule, false},
		"what a rule asks as well":          {a.bash("make"), a, protocol.NoApprover, true},
		"what it blocks":                    {a.bash("git gc"), a, protocol.DeniedByModule, false},
		"where it fails":                    {a.bash("git x"), a, protocol.NoApprover, false},
		"what another check asks":           {a.bash("git log"), a, protocol.NoApprover, false},
		"what another check asks beside it": {a.bash("git both"), a, protocol.NoApprover, true},
		"the same call in another session":  {elsewhere(a.bash("git tag")), a, protocol.NoApprover, false},
		"the same call of another agent":    {neighbour.bash("git tag"), neighbour, protocol.NoApprover, false},
		"what rules deny":                   {a.bash("rm x"), a, protocol.DeniedByRule, false},
	} {
		d := row.by.decide(row.ask)
		if d.Outcome != row.outcome {
			t.Errorf("%s: %s (%s), want %s", name, d.Outcome, d.Reason, row.outcome)
		}
		if named := strings.Contains(d.Policy.Grants, first.Ask); named != row.muted {
			t.Errorf("%s: the record says grants %q", name, d.Policy.Grants)
		}
	}
	store := must(grants.New(r.op))(t)
	t.Run("one that nobody gave turns nothing off", func(t *testing.T) {
		forged := *first.Grant
		forged.Ask, forged.Session = protocol.NewAskID(), "s2"
		if err := store.Put(context.Background(), forged); err != nil {
			t.Fatal(err)
		}
		want(t, a.decide(elsewhere(a.bash("git tag"))), deny, protocol.NoApprover)
	})
	t.Run("until it is revoked", func(t *testing.T) {
		must(store.Revoke(context.Background(), first.Ask))(t)
		want(t, a.decide(a.bash("git tag")), deny, protocol.NoApprover)
	})
}

// TestDontAskAgainSettlesWhatWaits of the session for the same check.
func TestDontAskAgainSettlesWhatWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t, human(modulesPolicy()))
	r.person()
	r.checking("g1", newModules(scriptedCheck{name: "tag", says: map[string]string{"git tag": "request", "git push": "request"}}))
	a := r.agent("ci")
	waits, away := a.bash("git push"), a.bash("git push")
	away.Session.ID = "s2"
	a.pend(waits)
	a.pend(away)
	first := r.give(a, a.bash("git tag"), muting("user:m/tag"))
	d := a.decide(waits)
	want(t, d, allow, protocol.AllowedByRule)
	if d.Policy.Grants != first.Ask {
		t.Errorf("the record says grants %q", d.Policy.Grants)
	}
	if h := a.once(away); h.progress == nil {
		t.Errorf("another session's ask has ended: %+v", h.decision)
	}
}

// TestAMuteThatIsNoneIsNotGiven, and the answer that brought it stands.
func TestAMuteThatIsNoneIsNotGiven(t *testing.T) {
	t.Parallel()
	r := newRig(t, human(modulesPolicy()))
	r.person()
	r.checking("g1", newModules(scriptedCheck{name: "tag", says: map[string]string{"git tag": "request", "git x": "fail"}}))
	a := r.agent("ci")
	wide := muting("user:m/tag")
	wide.Grant.Scope = protocol.ScopeAgent
	for name, row := range map[string]struct {
		command string
		v       protocol.TerminalVerdict
		given   bool
	}{
		"the check that asks":   {"git tag", muting("user:m/tag"), true},
		"another check":         {"git tag", muting("user:m/other"), false},
		"every check":           {"git tag", muting("user:m/*"), false},
		"for the agent":         {"git tag", wide, false},
		"a check that failed":   {"git x", muting("user:m/tag"), false},
		"where no module asks":  {"make it", muting("user:m/tag"), false},
		"a rule's of the shell": {"make", granting(protocol.ScopeAgent, "make"), true},
	} {
		ask := a.bash(row.command)
		ask.Session.ID = protocol.NewAskID() // each its own session
		d := r.give(a, ask, row.v)
		want(t, d, allow, protocol.AllowedByHuman)
		if (d.Grant != nil) != row.given {
			t.Errorf("%s: on record is %+v", name, d.Grant)
		}
		if refused := r.count(d.Ask, protocol.EventGateError) > 0; refused == row.given && row.command != "git x" {
			t.Errorf("%s: refused aloud: %v", name, refused)
		}
	}
}

// TestAGrantOfRulesAnswersNoModule, nor does yolo or a link beside it.
func TestAGrantOfRulesAnswersNoModule(t *testing.T) {
	t.Parallel()
	r := newRig(t, human(modulesPolicy(linkAllows)))
	r.person()
	r.denying()
	r.link("l0", always("defer", ""))
	m := newModules()
	g := r.checking("g1", m)
	a := r.agent("ci")
	want(t, r.give(a, a.bash("make all"), granting(protocol.ScopeAgent, "make *")), allow, protocol.AllowedByHuman)
	r.link("l0", always("allow", "fine"))
	revision := r.put(modulesPolicy(linkAllows))
	g.inForce(revision)
	want(t, a.decide(a.bash("make x")), allow, protocol.AllowedByGrant)
	m.set(moduleState{digest: "sha256:two", checks: []scriptedCheck{checkOf("make x", "request"), checkOf("make y", "block"), checkOf("make z", "fail")}})
	for command, outcome := range map[string]protocol.Outcome{
		"make x": protocol.NoApprover, "make y": protocol.DeniedByModule, "make z": protocol.NoApprover, "make w": protocol.AllowedByGrant,
	} {
		d := a.decide(a.bash(command))
		if d.Outcome != outcome {
			t.Errorf("%s: %s (%s), want %s", command, d.Outcome, d.Reason, outcome)
		}
	}
}
