package cli

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/local"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/pkg/protocol"
)

// person is somebody with a home folder, a claude binary and an assent binary.
type person struct {
	t    *testing.T
	home string
	vars map[string]string
}

func newPerson(t *testing.T) *person {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &person{t: t, home: home, vars: map[string]string{"HOME": home}}
	p.write("as sent", "", 0o755)
	def := local.Default{NATS: "nats://127.0.0.1:4222", Node: "main", Store: home, Creds: map[protocol.Role]string{}}
	path, err := local.Path(p.getenv)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, filepath.Join(home, local.FileName)} {
		if err := def.Save(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *person) getenv(k string) string { return p.vars[k] }

func (p *person) at(rel string) string { return filepath.Join(p.home, rel) }

func (p *person) write(rel, text string, mode fs.FileMode) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.at(rel)), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(p.at(rel), []byte(text), mode); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Chmod(p.at(rel), mode); err != nil {
		p.t.Fatal(err)
	}
}

// read is a file's text, "" if there is none.
func (p *person) read(rel string) string {
	p.t.Helper()
	b, err := os.ReadFile(p.at(rel))
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	return string(b)
}

func (p *person) types(args ...string) (code int, stdout, stderr string) {
	return p.runs(args, Install, Uninstall)
}

func (p *person) runs(args []string, commands ...Command) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	env := &Env{Stdin: strings.NewReader("y\n"), Stdout: &out, Stderr: &errs, Getenv: p.getenv}
	code = Main(env, args, commands...)
	return code, out.String(), errs.String()
}

func (p *person) install(args ...string) (code int, stdout, stderr string) {
	return p.types(append([]string{"install", "claude-code", "--claude", "testdata/claude/current", "--command", p.at("as sent")}, args...)...)
}

const settingsPath = ".claude/settings.json"

func TestInstallWritesTheHookAndUninstallTakesItOut(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{
		"no file":         "",
		"an empty object": "{}",
		"one line":        `{"model":"opus"}`,
		"a blank line":    "{\n\n  \"model\" : \"opus\" ,\n\t\"x\":1 }",
		"empty hooks":     "{\"hooks\": {\"PreToolUse\": []}}\n",
		"hooks of others": "{\n  \"hooks\": {\n    \"PreToolUse\": [{\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"check\"}]}]\n  }\n}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPerson(t)
			if before != "" {
				p.write(settingsPath, before, 0o640)
			}
			code, stdout, stderr := p.install("--yes")
			if code != ExitOK || stderr != "" {
				t.Fatalf("exit %d: %s", code, stderr)
			}
			text := p.read(settingsPath)
			for _, want := range []string{`"matcher": "*"`, `"timeout": 600`, `"onFailure": "block"`, `"'` + p.at("as sent") + `' hook claude-code --local ` + p.at("local.json") + `"`} {
				if !strings.Contains(text, want) {
					t.Errorf("the settings lack %s:\n%s", want, text)
				}
			}
			if !strings.Contains(stdout, `+ `) || !strings.Contains(stdout, "onFailure") {
				t.Errorf("the change was not shown: %s", stdout)
			}
			if before != "" && p.mode(settingsPath) != 0o640 {
				t.Errorf("mode %o, want that of before", p.mode(settingsPath))
			}
			if code, stdout, _ = p.install("--yes"); code != ExitOK || p.read(settingsPath) != text || !strings.Contains(stdout, "already") {
				t.Errorf("a second time: exit %d, %s", code, stdout)
			}
			if code, _, stderr = p.types("uninstall", "claude-code", "--yes"); code != ExitOK || p.read(settingsPath) != before {
				t.Errorf("exit %d: %s; left\n%s\nwant\n%s", code, stderr, p.read(settingsPath), before)
			}
			if left := p.list(".claude"); len(left) > 1 || before == "" && len(left) > 0 {
				t.Errorf("files are left: %q", left)
			}
			if code, stdout, _ = p.types("uninstall", "claude-code", "--yes"); code != ExitOK || !strings.Contains(stdout, "no hook") {
				t.Errorf("a second time: exit %d, %s", code, stdout)
			}
		})
	}
}

