package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/pkg/client/project"
	"github.com/assent-dev/assent/pkg/protocol"
)

// repository makes one with a policy of its own, and returns its folder.
func repository(t *testing.T, policy string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{".git/config": "[remote \"origin\"]\n\turl = git@github.com:acme/shop.git\n", project.PolicyFile: policy} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const ownPolicy = `{"permission":{"bash":{"npm *":"deny"}}}`

// inFolder is the hook's input for a call in a folder.
func inFolder(dir string) string { return strings.Replace(hookInput, "/home/dev/app", dir, 1) }

func TestAnAskCarriesItsProjectAndItsOwnPolicy(t *testing.T) {
	t.Parallel()
	d := newSeat(t)
	g := d.gate(t)
	root := repository(t, ownPolicy)
	want := protocol.Project{ID: "github.com/acme/shop", Root: root, Digest: protocol.ProjectDigest(ownPolicy)}
	for i, ask := range []struct {
		name string
		do   func() string
	}{
		{"the hook", func() string {
			_, verdict, reason := d.hooked(t, t.Context(), strings.NewReader(inFolder(root)), d.flags()...)
			return verdict + " " + reason
		}},
		{"the hook, once more", func() string {
			_, verdict, reason := d.hooked(t, t.Context(), strings.NewReader(inFolder(root)), d.flags()...)
			return verdict + " " + reason
		}},
		{"assent ask", func() string {
			_, stdout, stderr := d.typed(Ask, "ask", "--tool", "bash", "--input", `{"command":"git push"}`, "--cwd", root)
			return stdout + stderr
		}},
	} {
		if said := ask.do(); !strings.HasPrefix(said, "allow") {
			t.Fatalf("%s: %s", ask.name, said)
		}
		if got := (<-g.asks).Project; got != want {
			t.Errorf("%s: project %+v, want %+v", ask.name, got, want)
		}
		if uploads := len(g.uploads); uploads != 1 {
			t.Errorf("%s: %d uploads after %d asks, want 1", ask.name, uploads, i+1)
		}
	}
	if up := <-g.uploads; up.Policy != ownPolicy || up.Project != want.ID {
		t.Errorf("uploaded %+v", up)
	}
	t.Run("under another id, on request", func(t *testing.T) {
		d.typed(Ask, "ask", "--tool", "bash", "--input", `{"command":"git push"}`, "--cwd", root, "--project", "other")
		if got := (<-g.asks).Project; got.ID != "other" || got.Root != root {
			t.Errorf("project %+v", got)
		}
	})
	t.Run("in no project it carries none", func(t *testing.T) {
		d.hooked(t, t.Context(), strings.NewReader(inFolder(t.TempDir())), d.flags()...)
		if got := (<-g.asks).Project; got != (protocol.Project{}) {
			t.Errorf("project %+v", got)
		}
	})
}

// TestAProjectPolicyThatCannotBeUsedDenies: asking as if there were none would
// drop what it denies.
func TestAProjectPolicyThatCannotBeUsedDenies(t *testing.T) {
	t.Parallel()
	d := newSeat(t)
	g := d.gate(t)
	for name, policy := range map[string]string{"too large": strings.Repeat(" ", protocol.MaxProjectPolicy+1), "not UTF-8": "{\xff}"} {
		root := repository(t, policy)
		if _, verdict, reason := d.hooked(t, t.Context(), strings.NewReader(inFolder(root)), d.flags()...); verdict != "deny" || !strings.Contains(reason, project.PolicyFile) {
			t.Errorf("%s: the hook says %s: %s", name, verdict, reason)
		}
		if code, stdout, stderr := d.typed(Ask, "ask", "--tool", "bash", "--input", `{"command":"git push"}`, "--cwd", root); code != ExitFailure || !strings.Contains(stderr, project.PolicyFile) {
			t.Errorf("%s: ask exits %d: %s%s", name, code, stdout, stderr)
		}
	}
	if len(g.asks) > 0 {
		t.Errorf("asked all the same: %+v", <-g.asks)
	}
	t.Run("one that does not read is told of, and asked under", func(t *testing.T) {
		code, _, stderr := d.typed(Ask, "ask", "--tool", "bash", "--input", `{"command":"git push"}`, "--cwd", repository(t, `{"permision":{}}`))
		if code != ExitOK || !strings.Contains(stderr, "policy.jsonc:1:2") || !strings.Contains(stderr, "permision") {
			t.Errorf("exit %d: %s", code, stderr)
		}
		if got := (<-g.asks).Project; got.Digest == "" {
			t.Errorf("project %+v", got)
		}
	})
}
