package policy

import (
	"reflect"
	"strings"
	"testing"
)

func TestSurfacesGrant(t *testing.T) {
	t.Parallel()
	ruleRows(t, []row{
		{"the fallback allows what no rule speaks of", `{"*":"allow"}`, on("frob", nil), Allow, "frob", "*"},
		{"a tool by its name", `{"frob":"allow"}`, on("frob", nil), Allow, "frob", "*"},
		{"the last match wins", `{"bash":{"git *":"deny","git status":"allow"}}`, bash("git status"), Allow, "bash", "git status"},
		{"a surface pattern in front is overridden", `{"ba*":"deny","bash":"allow"}`, bash("ls"), Allow, "bash", "*"},
		{"the fallback stays a fallback where it stands last", `{"bash":"allow","*":"deny"}`, bash("ls"), Allow, "bash", "*"},
		{"a known tool in its agent's spelling", `{"read":"allow"}`, on("Read", m{"file_path": "/repo/a"}), Allow, "read", "*"},
		{"a file tool by its path in the project", `{"read":{"src/*":"allow"}}`, on("read", m{"path": "src/a/b"}), Allow, "read", "src/*"},
		{"a file tool by an absolute path", `{"read":{"/repo/src/*":"allow"}}`, on("read", m{"path": "src/a"}), Allow, "read", "/repo/src/*"},
		{"a dot in front of the pattern", `{"read":{"./src/*":"allow"}}`, on("read", m{"path": "src/a"}), Allow, "read", "./src/*"},
		{"a skill that another argument names", `{"skill":{"*":"allow","evil":"deny"}}`, on("skill", m{"skill": "pdf", "name": "evil"}), Deny, "skill", "evil"},
		{"a skill beside one that is allowed", `{"skill":{"*":"ask","pdf":"allow"}}`, on("skill", m{"skill": "pdf", "name": "other"}), Ask, "skill", "*"},
		{"a skill that two arguments name", `{"skill":{"pdf":"allow"}}`, on("skill", m{"skill": "pdf", "name": "pdf"}), Allow, "skill", "pdf"},
		{"a skill by its name", `{"skill":{"pdf":"allow"}}`, on("Skill", m{"skill": "pdf"}), Allow, "skill", "pdf"},
		{"an edit by an alias of its tool", `{"edit":"allow"}`, on("MultiEdit", m{"file_path": "a"}), Allow, "edit", "*"},
		{"a listing of the directory itself", `{"ls":"allow"}`, on("LS", nil), Allow, "ls", "*"},
	})
}

func TestSurfacesRefuse(t *testing.T) {
	t.Parallel()
	ruleRows(t, []row{
		{"no rule at all asks", `{}`, on("frob", nil), Ask, "frob", "*"},
		{"a tool without a name is denied", `{"*":"allow"}`, on("", nil), Deny, "", "<no-tool>"},
		{"the last match wins against an allow", `{"bash":{"git status":"allow","git *":"deny"}}`, bash("git status"), Deny, "bash", "git *"},
		{"a surface pattern behind overrides", `{"bash":"allow","ba*":"deny"}`, bash("ls"), Deny, "bash", "*"},
		{"an allowing fallback that stands last lifts no deny", `{"bash":{"rm *":"deny"},"*":"allow"}`, bash("rm x"), Deny, "bash", "rm *"},
		{"a deny holds for another spelling of the tool", `{"*":"allow","bash":"deny"}`, on("BASH", m{"command": "ls"}), Deny, "bash", "*"},
		{"a deny of edits holds for every tool that edits", `{"*":"allow","edit":"deny"}`, on("NotebookEdit", m{"notebook_path": "a"}), Deny, "edit", "*"},
		{"a pattern of a tool without a value does not match", `{"frob":{"x *":"allow"}}`, on("frob", m{"x": "y"}), Ask, "frob", "*"},
		{"a file tool whose path stands under another name", `{"*":"allow"}`, on("read", m{"target": ".env"}), Ask, "read", "*"},
		{"a file tool whose path is no text, and another", `{"*":"allow"}`, on("read", m{"path": 7, "x": "a"}), Ask, "read", "*"},
		{"an input that is no object", `{"*":"allow"}`, Call{Tool: "bash", Input: []byte(`"ls"`), Cwd: "/repo"}, Ask, "bash", "<unknown-input>"},
		{"a path too deep in an input to be found", `{"*":"allow","path":{"*.env":"deny"}}`,
			Call{Tool: "frob", Input: []byte(strings.Repeat(`{"a":`, 40) + `{"path":".env"}` + strings.Repeat("}", 40)), Cwd: "/repo"}, Ask, "frob", "<unknown-input>"},
		{"an input that no reader follows", `{"*":"allow"}`,
			Call{Tool: "frob", Input: []byte(strings.Repeat(`[`, 2000) + strings.Repeat("]", 2000)), Cwd: "/repo"}, Ask, "frob", "<unknown-input>"},
		{"an input with a duplicate key", `{"*":"allow","read":{"*.env":"deny"}}`,
			Call{Tool: "read", Input: []byte(`{"path":"a","path":".env"}`), Cwd: "/repo"}, Ask, "read", "<unknown-input>"},
	})
}