func (p *person) mode(rel string) fs.FileMode {
	p.t.Helper()
	info, err := os.Stat(p.at(rel))
	if err != nil {
		p.t.Fatal(err)
	}
	return info.Mode().Perm()
}

func (p *person) list(rel string) (names []string) {
	p.t.Helper()
	entries, err := os.ReadDir(p.at(rel))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// What was written after the install stays.
func TestUninstallKeepsLaterChanges(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write(settingsPath, "{\n  \"model\": \"opus\"\n}\n", 0o600)
	p.install("--yes")
	p.write(settingsPath, strings.Replace(p.read(settingsPath), "opus", "haiku", 1), 0o600)
	if code, _, stderr := p.types("uninstall", "claude-code", "--yes"); code != ExitOK || p.read(settingsPath) != "{\n  \"model\": \"haiku\"\n}\n" {
		t.Errorf("exit %d: %s; left\n%s", code, stderr, p.read(settingsPath))
	}
}

func TestInstallAsksBeforeItWrites(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	code, stdout, stderr := p.install()
	if code != ExitUsage || !strings.Contains(stdout, "onFailure") || !strings.Contains(stderr, "--yes") || p.read(settingsPath) != "" {
		t.Errorf("exit %d, %s%s; want exit 2, the change and nothing written", code, stdout, stderr)
	}
	p.install("--yes")
	text := p.read(settingsPath)
	if code, _, stderr = p.types("uninstall", "claude-code"); code != ExitUsage || p.read(settingsPath) != text {
		t.Errorf("exit %d, %s; want exit 2 and nothing taken out", code, stderr)
	}
}

func TestInstallFindsTheSettings(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write("dotfiles/claude.json", "{}\n", 0o600)
	p.write(".claude/x", "", 0o600)
	if err := os.Symlink(p.at("dotfiles/claude.json"), p.at(settingsPath)); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := p.install("--yes"); code != ExitOK || !strings.Contains(p.read("dotfiles/claude.json"), "onFailure") {
		t.Errorf("exit %d: %s: the link was not followed", code, stderr)
	}
	if info, err := os.Lstat(p.at(settingsPath)); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	p.vars["CLAUDE_CONFIG_DIR"] = p.at("elsewhere")
	if code, _, stderr := p.install("--yes"); code != ExitOK || !strings.Contains(p.read("elsewhere/settings.json"), "onFailure") {
		t.Errorf("exit %d: %s: CLAUDE_CONFIG_DIR was not heeded", code, stderr)
	}
	if code, _, stderr := p.install("--yes", "--settings", p.at("third.json")); code != ExitOK || !strings.Contains(p.read("third.json"), "onFailure") {
		t.Errorf("exit %d: %s: --settings was not heeded", code, stderr)
	}
}

// cached is where `go run` keeps a binary.
var cached = ".cache/x/9f/" + strings.Repeat("9f", 32) + "-d/assent"

func TestInstallPinsTheGate(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	agent, judge := p.creds(protocol.RoleAgent), p.creds(protocol.RoleJudge)
	if code, stdout, stderr := p.install("--yes", "--nats", "nats://gate.example:4222", "--creds", agent, "--settings", p.at("my settings.json")); code != ExitOK || stderr != "" ||
		!strings.Contains(p.read("my settings.json"), `hook claude-code --nats nats://gate.example:4222 --creds `+agent+` --node main"`) ||
		!strings.Contains(stdout, "assent uninstall claude-code --settings '"+p.at("my settings.json")+"'") {
		t.Errorf("exit %d: %s%s%s", code, stdout, stderr, p.read("my settings.json"))
	}
	if code, _, stderr := p.install("--yes", "--nats", "tls://gate.example:4222", "--creds", judge, "--node", "edge"); code != ExitUsage || !strings.Contains(stderr, "role judge") {
		t.Errorf("another role's credentials: exit %d, %s", code, stderr)
	}
	if code, _, stderr := p.install("--yes", "--nats", "tls://gate.example:4222", "--creds", "none.creds", "--node", "edge"); code != ExitOK || !strings.Contains(stderr, "denied") || !strings.Contains(p.read(settingsPath), `/none.creds --node edge"`) {
		t.Errorf("credentials that are to come: exit %d, %s\n%s", code, stderr, p.read(settingsPath))
	}
	// Another node becomes this user's default: the hook stays with the first.
	if code, _, _ := p.install("--yes"); code != ExitOK || !strings.Contains(p.read(settingsPath), "--local "+p.at("local.json")) {
		t.Errorf("exit %d: the store's own file is not named:\n%s", code, p.read(settingsPath))
	}
}

func (p *person) creds(role protocol.Role) string {
	p.t.Helper()
	a, err := node.OpenAuthority(p.at("keys"), "main")
	if err != nil {
		p.t.Fatal(err)
	}
	opts := node.IssueOptions{}
	if role == protocol.RoleJudge {
		opts.Links = []string{"*"}
	}
	b, err := a.Issue(role, "someone", opts)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(string(role)+".creds", string(b), 0o600)
	return p.at(string(role) + ".creds")
}

func TestAQuestionEndsWithTheProcess(t *testing.T) {
	t.Parallel()
	nobody, typing := io.Pipe()
	defer typing.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if word, err := readLine(ctx, nobody); err == nil {
		t.Errorf("an interrupt reads as %q", word)
	}
	if word, err := readLine(t.Context(), strings.NewReader(" Y \nno")); err != nil || word != "y" {
		t.Errorf("%q, %v", word, err)
	}
}

func TestInstallRefuses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		prepare func(p *person)
		args    []string
		code    int
		want    string
	}{
		"an old version":           {nil, []string{"--claude", "testdata/claude/old"}, ExitFailure, "claude update"},
		"no version":               {nil, []string{"--claude", "testdata/claude/junk"}, ExitFailure, "2.1.295"},
		"a claude that fails":      {nil, []string{"--claude", "testdata/claude/failing"}, ExitFailure, "--skip-version-check"},
		"no claude":                {nil, []string{"--claude", "testdata/claude/none"}, ExitFailure, "--skip-version-check"},
		"settings that are broken": {func(p *person) { p.write(settingsPath, "{\n  \"a\": x\n}", 0o600) }, nil, ExitFailure, "line 2, column 8"},
		"settings with comments":   {func(p *person) { p.write(settingsPath, "{\n  // mine\n}", 0o600) }, nil, ExitFailure, "line 2, column 3"},
		"hooks of another kind":    {func(p *person) { p.write(settingsPath, `{"hooks":[]}`, 0o600) }, nil, ExitFailure, "line 1, column 10"},
		"a folder as settings":     {func(p *person) { p.write(settingsPath+"/x", "", 0o600) }, nil, ExitFailure, "no regular file"},
		"a link to nothing":        {func(p *person) { p.write(".claude/x", "", 0o600); _ = os.Symlink("gone", p.at(settingsPath)) }, nil, ExitFailure, "link to nothing"},
		"a binary that is not":     {func(p *person) { os.Remove(p.at("as sent")) }, nil, ExitFailure, "binary"},
		"a binary that cannot run": {func(p *person) { os.Chmod(p.at("as sent"), 0o600) }, nil, ExitFailure, "--command"},
		"a binary made by go run":  {nil, []string{"--command", ""}, ExitFailure, "go install"},
		"a claude that hangs":      {nil, []string{"--claude", "testdata/claude/hanging"}, ExitFailure, "did not answer within"},
		"a binary in the cache":    {func(p *person) { p.write(cached, "", 0o755) }, []string{"--command", "HOME/" + cached}, ExitFailure, "go install"},
		"a cache of one's own":     {func(p *person) { p.vars["GOCACHE"] = p.at("cache"); p.write("cache/assent", "", 0o755) }, []string{"--command", "HOME/cache/assent"}, ExitFailure, "go install"},
		"no gate is known":         {func(p *person) { os.Remove(p.at(".config/assent/local.json")) }, nil, ExitFailure, "assent up"},
		"two gates":                {nil, []string{"--local", "x", "--nats", "nats://h:1", "--creds", "c"}, ExitUsage, "keep one"},
		"half a remote gate":       {nil, []string{"--nats", "nats://h:1"}, ExitUsage, "--creds"},
		"the other half":           {nil, []string{"--creds", "x"}, ExitUsage, "--nats"},
		"a node alone":             {nil, []string{"--node", "main"}, ExitUsage, "--nats"},
		"an address that is not":   {nil, []string{"--nats", "gate.example", "--creds", "c"}, ExitUsage, "nats://host:port"},
		"a node that is none":      {nil, []string{"--nats", "nats://h:1", "--creds", "c", "--node", "a.b"}, ExitUsage, "--node"},
		"an argument":              {nil, []string{"x"}, ExitUsage, "no arguments"},
		"a flag that is not":       {nil, []string{"--force"}, ExitUsage, "--force"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPerson(t)
			if row.prepare != nil {
				row.prepare(p)
			}
			args := []string{"--yes"}
			for _, a := range row.args {
				args = append(args, strings.Replace(a, "HOME/", p.home+"/", 1))
			}
			before := p.peek(settingsPath)
			code, _, stderr := p.install(args...)
			if code != row.code || !strings.Contains(stderr, row.want) {
				t.Errorf("exit %d, %s; want exit %d with %q", code, stderr, row.code, row.want)
			}
			if after := p.peek(settingsPath); after != before {
				t.Errorf("something was written: %s", after)
			}
		})
	}
}

