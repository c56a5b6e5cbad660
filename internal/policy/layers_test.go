package policy

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestLayerNamesReadAsTheyAreWritten(t *testing.T) {
	for _, l := range []Layer{
		Fleet(), ProjectLayer("github.com/acme/shop"), ProjectLayer("a b=c_é"), AgentLayer("reviewer"), ProjectAgentLayer("github.com/acme/shop", "reviewer"),
	} {
		byName, err := ParseLayer(l.String())
		if err != nil || byName != l {
			t.Errorf("%s reads as %v, %v", l, byName, err)
		}
		byKey, err := LayerOfKey(l.Key())
		if err != nil || byKey != l {
			t.Errorf("key %s reads as %v, %v", l.Key(), byKey, err)
		}
		if strings.Trim(l.Key(), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=.") != "" {
			t.Errorf("%s has the key %q, which no store takes", l, l.Key())
		}
	}
	for _, name := range []string{
		"", "fleet/", "fleet/x", "project", "project/", "agent/", "agent/a/b", "project-agent/x", "project-agent//x", "project-agent/x/", "team/x",
		"agent/a\nb", "agent/\xff", "project/" + strings.Repeat("x", MaxLayerName),
	} {
		if l, err := ParseLayer(name); !errors.Is(err, ErrLayer) {
			t.Errorf("%q reads as %v, %v", name, l, err)
		}
	}
	for _, key := range []string{"", "project", "project.a.b", "agent.=41", "agent.=zz", "project.a=2F", "agent.a_b", "fleet.x", "project-agent.a"} {
		if l, err := LayerOfKey(key); !errors.Is(err, ErrLayer) {
			t.Errorf("key %q reads as %v, %v", key, l, err)
		}
	}
}

func document(t testing.TB, layer Layer, doc string) *Document {
	t.Helper()
	d, err := Read(layer, layer.String(), []byte(doc))
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return d
}