func TestPathsGrant(t *testing.T) {
	t.Parallel()
	ruleRows(t, []row{
		{"inside the project external_directory says nothing", `{"*":"allow","external_directory":"deny"}`, on("read", m{"path": "a"}), Allow, "read", ""},
		{"dots that come back inside", `{"*":"allow","external_directory":"deny"}`, on("read", m{"path": "../repo/a"}), Allow, "read", ""},
		{"an outside path that a rule allows", `{"read":"allow","external_directory":{"*":"ask","/opt/cache/*":"allow"}}`, on("read", m{"path": "/opt/cache/x"}), Allow, "read", ""},
		{"the home prefix in a pattern", `{"read":"allow","external_directory":{"~/dev/*":"allow"}}`, on("read", m{"path": "/home/dev/dev/a"}), Allow, "read", ""},
		{"$HOME in a pattern, a tilde in the call", `{"read":"allow","external_directory":{"$HOME/dev/*":"allow"}}`, on("read", m{"path": "~/dev/a"}), Allow, "read", ""},
		{"the read form wins over the plain one", `{"*":"allow","external_directory":"deny","external_directory_read":"allow"}`, on("read", m{"path": "/x"}), Allow, "read", ""},
		{"the write form wins over the plain one", `{"*":"allow","external_directory":"deny","external_directory_write":"allow"}`, on("write", m{"path": "/x"}), Allow, "write", ""},
		{"a resolved path inside the project", `{"*":"allow","external_directory":"deny"}`, on("read", m{"path": "l"}, Path{"l", "/repo/real"}), Allow, "read", ""},
		{"a project behind a symbolic link", `{"*":"allow","external_directory":"deny"}`,
			on("read", m{"path": "a"}, Path{"/repo", "/srv/repo"}, Path{"a", "/srv/repo/a"}), Allow, "read", ""},
		{"no path rule speaks: the tool decides", `{"*":"deny","read":"allow"}`, on("read", m{"path": "a"}), Allow, "read", "*"},
		{"an exception below a deny", `{"read":"allow","path":{"*.env*":"deny","*.env.example":"allow"}}`, on("read", m{"path": ".env.example"}), Allow, "read", ""},
		{"the null device is nowhere", `{"bash":"allow"}`, bash("ls -l /dev/null"), Allow, "bash", "*"},
		{"a URL is no path", `{"bash":"allow","path":{"*.env":"deny"}}`, bash("curl https://example.com/.env"), Allow, "bash", "*"},
	})
}

