package gate

import (
	"context"
	"strings"
	"testing"

	"github.com/assent-dev/assent/pkg/protocol"
)

// The tests of this file and of stories_test.go are accidents that other
// permission systems have had, one each; docs/stories.md lists them.

// named is an ask of an agent that wears a name, started by another session.
func (a *agent) named(name, tool, input string) protocol.Ask {
	ask := a.call(tool, input)
	ask.AgentName = name
	ask.Session = protocol.Session{ID: "s-" + name, Parent: "s-lead", Root: "s-lead"}
	return ask
}

func TestAGrantOfAnotherAgentLiftsNoDeny(t *testing.T) {
	t.Parallel()
	r, _ := grantsRig(t)
	g := r.gate("g1")
	lead, worker := r.agent("lead"), r.agent("worker")
	r.layer("agent/worker", `{"permission":{"bash":{"git push *":"deny"}}}`)
	want(t, r.give(lead, lead.bash("git fetch"), granting(protocol.ScopeAgent, "git *")), allow, protocol.AllowedByHuman)
	r.alone(g)
	push, fetch := `{"command":"git push origin main"}`, `{"command":"git fetch"}`
	want(t, worker.decide(worker.named("worker", "bash", push)), deny, protocol.DeniedByRule)
	want(t, worker.decide(worker.named("worker", "bash", fetch)), deny, protocol.NoApprover) // it is not its grant
	want(t, lead.decide(lead.named("worker", "bash", push)), deny, protocol.DeniedByRule)    // nor does it lift what the name denies
	want(t, lead.decide(lead.named("lead", "bash", push)), allow, protocol.AllowedByGrant)
}

func TestAGrantOnTheVeryPatternOfADenyLiftsNothing(t *testing.T) {
	t.Parallel()
	r, _ := grantsRig(t)
	g := r.gate("g1")
	a := r.agent("ci")
	const pattern = "systemctl restart *"
	want(t, r.give(a, a.bash("systemctl restart app"), granting(protocol.ScopeSession, pattern)), allow, protocol.AllowedByHuman)
	for _, row := range []struct {
		rules   string
		outcome protocol.Outcome
	}{
		{`"*":"ask"`, protocol.AllowedByGrant},
		{`"*":"ask","` + pattern + `":"deny"`, protocol.DeniedByRule},
		{`"` + pattern + `":"deny"`, protocol.DeniedByRule},
		{`"*":"ask"`, protocol.AllowedByGrant},
	} {
		g.inForce(r.put(`{"permission":{"*":"ask","bash":{` + row.rules + `}},"terminal":{"kind":"deny"}}`))
		if d := a.decide(a.bash("systemctl restart web")); d.Outcome != row.outcome {
			t.Errorf("under %s: %s, want %s", row.rules, d.Outcome, row.outcome)
		}
	}
}

// The approval is for the command, where and by whom it runs; what an agent says
// about it is not part of it. One use is one call.
func TestAnApprovalIsSpentOnceWhateverTheAgentSaysOfTheCall(t *testing.T) {
	t.Parallel()
	r, store := grantsRig(t)
	g := r.gate("g1")
	a := r.agent("ci")
	described := func(text string) protocol.Ask {
		return a.call("bash", `{"command":"make deploy","description":"`+text+`"}`)
	}
	once := granting(protocol.ScopeSession, "make deploy")
	once.Grant.Uses = 1
	want(t, r.give(a, described("ship it"), once), allow, protocol.AllowedByHuman)
	r.alone(g)
	want(t, a.decide(described("deploying now")), allow, protocol.AllowedByGrant)
	if all := must(store.All(context.Background()))(t); len(all) != 0 {
		t.Errorf("left: %+v", all)
	}
	want(t, a.decide(described("deploying again")), deny, protocol.NoApprover)
}

func TestAPersonsGrantIsSpentBeforeAJudgeIsAsked(t *testing.T) {
	t.Parallel()
	judged := strings.Replace(humanGrants, `"terminal"`, `"authorizerChain":["judge"],"terminal"`, 1)
	r := newRig(t, judged)
	r.person()
	g := r.gate("g1")
	var say book[string]
	judge := r.link("judge", func(c linkCall) { c.verdict(say.get(c.Ask.ID), "not this", "") })
	a := r.agent("ci")
	reply := func(verdict string) protocol.Ask {
		ask := a.call("mcp__forum__reply", `{"text":"ok"}`)
		say.put(ask.ID, verdict)
		return ask
	}
	want(t, a.decide(reply("deny")), deny, protocol.DeniedByLink)
	v := protocol.TerminalVerdict{Verdict: allow, Grant: &protocol.Grant{Scope: protocol.ScopeSession, Surface: "mcp", Patterns: []string{"forum/reply"}, Uses: 1}}
	want(t, r.give(a, reply("defer"), v), allow, protocol.AllowedByHuman)
	asked := judge.total.Load()
	d := a.decide(reply("deny"))
	want(t, d, allow, protocol.AllowedByGrant)
	if judge.total.Load() != asked || len(d.Trail) != 0 {
		t.Errorf("the judge was asked; trail %+v", d.Trail)
	}
	want(t, a.decide(reply("deny")), deny, protocol.DeniedByLink) // it is spent
	g.stop()
}

