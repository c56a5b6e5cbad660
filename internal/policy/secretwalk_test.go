package policy

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestNoLinkAllowsWhereASecretIsTouched: wherever in a call the path of a secret
// stands (a unit of the shell, behind quotes, in a redirect, a payload or a
// substitution, a nested text of an input, a path that the adapter resolved) and
// whatever surface is open, a link's allow is outside the envelope. The same call
// about a plain file is inside.
func TestNoLinkAllowsWhereASecretIsTouched(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, `{"permission":{"*":"ask","path":"allow"},"secretPaths":["*.tfstate","vault/*"],"modelDelegation":{"allowedSurfaces":["*"]}}`)
	secrets := []string{
		".env", ".env.production", "config/.env", "tls/server.pem", "a.key", "b.p12", "b.pfx", "b.jks", "keys/id_rsa", "id_dsa", "id_ecdsa", "id_ed25519",
		".netrc", ".npmrc", ".pypirc", ".git-credentials", "~/.ssh/config", "/home/dev/.aws/credentials", "~/.gnupg/ring", "~/.kube/config",
		"~/.config/gcloud/adc.json", "~/.docker/config.json", "~/.config/assent/x", "agent.creds", "prod.tfstate", "vault/db",
	}
	plain := []string{"main.go", "docs/env.md", ".env.example", "keys.go", "ssh/readme", "a.txt"}
	commands := []string{
		"cat %", "cat '%'", "ls && cat %", "ls; (cd x && cat %)", "make | tee %", "wc < %", "echo x > %", "sh -c 'cat %'", "echo $(cat %)", "A=% make", "tar -cf x.tar %",
		"curl --data @% host", "dd if=%", "docker run -v %:/x image", "if true; then cat %; fi", "cat <(sort %)", "env FILE=% make", "sudo cat %",
	}
	calls := func(path string) map[string]Call {
		out := map[string]Call{
			"a file tool":        on("read", m{"path": path}),
			"a tool of its own":  on("frob", m{"deep": []any{m{"text": "please look at " + path}}}),
			"an MCP tool":        on("mcp", m{"server": "a", "tool": "b", "arguments": m{"file": path}}),
			"a resolved path":    on("read", m{"path": "link"}, Path{"link", strings.Replace(path, "~", "/home/dev", 1)}),
			"a path of no input": bash("ls", Path{path, "/repo/x"}),
		}
		for _, c := range commands {
			out[c] = bash(strings.ReplaceAll(c, "%", path))
		}
		return out
	}
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.SampledFrom(secrets).Draw(t, "secret")
		for place, c := range calls(secret) {
			if ok, _ := s.LinkMayAllow(s.Rule(c).Open(), c); ok {
				t.Errorf("%s: a link may allow what touches %s", place, secret)
			}
			// Whatever is open of it, also one entry that says nothing of the path.
			if ok, _ := s.LinkMayAllow([]Entry{{Surface: "bash", Value: "*", Action: Ask}}, c); ok {
				t.Errorf("%s: with another entry open a link may allow what touches %s", place, secret)
			}
		}
		file := rapid.SampledFrom(plain).Draw(t, "file")
		for place, c := range calls(file) {
			if ok, why := s.LinkMayAllow(s.Rule(c).Open(), c); !ok && strings.Contains(why, "secret") {
				t.Errorf("%s: %s is taken for a secret: %s", place, file, why)
			}
		}
	})
}

// TestTheDocsListEverySecretShape keeps the list in docs/policy.md what the code
// goes by.
func TestTheDocsListEverySecretShape(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(doc), "### What looks like a secret\n")
	section, _, _ = strings.Cut(section, "\n#")
	if !found {
		t.Fatal("docs/policy.md has no section about it")
	}
	var names []string
	for _, w := range secretNames {
		names = append(names, w.text)
	}
	for _, folder := range secretFolders {
		if !strings.HasSuffix(folder, ".json") {
			folder += "/"
		}
		names = append(names, folder)
	}
	for _, name := range append(names, samples...) {
		if !strings.Contains(section, "`"+name+"`") {
			b, _ := json.Marshal(name)
			t.Errorf("it does not list %s", b)
		}
	}
}
