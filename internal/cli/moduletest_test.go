package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/assent-dev/assent/internal/module/sdk"
)

// moduleFiles writes files into a folder and returns it.
func moduleFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// runModule runs `assent module` with something on its input.
func runModule(in string, args ...string) (code int, out, errs string) {
	env, o, e := testEnv()
	env.Stdin = strings.NewReader(in)
	code = Main(env, append([]string{"module"}, args...), all...)
	return code, o.String(), e.String()
}

const testedModule = `import { block, matchCommand, matchTool, request } from "@assent/permissions";
export default (api) => {
  api.onToolUse({ name: "mail", description: "Ask before mail.", matcher: "bash", handler: ({ tool }) => matchTool(tool, { bash: matchCommand({ program: "mail", onMatch: () => request({ guidance: "Who gets it?\nAnd why?", approveLabel: "Send" }) }) }) });
  api.onToolUse({ name: "home", description: "Not there.", matcher: ["read", "write"], handler: ({ tool, cwd, session, project }) => { if (tool.projectPath === undefined) return block(["outside of", cwd, session.id, project.id].join(" ")); } });
  api.onToolUse({ name: "broken", description: "Breaks.", matcher: (input) => input.tool.toolName === "odd", handler() { throw new Error("oh\u001b[31m"); } });
};`

const bashMail = `{"id":"m","tool":"bash","input":{"command":"é; sudo mail a@b.org"}}`

func TestModuleTestLines(t *testing.T) {
	t.Parallel()
	dir := moduleFiles(t, map[string]string{"m.ts": testedModule})
	lines := map[string]string{ // in to a part of what comes out
		bashMail: `"id":"m","decision":"request","check":"mail","reason":"","prompt":{"name":"mail","description":"Ask before mail.","guidance":"Who gets it?\nAnd why?","highlight":[{"start":9,"end":13}],"approve_label":"Send",`,
		`{"id":"q","tool":"bash","input":{"command":"echo mail"}}`:                                                   `"id":"q","decision":"none","check":"","reason":"","prompt":null,`,
		`{"id":"r","tool":"Read","cwd":"/repo","input":{"file_path":"a/b"}}`:                                         `"id":"r","decision":"none",`,
		`{"id":"s","tool":"read","cwd":"/repo","session":{"id":"s9"},"project":{"id":"p1"},"input":{"path":"../x"}}`: `"id":"s","decision":"block","check":"home","reason":"outside of /repo s9 p1","prompt":null,`,
		`{"id":"t","tool":"odd","input":{}}`:                                                                         `"id":"t","decision":"request","check":"broken","reason":"","prompt":null,`,
		`{"id":"u","tool":"odd"}`:                                                                                    `"id":"u","decision":"none","check":"","reason":"","prompt":null,"ms":0,"error":"the line has no \"input\" that is an object"`,
		`{"id":"v","input":{}}`:                                                                                      `"error":"the line names no \"tool\""`,
		`{"id":"w","tool":"bash","input":{},"x":1}`:                                                                  `"error":"reading the line: `,
		`nonsense`: `"error":"reading the line: `,
	}
	var in, want []string
	for line, part := range lines {
		in, want = append(in, line), append(want, part)
	}
	code, out, errs := runModule(strings.Join(in, "\n")+"\n\n", "test", filepath.Join(dir, "m.ts"), "--json", "--call-time", "1s")
	got := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if code != ExitFailure || len(got) != len(want) || !strings.Contains(errs, "not all is well") {
		t.Fatalf("exit %d, %d lines of %d, %s", code, len(got), len(want), errs)
	}
	for i, line := range got {
		var v any
		if err := json.Unmarshal([]byte(line), &v); err != nil || !strings.Contains(line, want[i]) || strings.Contains(line, "\\u001b") {
			t.Errorf("%s\n gives %s (%v)\n wants %s", in[i], line, err, want[i])
		}
	}
}