func TestPathsRefuse(t *testing.T) {
	t.Parallel()
	outside := `{"*":"allow","external_directory":"ask"}`
	env := `{"*":"allow","path":{"*":"allow","*.env":"deny"}}`
	ruleRows(t, []row{
		{"an absolute path outside", outside, on("read", m{"path": "/etc/passwd"}), Ask, "external_directory", "*"},
		{"dots that lead outside", outside, on("read", m{"path": "src/../../x"}), Ask, "external_directory", "*"},
		{"a sibling whose name starts alike", outside, on("read", m{"path": "/repository/x"}), Ask, "external_directory", "*"},
		{"a link that leads outside", outside, on("read", m{"path": "l"}, Path{"l", "/etc/passwd"}), Ask, "external_directory", "*"},
		{"the home directory", outside, on("read", m{"path": "~"}), Ask, "external_directory", "*"},
		{"outside asks by default", `{"read":"allow"}`, on("read", m{"path": "/x"}), Ask, "external_directory", "*"},
		{"an unknown directory makes every path external", `{"*":"allow"}`, Call{Tool: "read", Input: input(m{"path": "a"})}, Ask, "external_directory", "<unknown-directory>"},
		{"a relative directory is unknown", `{"*":"allow"}`, Call{Tool: "read", Input: input(m{"path": "/repo/a"}), Cwd: "repo"}, Ask, "external_directory", "<unknown-directory>"},
		{"the root is nobody's project", outside, Call{Tool: "read", Input: input(m{"path": "/etc/passwd"}), Cwd: "/"}, Ask, "external_directory", "*"},
		{"a tilde without a home", `{"*":"allow"}`, Call{Tool: "read", Input: input(m{"path": "~/a"}), Cwd: "/repo"}, Ask, "external_directory", "<unknown-directory>"},
		{"a raw spelling does not ride an allow", `{"read":{"*":"deny","src/*":"allow"}}`, on("read", m{"path": "src/../package.json"}), Deny, "read", "*"},
		{"a raw spelling does not ride an outside allow", `{"read":"allow","external_directory":{"*":"deny","/opt/*":"allow"}}`,
			on("read", m{"path": "/opt/a/../../etc/shadow"}), Deny, "external_directory", "*"},
		{"a folder named tilde is not the home", `{"read":{"*":"ask","~/x":"allow"}}`, on("read", m{"path": "./~/x"}), Ask, "read", "*"},
		{"a path rule cuts across tools", env, on("write", m{"path": "a/.env"}), Deny, "path", "*.env"},
		{"a path rule holds for the resolved path", env, on("read", m{"path": "notes"}, Path{"notes", "/repo/.env"}), Deny, "path", "*.env"},
		{"a path rule holds for the path as typed", env, on("read", m{"path": ".env"}, Path{".env", "/repo/x"}), Deny, "path", "*.env"},
		{"a path in an unknown tool's input", env, on("frob", m{"path": ".env"}), Deny, "path", "*.env"},
		{"a path deep in a tool's input", env, on("mcp", m{"server": "fs", "tool": "read", "arguments": m{"paths": []any{"a", ".env"}}}), Deny, "path", "*.env"},
		{"a glob that names the file", env, on("grep", m{"pattern": "S", "glob": ".env"}), Deny, "path", "*.env"},
		{"a glob that leads outside", outside, on("glob", m{"pattern": "/etc/*"}), Ask, "external_directory", "*"},
		{"the read form holds for reads", `{"*":"allow","path":{"*":"allow"},"path_read":{"*.env":"deny"}}`, on("read", m{"path": ".env"}), Deny, "path", "*.env"},
		{"an edit reads too", `{"*":"allow","path_read":{"*.env":"deny"}}`, on("edit", m{"path": ".env"}), Deny, "path", "*.env"},
		{"a direction that is not proven takes the stricter", `{"*":"allow","external_directory_read":"allow","external_directory_write":"deny"}`, bash("frob /x"), Deny, "external_directory", "*"},
		{"blanks around a path", outside, on("read", m{"path": " /etc/passwd"}), Ask, "external_directory", "*"},
		{"an at sign in front of a path", outside, on("read", m{"path": "@/etc/hosts"}), Ask, "external_directory", "*"},
	})
}

