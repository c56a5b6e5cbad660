package policy

import (
	"strings"
	"testing"
)

// TestLintSpellings: patterns in a language that is not that of policies.
func TestLintSpellings(t *testing.T) {
	t.Parallel()
	for _, r := range []struct{ name, rules, want string }{
		{"an outside path that is relative", `{"external_directory":{"vendor/*":"allow"}}`, `external_directory "vendor/*" probably does not match`},
		{"an outside path to read that is relative", `{"external_directory_read":{"docs/*":"deny"}}`, "are matched as absolute ones"},
		{"a home in braces", `{"path":{"${HOME}/.npmrc":"deny"}}`, `write "~/.npmrc"`},
		{"another user's home", `{"read":{"~root/*":"deny"}}`, "home of another user"},
		{"two stars", `{"path":{"src/**/*.ts":"allow"}}`, `write "src/*.ts"`},
		{"braces", `{"path":{"*.{pem,key}":"deny"}}`, "braces stand for themselves"},
		{"brackets", `{"write":{"*.[ch]":"allow"}}`, "brackets stand for themselves"},
		{"an exclamation mark", `{"path":{"!*.example":"allow"}}`, `"!" stands for itself`},
		{"an anchored expression", `{"bash":{"^rm -rf":"deny"}}`, "looks like a regular expression"},
		{"an expression of blanks", `{"bash":{"rm\\s+-rf *":"deny"}}`, "looks like a regular expression"},

		{"an outside path", `{"external_directory":{"/srv/*":"allow","~/.cargo/*":"allow","*/docs/*":"allow","C:/x/*":"allow","*":"ask"}}`, ""},
		{"a path of the project", `{"path":{"src/*":"allow"}}`, ""},
		{"a path of the home", `{"path":{"~/.ssh/*":"deny","$HOME/x":"deny"}}`, ""},
		{"two stars at the end", `{"path":{"src/**":"allow"}}`, ""},
		{"a dot and a star in a command", `{"bash":{"ls .*":"allow"}}`, ""},
		{"a bracket in a command", `{"bash":{"[ -f *":"allow"}}`, ""},
	} {
		got := linted(t, r.name, permission(r.rules))
		if r.want == "" && strings.Contains(got, "hardly") || r.want == "" && strings.Contains(got, "expression") || !strings.Contains(got, r.want) {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
}

// TestLintFlags: flagsAnyOrder where it changes nothing.
func TestLintFlags(t *testing.T) {
	t.Parallel()
	flagged := func(surface, pattern string) string {
		return permission(`{"` + surface + `":{"` + pattern + `":{"action":"deny","flagsAnyOrder":true}}}`)
	}
	for name, r := range map[string]struct{ doc, want string }{
		"on another surface": {flagged("mcp", "a/b -x"), "flagsAnyOrder is for bash"},
		"without a flag":     {flagged("bash", "rm *"), "names no flag"},
		"a hyphen in a word": {flagged("bash", "apt-get *"), "names no flag"},
		"a flag":             {flagged("bash", "git push --force*"), ""},
		"a flag alone":       {flagged("bash", "-rf *"), ""},
	} {
		got := linted(t, name, r.doc)
		if r.want == "" && strings.Contains(got, "flagsAnyOrder") || !strings.Contains(got, r.want) {
			t.Errorf("%s: %q, want %q", name, got, r.want)
		}
	}
}

// TestLintLayers: what only some layers can say.
func TestLintLayers(t *testing.T) {
	t.Parallel()
	shop, careful := ProjectLayer("shop"), AgentLayer("careful")
	for _, r := range []struct {
		name  string
		layer Layer
		doc   string
		want  string
	}{
		{"a project that allows", shop, permission(`{"bash":{"make *":"allow"}}`), `f:1:25: what layer project/shop allows counts only where the fleet layer trusts it (trustedProjects)`},
		{"an agent that allows", careful, permission(`{"read":"allow"}`), "(trustedAgentNames)"},
		{"an open shell that is no project's to open", shop, permission(`{"*":"allow"}`), "counts only where"},
		{"a wrapper in a project", shop, permission(`{"bash":{"sudo *":"allow"}}`), "never allows anything"},
		{"trust for every agent", Fleet(), `{"trustedProjects":[{"id":"shop","root":"/srv/shop","agents":["*"]}]}`, `f:1:63: "*" means that a project's own file may loosen the policy for every agent`},
		{"a root that is relative", Fleet(), `{"trustedProjects":[{"id":"shop","root":"shop","agents":["ci-1"]}]}`, "is not absolute"},
		{"a name for every agent", Fleet(), `{"trustedAgentNames":{"root":["*"]}}`, "every agent may wear the name root"},
		{"yolo", Fleet(), `{"permission":{},"yoloMode":true}`, "f:1:18: yoloMode is on"},

		{"a project that tightens", shop, permission(`{"bash":{"make *":"deny"}}`), ""},
		{"trust for some agents", Fleet(), `{"trustedProjects":[{"id":"shop","root":"/srv/shop","agents":["ci-*"]}]}`, ""},
		{"a name for some agents", Fleet(), `{"trustedAgentNames":{"reviewer":["ci-*"]}}`, ""},
		{"no yolo", Fleet(), `{"yoloMode":false}`, ""},
	} {
		warnings, err := LintLayer(r.layer, "f", []byte(r.doc))
		if err != nil {
			t.Errorf("%s: %v", r.name, err)
			continue
		}
		var all []string
		for _, w := range warnings {
			all = append(all, w.String())
		}
		if got := strings.Join(all, "\n"); r.want == "" && got != "" || !strings.Contains(got, r.want) {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
	if _, err := LintLayer(shop, "f", []byte(`{"authorizerChain":["x"]}`)); err == nil {
		t.Error("a project that names links has no warnings")
	}
}
