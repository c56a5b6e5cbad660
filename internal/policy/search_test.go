package policy

import (
	"path"
	"strings"
	"testing"
)

const searchable = `{"*":"allow","external_directory":"ask","path":{"*":"allow","*.env":"deny","*.env.*":"deny","*.env.example":"allow","secrets/*":"deny","~/.ssh/*":"deny"}}`

func TestSearchesGrant(t *testing.T) {
	t.Parallel()
	grep := func(in m) Call { in["pattern"] = "S"; return on("Grep", in) }
	rows := []row{
		{"a glob that meets no denied name", searchable, grep(m{"path": "src", "glob": "*.go"}), Allow, "grep", "*"},
		{"a glob with braces", searchable, grep(m{"path": "src", "glob": "*.{ts,tsx}"}), Allow, "grep", "*"},
		{"a glob with a folder", searchable, grep(m{"glob": "src/*.go"}), Allow, "grep", "*"},
		{"a literal name", searchable, grep(m{"glob": "src/README"}), Allow, "grep", "*"},
		{"an exception below a deny", searchable, grep(m{"path": "src", "glob": ".env.example"}), Allow, "grep", "*"},
		{"a type of files", searchable, grep(m{"path": "src", "type": "go"}), Allow, "grep", "*"},
		{"one file", searchable, grep(m{"path": "main.go"}), Allow, "grep", "*"},
		{"names only", searchable, grep(m{"output_mode": "files_with_matches"}), Allow, "grep", "*"},
		{"no path rule speaks of anything", `{"*":"allow","path":{"*":"allow"}}`, grep(m{}), Allow, "grep", "*"},
		{"denies elsewhere", `{"*":"allow","path":{"~/.ssh/*":"deny"}}`, grep(m{}), Allow, "grep", "*"},
		{"the names of a kind of files", searchable, on("Glob", m{"pattern": "src/**/*.go"}), Allow, "glob", "*"},
		{"what a listing leaves out", searchable, on("LS", m{"path": "/repo", "ignore": []any{"*.env"}}), Allow, "ls", "*"},
	}
	for _, text := range []string{
		"grep -n S main.go", "grep -rn S main.go", "grep -rn --include='*.go' S src", "grep -rn --include '*.go' S src", "rg -n S main.go", "rg --files", "rg S -tgo src",
		"rg -g '*.md' S src", "git log --oneline", "git log -p -- src", "git log -p -- 'src/*.go'", "git diff HEAD~1 src/a.go", "git commit -m 'all * and ?'", "git add '*.go'",
		"grep -e rn S main.go", "git show HEAD:src/a.go", "git grep S -- main.go",
	} {
		rows = append(rows, row{text, searchable, bash(text), Allow, "bash", "*"})
	}
	ruleRows(t, rows)
}

