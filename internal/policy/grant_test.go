package policy

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// given is a grant in a test: its surface and its patterns.
func given(t testing.TB, surface string, patterns ...string) Grant {
	t.Helper()
	g, err := NewGrant("g1", surface, patterns)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

type grantRow struct {
	name  string
	rules string
	call  Call
	grant Grant
}

func TestAGrantClearsWhatItMatches(t *testing.T) {
	t.Parallel()
	for _, row := range []grantRow{
		{"a command", `{"*":"ask"}`, bash("git push origin main"), given(t, "bash", "git push *")},
		{"a command without arguments", `{"*":"ask"}`, bash("git push"), given(t, "bash", "git push *")},
		{"a command that a rule of its own asks about", `{"*":"allow","bash":{"*":"allow","git push *":"ask"}}`, bash("git push"), given(t, "bash", "git *")},
		{"by one of its patterns", `{"*":"ask"}`, bash("make test"), given(t, "bash", "make build", "make test")},
		{"a tool without a value", `{"*":"ask"}`, on("frob", nil), given(t, "frob", "*")},
		{"a file by its place in the project", `{"*":"ask"}`, on("read", m{"path": "src/a"}), given(t, "read", "src/*")},
		{"a file by its whole path", `{"*":"ask"}`, on("read", m{"path": "src/a"}), given(t, "read", "/repo/src/*")},
		{"a file in a folder of the project, by the call's directory", `{"*":"ask"}`, on("read", m{"path": "/repo/a"}), given(t, "read", "./*")},
		{"a file as it resolves, inside", `{"*":"ask"}`, on("read", m{"path": "src/l"}, Path{"src/l", "/repo/src/real"}), given(t, "read", "src/*")},
		{"a path outside", `{"*":"allow","external_directory":"ask"}`, on("read", m{"path": "/srv/a/b"}), given(t, "external_directory", "/srv/a/*")},
		{"a path that a form asks about", `{"*":"allow","path_write":{"*.lock":"ask"}}`, on("write", m{"path": "a.lock"}), given(t, "path", "*.lock")},
		{"a path in the home", `{"*":"allow","external_directory":"ask"}`, on("read", m{"path": "~/dev/a"}), given(t, "external_directory", "~/dev/*")},
		{"an MCP tool", `{"*":"ask"}`, on("mcp", m{"server": "exa", "tool": "search"}), given(t, "mcp", "exa/search")},
		{"an MCP server by the joined name of a tool", `{"*":"ask"}`, on("mcp__exa__search", nil), given(t, "mcp", "exa/*")},
		{"an MCP server by tools joined with it", `{"*":"ask"}`, on("mcp", m{"server": "exa", "tool": "search"}), given(t, "mcp", "exa_*")},
		{"a skill", `{"*":"ask"}`, on("skill", m{"skill": "pdf"}), given(t, "skill", "pdf")},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := mustCompile(t, permission(row.rules))
			if got := s.Rule(row.call); got.Action != Ask {
				t.Fatalf("without the grant: %s", got.Action)
			}
			got := s.RuleWith(row.call, []Grant{row.grant})
			if got.Action != Allow || got.Decisive.Origin != "grant:g1" || got.Decisive.Surface != row.grant.Surface || !reflect.DeepEqual(got.Grants(), []string{"g1"}) {
				t.Fatalf("%s by %+v, grants %q", got.Action, got.Decisive, got.Grants())
			}
			if !slices.Contains(row.grant.Patterns, got.Decisive.MatchedPattern) {
				t.Errorf("by pattern %q", got.Decisive.MatchedPattern)
			}
			if e := got.Cleared[0]; !row.grant.Covers(row.call, e.Surface, e.Value)[slices.Index(row.grant.Patterns, e.MatchedPattern)] {
				t.Errorf("it cleared %q, and does not say that it covers it", e.Value)
			}
		})
	}
}

