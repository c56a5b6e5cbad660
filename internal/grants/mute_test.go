package grants

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/pkg/protocol"
)

const tagCheck = "user:release/tag *"

// mute is a grant that turns tagCheck off, changed.
func mute(change func(*protocol.Grant)) *protocol.Grant {
	g := protocol.Grant{Scope: protocol.ScopeSession, Surface: protocol.SurfaceModule, Patterns: []string{tagCheck}}
	change(&g)
	return &g
}

// requested is an ask that a rule and two checks leave open; the prompt is the
// first one's.
func requested() protocol.Pending {
	return protocol.Pending{
		Node: "main", Ask: ask(), Prompt: protocol.Prompt{Check: tagCheck},
		Asks: []protocol.Entry{
			{Surface: "bash", Value: "git push origin main", MatchedPattern: "*", Origin: "fleet"},
			{Surface: "module", Value: tagCheck, MatchedPattern: "tag *", Origin: "module:user:release@0123", HumanOnly: true},
			{Surface: "module", Value: "fleet:other/x", MatchedPattern: "x", Origin: "module:fleet:other@0123", HumanOnly: true},
		},
	}
}

// TestOneCheckIsTurnedOffForTheSession: the one that asked, by its id, and by
// nothing that reaches further.
func TestOneCheckIsTurnedOffForTheSession(t *testing.T) {
	t.Parallel()
	same := func(*protocol.Grant) {}
	for name, row := range map[string]struct {
		change  func(*protocol.Grant)
		pending func(*protocol.Pending)
		verdict func(*protocol.TerminalVerdict)
		ok      bool
	}{
		"the check that asked":           {change: same, ok: true},
		"until an hour from now":         {change: func(g *protocol.Grant) { g.Expires = "2026-03-02T13:00:00Z" }, ok: true},
		"with nothing else open":         {change: same, pending: func(p *protocol.Pending) { p.Asks = p.Asks[1:2] }, ok: true},
		"in a session without project":   {change: same, pending: func(p *protocol.Pending) { p.Ask.Project = protocol.Project{} }, ok: true},
		"beside what a floor holds":      {change: same, pending: func(p *protocol.Pending) { p.Asks[0].Floor = true }, ok: true},
		"a check beside it":              {change: func(g *protocol.Grant) { g.Patterns = []string{"fleet:other/x"} }},
		"both":                           {change: func(g *protocol.Grant) { g.Patterns = append(g.Patterns, "fleet:other/x") }},
		"every check of the module":      {change: func(g *protocol.Grant) { g.Patterns = []string{"user:release/*"} }},
		"every check":                    {change: func(g *protocol.Grant) { g.Patterns = []string{"*"} }},
		"a check that is alike":          {change: func(g *protocol.Grant) { g.Patterns = []string{"user:release/tag x"} }},
		"the agent's sessions":           {change: func(g *protocol.Grant) { g.Scope = protocol.ScopeAgent }},
		"the tree":                       {change: func(g *protocol.Grant) { g.Scope = protocol.ScopeTree }},
		"the project":                    {change: func(g *protocol.Grant) { g.Scope = protocol.ScopeProject }},
		"some uses":                      {change: func(g *protocol.Grant) { g.Uses = 3 }},
		"ended already":                  {change: func(g *protocol.Grant) { g.Expires = "2026-03-02T11:00:00Z" }},
		"an ask without a session":       {change: same, pending: func(p *protocol.Pending) { p.Ask.Session = protocol.Session{} }},
		"what a node below has asked":    {change: same, pending: func(p *protocol.Pending) { p.Prompt.Check = "" }},
		"what has failed":                {change: same, pending: func(p *protocol.Pending) { p.Prompt.Check = "" }},
		"a prompt that no entry is of":   {change: same, pending: func(p *protocol.Pending) { p.Asks = p.Asks[:1] }},
		"a rule on a tool called module": {change: same, pending: func(p *protocol.Pending) { p.Asks[1].Origin = "fleet" }},
		"with a deny":                    {change: same, verdict: func(v *protocol.TerminalVerdict) { v.Verdict = protocol.FinalDeny }},
		"with a changed call":            {change: same, verdict: func(v *protocol.TerminalVerdict) { v.EditedInput = jsontext.Value(`{"command":"x"}`) }},
		"a check's id on the shell":      {change: func(g *protocol.Grant) { g.Surface = "bash" }},
		"a check without a level":        {change: func(g *protocol.Grant) { g.Patterns = []string{"release/tag *"} }},
	} {
		p := requested()
		if row.pending != nil {
			row.pending(&p)
		}
		v := protocol.TerminalVerdict{Verdict: protocol.FinalAllow, Grant: mute(row.change)}
		if row.verdict != nil {
			row.verdict(&v)
		}
		if err := Check(p, v, noon); (err == nil) != row.ok || err != nil && !errors.Is(err, ErrWider) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAMuteIsOfOneCheckInOneProject, and never a grant on what rules ask.
func TestAMuteIsOfOneCheckInOneProject(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		grant          *protocol.Grant
		project, check string
		want           bool
	}{
		"the check":                          {mute(func(*protocol.Grant) {}), "", tagCheck, true},
		"in any project, of the user's":      {mute(func(g *protocol.Grant) { g.Project = "shop" }), "blog", tagCheck, true},
		"a project's check in it":            {mute(func(g *protocol.Grant) { g.Patterns, g.Project = []string{"project:m/c"}, "shop" }), "shop", "project:m/c", true},
		"a project's check in another":       {mute(func(g *protocol.Grant) { g.Patterns, g.Project = []string{"project:m/c"}, "shop" }), "blog", "project:m/c", false},
		"another check":                      {mute(func(*protocol.Grant) {}), "", "user:release/tag", false},
		"one that its pattern would match":   {mute(func(*protocol.Grant) {}), "", "user:release/tag v1", false},
		"the check of another level":         {mute(func(*protocol.Grant) {}), "", "fleet:release/tag *", false},
		"no check":                           {mute(func(*protocol.Grant) {}), "", "", false},
		"for the agent":                      {mute(func(g *protocol.Grant) { g.Scope = protocol.ScopeAgent }), "", tagCheck, false},
		"another surface":                    {mute(func(g *protocol.Grant) { g.Surface = "bash" }), "", tagCheck, false},
		"a tool called module, with a star":  {mute(func(g *protocol.Grant) { g.Patterns = []string{"*"} }), "", tagCheck, false},
		"one of whose patterns is no check":  {mute(func(g *protocol.Grant) { g.Patterns = append(g.Patterns, "*") }), "", tagCheck, false},
		"one that names two, of which it is": {mute(func(g *protocol.Grant) { g.Patterns = append(g.Patterns, "fleet:o/x") }), "", tagCheck, true},
	} {
		if got := Mutes(*row.grant, row.project, row.check); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}

// TestAGrantBesideAModulesRequest: what a rule asks can be granted though a module
// asks too; what the module asks cannot, and is said to be left.
func TestAGrantBesideAModulesRequest(t *testing.T) {
	t.Parallel()
	p := requested()
	if e, ok := Grantable(p); !ok || e.Surface != "bash" {
		t.Errorf("grantable is %+v", e)
	}
	g := protocol.Grant{Scope: protocol.ScopeAgent, Surface: "bash", Patterns: []string{"git push *"}}
	if err := Check(p, protocol.TerminalVerdict{Verdict: protocol.FinalAllow, Grant: &g}, noon); err != nil {
		t.Error(err)
	}
	if left := Leaves(p, g); len(left) != 2 || !left[0].ByModule() || !left[1].ByModule() {
		t.Errorf("it leaves %+v", left)
	}
	if left := Leaves(p, *mute(func(*protocol.Grant) {})); len(left) != 2 || left[0].Surface != "bash" || left[1].Value != "fleet:other/x" {
		t.Errorf("a mute leaves %+v", left)
	}
	p.Asks = p.Asks[1:]
	if e, ok := Grantable(p); ok {
		t.Errorf("a module's request is grantable: %+v", e)
	}
	p.Asks = append(p.Asks, protocol.Entry{Surface: "bash", Value: "x", HumanOnly: true})
	if e, ok := Grantable(p); ok {
		t.Errorf("what is a person's alone is grantable: %+v", e)
	}
}