// peek is read, for what may be no file.
func (p *person) peek(rel string) string {
	b, _ := os.ReadFile(p.at(rel))
	return string(b)
}

func TestInstallOfAnUnknownAgent(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	for _, word := range []string{"install", "uninstall"} {
		if code, _, stderr := p.types(word, "emacs"); code != ExitUsage || !strings.Contains(stderr, "emacs") {
			t.Errorf("%s: exit %d, %s; want exit 2 that names it", word, code, stderr)
		}
	}
}

func TestInstallWarns(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write(settingsPath, `{"disableAllHooks": true}`, 0o600)
	if _, _, stderr := p.install("--yes"); !strings.Contains(stderr, "disableAllHooks") {
		t.Errorf("no warning of hooks that are off: %s", stderr)
	}
	if code, _, stderr := p.install("--yes", "--skip-version-check", "--claude", "/nowhere/claude"); code != ExitOK || !strings.Contains(stderr, "not checked") {
		t.Errorf("exit %d, no warning of the version: %s", code, stderr)
	}
	if code, _, stderr := p.install("--yes", "--local", p.at("gone.json")); code != ExitOK || !strings.Contains(stderr, "denied") {
		t.Errorf("exit %d, no warning of the missing gate: %s", code, stderr)
	}
}

// A file that changes while the person thinks is not overwritten.
func TestSettingsFileHeedsOthers(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write(settingsPath, "{}", 0o600)
	f, err := openSettings(p.at(settingsPath))
	if err != nil {
		t.Fatal(err)
	}
	p.write(settingsPath, `{"model":"opus"}`, 0o600)
	if err := f.write([]byte("{}")); err == nil || p.read(settingsPath) != `{"model":"opus"}` {
		t.Errorf("overwritten: %v", err)
	}
	if err := f.delete(); err == nil || p.read(settingsPath) != `{"model":"opus"}` {
		t.Errorf("deleted: %v", err)
	}
}

func TestShellQuote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"/usr/bin/assent": "/usr/bin/assent",
		"/my files/x":     "'/my files/x'",
		"":                "''",
		"/a'b":            `'/a'\''b'`,
		"$(touch x)":      "'$(touch x)'",
		"a;b":             "'a;b'",
		"~/x":             "'~/x'",
	} {
		if got := shellQuote(in); got != want {
			t.Errorf("%q becomes %s, want %s", in, got, want)
		}
	}
}

func TestChangeOf(t *testing.T) {
	t.Parallel()
	got := changeOf("f", []byte("1\n2\n3\n4\n5\n6\n7\n8\n9\n"), []byte("1\n2\n3\n4\nfive\n6\n7\n8\n9\n"))
	if want := "f, from line 2:\n  2\n  3\n  4\n- 5\n+ five\n  6\n  7\n  8\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := changeOf("f", nil, []byte("{}\n")); got != "f, from line 1:\n+ {}\n" {
		t.Errorf("got\n%s", got)
	}
}