// A subagent's grant is its own, unless the person says the whole tree.
func TestASubagentsGrantIsItsOwnUnlessItIsTheTrees(t *testing.T) {
	t.Parallel()
	r, _ := grantsRig(t)
	g := r.gate("g1")
	a := r.agent("ci")
	at := func(command string, s protocol.Session) protocol.Ask {
		ask := a.bash(command)
		ask.Session = s
		return ask
	}
	child := protocol.Session{ID: "c1", Parent: "top", Root: "top"}
	own := r.give(a, at("make own a", child), granting(protocol.ScopeSession, "make own *"))
	tree := r.give(a, at("make tree a", child), granting(protocol.ScopeTree, "make tree *"))
	want(t, own, allow, protocol.AllowedByHuman)
	want(t, tree, allow, protocol.AllowedByHuman)
	if own.Grant.Session != "c1" || tree.Grant.Root != "top" {
		t.Fatalf("bound to %+v and %+v", own.Grant, tree.Grant)
	}
	r.alone(g)
	for name, row := range map[string]struct {
		session   protocol.Session
		own, tree protocol.Outcome
	}{
		"the subagent itself":                {child, protocol.AllowedByGrant, protocol.AllowedByGrant},
		"its sibling":                        {protocol.Session{ID: "c2", Parent: "top", Root: "top"}, protocol.NoApprover, protocol.AllowedByGrant},
		"its own subagent":                   {protocol.Session{ID: "c3", Parent: "c1", Root: "top"}, protocol.NoApprover, protocol.AllowedByGrant},
		"the session at the root":            {protocol.Session{ID: "top"}, protocol.NoApprover, protocol.AllowedByGrant},
		"another tree":                       {protocol.Session{ID: "x", Parent: "y", Root: "y"}, protocol.NoApprover, protocol.NoApprover},
		"one that names its parent alone":    {protocol.Session{ID: "c4", Parent: "top"}, protocol.NoApprover, protocol.NoApprover},
		"one that names no session of its":   {protocol.Session{Root: "top"}, protocol.NoApprover, protocol.AllowedByGrant},
		"one whose parent is the subagent's": {protocol.Session{ID: "c5", Parent: "c1"}, protocol.NoApprover, protocol.NoApprover},
	} {
		if d := a.decide(at("make own b", row.session)); d.Outcome != row.own {
			t.Errorf("%s, of its own grant: %s, want %s", name, d.Outcome, row.own)
		}
		if d := a.decide(at("make tree b", row.session)); d.Outcome != row.tree {
			t.Errorf("%s, of the tree's grant: %s, want %s", name, d.Outcome, row.tree)
		}
	}
	t.Run("and no session makes it another agent's", func(t *testing.T) {
		b := r.agent("ci-2")
		for _, command := range []string{"make own b", "make tree b"} {
			ask := b.bash(command)
			ask.Session = child
			want(t, b.decide(ask), deny, protocol.NoApprover)
		}
	})
}

func TestAWorkersOwnDenyHoldsHoweverItWasStarted(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"allow","path":"allow"},"terminal":{"kind":"deny"}}`)
	r.layer("agent/worker", `{"permission":{"path_read":{"secrets/*":"deny"}}}`)
	r.gate("g1")
	a := r.agent("ci")
	for path, outcome := range map[string]protocol.Outcome{"secrets/a.txt": protocol.DeniedByRule, "docs/a.txt": protocol.AllowedByRule} {
		started := a.named("worker", "read", `{"path":"`+path+`"}`)
		alone := started
		alone.ID, alone.Session = protocol.NewAskID(), protocol.Session{ID: "s-worker"}
		for _, ask := range []protocol.Ask{started, alone} {
			if d := a.decide(ask); d.Outcome != outcome {
				t.Errorf("%s in session %+v: %s, want %s", path, ask.Session, d.Outcome, outcome)
			}
		}
	}
}

// What binds a whole tree stands in the fleet layer: no name takes it off. What
// stands in one name's layer is that name's alone.
func TestAFleetsDenyBindsTheTreeAndANamesDenyItselfAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"allow","write":"deny"},"terminal":{"kind":"deny"}}`)
	r.layer("agent/coordinator", `{"permission":{"edit":"deny"}}`)
	r.layer("agent/coder", `{"permission":{"edit":"allow","write":"allow"}}`)
	r.gate("g1")
	a := r.agent("ci")
	for _, row := range []struct {
		name, tool string
		outcome    protocol.Outcome
	}{
		{"coordinator", "edit", protocol.DeniedByRule},
		{"coder", "edit", protocol.AllowedByRule}, // its coordinator's deny is not its own
		{"coder", "write", protocol.DeniedByRule}, // the fleet's is
		{"coordinator", "read", protocol.AllowedByRule},
	} {
		d := a.decide(a.named(row.name, row.tool, `{"path":"a.go"}`))
		if d.Outcome != row.outcome {
			t.Errorf("%s by %s: %s (%s), want %s", row.tool, row.name, d.Outcome, d.Reason, row.outcome)
		}
	}
}

func TestStartingAStrongerAgentIsAPermissionOfItsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask","write":"allow","task":{"*":{"action":"ask","guidance":"A helper may do what its caller may not."}}},"terminal":{"kind":"human"}}`)
	r.layer("agent/reader", `{"permission":{"write":"deny"}}`)
	r.person()
	r.gate("g1")
	a := r.agent("ci")
	want(t, a.decide(a.named("reader", "write", `{"path":"x.py"}`)), deny, protocol.DeniedByRule)
	ask := a.named("reader", "task", `{"agent":"writer","prompt":"write x.py"}`)
	a.pend(ask)
	if p := must(r.open.Get(context.Background(), ask.ID))(t); p.Prompt.Guidance != "A helper may do what its caller may not." || p.Ask.AgentName != "reader" {
		t.Errorf("the person sees %+v of %q", p.Prompt, p.Ask.AgentName)
	}
	r.answer(ask.ID, no("write it yourself or ask"))
	want(t, a.decide(ask), deny, protocol.DeniedByHuman)
}