func TestShellGrants(t *testing.T) {
	t.Parallel()
	ruleRows(t, []row{
		{"one simple command", `{"bash":{"git *":"allow"}}`, bash("git status"), Allow, "bash", "git *"},
		{"quotes around a literal word", `{"bash":{"git *":"allow"}}`, bash(`git commit -m "fix: a && b"`), Allow, "bash", "git *"},
		{"errors silenced", `{"bash":{"ls *":"allow"}}`, bash("ls -l 2>/dev/null"), Allow, "bash", "ls *"},
		{"descriptors joined", `{"bash":{"go *":"allow"}}`, bash("go test ./... 2>&1"), Allow, "bash", "go *"},
		{"a comment", `{"bash":{"*":"allow","rm *":"deny"}}`, bash("ls # rm x"), Allow, "bash", "*"},
		{"a program named in a rule by its path", `{"bash":{"*":"ask","./tool *":"allow"}}`, bash("./tool x"), Allow, "bash", "./tool *"},
		{"a denied word that is an argument", `{"bash":{"*":"allow","rm *":"deny"}}`, bash("echo rm x"), Allow, "bash", "*"},
		{"a denied text in quotes", `{"bash":{"*":"allow","rm *":"deny"}}`, bash("echo 'a; rm x'"), Allow, "bash", "*"},
		{"an exception to a deny", `{"bash":{"rm *":"deny","rm -i *":"allow"}}`, bash("rm -i x"), Allow, "bash", "rm -i *"},
		{"a module by its name", `{"bash":{"python3 -m pytest *":"allow"}}`, bash("python3 -m pytest -q"), Allow, "bash", "python3 -m pytest *"},
	})
}

func TestShellRefuses(t *testing.T) {
	t.Parallel()
	open := `{"bash":{"*":"allow","rm *":"deny"}}`
	rows := []row{
		{"a function", open, bash("f() { ls; }; f"), Ask, "bash", "<not-a-simple-command>"},
		{"a redirection to a file", open, bash("echo x > f"), Ask, "write", "*"},
		{"a variable in front", open, bash("PATH=. ls"), Ask, "bash", "<assignment>"},
		{"a wrapper", open, bash("sudo ls"), Ask, "bash", "<wrapper:sudo>"},
		{"an interpreter with its program", open, bash("python3 -c 'print(1)'"), Ask, "bash", "<interpreter:python3>"},
		{"git with settings", open, bash("git -c alias.z='!x' z"), Ask, "bash", "<option:git -c>"},
		{"no syntax", open, bash("ls ((("), Ask, "bash", "<unparseable>"},
		{"no command, and something that may be one", `{"bash":"allow"}`, on("bash", m{"command": " ", "script": "rm x"}), Ask, "bash", "<unknown-argument>"},
		{"too large", open, bash("ls " + strings.Repeat("x", 64<<10)), Ask, "bash", "<too-large>"},
		{"too deep", open, bash(strings.Repeat("(", 201) + "ls" + strings.Repeat(")", 201)), Ask, "bash", "<too-deep>"},
		{"another directory", `{"*":"allow"}`, on("bash", m{"command": "ls", "cwd": "/repo/x"}), Ask, "bash", "<other-directory>"},
		{"a word that leads outside", `{"bash":"allow"}`, bash("cat /etc/passwd"), Ask, "external_directory", "*"},
		{"an option's value that leads outside", `{"bash":"allow"}`, bash("tool --file=/etc/passwd"), Ask, "external_directory", "*"},
		{"the parent", `{"bash":"allow"}`, bash("ls .."), Ask, "external_directory", "*"},
		{"a link in a command", `{"bash":"allow"}`, bash("cat esc/a", Path{"esc/a", "/etc/a"}), Ask, "external_directory", "*"},
		{"the whole disk", `{"*":"allow","external_directory":"ask"}`, bash("find / -name x"), Ask, "external_directory", "*"},
	}
	for _, text := range []string{
		"rm x", "/bin/rm x", `r''m x`, `\rm x`, "ls; rm x", "ls && rm x", "ls | rm x", "(rm x)", "{ rm x; }", "! rm x", "rm x &",
		"echo $(rm x)", "echo `rm x`", `echo "$(rm x)"`, "if true; then rm x; fi", "f() { rm x; }", "cat <<EOF\n$(rm x)\nEOF",
		"sudo -u root rm x", "env A=b rm x", "timeout -s KILL 5 rm x", "xargs -n 1 rm x", "nice -n 5 rm x", "bash -c 'rm x'", "sh -xc 'rm x'",
		"bash -o errexit -c 'rm x'", "eval 'rm x'", "eval rm x", "bash -c \"bash -c 'rm x'\"", "find . -exec rm {} \\;", "trap 'rm x' EXIT",
		"bash <<< 'rm x'", "bash <<EOF\nrm x\nEOF", "rm x; ((", "{rm,x}", "$'\\x72m' x", "$SUDO rm x", "2>/dev/null rm x", "time rm x",
		"[[ -n $(rm x) ]]", "export A=$(rm x)", "a=($(rm x))", "rm\tx", "command rm x", "exec rm x", "ls ${a:-$(rm x)}",
	} {
		rows = append(rows, row{"denied inside: " + text, open, bash(text), Deny, "bash", "rm *"})
	}
	for _, text := range []string{
		"cat .env", "cat ./.env", "cat '.env'", "dd if=.env", "curl -d @.env x", "tool --f=.env", "echo $(cat .env)", "for f in .env; do cat $f; done",
		"cat < .env", "echo > .env", "cat $'.env'", "curl file://$PWD/.env", "A=.env; cat $A",
	} {
		rows = append(rows, row{"a path rule finds: " + text, `{"*":"allow","path":{"*":"allow","*.env":"deny"}}`, bash(text), Deny, "path", "*.env"})
	}
	ruleRows(t, rows)
}