func TestModuleTestText(t *testing.T) {
	t.Parallel()
	dir := moduleFiles(t, map[string]string{"m.ts": testedModule, "bad.ts": "const x = ;\n", "quiet.ts": "export default (api) => api.onToolUse({ name: 'q', description: 'Says nothing.', handler() {} });", "empty.ts": "export default () => {};"})
	good, bad := filepath.Join(dir, "m.ts"), filepath.Join(dir, "bad.ts")
	for name, row := range map[string]struct {
		args []string
		code int
		out  []string
		errs string
	}{
		"a request": {[]string{good, "--call", bashMail}, ExitOK, []string{"request by \"mail\" (", " ms)\n  Authorization required: mail\n  Ask before mail.\n  Who gets it?\n  And why?\n" +
			"  bash: é; sudo »mail« a@b.org\n  [approve = Send]\n"}, ""},
		"a block":                 {[]string{good, "--call", `{"tool":"write","cwd":"/r","input":{"path":"/x"}}`}, ExitOK, []string{"block by \"home\" (", "ms)\n  outside of /r test\n"}, ""},
		"nothing":                 {[]string{good, "--call", `{"tool":"bash","input":{"command":"ls"}}`}, ExitOK, []string{"none of 3 checks objects ("}, ""},
		"two calls":               {[]string{good, "--call", bashMail, "--call", `{"tool":"bash","input":{"command":"ls"}}`}, ExitOK, []string{"request by", "none of 3"}, ""},
		"a check that fails":      {[]string{good, "--call", `{"tool":"odd","input":{}}`}, ExitFailure, []string{"request, because check \"broken\" failed: "}, "not all is well"},
		"a call that is none":     {[]string{good, "--call", "{"}, ExitFailure, []string{"error: reading the line", `a call is JSON, as {"tool":"bash",`}, "not all is well"},
		"the checks of a file":    {[]string{good}, ExitOK, []string{"1 module, 3 checks\n", "\nm/mail (bash)\n  Ask before mail.\n", "\nm/home (read, write)\n", "\nm/broken (calls that its function picks)\n"}, ""},
		"those of a folder":       {[]string{dir}, ExitFailure, []string{"3 modules, 4 checks\n", "\nm/mail (bash)", "\nquiet/q (every call)\n"}, "module bad does not load: bad.ts:1:11: Unexpected \";\": const x = ;"},
		"a module without checks": {[]string{filepath.Join(dir, "empty.ts")}, ExitFailure, []string{"1 module, no checks"}, "module empty registers no check: "},
		"a module that is none":   {[]string{bad}, ExitFailure, []string{"no modules, no checks"}, "bad.ts:1:11"},
		"asked all the same":      {[]string{bad, "--json", "--call", bashMail}, ExitFailure, []string{`"id":"m","decision":"none"`, `"error":"module bad.ts does not load: bad.ts:1:11`}, "bad.ts:1:11"},
		"no file":                 {[]string{filepath.Join(dir, "gone.ts")}, ExitFailure, nil, "no such file"},
		"no argument":             {nil, ExitUsage, nil, "takes a file or folder"},
	} {
		code, out, errs := runModule("", append([]string{"test", "--call-time", "1s"}, row.args...)...)
		if code != row.code || !strings.Contains(errs, row.errs) || row.errs == "" && errs != "" || len(row.out) == 0 && out != "" {
			t.Errorf("%s: exit %d, want %d; %q, %q", name, code, row.code, errs, out)
		}
		for _, part := range row.out {
			if !strings.Contains(out, part) {
				t.Errorf("%s: it prints %q, want %q", name, out, part)
			}
		}
	}
}

func TestModuleNew(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "permissions")
	for _, args := range [][]string{{"release"}, {"corpus", "--folder"}} {
		if code, out, errs := runModule("", append([]string{"new", "--dir", dir}, args...)...); code != ExitOK || !strings.Contains(out, "assent module test "+filepath.Join(dir, args[0])) {
			t.Fatalf("exit %d, %s %s", code, out, errs)
		}
	}
	if types, err := os.ReadFile(filepath.Join(dir, "permissions.d.ts")); err != nil || string(types) != sdk.Types {
		t.Errorf("the types are not those of the library: %v", err)
	}
	// What was written works, and is what `module test` is told to look at.
	for _, target := range []string{"release.ts", "corpus", "."} {
		code, out, errs := runModule("", "test", filepath.Join(dir, target), "--call-time", "1s", "--call", `{"tool":"bash","input":{"command":"git push"}}`, "--call", `{"tool":"bash","input":{"command":"git push -f"}}`,
			"--call", `{"tool":"bash","input":{"command":"git pull"}}`)
		if code != ExitOK || !strings.HasPrefix(out, "request by ") || !strings.Contains(out, "\nblock by ") || !strings.Contains(out, "\nnone of ") {
			t.Errorf("%s: exit %d, %s %s", target, code, out, errs)
		}
	}
	for name, row := range map[string]struct {
		args []string
		code int
		errs string
	}{
		"one that is there":      {[]string{"release"}, ExitFailure, "release.ts is there already"},
		"one that has a folder":  {[]string{"corpus", "--folder"}, ExitFailure, "is there already"},
		"a name that is a path":  {[]string{"../x"}, ExitUsage, "is no name of a module"},
		"a name that is types'":  {[]string{"x.d"}, ExitUsage, "is no name of a module"},
		"no name":                {nil, ExitUsage, "takes a name"},
		"another in that folder": {[]string{"second"}, ExitOK, ""},
	} {
		if code, _, errs := runModule("", append([]string{"new", "--dir", dir}, row.args...)...); code != row.code || !strings.Contains(errs, row.errs) {
			t.Errorf("%s: exit %d, %s", name, code, errs)
		}
	}
	// An older copy of the types is brought up to date, another's file is not.
	types := filepath.Join(dir, "permissions.d.ts")
	for old, code := range map[string]int{"declare module \"@assent/permissions\" {}\n": ExitOK, "export type Mine = 1;\n": ExitFailure} {
		if err := os.WriteFile(types, []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
		got, _, errs := runModule("", "new", "--dir", dir, "m"+map[int]string{ExitOK: "1", ExitFailure: "2"}[code])
		now, _ := os.ReadFile(types)
		if got != code || (string(now) == sdk.Types) != (code == ExitOK) {
			t.Errorf("over %q: exit %d, %s", old, got, errs)
		}
	}
}