func TestAGrantClearsNothingElse(t *testing.T) {
	t.Parallel()
	for _, row := range []grantRow{
		{"a deny of the same command", `{"*":"ask","bash":{"git push *":"deny"}}`, bash("git push"), given(t, "bash", "git push *")},
		{"a deny of another entry", `{"*":"ask","path":{"*.env":"deny"}}`, bash("cat .env"), given(t, "bash", "cat *")},
		{"a deny in another reading of the command", `{"*":"ask","bash":{"rm *":"deny"}}`, bash("/bin/rm x"), given(t, "bash", "/bin/rm *")},
		{"what only a person answers", `{"*":"ask","bash":{"deploy *":{"action":"ask","humanOnly":true}}}`, bash("deploy x"), given(t, "bash", "deploy *")},
		{"a floor", `{"*":"ask"}`, bash("sudo ls"), given(t, "bash", "sudo *", "ls")},
		{"a command that cannot be read", `{"*":"ask"}`, bash("echo 'a"), given(t, "bash", "echo *")},
		{"another surface", `{"*":"ask"}`, bash("ls"), given(t, "shell", "ls")},
		{"another command that begins alike", `{"*":"ask"}`, bash("git pusher"), given(t, "bash", "git push *")},
		{"a command with one that it does not match", `{"*":"ask"}`, bash("git push && make"), given(t, "bash", "git push *")},
		{"a file that leads elsewhere", `{"*":"ask"}`, on("read", m{"path": "src/l"}, Path{"src/l", "/etc/passwd"}), given(t, "read", "src/*")},
		{"a file elsewhere by way of dots", `{"*":"ask"}`, on("read", m{"path": "src/../a"}), given(t, "read", "src/*")},
		{"a path outside by a pattern of the call's directory", `{"*":"ask"}`, on("read", m{"path": "/etc/passwd"}), given(t, "read", "./*")},
		{"a path outside that resolves elsewhere", `{"*":"allow","external_directory":"ask"}`, on("read", m{"path": "/srv/a"}, Path{"/srv/a", "/etc/passwd"}), given(t, "external_directory", "/srv/*")},
		{"another MCP server that is spelled alike", `{"*":"ask"}`, on("mcp", m{"server": "git", "tool": "hub_x"}), given(t, "mcp", "git_hub/*", "git_hub_x")},
		{"a server whose joined name begins alike", `{"*":"ask"}`, on("mcp", m{"server": "exa_evil", "tool": "x"}), given(t, "mcp", "exa_*")},
		{"a skill beside one that it matches", `{"*":"ask"}`, on("skill", m{"skill": "pdf", "name": "evil"}), given(t, "skill", "pdf")},
		{"another skill", `{"*":"ask"}`, on("skill", m{"skill": "pdfs"}), given(t, "skill", "pdf")},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := mustCompile(t, permission(row.rules))
			plain, got := s.Rule(row.call), s.RuleWith(row.call, []Grant{row.grant})
			if plain.Action == Allow || got.Action != plain.Action {
				t.Errorf("%s with the grant, %s without; by %+v", got.Action, plain.Action, got.Decisive)
			}
		})
	}
	t.Run("a clamp", func(t *testing.T) {
		s := mustCompile(t, permission(`{"*":"ask"}`)).Clamp("broken")
		if got := s.RuleWith(bash("ls"), []Grant{given(t, "bash", "ls")}); got.Action != Ask || len(got.Cleared) > 0 {
			t.Errorf("%s, cleared %v", got.Action, got.Cleared)
		}
	})
	t.Run("an untrusted layer's deny", func(t *testing.T) {
		s := Layered(false, document(t, Fleet(), `{"permission":{"*":"ask"}}`), document(t, ProjectLayer("p"), `{"permission":{"bash":{"ls":"deny"}}}`))
		if got := s.RuleWith(bash("ls"), []Grant{given(t, "bash", "ls")}); got.Action != Deny {
			t.Errorf("%s", got.Action)
		}
	})
}

func TestAGrantClearsAnAskOfEveryLayer(t *testing.T) {
	t.Parallel()
	s := Layered(false, document(t, Fleet(), `{"permission":{"*":"allow"}}`), document(t, ProjectLayer("p"), `{"permission":{"bash":"ask"}}`))
	got := s.RuleWith(bash("ls"), []Grant{given(t, "bash", "ls")})
	if got.Action != Allow || !reflect.DeepEqual(got.Grants(), []string{"g1"}) || got.Decisive.Origin != "grant:g1" {
		t.Errorf("%s by %+v, grants %q", got.Action, got.Decisive, got.Grants())
	}
}

func TestAGrantLeavesTheRestOpen(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, permission(`{"*":"allow","bash":"ask","external_directory":"ask"}`))
	got := s.RuleWith(bash("cat /srv/a/b"), []Grant{given(t, "bash", "cat *")})
	open := got.Open()
	if got.Action != Ask || len(open) == 0 || slices.ContainsFunc(open, func(e Entry) bool { return e.Surface == "bash" }) {
		t.Errorf("%s, open %+v", got.Action, open)
	}
	if !reflect.DeepEqual(got.Grants(), []string{"g1"}) {
		t.Errorf("grants %q", got.Grants())
	}
	if !reflect.DeepEqual(got.Suggest, []string{"/srv/a/*"}) {
		t.Errorf("the suggestion is for what is still open: %q", got.Suggest)
	}
}