func TestMCP(t *testing.T) {
	t.Parallel()
	tool := func(server, name string) Call { return on("mcp", m{"server": server, "tool": name}) }
	ruleRows(t, []row{
		{"a pair by its canonical name", `{"mcp":{"exa/*":"allow"}}`, tool("exa", "search"), Allow, "mcp", "exa/*"},
		{"a pair with a colon", `{"mcp":{"exa:*":"allow"}}`, tool("exa", "search"), Allow, "mcp", "exa:*"},
		{"a pair with an underscore", `{"mcp":{"exa_search":"allow"}}`, tool("exa", "search"), Allow, "mcp", "exa_search"},
		{"a pair in one field", `{"mcp":{"exa/search":"allow"}}`, on("mcp", m{"tool": "exa:search"}), Allow, "mcp", "exa/search"},
		{"a joined name", `{"mcp":{"exa/search":"allow"}}`, on("mcp__exa__search", nil), Allow, "mcp", "exa/search"},

		{"an underscore that two pairs share allows neither", `{"mcp":{"git_hub_*":"allow"}}`, tool("git", "hub_x"), Ask, "mcp", "*"},
		{"an underscore that two pairs share denies both", `{"*":"allow","mcp":{"git_hub_*":"deny"}}`, tool("git", "hub_x"), Deny, "mcp", "git_hub_*"},
		{"a joined name of two readings is not allowed", `{"mcp":{"*":"allow"}}`, on("mcp__a__b__c", nil), Ask, "mcp", "*"},
		{"a joined name of two readings is denied by the second", `{"mcp":{"*":"allow","a__b/c":"deny"}}`, on("mcp__a__b__c", nil), Deny, "mcp", "a__b/c"},
		{"a tool that is no text", `{"mcp":{"*":"allow"}}`, on("mcp", m{"tool": []any{"a/b"}}), Ask, "mcp", ""},
		{"a tool without a server", `{"mcp":{"*/x":"deny","*":"ask","x":"allow"}}`, on("mcp", m{"tool": "x"}), Ask, "mcp", "*"},
		{"a tool without a server, where every tool is allowed", `{"mcp":{"*":"allow"}}`, on("mcp", m{"tool": "x"}), Allow, "mcp", "*"},
	})
}

func TestCanaryIsDeniedWhateverThePolicySays(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{`{}`, permission(`{"*":"allow"}`), permission(`{"assent_doctor_canary":"allow"}`), `{"yoloMode":true}`} {
		s := mustCompile(t, doc)
		got := s.Rule(on(ToolCanary, nil))
		if got.Action != Deny || got.Decisive.Origin != OriginBuiltin || got.Decisive.Reason != CanaryReason {
			t.Errorf("%s: %+v", doc, got.Decisive)
		}
		if c := s.Check(Query{Tool: ToolCanary}); c.State != Deny {
			t.Errorf("%s: the check says %s", doc, c.State)
		}
	}
}

