package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/pkg/protocol"
)

// policyAt writes a policy file.
func policyAt(t *testing.T, doc string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.jsonc")
	if err := os.WriteFile(path, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	cleanPolicy   = `{"permission":{"bash":{"*":"ask","ls *":"allow"}}}`
	doubtfulOne   = `{"permission":{"bash":{"*":"ask","sudo *":"allow"}}}`
	doubtfulWords = `:1:34: bash "sudo *" never allows anything`
)

func TestPolicyCheck(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "none.jsonc")
	for _, r := range []struct {
		name, path, stdin string
		code              int
		out, errs         string
	}{
		{"a clean file", policyAt(t, cleanPolicy), "", ExitOK, ": ok, 0 warnings, sha256:", ""},
		{"a doubtful file", policyAt(t, doubtfulOne), "", ExitOK, ": ok, 1 warning, sha256:", doubtfulWords},
		{"standard input", "-", cleanPolicy, ExitOK, "<stdin>: ok, 0 warnings, sha256:", ""},
		{"doubts about standard input", "-", doubtfulOne, ExitOK, "<stdin>: ok, 1 warning", "<stdin>" + doubtfulWords},

		{"a wrong file", policyAt(t, `{"permision":{}}`), "", exitBadPolicy, "", `:1:2: unknown key "permision"`},
		{"an empty file", policyAt(t, "\n"), "", exitBadPolicy, "", ":1:1: the file is empty; write at least {}"},
		{"wrong standard input", "-", "[]", exitBadPolicy, "", "<stdin>:1:1: the policy is a list"},
		{"too much standard input", "-", strings.Repeat(" ", 1<<20), exitBadPolicy, "", "expected at most 524288"},
		{"no file", missing, "", ExitFailure, "", "name an existing policy file; examples/policy.jsonc is one to start from"},
	} {
		env, out, errs := testEnv()
		env.Stdin = strings.NewReader(r.stdin)
		code := Main(env, []string{"policy", "check", r.path}, Policy)
		if code != r.code || !strings.Contains(out.String(), r.out) || !strings.Contains(errs.String(), r.errs) ||
			r.out == "" && out.Len() > 0 || r.errs == "" && errs.Len() > 0 {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", r.name, code, out, errs)
		}
	}
}

func TestPolicyCheckOfALayer(t *testing.T) {
	t.Parallel()
	chain := policyAt(t, `{"authorizerChain":["x"]}`)
	for _, r := range []struct {
		name, layer, path string
		code              int
		errs              string
	}{
		{"a project that tightens", "project/shop", policyAt(t, `{"permission":{"bash":{"make *":"deny"}}}`), ExitOK, ""},
		{"a project that allows", "project/shop", policyAt(t, cleanPolicy), ExitOK, "counts only where the fleet layer trusts it"},
		{"links, in the fleet layer", "fleet", chain, ExitOK, ""},
		{"links, in a project's layer", "project/shop", chain, exitBadPolicy, "authorizerChain belongs to the fleet layer alone"},
		{"an agent's layer", "agent/reviewer", policyAt(t, `{"permission":{"bash":{"make *":"deny"}}}`), ExitOK, ""},
		{"a project whose id is a path", "project//srv/my shop", policyAt(t, `{"permission":{"bash":{"make *":"deny"}}}`), ExitOK, ""},
		{"an agent's name with a blank", "agent/a b", chain, ExitUsage, "without blanks and wildcards"},
		{"an agent's name that is a pattern", "project-agent/shop/ci-*", chain, ExitUsage, "without blanks and wildcards"},
		{"an agent without a name", "agent/", chain, ExitUsage, "expected fleet, project/<id>"},
		{"no such layer", "projects/shop", chain, ExitUsage, "expected fleet, project/<id>"},
	} {
		env, _, errs := testEnv()
		code := Main(env, []string{"policy", "check", "--layer", r.layer, r.path}, Policy)
		if code != r.code || !strings.Contains(errs.String(), r.errs) || r.errs == "" && errs.Len() > 0 {
			t.Errorf("%s: exit %d, stderr %q", r.name, code, errs)
		}
	}
}

// TestPolicyCheckStrict: warnings fail it, and nothing else changes.
func TestPolicyCheckStrict(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		doc  string
		code int
		errs string
	}{
		"a clean file":         {cleanPolicy, ExitOK, ""},
		"a doubtful file":      {doubtfulOne, exitBadPolicy, doubtfulWords},
		"a misspelt surface":   {`{"permission":{"bahs":"deny"}}`, exitBadPolicy, `did you mean "bash"?`},
		"a misspelt tool":      {`{"permission":{"WebFech":"deny"}}`, exitBadPolicy, `did you mean "webfetch"?`},
		"a tool of nobody's":   {`{"permission":{"teleport":"deny"}}`, ExitOK, ""},
		"a file with an error": {`{"permision":{}}`, exitBadPolicy, "unknown key"},
	} {
		env, _, errs := testEnv()
		code := Main(env, []string{"policy", "check", "--strict", policyAt(t, r.doc)}, Policy)
		if code != r.code || !strings.Contains(errs.String(), r.errs) || r.errs == "" && errs.Len() > 0 {
			t.Errorf("%s: exit %d, stderr %q", name, code, errs)
		}
	}
}

func TestPolicyPush(t *testing.T) {
	t.Parallel()
	d := newDesk(t, protocol.RoleOperator)
	for _, r := range []struct {
		name, path string
		code       int
		out, errs  string
	}{
		{"a clean file", policyAt(t, cleanPolicy), ExitOK, "is revision 1, sha256:", ""},
		{"a doubtful file, with its warnings", policyAt(t, doubtfulOne), ExitOK, "is revision 2, sha256:", doubtfulWords},
		{"a wrong file", policyAt(t, `{"permision":{}}`), exitBadPolicy, "", `unknown key "permision"`},
		{"no file", filepath.Join(t.TempDir(), "none"), ExitFailure, "", "name an existing policy file"},
	} {
		code, out, errs := d.typed(t, Policy, "policy", "push", r.path)
		if code != r.code || !strings.Contains(out, r.out) || !strings.Contains(errs, r.errs) ||
			r.out == "" && out != "" || r.errs == "" && errs != "" {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", r.name, code, out, errs)
		}
		if strings.Contains(errs, doubtfulWords) && !strings.HasSuffix(errs, " (warning)\n") {
			t.Errorf("%s: %q does not say that it is a warning", r.name, errs)
		}
	}
}
