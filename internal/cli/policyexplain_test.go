package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

const explainedPolicy = `{
  "permission": {
    "*": "ask",
    "bash": {
      "*": "ask",
      "git *": "allow",
      "git push *": { "action": "ask", "guidance": "Look at the branch." },
      "npm *": { "action": "deny", "reason": "Use pnpm." },
    },
    "path": { "*.env": "deny" },
  },
}`

// explain runs the command in a folder that holds the policy.
func explain(t *testing.T, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	env, o, e := testEnv()
	env.Stdin = strings.NewReader(stdin)
	code = Main(env, append([]string{"policy", "explain"}, args...), Policy)
	return code, o.String(), e.String()
}

func TestPolicyExplain(t *testing.T) {
	t.Parallel()
	p := policyAt(t, explainedPolicy)
	at := func(place string) string { return p + ":" + place }
	for _, r := range []struct {
		name string
		args []string
		want []string
	}{
		{"the words of a command", []string{"--", "git", "push", "origin main"}, []string{
			"? ask  bash git push 'origin main'\n└─ ? git push origin main\n", `     ? bash "git push *": ask  ` + at("7:7") + "\n       told to the approver: Look at the branch.\n" +
				`       lost: bash "*": ask  ` + at("5:7") + "\n" + `       lost: bash "git *": allow  ` + at("6:7") + "\n",
			"\nto be allowed:\n" + `  make "git push *" "allow" at ` + at("7:7") + "\n", "\nto be denied:\n",
		}},
		{"a command without dashes in front", []string{"git", "status", "-s"}, []string{"✓ allow  bash git status -s\n"}},
		{"a command with a flag of explain, behind dashes", []string{"--", "git", "log", "--json"}, []string{"✓ allow  bash git log --json\n"}},
		{"a folder from here", []string{"--cwd", "web", "--tool", "read", "--input", `{"path":"x"}`}, []string{"? ask  read x\n"}},
		{"a call without a tool's name", []string{"--tool", " "}, []string{"  ✗ the call: deny  <no-tool>  — the call names no tool\n"}},
		{"a file tool that names no file", []string{"--tool", "apply_patch", "--input", `{"patch":"x"}`}, []string{
			`"*": the call does not say plainly what it would do, so no rule allows it (nothing in a policy lifts this)`,
		}},
		{"a built-in rule", []string{"--", "rm -rf .claude"}, []string{"ask  built-in rule of claude-settings", "the built-in rule of claude-settings: This folder holds files"}},
		{"an MCP call that does not say which tool", []string{"--tool", "mcp", "--input", `{"tool":["x"]}`}, []string{`"*": ask`}},
		{"a command line", []string{"--", "git status; npm i"}, []string{
			"✗ deny  bash git status; npm i\n├─ ✓ git status\n│    ✓ bash \"git *\": allow", "─ ✗ npm i\n", "— Use pnpm.",
			`add "npm i *": "ask" to "bash", behind ` + at("8:7"),
		}},
		{"a floor", []string{"--", "sudo git status"}, []string{"(run by sudo)", "no rule can make this allowed:\n  <wrapper:sudo>: ", "(nothing in a policy lifts this)"}},
		{"a tool with a path", []string{"--tool", "read", "--input", `{"path":"/repo/.env"}`}, []string{
			"✗ deny  read /repo/.env\n", `✗ path "*.env": deny  on /repo/.env  ` + at("10:15"), `"*": ask  on /repo/.env  ` + at("3:10"),
		}},
		{"a tool without", []string{"--tool", "webfetch"}, []string{`  — no rule on webfetch matches, so "*" counts`, `add "webfetch": "allow" to "permission"`}},
		{"a command with escapes for a terminal", []string{"--", "git \x1b[31mred"}, []string{"git "}},
	} {
		args := append([]string{"--policy", p, "--cwd", "/repo", "--home", "/home/dev", "--platform", "linux"}, r.args...)
		code, out, errs := explain(t, "", args...)
		if code != ExitOK || errs != "" || strings.Contains(out, "\x1b") {
			t.Errorf("%s: exit %d, stderr %q, stdout %q", r.name, code, errs, out)
		}
		for _, want := range r.want {
			if strings.Contains(out, `"": none`) {
				t.Errorf("%s: a rule without a name:\n%s", r.name, out)
			}
			if !strings.Contains(out, want) {
				t.Errorf("%s: lacks %q:\n%s", r.name, want, out)
			}
		}
	}
}

