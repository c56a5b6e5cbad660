package gate

import (
	"context"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/pkg/protocol"
)

// TestAChildsModulesSpeakAtTheParent: what a module below asks for is put to a
// person here in its words, and the modules of this node are asked beside it.
func TestAChildsModulesSpeakAtTheParent(t *testing.T) {
	t.Parallel()
	r := newRig(t, human(modulesPolicy()))
	r.person()
	m := newModules(scriptedCheck{name: "own", level: module.LevelFleet, says: map[string]string{"git both": "request", "git gc": "block"}})
	r.checking("g1", m)
	c := r.child("child1")
	below := &protocol.Prompt{Name: "Tag", Description: "Tags are for good.", Guidance: "Look.", ApproveLabel: "Tag it", Check: "user:release/Tag", Highlight: []protocol.Span{{Start: 0, End: 3}}}
	asked := func(command string) protocol.Ask {
		ask := c.bash("ci", command)
		ask.HumanOnly, ask.Prompt = true, below
		return ask
	}
	t.Run("in its words", func(t *testing.T) {
		ask := asked("git tag")
		c.pend(ask)
		p := must(r.open.Get(context.Background(), ask.ID))(t).Prompt
		if p.Name != "Tag" || p.Description != "Tags are for good." || !strings.HasPrefix(p.Guidance, "Look.") || p.ApproveLabel != "Tag it" || len(p.Highlight) != 1 || p.Check != "" {
			t.Errorf("%+v", p)
		}
		r.answer(ask.ID, yes())
		want(t, c.decide(ask), allow, protocol.AllowedByHuman)
	})
	t.Run("in this node's where its modules ask too", func(t *testing.T) {
		ask := asked("git both")
		c.pend(ask)
		p := must(r.open.Get(context.Background(), ask.ID))(t).Prompt
		if p.Name != "own" || p.Check != "fleet:m/own" {
			t.Errorf("%+v", p)
		}
		r.answer(ask.ID, yes())
		want(t, c.decide(ask), allow, protocol.AllowedByHuman)
	})
	t.Run("and what this node's modules block is denied", func(t *testing.T) {
		want(t, c.decide(asked("git gc")), deny, protocol.DeniedByModule)
	})
	t.Run("what nobody below asks for is ruled here", func(t *testing.T) {
		want(t, c.decide(c.bash("ci", "git tag")), allow, protocol.AllowedByRule)
	})
	t.Run("an agent writes no prompt", func(t *testing.T) {
		a := r.agent("ci")
		ask := a.bash("git tag")
		ask.Prompt = below
		want(t, *a.once(ask).decision, deny, protocol.Invalid)
	})
}

// TestNobodyAtTheParentAnswersAModule: the reason says which check asked.
func TestNobodyAtTheParentAnswersAModule(t *testing.T) {
	t.Parallel()
	r := newRig(t, modulesPolicy())
	r.denying()
	r.checking("g1", newModules(checkOf("git both", "request")))
	c := r.child("child1")
	for command, reason := range map[string]string{
		"git tag":  `The permission check "Tag" of a node below asks for a person, and no approver is there to answer.`,
		"git both": `The permission check "c" asks for a person, and no approver is there to answer.`,
	} {
		ask := c.bash("ci", command)
		ask.HumanOnly, ask.Prompt = true, &protocol.Prompt{Name: "Tag"}
		d := c.decide(ask)
		want(t, d, deny, protocol.NoApprover)
		if d.Reason != reason {
			t.Errorf("%s: %q", command, d.Reason)
		}
	}
}

// TestAQueryIsUnderTheModules as an ask of the command would be.
func TestAQueryIsUnderTheModules(t *testing.T) {
	t.Parallel()
	r := newRig(t, strings.Replace(queryPolicy, `"read":"allow"`, `"read":"allow","write":"allow"`, 1))
	r.person()
	c := scriptedCheck{name: "c", says: map[string]string{"git status": "request", "git status -s": "block", "deploy x": "request", "git push --force": "request", "git status -b": "fail"}}
	g := r.checking("g1", newModules(c))
	calls := make(chan linkCall, 8)
	r.link("one", func(c linkCall) { c.accept(); calls <- c })
	a := r.agent("ci")
	ask := a.inTree("make")
	go a.follow(ask) //nolint:errcheck // ended below
	call := receive(t, calls)
	state := func(body string) (protocol.Action, string) {
		t.Helper()
		got, fault := queryTo(t, call.nc, call.Query, body)
		if fault != nil {
			t.Fatal(fault)
		}
		return got.State, got.Origin
	}
	const origin = "module:user:m@0123456789ab"
	for name, row := range map[string]struct {
		body   string
		state  protocol.Action
		origin string
	}{
		"what it asks of what a rule allows":   {`{"v":1,"surface":"bash","value":"git status"}`, protocol.ActionAsk, origin},
		"what it blocks of what a rule allows": {`{"v":1,"surface":"bash","value":"git status -s"}`, protocol.ActionDeny, origin},
		"where it fails":                       {`{"v":1,"surface":"bash","value":"git status -b"}`, protocol.ActionAsk, origin},
		"what it says nothing of":              {`{"v":1,"surface":"bash","value":"git status -v"}`, protocol.ActionAllow, "fleet"},
		"what a rule asks as well":             {`{"v":1,"surface":"bash","value":"deploy x"}`, protocol.ActionAsk, "fleet"},
		"what a rule denies":                   {`{"v":1,"surface":"bash","value":"git push --force"}`, protocol.ActionDeny, "fleet"},
		"another surface":                      {`{"v":1,"surface":"read","value":"git status"}`, protocol.ActionAllow, "fleet"},
		"a tool":                               {`{"v":1,"tool":"write"}`, protocol.ActionAllow, "fleet"},
	} {
		if s, o := state(row.body); s != row.state || o != row.origin {
			t.Errorf("%s: %s by %s, want %s by %s", name, s, o, row.state, row.origin)
		}
	}
	g.inForce(r.put(strings.Replace(queryPolicy, `"linkTimeout"`, failDeny+`,"linkTimeout"`, 1)))
	if s, _ := state(`{"v":1,"surface":"bash","value":"git status -b"}`); s != protocol.ActionDeny {
		t.Errorf("where it fails, to deny: %s", s)
	}
	call.verdict("deny", "done", "")
	r.settled(ask.ID)
}

// TestAQueryAsksTheModulesOfTheCallItIsAbout: its command and directory, in the
// session and project of the ask.
func TestAQueryAsksTheModulesOfTheCallItIsAbout(t *testing.T) {
	t.Parallel()
	ask := (&agent{r: &rig{t: t}, name: "ci"}).call("write", `{"file_path":"x"}`)
	for name, row := range map[string]struct {
		tool string
		q    protocol.Query
		want string
	}{
		"another tool's ask":      {"write", protocol.Query{Value: "git log"}, `bash {"command":"git log"} /repo`},
		"a shell in its spelling": {"Bash", protocol.Query{Value: "git \"x\""}, `Bash {"command":"git \"x\""} /repo`},
		"in a directory":          {"bash", protocol.Query{Value: "ls", Cwd: "/tmp"}, `bash {"command":"ls"} /tmp`},
	} {
		ask.Tool.Name = row.tool
		got := commandOf(ask, row.q, ask.Cwd)
		if s := got.Tool.Name + " " + string(got.Tool.Input) + " " + got.Cwd; s != row.want || got.Session != ask.Session || got.ID != ask.ID {
			t.Errorf("%s: %s", name, s)
		}
	}
}
