package policy

import (
	"strings"
	"testing"
)

func TestSecretShapes(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		".env", "a/.env", ".env.local", "/x/server.pem", "tls.KEY", "a.p12", "a.pfx", "a.jks", "id_rsa", "~/.ssh/id_ed25519", "id_dsa", "id_ecdsa",
		".netrc", ".npmrc", "/home/dev/.pypirc", ".git-credentials", "~/.ssh/config", ".ssh", "~/.aws/credentials", "/home/ops/.gnupg/x", ".kube/config",
		"~/.config/gcloud/x", "~/.docker/config.json", "agent.creds", "--file=.env", "@.env", "host:.env", "cat .env|nc", `C:\Users\x\.ssh\id_rsa`,
		"if=.env", "a/./.env", ".ENV", ".e*", "cat .en?", ".[e]nv", "id_*", "*.p*", "{.env,x}", "'.env'", ".envrc/../.env",
	} {
		if secretIn(s, nil) == "" {
			t.Errorf("%q passes", s)
		}
	}
}

func TestNoSecretShapes(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", ".env.example", ".env.sample", ".env.template", "env", "environment", "a.env.go", "keys.go", "monkey", "id_rsa.pub.txt", "docs/ssh/x",
		"ssh", "aws/x", ".docker/x", ".config/x", "pem", "a.pem.go", "git push origin main", "*.go", "src/*", "*", "?", "npmrc", "https://example.com/x",
	} {
		// A lone star selects a key as well as anything: only hidden names are safe from it.
		if s == "*" {
			if secretIn(s, nil) == "" {
				t.Error("a lone star passes")
			}
			continue
		}
		if s == "src/*" {
			continue
		}
		if got := secretIn(s, nil); got != "" {
			t.Errorf("%q is taken for the secret %q", s, got)
		}
	}
}

func TestSecretPathsExtend(t *testing.T) {
	t.Parallel()
	extra := compileAll(lowered([]string{"*.tfstate", "vault/*", "TOKEN"})...)
	for _, s := range []string{"a/x.tfstate", "vault/x", "/repo/token", "cat prod.TFSTATE"} {
		if secretIn(s, extra) == "" {
			t.Errorf("%q passes", s)
		}
	}
	for _, s := range []string{"tfstate", "myvault", "tokens"} {
		if secretIn(s, extra) != "" {
			t.Errorf("%q is taken for a secret", s)
		}
	}
}

func TestEnvelope(t *testing.T) {
	t.Parallel()
	const doc = `{"permission":{"*":"ask","bash":{"*":"ask","dd *":{"action":"ask","humanOnly":true}}},"secretPaths":["*.tfstate"],
		"modelDelegation":{"allowedSurfaces":["bash","read","external_directory","m*"],"excludedSurfaces":["external_directory_write","mcp"]}}`
	s := mustCompile(t, doc)
	for _, r := range []struct {
		name string
		call Call
		want bool
	}{
		{"an allowed surface", bash("ls"), true},
		{"several commands on an allowed surface", bash("ls | wc"), true},
		{"a tool on an allowed surface", on("read", m{"path": "a.go"}), true},
		{"a surface by a pattern", on("myTool", nil), true},

		{"a surface that is not named", on("write", m{"path": "a"}), false},
		{"a surface that is excluded", on("mcp", m{"server": "a", "tool": "b"}), false},
		{"a surface with one direction excluded", on("read", m{"path": "/x"}), false},
		{"one of several entries outside", bash("ls /x"), false},
		{"what only a person answers", bash("dd x"), false},
		{"a secret in a path", on("read", m{"path": "a.pem"}), false},
		{"a secret of the policy's own", on("read", m{"path": "prod.tfstate"}), false},
		{"a secret behind a link", on("read", m{"path": "a"}, Path{"a", "/repo/.env"}), false},
		{"a secret in a word with quotes inside", bash(`cat .e""nv`), false},
		{"a secret in a payload", bash(`bash -c 'cat .e\nv'`), false},
		{"a secret in a glob", bash("cat .e*"), false},
		{"a secret in what does not parse", bash("cat .env ((("), false},
		{"a secret too deep to be found", Call{Tool: "myTool", Input: []byte(strings.Repeat(`{"a":`, 40) + `".env"` + strings.Repeat("}", 40)), Cwd: "/repo"}, false},
		{"a secret in any text of an input", on("myTool", m{"x": []any{m{"y": "see .env"}}}), false},
	} {
		open := s.Rule(r.call).Open()
		if ok, why := s.LinkMayAllow(open, r.call); ok != r.want || !ok && why == "" {
			t.Errorf("%s: %v %q, want %v", r.name, ok, why, r.want)
		}
	}
	open := s.Rule(bash("ls")).Open()
	if ok, _ := s.LinkMayAllow(append(open, Entry{Surface: "bash", HumanOnly: true}), bash("ls")); ok {
		t.Error("a link may allow what a module requests")
	}
	if ok, _ := s.LinkMayAllow(nil, bash("ls")); ok {
		t.Error("a link may allow where nothing is open")
	}
	if ok, _ := Empty().LinkMayAllow(open, bash("ls")); ok {
		t.Error("a link may allow without modelDelegation")
	}
	if ok, _ := mustCompile(t, `{"modelDelegation":{}}`).LinkMayAllow(open, bash("ls")); ok {
		t.Error("a link may allow without allowedSurfaces")
	}
}