func TestWhatIsNoGrant(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		surface  string
		patterns []string
		ok       bool
	}{
		"a command":                        {"bash", []string{"git push *"}, true},
		"one command exactly":              {"bash", []string{"rm -rf build"}, true},
		"stars on a tool without a value":  {"frob", []string{"*"}, true},
		"a server":                         {"mcp", []string{"exa/*"}, true},
		"both directions of a path":        {"path", []string{"src/*"}, true},
		"as many patterns as there may be": {"bash", slices.Repeat([]string{"ls"}, maxGrantPatterns), true},
		"a long pattern":                   {"bash", []string{strings.Repeat("x", MaxPattern)}, true},
		"a home":                           {"external_directory", []string{"~/dev/*"}, true},

		"no surface":            {"", []string{"x"}, false},
		"a pattern of surfaces": {"b*", []string{"x"}, false},
		"one direction":         {"path_write", []string{"x"}, false},
		"no patterns":           {"bash", nil, false},
		"an empty pattern":      {"bash", []string{"ls", ""}, false},
		"every command":         {"bash", []string{"git *", "* ?*"}, false},
		"too many patterns":     {"bash", slices.Repeat([]string{"ls"}, maxGrantPatterns+1), false},
		"a pattern too long":    {"bash", []string{strings.Repeat("x", MaxPattern+1)}, false},
	} {
		g, err := NewGrant("g1", row.surface, row.patterns)
		if (err == nil) != row.ok || err != nil && !errors.Is(err, ErrGrant) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && len(g.compiled) > 0 {
			t.Errorf("%s: it is refused and grants", name)
		}
	}
	var zero Grant
	s := mustCompile(t, permission(`{"*":"ask"}`))
	if got := s.RuleWith(on("frob", nil), []Grant{zero, {ID: "x", Surface: "frob", Patterns: []string{"*"}}}); got.Action != Ask {
		t.Errorf("a grant that nobody compiled grants: %s", got.Action)
	}
}

// TestGrantsNeverWiden: whatever the rules, the call and the grants, a grant
// turns nothing but an ask of a rule into an allow.
func TestGrantsNeverWiden(t *testing.T) {
	t.Parallel()
	commands := []string{"ls", "git push", "git push && rm x", "sudo ls", "cat .env", "cat /etc/passwd", "echo $(rm x)", "cd /tmp; ls", "ls > /tmp/x", "A=1 ls", "bash -c 'rm x'", "'"}
	patterns := []string{"*", "ls", "git *", "rm *", "cat *", "/etc/*", "*.env", "/tmp/*"}
	surfaces := []string{"bash", "path", "external_directory", "read"}
	actions := []string{`"allow"`, `"ask"`, `"deny"`, `{"action":"ask","humanOnly":true}`}
	rapid.Check(t, func(t *rapid.T) {
		var rules []string
		for range rapid.IntRange(1, 5).Draw(t, "rules") {
			rules = append(rules, `"`+rapid.SampledFrom(patterns).Draw(t, "pattern")+`":`+rapid.SampledFrom(actions).Draw(t, "action"))
		}
		slices.Sort(rules)
		rules = slices.CompactFunc(rules, func(a, b string) bool { return strings.SplitN(a, ":", 2)[0] == strings.SplitN(b, ":", 2)[0] })
		doc := `{"permission":{"*":` + rapid.SampledFrom(actions[:3]).Draw(t, "fallback") + `,"` + rapid.SampledFrom(surfaces).Draw(t, "surface") + `":{` + strings.Join(rules, ",") + `}}}`
		s, err := Compile("policy.jsonc", []byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		var grants []Grant
		for range rapid.IntRange(0, 3).Draw(t, "grants") {
			if g, err := NewGrant("g", rapid.SampledFrom(surfaces).Draw(t, "on"), []string{rapid.SampledFrom(patterns).Draw(t, "of")}); err == nil {
				grants = append(grants, g)
			}
		}
		call := bash(rapid.SampledFrom(commands).Draw(t, "command"))
		plain, with := s.Rule(call), s.RuleWith(call, grants)
		if !reflect.DeepEqual(with, s.RuleWith(call, grants)) || !reflect.DeepEqual(plain, s.Rule(call)) {
			t.Fatal("the same call, rules and grants give two rulings")
		}
		if plain.Action != Ask && !reflect.DeepEqual(plain, with) {
			t.Fatalf("%s: grants changed a ruling that was no ask", doc)
		}
		for _, e := range plain.Entries {
			lifted := !slices.ContainsFunc(with.Entries, func(w Entry) bool { return w == e })
			if lifted && (e.Action != Ask || e.Floor || e.HumanOnly) {
				t.Fatalf("%s: %+v was lifted", doc, e)
			}
			if with.Action == Allow && e.Action != Allow && (e.Action != Ask || e.Floor || e.HumanOnly) {
				t.Fatalf("%s: allowed beside %+v", doc, e)
			}
		}
		if with.Action == Allow && plain.Action == Ask && len(with.Grants()) == 0 {
			t.Fatalf("%s: allowed by nothing", doc)
		}
	})
}