func TestSearchesRefuse(t *testing.T) {
	t.Parallel()
	grep := func(in m) Call { in["pattern"] = "S"; return on("Grep", in) }
	env, dir := "<could-select:*.env>", "<could-select:secrets/*>"
	one := `{"*":"allow","external_directory":"ask","path":{"*":"allow","*.env":"deny"}}`
	rows := []row{
		{"a directory of secrets", searchable, grep(m{"path": "secrets", "glob": "*.go"}), Ask, "path", dir},
		{"everything", searchable, grep(m{}), Ask, "path", dir},
		{"a glob of everything", one, grep(m{"glob": "*"}), Ask, "path", env},
		{"a type that nobody knows", one, grep(m{"type": "sh"}), Ask, "path", env},
		{"a search above the home", `{"*":"allow","path":{"~/.ssh/*":"deny"}}`, grep(m{"path": "/home"}), Ask, "path", ""},
		{"a rule that asks", `{"*":"allow","path":{"*":"allow","*.pem":"ask"}}`, grep(m{"glob": "*.p*"}), Ask, "path", "<could-select:*.pem>"},
		{"names that a glob selects", one, on("Glob", m{"pattern": "**/.e*"}), Ask, "path", env},
		{"a glob of other letters on a system that folds them", one,
			Call{Tool: "Glob", Input: input(m{"pattern": "*.EN?"}), Cwd: "/repo", Home: "/home/dev", Platform: "darwin"}, Ask, "path", env},
		{"braces that lead outside", one, on("Glob", m{"pattern": "{/etc,/root}/*.go"}), Ask, "external_directory", "*"},
		{"braces that lead up", one, on("Glob", m{"pattern": "{..,x}/*.go"}), Ask, "external_directory", "*"},
		{"a glob too large to say", one, on("Glob", m{"pattern": strings.Repeat("{a,b}", 20)}), Ask, "path", env},
		{"a glob whose braces do not close", one, on("Glob", m{"pattern": "{a"}), Ask, "path", env},
	}
	for _, glob := range []string{".en?", "{.env,x}", ".en[v]", ".e*", "!*.go", "{a,b,.e{n,m}v}", "[.]env", "@(.env|x)", "*nv"} {
		rows = append(rows, row{"a glob that could be .env: " + glob, one, grep(m{"glob": glob}), Ask, "path", env})
	}
	for _, text := range []string{
		"grep -r S .", "grep -Rn S", "grep --recurs S", "grep -d recurse S", "rgrep S", "rg S", "rg S src", "rg -g '!*.md' S", "ag S", "git grep S", "git grep S -- src",
		"git diff --no-index empty .", "git log -p -- ':(glob).en[v]'", "git log -p -- ':(icase).ENV'", "git show -- '*.e*'", "git -C . grep S", "ls; rg S",
		"sudo grep -r S .", "rg S" + strings.Repeat(" d", 40), "grep -rn --include='*.e*' S src",
	} {
		rows = append(rows, row{text, one, bash(text), Ask, "path", env})
	}
	ruleRows(t, rows)
}

func TestLetterCaseCountsWhereTheSystemSaysSo(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, permission(`{"*":"allow","path":{"*.env":"deny","~/.Ssh/*":"deny","/Repo/Keys/*":"deny"},"read":{"*":"allow","*.LOG":"deny"},"bash":{"*":"allow","rm *":"deny"}}`))
	for _, r := range []struct {
		call         Call
		linux, apple Action
	}{
		{on("read", m{"path": ".ENV"}), Allow, Deny},
		{on("read", m{"path": "keys/x"}), Allow, Deny},
		{on("read", m{"path": "a.log"}), Allow, Deny},
		{on("write", m{"path": "/repo/KEYS/x"}), Allow, Deny},
		{bash("RM x"), Allow, Deny},
		{bash("/bin/Rm x"), Allow, Deny},
		{bash("cat .Env"), Allow, Deny},

		{on("read", m{"path": "a.go"}), Allow, Allow},
		{on("read", m{"path": "environment"}), Allow, Allow},
		{bash("LS x"), Allow, Allow},
		{bash("ls RM"), Allow, Allow},
		{on("read", m{"path": ".env"}), Deny, Deny},
		{bash("rm x"), Deny, Deny},
	} {
		for platform, want := range map[string]Action{"linux": r.linux, "darwin": r.apple, "windows": r.apple, "": r.linux} {
			r.call.Platform = platform
			if got := s.Rule(r.call); got.Action != want {
				t.Errorf("%s on %q: %s, want %s", r.call.Input, platform, got.Action, want)
			}
		}
	}
}

