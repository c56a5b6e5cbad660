package policy

import (
	"strings"
	"testing"
)

// linted is the text of all warnings about a document.
func linted(t *testing.T, name, doc string) string {
	t.Helper()
	warnings, err := Lint("f", []byte(doc))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var all []string
	for _, w := range warnings {
		all = append(all, w.String())
	}
	return strings.Join(all, "\n")
}

// lintRow is a rule, what its author has in mind with it, and what is said of
// it. A rule that is warned of must not decide that call, any other must.
type lintRow struct {
	name, surface, pattern string
	action                 Action
	call                   Call
	want                   string
}

func lintRows(t *testing.T, rows []lintRow) {
	t.Helper()
	for _, r := range rows {
		doc := permission(`{"` + r.surface + `":{"*":"ask",` + string(input(r.pattern)) + `:"` + r.action.String() + `"},"external_directory":"allow"}`)
		if r.surface == surfaceExternal {
			doc = permission(`{"` + r.surface + `":{"*":"ask",` + string(input(r.pattern)) + `:"` + r.action.String() + `"}}`)
		}
		got := linted(t, r.name, doc)
		if r.want == "" && got != "" || !strings.Contains(got, r.want) {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
		decides := false
		for _, e := range mustCompile(t, doc).Rule(r.call).Entries {
			decides = decides || e.Surface == r.surface && e.MatchedPattern == r.pattern && e.Action == r.action
		}
		floored := r.action == Allow && mustCompile(t, doc).Rule(r.call).Action != Allow && strings.HasPrefix(r.surface, surfaceBash)
		if bites := decides && !floored; bites == (r.want != "") {
			t.Errorf("%s: the rule decides the call: %t", r.name, bites)
		}
	}
}

func TestLintShellPatterns(t *testing.T) {
	t.Parallel()
	lintRows(t, []lintRow{
		{"an allow of a list", "bash", "cd web && ls", Allow, bash("cd web && ls"), `f:1:35: bash "cd web && ls" never allows anything: rules are matched against one command at a time, and "&&" is`},
		{"an allow of alternatives", "bash", "ls || true", Allow, bash("ls || true"), `"||" is`},
		{"an allow of a sequence", "bash", "ls; *", Allow, bash("ls; pwd"), `";" is`},
		{"an allow of a pipe", "bash", "git log * | head *", Allow, bash("git log -p | head -3"), `"|" is`},
		{"an allow in the background", "bash", "sleep * &", Allow, bash("sleep 1 &"), `leave them out`},
		{"an allow of a redirection", "bash", "ls > *", Allow, bash("ls > x"), `redirections and comments are no part`},
		{"an allow of input from a file", "bash", "wc < *", Allow, bash("wc < x"), `redirections and comments are no part`},
		{"an allow of backquotes", "bash", "echo `date *`", Allow, bash("echo `date -u`"), "\"`\" is"},
		{"an allow of a substitution", "bash", "echo $(date *)", Allow, bash("echo $(date -u)"), `"$(" is`},
		{"an allow of two lines", "bash", "ls\npwd", Allow, bash("ls\npwd"), "a line break is"},
		{"an allow of part of a variable", "bash", "ls $D*", Allow, bash("ls $DIR"), "unless that is quoted"},
		{"an allow behind a variable", "bash", "CI=1 make *", Allow, bash("CI=1 make all"), "variables set in front of a command"},
		{"a silenced command", "bash", "ls 2>/dev/null", Allow, bash("ls 2>/dev/null"), "redirections and comments are no part"},
		{"two blanks", "bash", "git  status", Allow, bash("git  status"), `write "git status"`},
		{"a deny with two blanks", "bash", "rm  -rf *", Deny, bash("rm  -rf x"), `is a deny that stops nothing: a command's words are joined by single blanks before they are matched; write "rm -rf *"`},
		{"a blank in front", "bash", " ls", Allow, bash(" ls"), `write "ls"`},
		{"a blank behind", "bash", "ls ", Allow, bash("ls "), `write "ls"`},
		{"quotes", "bash", `git commit -m "wip"`, Allow, bash(`git commit -m "wip"`), "without its quotes"},
		{"a deny with quotes", "bash", `echo 'x'`, Deny, bash(`echo 'x'`), "is a deny that stops nothing: a command is matched without its quotes"},
		{"an empty pattern", "bash", "", Deny, bash("ls"), "is a deny that stops nothing: an empty pattern"},
		{"an allow of a wrapper", "bash", "sudo *", Allow, bash("sudo ls"), `bash "sudo *" never allows anything: sudo runs other commands`},
		{"an allow of env", "bash", "env *", Allow, bash("env FOO=1 ls"), "what stands behind env is ruled by itself"},
		{"an allow of timeout", "bash", "timeout 5 make *", Allow, bash("timeout 5 make all"), "what stands behind timeout is ruled by itself"},
		{"an allow of xargs", "bash", "xargs *", Allow, bash("xargs ls"), "xargs runs other commands"},
		{"an allow of a program in an argument", "bash", "python3 -c *", Allow, bash("python3 -c 1"), "python3 runs a program from its arguments"},
		{"an allow of a shell text", "bash", "bash -c *", Allow, bash("bash -c ls"), "bash runs a program from its arguments"},
		{"an allow of an option that deletes", "bash", "find * -delete", Allow, bash("find . -delete"), "find -delete can run other commands or change files"},
		{"a deny of a pipe", "bash", "curl * | sh", Deny, bash("curl x | sh -x"), `matches only a text that is typed like this as a whole`},
		{"a deny of a silenced command", "bash", "ls 2>/dev/null", Deny, bash("ls 2>/dev/null; ls"), "matches only a text that is typed like this as a whole"},
		{"an ask about a list", "bash", "cd * && rm *", Ask, bash("cd x; rm y"), "matches only a text that is typed like this as a whole"},
		{"an ask about a line with two blanks", "bash", "git  push", Ask, bash("git push"), "its guidance and humanOnly never count"},

		{"one command", "bash", "git status *", Allow, bash("git status -s"), ""},
		{"one word", "bash", "pwd", Allow, bash("pwd"), ""},
		{"a star within a word", "bash", "ls *.go", Allow, bash("ls a.go"), ""},
		{"a question mark", "bash", "ls ?", Allow, bash("ls a"), ""},
		{"everything below a program", "bash", "npm run *:test", Allow, bash("npm run web:test"), ""},
		{"a program of its own path", "bash", "./tool *", Allow, bash("./tool x"), ""},
		{"options", "bash", "go test -run=* ./...", Allow, bash("go test -run=X ./..."), ""},
		{"an assignment as an argument", "bash", "make VERSION=*", Allow, bash("make VERSION=1"), ""},
		{"signs that are no part of the shell", "bash", "git show HEAD~1:*", Allow, bash("git show HEAD~1:x"), ""},
		{"a script of an interpreter", "bash", "python3 *", Allow, bash("python3 x.py"), ""},
		{"a module of an interpreter", "bash", "python3 -m pytest *", Allow, bash("python3 -m pytest -q"), ""},
		{"a script of a shell", "bash", "bash *", Allow, bash("bash x.sh"), ""},
		{"an option that may be harmless", "bash", "bash -*", Allow, bash("bash -x x.sh"), ""},
		{"a wrapper that may only look", "bash", "command *", Allow, bash("command -v"), ""},
		{"a program that runs some of its words", "bash", "docker *", Allow, bash("docker ps"), ""},
		{"a harmless find", "bash", "find *", Allow, bash("find . -name x"), ""},
		{"a deny of a wrapper", "bash", "sudo *", Deny, bash("ls && sudo ls"), ""},
		{"a deny of an interpreter", "bash", "python3 -c *", Deny, bash("python3 -c 1"), ""},
		{"a deny of a shell text", "bash", "bash -c *", Deny, bash("bash -c ls"), ""},
		{"a deny of a substitution", "bash", "echo $(*", Deny, bash("echo $(date)"), ""},
		{"a deny of a variable", "bash", "rm $*", Deny, bash("rm $x"), ""},
		{"a deny of anything with an option", "bash", "* --force*", Deny, bash("x --force"), ""},
		{"a deny of a part of anything", "bash", "*mkfs*", Deny, bash("sudo mkfs.ext4 x"), ""},
		{"an ask about a program", "bash", "rm *", Ask, bash("rm x"), ""},
		{"an ask about git with options in front", "bash", "git push *", Ask, bash("git -C x push"), ""},
		{"an allow of a variable as it is typed", "bash", "ls $DIR", Allow, bash("ls $DIR"), ""},
		{"a deny of one word", "bash", "reboot", Deny, bash("/sbin/reboot"), ""},
		{"a single apostrophe", "bash", "echo it's", Deny, bash(`echo "it's"; ls`), ""},
		{"a colon and an equals sign", "bash", "dd if=*", Deny, bash("dd if=x"), ""},
		{"a tilde", "bash", "ls ~/src", Deny, bash("ls ~/src"), ""},
	})
}

func TestLintServerPatterns(t *testing.T) {
	t.Parallel()
	create := on("mcp", m{"server": "github", "tool": "create"})
	issue := on("mcp", m{"server": "github", "tool": "create_issue"})
	lintRows(t, []lintRow{
		{"a dot", "mcp", "github.create", Deny, create, `mcp "github.create" is a deny that stops nothing: the value is server/tool; did you mean "github/create"?`},
		{"an allow of a server alone", "mcp", "github", Allow, create, `did you mean "github/*"?`},
		{"an allow with a colon beside a star that asks", "mcp", "github:create", Allow, create, `did you mean "github/create"?`},
		{"a dot and a star", "mcp", "github.*", Allow, create, `mcp "github.*" never allows anything: the value is server/tool; did you mean "github/*"?`},
		{"a name as an agent lists it", "mcp", "mcp__github__create", Deny, create, `did you mean "github/create"?`},
		{"an allow by an ambiguous spelling", "mcp", "github_create_issue", Allow, issue, `did you mean "github/create_issue"?`},
		{"nothing", "mcp", "", Deny, create, `an empty pattern`},

		{"server and tool", "mcp", "github/create", Deny, create, ""},
		{"a server's tools", "mcp", "github/*", Allow, create, ""},
		{"a server alone", "mcp", "github", Deny, create, ""},
		{"a colon", "mcp", "github:create", Deny, create, ""},
		{"an underscore", "mcp", "github_create", Allow, create, ""},
		{"a deny by an ambiguous spelling", "mcp", "github_create_issue", Deny, issue, ""},
		{"an open end", "mcp", "git*", Allow, create, ""},
	})
}

func TestLintPathPatterns(t *testing.T) {
	t.Parallel()
	read := func(p string) Call { return on("read", m{"path": p}) }
	lintRows(t, []lintRow{
		{"a directory", "path", "/tmp", Deny, read("/tmp/x"), `path "/tmp" matches only itself, nothing in it; if that is a directory, write "/tmp" and "/tmp/*"`},
		{"a hidden directory of the home", "path", "~/.ssh", Deny, read("/home/dev/.ssh/id_rsa"), `write "~/.ssh" and "~/.ssh/*"`},
		{"a directory outside", "external_directory", "/data", Allow, read("/data/x"), `write "/data" and "/data/*"`},
		{"a directory of the project", "path", "secrets", Deny, read("secrets/x"), `write "secrets" and "secrets/*"`},
		{"a slash at the end", "path", "conf.d/", Deny, read("conf.d/x"), `write "conf.d" and "conf.d/*"`},
		{"a directory of one tool", "read", "/srv", Deny, read("/srv/x"), `write "/srv" and "/srv/*"`},
		{"the root", "path", "/", Deny, read("/x"), `write "/" and "/*"`},
		{"nothing", "path", "", Deny, read("x"), `an empty pattern`},

		{"what is in a directory", "path", "/tmp/*", Deny, read("/tmp/x"), ""},
		{"a file of the home", "path", "~/.npmrc", Deny, read("/home/dev/.npmrc"), ""},
		{"a file outside", "external_directory", "/etc/hosts", Allow, read("/etc/hosts"), ""},
		{"a file of the project", "path", "go.mod", Deny, read("go.mod"), ""},
		{"a file without an ending", "path", "Makefile", Deny, read("Makefile"), ""},
		{"a key", "path", "~/id_rsa", Deny, read("/home/dev/id_rsa"), ""},
		{"an ending", "path", "*.env", Deny, read(".env"), ""},
		{"everything called so", "read", "*/secrets", Deny, read("/srv/secrets"), ""},
	})
	if got := linted(t, "both", permission(`{"path":{"~/.ssh":"deny","~/.ssh/*":"deny"}}`)); got != "" {
		t.Errorf("a directory and what is in it: %q", got)
	}
	if got := linted(t, "two forms", permission(`{"path":{"~/.ssh":"deny"},"path_write":{"~/.ssh/*":"deny"}}`)); got == "" {
		t.Error("a directory, and what is in it under another form: no warning")
	}
}

// TestLintDocuments: what is said of names and settings.
func TestLintDocuments(t *testing.T) {
	t.Parallel()
	envelope := func(lists string) string { return `{"modelDelegation":{` + lists + `}}` }
	for _, r := range []struct{ name, doc, want string }{
		{"a misspelt shell", permission(`{"bahs":"deny"}`), `f:1:17: no known surface or tool is called "bahs"; did you mean "bash"?`},
		{"a misspelt tool", permission(`{"raed":"allow"}`), `did you mean "read"?`},
		{"a plural", permission(`{"paths":{"*":"deny"}}`), `did you mean "path"?`},
		{"another separator", permission(`{"external-directory":"ask"}`), `did you mean "external_directory"?`},
		{"a misspelt direction", permission(`{"external_directory_raed":"ask"}`), `did you mean "external_directory_read"?`},
		{"a misspelt tool of the web", permission(`{"webfech":"deny"}`), `did you mean "webfetch"?`},
		{"patterns where none is matched", permission(`{"WebFetch":{"https://example.com/*":"deny"}}`), `is a deny that stops nothing: patterns are not matched against the input`},
		{"the web under a name that its adapter does not state", permission(`{"WebFetch":"deny"}`), `f:1:17: Claude Code's WebFetch is ruled as "webfetch", so this rule does not reach it`},
		{"subagents under a name that their adapter does not state", permission(`{"Task":"deny"}`), `Claude Code's Task is ruled as "agent"`},
		{"a link for everything", envelope(`"allowedSurfaces":["*"]`), `f:1:40: a link may allow everything`},
		{"a link on a misspelt surface", envelope(`"allowedSurfaces":["bsh"]`), `allowedSurfaces: no known surface or tool is called "bsh"; did you mean "bash"?`},
		{"a misspelt exclusion", envelope(`"allowedSurfaces":["bash"],"excludedSurfaces":["external_directry"]`), `excludedSurfaces: no known surface or tool is called "external_directry"`},
		{"a link on an agent's spelling", envelope(`"allowedSurfaces":["Bash"]`), `matches nothing: this tool is called "bash"`},
		{"a link on one direction", envelope(`"allowedSurfaces":["external_directory_read"]`), `matches nothing: links are let onto "external_directory" as a whole`},
		{"links before a parent", `{"terminal":{"kind":"parent"},"authorizerChain":["l1"]}`, `f:1:21: terminal kind "parent": every open ask goes to the parent node`},

		{"a parent", `{"terminal":{"kind":"parent"}}`, ""},
		{"the shell", permission(`{"bash":"deny"}`), ""},
		{"every form of a path", permission(`{"path":"ask","path_read":"ask","path_write":"ask","external_directory_write":"ask"}`), ""},
		{"an agent's own tools", permission(`{"WebFetch":"deny","webfetch":"deny","agent":"ask","Task":"ask","TodoWrite":"allow","ExitPlanMode":"allow","AskUserQuestion":"allow"}`), ""},
		{"other agents' tools", permission(`{"web_fetch":"deny","google_web_search":"ask","write_todos":"allow","todoread":"allow","update_plan":"allow"}`), ""},
		{"tools whose names are near others", permission(`{"patch":"ask","batch":"ask"}`), ""},
		{"a tool like none", permission(`{"Teleport":"deny"}`), ""},
		{"a surface pattern", permission(`{"rea*":"ask"}`), ""},
		{"everything on a tool without values", permission(`{"webfetch":{"*":"deny"}}`), ""},
		{"a link for the shell", envelope(`"allowedSurfaces":["bash"]`), ""},
		{"a link on a pattern", envelope(`"allowedSurfaces":["mcp*"]`), ""},
		{"everything excluded", envelope(`"excludedSurfaces":["*"]`), ""},
		{"a link on a tool that the rules name", `{"permission":{"Teleport":"ask"},"modelDelegation":{"allowedSurfaces":["Teleport"]}}`, ""},
		{"a direction excluded", envelope(`"allowedSurfaces":["external_directory"],"excludedSurfaces":["external_directory_write"]`), ""},
		{"a person, and links that may not allow", `{"terminal":{"kind":"human"},"authorizerChain":["model-judge"]}`, ""},
	} {
		got := linted(t, r.name, r.doc)
		if r.want == "" && got != "" || !strings.Contains(got, r.want) {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
}

// Whatever a gate would take, Lint reads to its end, and points into the file.
func FuzzLint(f *testing.F) {
	for _, doc := range accepted {
		f.Add(doc)
	}
	f.Add(permission(`{"bash":{"a '*":"deny","$(*":"ask","?":"allow"},"mcp":{".":"deny"},"path":{"~":"deny","//":"deny"}}`))
	f.Fuzz(func(t *testing.T, doc string) {
		_, refused := Compile(LayerFleet, []byte(doc))
		warnings, err := Lint("f", []byte(doc))
		if (err != nil) != (refused != nil) {
			t.Fatalf("compiled: %v, linted: %v", refused, err)
		}
		for _, w := range warnings {
			if w.Line < 1 || w.Column < 1 || w.Line > 1+strings.Count(doc, "\n") || w.Message == "" {
				t.Fatalf("a warning that points nowhere: %v", w)
			}
		}
	})
}
