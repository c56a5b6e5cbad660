package grants

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/pkg/protocol"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func ask() protocol.Ask {
	return protocol.Ask{
		ID: protocol.NewAskID(), Agent: "ci", Session: protocol.Session{ID: "s2", Root: "s1"}, Project: protocol.Project{ID: "shop"},
		Tool: protocol.Tool{Name: "bash", Input: jsontext.Value(`{"command":"git push origin main"}`)}, Cwd: "/repo", Home: "/home/dev",
	}
}

func TestApplies(t *testing.T) {
	t.Parallel()
	grant := func(change func(*protocol.Grant)) protocol.Grant {
		g := protocol.Grant{Scope: protocol.ScopeAgent, Surface: "bash", Patterns: []string{"x"}, Node: "main", Agent: "ci",
			Session: "s2", Root: "s1", Project: "shop", GrantedBy: "p1", Ask: protocol.NewAskID()}
		change(&g)
		return g
	}
	scope := func(s protocol.Scope) func(*protocol.Grant) { return func(g *protocol.Grant) { g.Scope = s } }
	for name, row := range map[string]struct {
		change func(*protocol.Grant)
		want   bool
	}{
		"the agent":                    {scope(protocol.ScopeAgent), true},
		"its session":                  {scope(protocol.ScopeSession), true},
		"its tree":                     {scope(protocol.ScopeTree), true},
		"its project":                  {scope(protocol.ScopeProject), true},
		"an end to come":               {func(g *protocol.Grant) { g.Expires = noon.Add(time.Second).Format(time.RFC3339) }, true},
		"an end in another zone":       {func(g *protocol.Grant) { g.Expires = "2026-03-02T11:00:00-02:00" }, true},
		"an agent's from elsewhere":    {func(g *protocol.Grant) { g.Session, g.Root, g.Project = "", "", "" }, true},
		"a project's of other session": {func(g *protocol.Grant) { g.Scope, g.Session, g.Root = protocol.ScopeProject, "x", "y" }, true},

		"another node":         {func(g *protocol.Grant) { g.Node = "edge" }, false},
		"another agent":        {func(g *protocol.Grant) { g.Agent = "ci-2" }, false},
		"another session":      {func(g *protocol.Grant) { g.Scope, g.Session = protocol.ScopeSession, "s1" }, false},
		"another tree":         {func(g *protocol.Grant) { g.Scope, g.Root = protocol.ScopeTree, "s2" }, false},
		"another project":      {func(g *protocol.Grant) { g.Scope, g.Project = protocol.ScopeProject, "shop2" }, false},
		"its end":              {func(g *protocol.Grant) { g.Expires = noon.Format(time.RFC3339) }, false},
		"an end that is none":  {func(g *protocol.Grant) { g.Expires = "tomorrow" }, false},
		"an unknown scope":     {scope("fleet"), false},
		"no scope":             {scope(""), false},
		"no ask it came from":  {func(g *protocol.Grant) { g.Ask = "" }, false},
		"no session it is for": {func(g *protocol.Grant) { g.Scope, g.Session = protocol.ScopeSession, "" }, false},
	} {
		if got := Applies(grant(row.change), "main", ask(), noon); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	bare := ask()
	bare.Session, bare.Project = protocol.Session{}, protocol.Project{}
	for _, s := range []protocol.Scope{protocol.ScopeSession, protocol.ScopeTree, protocol.ScopeProject} {
		g := grant(func(g *protocol.Grant) { g.Scope, g.Session, g.Root, g.Project = s, "", "", "" })
		if Applies(g, "main", bare, noon) {
			t.Errorf("%s: what says nothing matches what says nothing", s)
		}
	}
}

// TestAGrantHoldsForOneWayAlone: whatever the scope, a grant speaks of the calls
// of one agent, and that is its name and the whole way that its asks come.
func TestAGrantHoldsForOneWayAlone(t *testing.T) {
	t.Parallel()
	ways := map[string][]string{
		"here": nil, "child1": {"child1"}, "child2": {"child2"}, "low below child1": {"low", "child1"},
		"deep below child1": {"deep", "child1"}, "low": {"low"}, "child1 below low": {"child1", "low"},
	}
	for given, from := range ways {
		for asked, of := range ways {
			for _, scope := range []protocol.Scope{protocol.ScopeSession, protocol.ScopeTree, protocol.ScopeAgent, protocol.ScopeProject} {
				giver, caller := ask(), ask()
				giver.Hops, caller.Hops = from, of
				g := Bind(protocol.Grant{Scope: scope, Surface: "bash", Patterns: []string{"git *"}}, protocol.Pending{Node: "main", Ask: giver, Via: giver.Via()}, "p1")
				if got := Applies(g, "main", caller, noon); got != (given == asked) {
					t.Errorf("%s, given to the agent %s, asked by the agent %s: %v", scope, given, asked, got)
				}
				if same := Holder(g.Agent, g.Hops) == Holder(caller.Agent, caller.Hops); same != (given == asked) {
					t.Errorf("given %s, asked %s: one holder is %v", given, asked, same)
				}
			}
		}
	}
}

func TestCheckRefusesWhatIsWiderThanTheAsk(t *testing.T) {
	t.Parallel()
	p := protocol.Pending{Ask: ask(), Node: "main", Asks: []protocol.Entry{
		{Surface: "external_directory", Value: "/srv/a/b"},
		{Surface: "path", Value: "/srv/x/b", Unit: 1, HumanOnly: true},
		{Surface: "bash", Value: "git push origin main", Unit: 2},
		{Surface: "bash", Value: "python3 x.py", Unit: 3},
		{Surface: "bash", Value: "python3 x.py", MatchedPattern: "<runs-code>", Unit: 3, Floor: true},
		{Surface: "mcp", Value: "exa/search", Unit: 4},
		{Surface: "skill", Value: "office:pdf", Unit: 5},
		{Surface: "path", Value: "src/a.go", Unit: 6},
	}, Suggest: []string{"/srv/a/*"}}
	grant := func(surface string, patterns ...string) protocol.Grant {
		return protocol.Grant{Scope: protocol.ScopeSession, Surface: surface, Patterns: patterns}
	}
	with := func(g protocol.Grant, change func(*protocol.Grant)) protocol.Grant { change(&g); return g }
	for name, row := range map[string]struct {
		grant protocol.Grant
		says  string // "" where it may be given
	}{
		"what is suggested":        {grant("bash", "git push *"), ""},
		"the call itself":          {grant("bash", "git push origin main"), ""},
		"wider, and so it covers":  {grant("bash", "git *"), ""},
		"two that both cover":      {grant("bash", "git push *", "git push origin *"), ""},
		"a folder":                 {grant("external_directory", "/srv/a/*"), ""},
		"a server":                 {grant("mcp", "exa/*"), ""},
		"with an end and uses":     {with(grant("bash", "git *"), func(g *protocol.Grant) { g.Uses, g.Expires = 3, "2026-03-02T13:00:00Z" }), ""},
		"for the project":          {with(grant("bash", "git *"), func(g *protocol.Grant) { g.Scope = protocol.ScopeProject }), ""},
		"every command":            {grant("bash", "*"), "every command"},
		"another command":          {grant("bash", "git fetch *"), "would not cover the call that you answer"},
		"one that covers, one not": {grant("bash", "git push *", "rm *"), `"rm *" would not cover`},
		"what meets a floor alone": {grant("bash", "python3 *"), "cannot be proven harmless (<runs-code>)"},
		"one of two does":          {grant("bash", "git push *", "python3 x.py"), `"python3 x.py" covers`},
		"what only a person does":  {grant("path", "/srv/x/*"), "has to be answered each time"},
		"some letters":             {grant("bash", "*u*"), "the whole name of its program"},
		"the end of one":           {grant("bash", "*n"), "the whole name of its program"},
		"the start of one":         {grant("bash", "g*"), "the whole name of its program"},
		"an assignment":            {grant("bash", "A=1 *"), "the whole name of its program"},
		"any folder":               {grant("external_directory", "*"), `suggested is "/srv/a/*"`},
		"the disk":                 {grant("external_directory", "/*"), "a folder"},
		"the disk by the way":      {grant("external_directory", "/srv/../*"), "a folder"},
		"the start of a folder":    {grant("external_directory", "/s*"), "a folder"},
		"any file of a kind":       {grant("external_directory", "/*.go"), "a folder"},
		"one out of the directory": {grant("path", "../*"), "a folder"},
		"one in the directory":     {grant("path", "*.go"), ""},
		"files of the folder":      {grant("path", "src/*"), ""},
		"files of the directory":   {grant("path", "./*.go"), ""},
		"any server":               {grant("mcp", "*"), "the name of its server"},
		"any server's tool":        {grant("mcp", "*/search"), "the name of its server"},
		"a start of servers":       {grant("mcp", "e*"), "the name of its server"},
		"any skill":                {grant("skill", "*"), "a skill is named"},
		"skills of one kind":       {grant("skill", "office:*"), ""},
		"another folder":           {grant("external_directory", "/srv/b/*"), "would not cover"},
		"a surface with nothing":   {grant("read", "src/*"), "nothing is open on read"},
		"one direction":            {grant("external_directory_read", "/srv/a/*"), "both directions"},
		"its end":                  {with(grant("bash", "git *"), func(g *protocol.Grant) { g.Expires = "2026-03-02T12:00:00Z" }), "ended already"},
	} {
		err := Check(p, protocol.TerminalVerdict{Verdict: protocol.FinalAllow, Grant: &row.grant}, noon)
		if row.says == "" && err != nil || row.says != "" && (!errors.Is(err, ErrWider) || !strings.Contains(err.Error(), row.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	g := grant("bash", "git push *")
	for name, v := range map[string]protocol.TerminalVerdict{
		"with a deny":         {Verdict: protocol.FinalDeny, Grant: &g},
		"with nothing said":   {Grant: &g},
		"with a changed call": {Verdict: protocol.FinalAllow, Grant: &g, EditedInput: jsontext.Value(`{"command":"git push"}`)},
	} {
		if err := Check(p, v, noon); !errors.Is(err, ErrWider) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bare := p
	bare.Ask.Session = protocol.Session{}
	if err := Check(bare, protocol.TerminalVerdict{Verdict: protocol.FinalAllow, Grant: &g}, noon); !errors.Is(err, ErrWider) {
		t.Errorf("a session's grant where none is said: %v", err)
	}
}

func TestSame(t *testing.T) {
	t.Parallel()
	given := Bind(protocol.Grant{Scope: protocol.ScopeAgent, Surface: "bash", Patterns: []string{"a"}, Uses: 3}, protocol.Pending{Ask: ask(), Node: "main"}, "p1")
	for name, row := range map[string]struct {
		change func(*protocol.Grant)
		want   bool
	}{
		"as given":            {func(*protocol.Grant) {}, true},
		"used once":           {func(g *protocol.Grant) { g.Uses = 2 }, true},
		"used but for one":    {func(g *protocol.Grant) { g.Uses = 1 }, true},
		"without limit":       {func(g *protocol.Grant) { g.Uses = 0 }, false},
		"with more uses":      {func(g *protocol.Grant) { g.Uses = 4 }, false},
		"with another scope":  {func(g *protocol.Grant) { g.Scope = protocol.ScopeTree }, false},
		"with more patterns":  {func(g *protocol.Grant) { g.Patterns = []string{"a", "b"} }, false},
		"with a later end":    {func(g *protocol.Grant) { g.Expires = "2030-01-01T00:00:00Z" }, false},
		"in another session":  {func(g *protocol.Grant) { g.Session = "x" }, false},
		"by another approver": {func(g *protocol.Grant) { g.GrantedBy = "p2" }, false},
	} {
		stored := given
		row.change(&stored)
		if got := Same(given, stored); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestLeaves: what a grant does not clear is known before it is given.
func TestLeaves(t *testing.T) {
	t.Parallel()
	p := protocol.Pending{Ask: ask(), Node: "main", Asks: []protocol.Entry{
		{Surface: "bash", Value: "git push"},
		{Surface: "bash", Value: "make", Unit: 1},
		{Surface: "bash", Value: "git push x", Unit: 2, Floor: true},
	}}
	for pattern, want := range map[string]string{"git *": "make,git push x", "make": "git push,git push x", "rm *": "git push,make,git push x"} {
		var left []string
		for _, e := range Leaves(p, protocol.Grant{Surface: "bash", Patterns: []string{pattern}}) {
			left = append(left, e.Value)
		}
		if got := strings.Join(left, ","); got != want {
			t.Errorf("%s leaves %s, want %s", pattern, got, want)
		}
	}
	p.Asks = p.Asks[:2]
	if left := Leaves(p, protocol.Grant{Surface: "bash", Patterns: []string{"git *", "make"}}); len(left) > 0 {
		t.Errorf("both cover, and %v is left", left)
	}
}

// TestAnchor: a relative path is one of the directory that the ask came from, at
// the next call as well.
func TestAnchor(t *testing.T) {
	t.Parallel()
	for _, r := range []struct{ surface, platform, cwd, pattern, want string }{
		{"path", "linux", "/repo", ".env", "/repo/.env"},
		{"path", "linux", "/repo", "./*", "/repo/*"},
		{"read", "linux", "/repo/", "src/*", "/repo/src/*"},
		{"path", "linux", "/repo", "*.go", "/repo/*.go"},
		{"path", "windows", `C:\repo`, "src/*", "C:/repo/src/*"},
		{"path", "linux", "/repo", "/srv/*", "/srv/*"},
		{"path", "linux", "/repo", "~/x/*", "~/x/*"},
		{"path", "windows", `C:\repo`, `D:\x\*`, `D:\x\*`},
		{"path", "linux", "/repo", "*", "*"},
		{"path", "linux", "/a*b", "x", "x"},
		{"path", "linux", "", "x", "x"},
		{"bash", "linux", "/repo", "make *", "make *"},
	} {
		a := protocol.Ask{Cwd: r.cwd, Platform: r.platform}
		given := protocol.Grant{Surface: r.surface, Patterns: []string{r.pattern}}
		got := Anchor(given, a)
		if got.Patterns[0] != r.want || given.Patterns[0] != r.pattern {
			t.Errorf("%+v: %q", r, got.Patterns)
		}
		if again := Anchor(got, a); again.Patterns[0] != r.want {
			t.Errorf("%+v: twice it is %q", r, again.Patterns)
		}
	}
}

func TestCallCarriesWhatTheHostStates(t *testing.T) {
	t.Parallel()
	a := ask()
	a.MCPServers = []string{"exa"}
	if c := Call(a); len(c.StatedServers) != 1 || c.StatedServers[0] != "exa" || c.MCPServers != nil {
		t.Errorf("servers of the call: stated %v, known %v", c.StatedServers, c.MCPServers)
	}
}