func TestArgumentsThatAToolIsNotKnownToHave(t *testing.T) {
	t.Parallel()
	open := `{"*":"allow","external_directory":"deny"}`
	ruleRows(t, []row{
		{"more paths", `{"*":"allow"}`, on("Read", m{"file_path": "a", "paths": []any{"b"}}), Ask, "read", "<unknown-argument>"},
		{"more paths, and outside", open, on("Read", m{"file_path": "a", "paths": []any{"/etc/shadow"}}), Deny, "external_directory", "*"},
		{"a path in another spelling", `{"*":"allow"}`, on("Read", m{"file_path": "a", "File_Path": "b"}), Ask, "read", "<unknown-argument>"},
		{"paths inside of edits", `{"*":"allow"}`, on("MultiEdit", m{"file_path": "a", "edits": []any{m{"file": "b"}}}), Ask, "edit", "<unknown-argument>"},
		{"another command", `{"*":"allow"}`, on("Bash", m{"command": "ls", "cmd": "x"}), Ask, "bash", "<unknown-argument>"},
		{"the command in another spelling", `{"*":"allow"}`, on("Bash", m{"command": "ls", "Command": "x"}), Ask, "bash", "<unknown-argument>"},
		{"variables", `{"*":"allow"}`, on("Bash", m{"command": "ls", "env": m{"PATH": "."}}), Ask, "bash", "<unknown-argument>"},
		{"a URL of a file outside", open, on("Read", m{"file_path": "file:///etc/passwd"}), Deny, "external_directory", "*"},
		{"a URL of a file with its host", open, on("Read", m{"file_path": "FILE://localhost/etc/passwd"}), Deny, "external_directory", "*"},
		{"a URL of a file in code", `{"*":"allow","path":{"*.env":"deny"}}`, on("Read", m{"file_path": "file:///repo/%2eenv"}), Deny, "path", "*.env"},

		{"a URL of a file inside", open, on("Read", m{"file_path": "file:///repo/a"}), Allow, "read", "*"},
		{"what a read knows", `{"*":"allow"}`, on("Read", m{"file_path": "a", "offset": 1, "limit": 5}), Allow, "read", "*"},
		{"what an edit knows", `{"*":"allow"}`, on("Edit", m{"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": true}), Allow, "edit", "*"},
		{"what several edits know", `{"*":"allow"}`, on("MultiEdit", m{"file_path": "a", "edits": []any{m{"old_string": "x", "new_string": "y"}}}), Allow, "edit", "*"},
		{"what a write knows", `{"*":"allow"}`, on("Write", m{"file_path": "a", "content": "path: /etc"}), Allow, "write", "*"},
		{"what a shell knows", `{"*":"allow"}`, on("Bash", m{"command": "ls", "description": "x", "timeout": 5, "run_in_background": true}), Allow, "bash", "*"},
		{"what a cell's edit knows", `{"*":"allow"}`, on("NotebookEdit", m{"notebook_path": "a", "new_source": "x", "cell_id": "1"}), Allow, "edit", "*"},
		{"what a search knows", `{"*":"allow"}`, on("Grep", m{"pattern": "x", "path": "src", "-n": true, "head_limit": 5}), Allow, "grep", "*"},
		{"what an argument does not hold", `{"*":"allow"}`, on("Bash", m{"command": "ls", "input": nil}), Allow, "bash", "*"},
		{"what a list of names knows", `{"*":"allow"}`, on("Glob", m{"pattern": "*.go", "path": "src"}), Allow, "glob", "*"},
	})
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, `{"yoloMode":true,"permission":{"*":"allow"}}`)
	for _, r := range []struct {
		call Call
		want bool
	}{
		{on("Bash", nil), true},
		{on("Bash", m{"command": []any{7}}), true},
		{on("Bash", m{"command": " "}), true},
		{on("Read", m{"path": 7}), true},
		{on("mcp", m{"tool": []any{"x"}}), true},
		{Call{Tool: "Bash", Input: []byte("[]")}, true},
		{bash("ls"), false},
		{bash("sudo ls | wc"), false},
		{bash("ls ((("), false},
		{on("Read", m{"path": "/etc/x"}), false},
		{on("frob", nil), false},
		{on("LS", nil), false},
	} {
		if got := s.Rule(r.call); got.Unreadable() != r.want {
			t.Errorf("%s %s: %v, %s", r.call.Tool, r.call.Input, got.Unreadable(), got.Action)
		}
	}
	if !(Ruling{}).Unreadable() {
		t.Error("a ruling nobody made is readable")
	}
}

// FuzzOverlap: a name that a glob selects and a pattern matches is proof that
// the two overlap.
func FuzzOverlap(f *testing.F) {
	f.Add("*.{env,x}", "*.env", ".env")
	f.Add(".en[v]", ".env", ".env")
	f.Add("a?c*", "abc", "abc")
	f.Fuzz(func(t *testing.T, glob, pattern, name string) {
		if len(glob)+len(pattern)+len(name) > 200 {
			return
		}
		all, ok := globs(glob)
		if !ok {
			return
		}
		w := compileWildcard(pattern)
		if strings.ContainsAny(glob, `{\()`) || !matchParts(w.parts, name) {
			return
		}
		if selects, err := path.Match(glob, name); err != nil || !selects {
			return
		}
		for _, g := range all {
			if overlap(g, pattern) {
				return
			}
		}
		t.Fatalf("%q is selected by %q (%q) and matched by %q", name, glob, all, pattern)
	})
}