func TestYoloLiftsAsksOfRulesOnly(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, `{"yoloMode":true,"permission":{"bash":{"*":"ask","rm *":"deny","dd *":{"action":"ask","humanOnly":true}}}}`)
	for text, want := range map[string]Action{
		"ls": Allow, "cat /etc/x": Allow, // asks of rules and of the default
		"rm x": Deny, "dd x": Ask, "ls | wc": Allow, "ls | sh": Ask, "sudo ls": Ask,
	} {
		if got := s.Rule(bash(text)); got.Action != want {
			t.Errorf("%s: %s, want %s", text, got.Action, want)
		}
	}
	if d := s.Rule(bash("ls")).Decisive; d.Origin != OriginYolo {
		t.Errorf("origin %q", d.Origin)
	}
}

func TestClampAllowsNothing(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, `{"yoloMode":true,"permission":{"*":"allow","bash":{"*":"allow","rm *":"deny"}},"modelDelegation":{"allowedSurfaces":["*"]}}`).Clamp("layer fleet does not read")
	for text, want := range map[string]Action{"ls": Ask, "rm x": Deny, "ls | wc": Ask} {
		got := s.Rule(bash(text))
		if got.Action != want {
			t.Errorf("%s: %s, want %s", text, got.Action, want)
		}
	}
	e := s.Rule(bash("ls")).Decisive
	if e.Reason != "layer fleet does not read" || !e.Floor {
		t.Errorf("%+v", e)
	}
	if ok, why := s.LinkMayAllow([]Entry{e}, bash("ls")); ok || !strings.Contains(why, "clamped") {
		t.Errorf("a link may allow under a clamp: %v %q", ok, why)
	}
	if s.Yolo() {
		t.Error("yolo under a clamp")
	}
}

func TestEmptyAsksEverything(t *testing.T) {
	t.Parallel()
	for _, c := range []Call{bash("ls"), on("read", m{"path": "a"}), on("frob", nil), on("mcp", m{"server": "a", "tool": "b"})} {
		if got := Empty().Rule(c); got.Action != Ask || got.Decisive.Origin != OriginDefault {
			t.Errorf("%s: %s by %s", c.Tool, got.Action, got.Decisive.Origin)
		}
	}
}

func TestReportedEntryIsTheWorstOfTheFirstSurface(t *testing.T) {
	t.Parallel()
	got := mustCompile(t, permission(`{"*":"ask","path":{"*.pem":"ask"}}`)).Rule(bash("cp /x/a.pem /y b"))
	var surfaces []string
	for _, e := range got.Open() {
		surfaces = append(surfaces, e.Surface+" "+e.Value)
	}
	want := []string{"external_directory /x/a.pem", "external_directory /y", "path /x/a.pem", "bash cp /x/a.pem /y b"}
	if !reflect.DeepEqual(surfaces, want) {
		t.Errorf("open %q, want %q", surfaces, want)
	}
	if got.Decisive.Value != "/x/a.pem" || got.Decisive.Surface != "external_directory" {
		t.Errorf("reported %+v", got.Decisive)
	}
}

func TestDeniedCallHasNothingOpen(t *testing.T) {
	t.Parallel()
	got := mustCompile(t, permission(`{"bash":{"rm *":"deny"}}`)).Rule(bash("rm /x"))
	if got.Action != Deny || len(got.Open()) != 0 {
		t.Errorf("%s, open %v", got.Action, got.Open())
	}
	if (Ruling{}).Action != None || len((Ruling{Entries: []Entry{{Action: Ask}}}).Open()) != 0 {
		t.Error("a ruling nobody made is no ask")
	}
}

func TestUnitsSayWhatEachCommandGets(t *testing.T) {
	t.Parallel()
	got := mustCompile(t, permission(`{"bash":{"*":"ask","ls *":"allow","rm *":"deny"}}`)).Rule(bash("ls a && sudo rm x"))
	want := []Unit{
		{Text: "ls a", Action: Allow, Pattern: "ls *"},
		{Text: "sudo rm x", Action: Ask, Pattern: "*"},
		{Text: "rm x", Action: Deny, Pattern: "rm *", Note: "run by sudo"},
	}
	if !reflect.DeepEqual(got.Units, want) {
		t.Errorf("units %+v", got.Units)
	}
}