// Links on this host are followed where no other folder is named.
func TestPolicyExplainFollowsLinksHere(t *testing.T) {
	p := policyAt(t, explainedPolicy)
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, ".env"), filepath.Join(dir, "notes")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if _, out, _ := explain(t, "", "--policy", p, "--", "git add notes"); !strings.HasPrefix(out, "✗ deny") {
		t.Errorf("a link to a secret: %s", out)
	}
	if _, out, _ := explain(t, "", "--policy", p, "--", "git add other"); !strings.HasPrefix(out, "✓ allow") {
		t.Errorf("no link: %s", out)
	}
}

func TestPolicyExplainInJSON(t *testing.T) {
	t.Parallel()
	p := policyAt(t, explainedPolicy)
	code, out, errs := explain(t, "", "--policy", p, "--cwd", "/repo", "--json", "--", "git push")
	var got explained
	if err := json.Unmarshal([]byte(out), &got, json.RejectUnknownMembers(true)); err != nil || code != ExitOK || errs != "" {
		t.Fatalf("exit %d, %v, %s%s", code, err, out, errs)
	}
	if got.Decision != "ask" || len(got.Units) != 1 || len(got.Said) != 1 || len(got.Ways) != 2 {
		t.Fatalf("got %+v", got)
	}
	d := got.Decisive
	if d.Pattern != "git push *" || d.Place == nil || *d.Place != (placeOut{p, 7, 7}) || len(d.Lost) != 2 || d.Lost[1].Place.Line != 6 {
		t.Errorf("decisive %+v", d)
	}
	if e := got.Ways[0].Edits; got.Ways[0].To != "allow" || len(e) != 1 || e[0].Surface != "bash" || e[0].Pattern != "git push *" || e[0].Action != "allow" || e[0].Place.Line != 7 {
		t.Errorf("ways %+v", got.Ways)
	}
}

func TestPolicyExplainReadsACall(t *testing.T) {
	t.Parallel()
	p := policyAt(t, explainedPolicy)
	line := `{"id":"1","cwd":"/repo","home":"/home/dev","tool":"bash","input":{"command":"make all"}`
	if _, out, _ := explain(t, line+"}", "--policy", p, "--call", "-"); !strings.HasPrefix(out, "? ask  bash make all\n") {
		t.Errorf("a call on standard input: %s", out)
	}
	granted := line + `,"grants":[{"surface":"bash","patterns":["make *"]}]}`
	if _, out, _ := explain(t, granted, "--policy", p, "--call", "-"); !strings.Contains(out, "— the rules ask, and a grant covers it") {
		t.Errorf("a call with a grant: %s", out)
	}
	layered := line + `,"layers":{"fleet":{"permission":{"bash":{"make *":"deny"}}}}}`
	if _, out, _ := explain(t, layered, "--call", "-"); !strings.Contains(out, `bash "make *": deny  fleet:1:24`) {
		t.Errorf("a call that brings its layers: %s", out)
	}
}