func set(t testing.TB, docs ...*Document) *Set {
	t.Helper()
	s, err := NewSet(7, docs...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTrustedLayersMergeByPattern(t *testing.T) {
	for _, r := range []struct {
		name, fleet, project, command string
		want                          Action
	}{
		{"a pattern that stood there keeps its place", `{"bash":{"*":"ask","rm *":"deny"}}`, `{"bash":{"*":"allow"}}`, "rm x", Deny},
		{"and takes the new action", `{"bash":{"*":"ask","rm *":"deny"}}`, `{"bash":{"*":"allow"}}`, "ls", Allow},
		{"a new pattern comes last and wins", `{"bash":{"rm *":"ask"}}`, `{"bash":{"*":"allow"}}`, "rm x", Allow},
		{"but lifts no deny of the fleet", `{"bash":{"rm *":"deny"}}`, `{"bash":{"*":"allow"}}`, "rm x", Deny},
		{"nor what is for a person alone", `{"bash":{"rm *":{"action":"ask","humanOnly":true}}}`, `{"bash":{"*":"allow"}}`, "rm x", Ask},
		{"nor in its place", `{"bash":{"rm *":{"action":"ask","humanOnly":true}}}`, `{"bash":{"rm *":"allow"}}`, "rm x", Ask},
		{"but what is beside that", `{"bash":{"*":"ask","rm *":{"action":"ask","humanOnly":true}}}`, `{"bash":{"*":"allow"}}`, "ls", Allow},
		{"not even in a map that it replaces", `{"bash":{"*":"ask","rm *":"deny"}}`, `{"bash":"allow"}`, "rm x", Deny},
		{"where the rest is the project's to allow", `{"bash":{"*":"ask","rm *":"deny"}}`, `{"bash":"allow"}`, "ls", Allow},
		{"an action for everything replaces a map", `{"bash":{"*":"allow","rm *":"allow"}}`, `{"bash":"ask"}`, "rm x", Ask},
		{"a map replaces an action for everything", `{"bash":"ask"}`, `{"bash":{"ls *":"allow"}}`, "ls", Allow},
		{"and what it does not name falls back", `{"bash":"allow"}`, `{"bash":{"ls *":"allow"}}`, "rm x", Ask},
		{"other surfaces stay", `{"bash":"deny"}`, `{"read":"allow"}`, "ls", Deny},
	} {
		s := Layered(true, document(t, Fleet(), permission(r.fleet)), document(t, ProjectLayer("p"), permission(r.project)))
		if got := s.Rule(bash(r.command)); got.Action != r.want {
			t.Errorf("%s: %s is %s, want %s", r.name, r.command, got.Action, r.want)
		}
	}
}

const trusting = `{
	"permission": {"*": "ask", "bash": {"*": "ask", "rm *": "deny"}},
	"trustedProjects": [{"id": "shop", "root": "/repo", "agents": ["ci-*"]}],
	"trustedAgentNames": {"reviewer": ["ci-1"]},
}`

func TestOnlyTheFleetLayerMakesOthersLoosen(t *testing.T) {
	s := set(t, document(t, Fleet(), trusting),
		document(t, ProjectLayer("shop"), permission(`{"bash":{"make *":"allow"}}`)),
		document(t, ProjectLayer("other"), permission(`{"bash":{"make *":"allow"}}`)),
		document(t, AgentLayer("reviewer"), permission(`{"bash":{"git diff *":"allow","rm *":"allow"}}`)),
		document(t, ProjectAgentLayer("shop", "reviewer"), permission(`{"bash":{"go test *":"allow"}}`)))
	for _, r := range []struct {
		name    string
		who     Who
		command string
		want    Action
	}{
		{"a trusted project at its root, for its agents", Who{Agent: "ci-7", Project: "shop", Root: "/repo"}, "make all", Allow},
		{"another agent that says it works there", Who{Agent: "dev-1", Project: "shop", Root: "/repo"}, "make all", Ask},
		{"another place that says it is the project", Who{Agent: "ci-7", Project: "shop", Root: "/tmp/shop"}, "make all", Ask},
		{"no place", Who{Agent: "ci-7", Project: "shop"}, "make all", Ask},
		{"a project that nobody trusts", Who{Agent: "ci-7", Project: "other", Root: "/repo"}, "make all", Ask},
		{"nobody's credentials", Who{Project: "shop", Root: "/repo"}, "make all", Ask},
		{"a name by one who may wear it", Who{Agent: "ci-1", AgentName: "reviewer"}, "git diff x", Allow},
		{"a trusted name lifts even a deny of the layer that trusts it", Who{Agent: "ci-1", AgentName: "reviewer"}, "rm x", Allow},
		{"a name by one who may not wear it", Who{Agent: "ci-2", AgentName: "reviewer"}, "git diff x", Ask},
		{"and a deny stays for him", Who{Agent: "ci-2", AgentName: "reviewer"}, "rm x", Deny},
		{"project and name, both trusted", Who{Agent: "ci-1", AgentName: "reviewer", Project: "shop", Root: "/repo"}, "go test ./...", Allow},
		{"project and name, the project not", Who{Agent: "ci-1", AgentName: "reviewer", Project: "shop", Root: "/x"}, "go test ./...", Ask},
		{"project and name, the name not", Who{Agent: "ci-2", AgentName: "reviewer", Project: "shop", Root: "/repo"}, "go test ./...", Ask},
		{"nobody in particular", Who{Agent: "ci-1"}, "git diff x", Ask},
	} {
		if got := s.For(r.who).Rule(bash(r.command)); got.Action != r.want {
			t.Errorf("%s: %s is %s by %q, want %s", r.name, r.command, got.Action, got.Decisive.MatchedPattern, r.want)
		}
	}
}

func TestUntrustedLayersTightenEachOnItsOwn(t *testing.T) {
	fleet := document(t, Fleet(), permission(`{"*":"allow","bash":{"*":"allow","rm *":"deny"}}`))
	file := document(t, ProjectLayer("shop"), permission(`{"bash":{"*":"allow","curl *":"deny"},"read":"ask"}`))
	s := set(t, fleet, document(t, AgentLayer("x"), permission(`{"bash":{"curl *":"allow","rm *":"allow"},"read":"allow"}`)))
	who := Who{Agent: "a", AgentName: "x", Project: "shop", File: file}
	for _, r := range []struct {
		name string
		call Call
		want Action
	}{
		{"what no layer forbids", bash("ls"), Allow},
		{"a deny below that one layer lifts", bash("rm x"), Deny},
		{"a deny of one layer that another lifts", bash("curl x"), Deny},
		{"an ask of one layer that another lifts", on("read", m{"path": "a"}), Ask},
		{"a tool of which none speaks", on("frob", nil), Allow},
	} {
		if got := s.For(who).Rule(r.call); got.Action != r.want {
			t.Errorf("%s: %s by %s %q, want %s", r.name, got.Action, got.Decisive.Origin, got.Decisive.MatchedPattern, r.want)
		}
	}
	if got := s.For(who).Rule(bash("curl x")).Decisive.Origin; got != "project/shop" {
		t.Errorf("the deny comes from %q, want the project's layer", got)
	}
	if got := s.For(who).Check(Query{Surface: "bash", Value: "curl x"}).State; got != Deny {
		t.Errorf("a query says %s, want deny as the call", got)
	}
}

// Whatever a layer says that nobody trusts, and whatever other layers there
// are, no call is ruled looser with it than without.
func TestAnUntrustedLayerNeverLoosens(t *testing.T) {
	surfaces := []string{"*", "bash", "read", "path", "path_write", "external_directory", "ba*", "mcp"}
	patterns := []string{"*", "rm *", "git *", "*.env", "/etc/*", "src/*", "git push", "~/*"}
	calls := []Call{
		bash("rm x"), bash("git push"), bash("cat .env"), bash("ls && rm y"), on("read", m{"path": ".env"}), on("read", m{"path": "/etc/x"}),
		on("write", m{"path": "src/a"}), on("mcp", m{"server": "a", "tool": "b"}), on("frob", nil),
	}
	draw := func(t *rapid.T, layer Layer, label string) *Document {
		rules := map[string]any{}
		for range rapid.IntRange(0, 4).Draw(t, label) {
			surface := rapid.SampledFrom(surfaces).Draw(t, "surface")
			action := rapid.SampledFrom([]string{"allow", "ask", "deny"}).Draw(t, "action")
			if surface == "*" || rapid.Bool().Draw(t, "whole") {
				rules[surface] = action
				continue
			}
			rules[surface] = map[string]any{rapid.SampledFrom(patterns).Draw(t, "pattern"): action}
		}
		d, err := Read(layer, label, input(m{"permission": rules}))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	rapid.Check(t, func(t *rapid.T) {
		fleet, agent, file := draw(t, Fleet(), "fleet"), draw(t, AgentLayer("x"), "agent"), draw(t, ProjectLayer("p"), "file")
		s, err := NewSet(1, fleet, agent)
		if err != nil {
			t.Fatal(err)
		}
		call := rapid.SampledFrom(calls).Draw(t, "call")
		base, named, filed := s.For(Who{Agent: "a"}), s.For(Who{Agent: "a", AgentName: "x"}), s.For(Who{Agent: "a", Project: "p", File: file})
		both := s.For(Who{Agent: "a", AgentName: "x", Project: "p", File: file}).Rule(call).Action
		for what, less := range map[string]*Snapshot{"no layer": base, "the name alone": named, "the file alone": filed} {
			if got := less.Rule(call).Action; both > got {
				t.Fatalf("%s %s: %s with both layers, %s with %s", call.Tool, call.Input, both, got, what)
			}
		}
	})
}

func TestLayersBelowTheFleetHoldNoSettings(t *testing.T) {
	for _, doc := range []string{
		`{"authorizerChain":["x"]}`, `{"linkTimeout":"1s"}`, `{"modelDelegation":{}}`, `{"terminal":{"kind":"deny"}}`, `{"limits":{"pending":1}}`,
		`{"debugLog":true}`, `{"yoloMode":true}`, `{"modules":{"strict":true}}`, `{"trustedProjects":[]}`, `{"trustedAgentNames":{}}`,
	} {
		if _, err := Read(Fleet(), "f", []byte(doc)); err != nil {
			t.Errorf("fleet: %v", err)
		}
		if _, err := Read(ProjectLayer("p"), "f", []byte(doc)); !errors.Is(err, ErrPolicy) {
			t.Errorf("project: %s reads (%v)", doc, err)
		}
	}
	for _, doc := range []string{`{"permission":{"bash":"deny"}}`, `{"yoloMode":false}`, `{"secretPaths":["*.vault"]}`, `{"$schema":"x"}`} {
		if _, err := Read(ProjectLayer("p"), "f", []byte(doc)); err != nil {
			t.Errorf("project: %s: %v", doc, err)
		}
	}
}

func TestYoloIsOffWhereAnyLayerSaysSo(t *testing.T) {
	fleet := document(t, Fleet(), `{"permission":{"*":"ask","bash":{"*":"ask","rm *":"deny","git push *":{"action":"ask","humanOnly":true}}},"yoloMode":true}`)
	off := document(t, ProjectLayer("p"), `{"yoloMode":false}`)
	for _, r := range []struct {
		name    string
		policy  *Snapshot
		command string
		want    Action
	}{
		{"an ask", Layered(true, fleet), "ls", Allow},
		{"a deny", Layered(true, fleet), "rm x", Deny},
		{"what only a person answers", Layered(true, fleet), "git push x", Ask},
		{"a floor", Layered(true, fleet), "sudo ls", Ask},
		{"switched off by a trusted layer", Layered(true, fleet, off), "ls", Ask},
		{"switched off by an untrusted layer", Layered(false, fleet, off), "ls", Ask},
		{"clamped", Layered(true, fleet).Clamp("broken"), "ls", Ask},
	} {
		if got := r.policy.Rule(bash(r.command)); got.Action != r.want {
			t.Errorf("%s: %s is %s by %q, want %s", r.name, r.command, got.Action, got.Decisive.MatchedPattern, r.want)
		}
	}
	if got := Layered(true, fleet).Rule(bash("ls")).Decisive.Origin; got != OriginYolo {
		t.Errorf("origin %q, want %q", got, OriginYolo)
	}
}

func TestABrokenProjectFileClamps(t *testing.T) {
	s := set(t, document(t, Fleet(), permission(`{"bash":{"*":"allow","rm *":"deny"}}`)))
	for command, want := range map[string]Action{"ls": Ask, "rm x": Deny} {
		if got := s.For(Who{Agent: "a", Project: "p", FileBroken: "f:1:1: no"}).Rule(bash(command)); got.Action != want {
			t.Errorf("%s is %s, want %s", command, got.Action, want)
		}
	}
	if got := s.For(Who{Agent: "a", Project: "p"}).Rule(bash("ls")).Action; got != Allow {
		t.Errorf("without the file ls is %s, want allow", got)
	}
}

func TestASetHasOneDigest(t *testing.T) {
	fleet, agent := document(t, Fleet(), permission(`{"*":"ask"}`)), document(t, AgentLayer("x"), permission(`{"bash":"deny"}`))
	one, two := set(t, fleet), set(t, fleet, agent)
	if one.Digest() != fleet.Digest() || one.Digest() == two.Digest() || two.Digest() != set(t, agent, fleet).Digest() {
		t.Errorf("digests: document %s, alone %s, with another %s", fleet.Digest(), one.Digest(), two.Digest())
	}
	for _, s := range []*Snapshot{two.Base(), two.For(Who{Agent: "a", AgentName: "x"})} {
		if s.Revision() != 7 || s.Digest() != two.Digest() {
			t.Errorf("a policy of the set has revision %d and digest %s", s.Revision(), s.Digest())
		}
	}
	if _, err := NewSet(1, agent, agent); !errors.Is(err, ErrLayer) {
		t.Errorf("two documents of one layer: %v", err)
	}
}