func TestRulingStaysSmall(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, permission(`{"*":"allow","external_directory":"ask"}`))
	got := s.Rule(bash("cat " + strings.Repeat("/etc/some/rather/long/path/x", 1) + func() string {
		var b strings.Builder
		for i := range 3000 {
			b.WriteString(" /e" + strings.Repeat("x", i%50) + string(rune('a'+i%26)) + "/" + strings.Repeat("y", i/50))
		}
		return b.String()
	}()))
	if len(got.Entries) > maxReported+2 || len(got.Units) > maxReported || got.Action != Ask {
		t.Errorf("%d entries, %d units, %s", len(got.Entries), len(got.Units), got.Action)
	}
	size := 0
	for _, e := range got.Entries {
		size += len(e.Value) + len(e.Reason)
	}
	if size > 64<<10 {
		t.Errorf("entries of %d bytes", size)
	}
}

func TestDenyBeyondTheBoundStillDenies(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, permission(`{"bash":{"*":"allow","rm *":"deny"}}`))
	if got := s.Rule(bash(strings.Repeat("a$x; ", 500) + "rm x")); got.Action != Deny {
		t.Errorf("%s", got.Action)
	}
	s = mustCompile(t, permission(`{"*":"allow","external_directory":"ask","path":{"*.env":"deny"}}`))
	var b strings.Builder
	for i := range 200 {
		b.WriteString(" /x" + strings.Repeat("y", i))
	}
	if got := s.Rule(bash("cat" + b.String() + " .env")); got.Action != Deny {
		t.Errorf("%s", got.Action)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, permission(`{"*":"ask","bash":{"*":"ask","git *":"allow","rm *":{"action":"deny","reason":"no"}},
		"path":{"*.env":"deny"},"read":{"*":"allow","*.log":"deny"},"mcp":{"exa/*":"allow"}}`))
	for _, r := range []struct {
		q    Query
		want Action
	}{
		{Query{Surface: "bash", Value: "git status"}, Allow},
		{Query{Surface: "bash", Value: "git status && rm x"}, Deny},
		{Query{Surface: "bash", Value: "git status | wc"}, Ask},
		{Query{Surface: "bash", Value: "git add a/.env", Cwd: "/repo"}, Allow}, // its commands alone
		{Query{Surface: "bash", Value: "git add a/.env", Cwd: "/repo", WithPaths: true}, Deny},
		{Query{Surface: "bash", Value: "cd a && git add .env", Cwd: "/repo", WithPaths: true}, Deny},
		{Query{Surface: "bash", Value: "git add /x", Cwd: "/repo", WithPaths: true}, Ask},
		{Query{Surface: "bash", Value: "git add a/b", Cwd: "/repo", WithPaths: true}, Allow},
		{Query{Surface: "path", Value: "a/.env", Cwd: "/repo"}, Deny},
		{Query{Surface: "path", Value: "a/b", Cwd: "/repo"}, Allow},
		{Query{Surface: "external_directory", Value: "/x", Cwd: "/repo"}, Ask},
		{Query{Surface: "read", Value: "a.log", Cwd: "/repo"}, Deny},
		{Query{Surface: "read", Value: "a.go", Cwd: "/repo"}, Allow},
		{Query{Surface: "mcp", Value: "exa/search"}, Allow},
		{Query{Surface: "frob", Value: "x"}, Ask},
		{Query{Tool: "Read"}, Allow},
		{Query{Tool: "write"}, Ask},
		{Query{}, Deny},
		{Query{Surface: "bash", Tool: "bash"}, Deny},
	} {
		if got := s.Check(r.q); got.State != r.want {
			t.Errorf("%+v: %+v, want %s", r.q, got, r.want)
		}
	}
	if got := s.Check(Query{Surface: "bash", Value: "rm x"}); got != (Check{Deny, "rm *", LayerFleet, "no"}) {
		t.Errorf("%+v", got)
	}
}