func TestPolicyExplainUnderLayers(t *testing.T) {
	t.Parallel()
	p := policyAt(t, explainedPolicy)
	shop := filepath.Join(t.TempDir(), "shop.jsonc")
	if err := os.WriteFile(shop, []byte(`{"permission":{"bash":{"git log *":"deny","make *":"allow"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	layer := []string{"--policy", p, "--layer", "project/shop=" + shop}
	if _, out, _ := explain(t, "", append(layer, "--", "git log")...); !strings.Contains(out, `bash "git log *": deny  `+shop+":1:24 (project/shop)") {
		t.Errorf("a layer that tightens: %s", out)
	}
	if _, out, _ := explain(t, "", append(layer, "--", "make all")...); !strings.HasPrefix(out, "? ask") {
		t.Errorf("a layer that loosens, not trusted: %s", out)
	}
	if _, out, _ := explain(t, "", append(layer, "--trusted", "--", "make all")...); !strings.HasPrefix(out, "✓ allow") {
		t.Errorf("a layer that loosens, trusted: %s", out)
	}
}

// TestPolicyExplainSaysWhatItLeavesOut: a project's own policy counts at a gate,
// and here only where it is named.
func TestPolicyExplainSaysWhatItLeavesOut(t *testing.T) {
	root := t.TempDir()
	own := filepath.Join(root, ".assent", "policy.jsonc")
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, []byte(`{"permission":{"bash":{"make *":"deny"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := policyAt(t, explainedPolicy)
	t.Chdir(root)
	for name, r := range map[string]struct {
		args []string
		errs string
	}{
		"not named":           {[]string{"--policy", p, "make", "all"}, "own policy is not counted"},
		"named":               {[]string{"--policy", p, "--layer", "project/shop=" + own, "make", "all"}, ""},
		"another folder":      {[]string{"--policy", p, "--cwd", "/repo", "make", "all"}, ""},
		"taken for the fleet": {[]string{"--policy", own, "make", "all"}, ""},
	} {
		if code, _, errs := explain(t, "", r.args...); code != ExitOK || !strings.Contains(errs, r.errs) || r.errs == "" && errs != "" {
			t.Errorf("%s: exit %d, stderr %q", name, code, errs)
		}
	}
}

func TestPolicyExplainRefuses(t *testing.T) {
	t.Parallel()
	p := policyAt(t, explainedPolicy)
	for name, r := range map[string]struct {
		args  []string
		stdin string
		code  int
		errs  string
	}{
		"no call":                      {[]string{"--policy", p}, "", ExitUsage, "name one call"},
		"two calls":                    {[]string{"--policy", p, "--tool", "read", "--", "ls"}, "", ExitUsage, "name one call"},
		"no policy":                    {[]string{"--", "ls"}, "", ExitUsage, "--policy FILE"},
		"no command":                   {[]string{"--policy", p, "--tool", "bash"}, "", ExitUsage, "needs a command"},
		"input that is no JSON":        {[]string{"--policy", p, "--tool", "read", "--input", "{"}, "", ExitUsage, "expected one JSON object"},
		"input that is no object":      {[]string{"--policy", p, "--tool", "read", "--input", "[]"}, "", ExitUsage, "expected one JSON object"},
		"a system by another name":     {[]string{"--policy", p, "--platform", "macos", "ls"}, "", ExitUsage, `expected linux, darwin or windows; write "darwin"`},
		"a system in capitals":         {[]string{"--policy", p, "--platform", "Linux", "ls"}, "", ExitUsage, "write it in lower case"},
		"a call on such a system":      {[]string{"--policy", p, "--call", "-"}, `{"tool":"read","platform":"win32"}`, ExitFailure, `write "windows"`},
		"a call nowhere":               {[]string{"--policy", p, "--call", "-"}, `{"tool":"read","cwd":"web"}`, ExitFailure, `cwd "web" is not absolute`},
		"a flag behind a command":      {[]string{"--policy", p, "git", "status", "--json"}, "", ExitUsage, "--json stands behind the command"},
		"an agent's name with a blank": {[]string{"--policy", p, "--layer", "agent/a b=" + p, "ls"}, "", ExitUsage, "without blanks and wildcards"},
		"a layer of no kind":           {[]string{"--policy", p, "--layer", "fleets=x", "--", "ls"}, "", ExitUsage, "expected a layer and its file"},
		"a layer without a file":       {[]string{"--policy", p, "--layer", "project/x", "--", "ls"}, "", ExitUsage, "expected a layer and its file"},
		"a bad policy":                 {[]string{"--policy", policyAt(t, `{"permision":{}}`), "--", "ls"}, "", exitBadPolicy, `unknown key "permision"`},
		"a call with a typo":           {[]string{"--policy", p, "--call", "-"}, `{"tol":"read"}`, ExitFailure, "reading the call: unknown key \"tol\""},
		"a call of no tool":            {[]string{"--policy", p, "--call", "-"}, `{"surface":"read","value":"x"}`, ExitFailure, "names no"},
		"a call that is not":           {[]string{"--policy", p, "--call", filepath.Join(t.TempDir(), "none")}, "", ExitFailure, "reading the call"},
		"a grant that is none":         {[]string{"--policy", p, "--call", "-"}, `{"tool":"bash","grants":[{"surface":"bash","patterns":["*"]}]}`, ExitUsage, "grant 1"},
	} {
		code, out, errs := explain(t, r.stdin, r.args...)
		if code != r.code || out != "" || !strings.Contains(errs, r.errs) {
			t.Errorf("%s: exit %d, want %d; stdout %q, stderr %q", name, code, r.code, out, errs)
		}
	}
}
