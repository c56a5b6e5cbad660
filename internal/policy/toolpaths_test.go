package policy

import "testing"

const patched = "*** Begin Patch\n*** Update File: src/a.go\n@@\n-x\n+y\n*** Move to: src/b.go\n*** End Patch\n"

func TestToolsOfAgentsGrant(t *testing.T) {
	t.Parallel()
	ruleRows(t, []row{
		{"Gemini reads", `{"read":"allow"}`, on("read_file", m{"absolute_path": "/repo/a"}), Allow, "read", "*"},
		{"Gemini writes", `{"write":{"src/*":"allow"}}`, on("write_file", m{"file_path": "src/a", "content": "x"}), Allow, "write", "src/*"},
		{"Gemini edits", `{"edit":"allow"}`, on("replace", m{"file_path": "a", "old_string": "x", "new_string": "y"}), Allow, "edit", "*"},
		{"Gemini lists", `{"ls":"allow"}`, on("list_directory", m{"dir_path": "src"}), Allow, "ls", "*"},
		{"Gemini runs", `{"bash":{"git *":"allow"}}`, on("run_shell_command", m{"command": "git status", "description": "x"}), Allow, "bash", "git *"},
		{"Codex runs a list of words", `{"bash":{"ls *":"allow"}}`, on("shell", m{"command": []any{"ls", "-l"}}), Allow, "bash", "ls *"},
		{"Codex edits by a patch", `{"edit":{"src/*":"allow"}}`, on("apply_patch", m{"input": patched}), Allow, "edit", "src/*"},
		{"a rule on the tool's own name is enough", `{"*":"ask","read_file":"allow"}`, on("read_file", m{"file_path": "a"}), Allow, "read_file", "*"},
		{"an unknown tool without paths", `{"frob":"allow","path":{"*.env":"deny"}}`, on("frob", m{"text": ".env"}), Allow, "frob", "*"},
		{"blanks around a tool's name", `{"frob":"allow"}`, on(" frob ", nil), Allow, "frob", "*"},
		{"a tool whose input is one text", `{"frob":"allow","path":{"*.env":"deny"}}`, Call{Tool: "frob", Input: []byte(`"x"`), Cwd: "/repo"}, Allow, "frob", "*"},
		{"a call that names nothing opens nothing", `{"read":"allow"}`, on("read", nil), Allow, "read", "*"},
		{"a command of nothing runs nothing", `{"bash":"allow"}`, on("bash", m{"command": " "}), Allow, "bash", "*"},
	})
}

func TestToolsOfAgentsRefuse(t *testing.T) {
	t.Parallel()
	env := `{"*":"allow","path":{"*":"allow","*.env":"deny"}}`
	ruleRows(t, []row{
		{"a deny of reads holds for Gemini's", `{"*":"allow","read":"deny"}`, on("read_file", m{"file_path": "a"}), Deny, "read", "*"},
		{"a deny of the tool's own name", `{"*":"allow","read":"allow","read_file":"deny"}`, on("read_file", m{"file_path": "a"}), Deny, "read_file", "*"},
		{"a deny of the tool's own name, by path", `{"*":"allow","write_file":{"*.lock":"deny"}}`, on("write_file", m{"file_path": "b.lock"}), Deny, "write_file", "*.lock"},
		{"a deny of commands holds for Gemini's shell", `{"*":"allow","bash":{"rm *":"deny"}}`, on("run_shell_command", m{"command": "rm x"}), Deny, "bash", "rm *"},
		{"a deny of the shell's own name", `{"*":"allow","run_shell_command":"deny"}`, on("run_shell_command", m{"command": "ls"}), Deny, "run_shell_command", "*"},
		{"an allow of the shell's own name allows no command", `{"*":"ask","run_shell_command":"allow"}`, on("run_shell_command", m{"command": "ls"}), Ask, "bash", "*"},
		{"a list of words is a command", `{"*":"allow","bash":{"rm *":"deny"}}`, on("shell", m{"command": []any{"bash", "-lc", "ls; rm x"}}), Deny, "bash", "rm *"},
		{"a list that is no command", `{"*":"allow"}`, on("shell", m{"command": []any{"ls", 7}}), Ask, "bash", "*"},
		{"text typed into a program", `{"*":"allow"}`, on("write_stdin", m{"session_id": 1, "chars": "ls\n"}), Ask, "write_stdin", "<typed-text>"},
		{"a deny of text typed into a program", `{"*":"allow","bash":{"rm *":"deny"}}`, on("write_stdin", m{"chars": "rm x\n"}), Deny, "bash", "rm *"},
		{"a file added by a patch", env, on("apply_patch", m{"input": "*** Begin Patch\n*** Add File: .env\n+A\n*** End Patch"}), Deny, "path", "*.env"},
		{"a file that a patch moves to", env, on("apply_patch", m{"patchText": "*** Begin Patch\n*** Update File: a\n*** Move to: .env\n*** End Patch"}), Deny, "path", "*.env"},
		{"a file outside that a patch deletes", `{"*":"allow","external_directory":"deny"}`, on("apply_patch", m{"input": "*** Begin Patch\n*** Delete File: ../x\n*** End Patch"}), Deny, "external_directory", "*"},
		{"a patch as diff writes it", env, on("patch", m{"patchText": "--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-x\n+y\n"}), Deny, "path", "*.env"},
		{"a patch that names no file", `{"*":"allow"}`, on("apply_patch", m{"input": "*** Begin Patch\n"}), Ask, "edit", "*"},
		{"many files", env, on("read_many_files", m{"paths": []any{"a", ".env"}}), Deny, "path", "*.env"},
		{"a tool with a command that nothing is known of", `{"*":"allow","bash":{"rm *":"deny"}}`, on("frob", m{"command": "ls; rm x"}), Deny, "bash", "rm *"},
		{"a tool whose input is one path", env, Call{Tool: "frob", Input: []byte(`".env"`), Cwd: "/repo"}, Deny, "path", "*.env"},
	})
}

func toolRows(t *testing.T, keys string, rows []row) {
	t.Helper()
	for _, r := range rows {
		s := mustCompile(t, `{"permission":`+r.rules+`,`+keys+`}`)
		got := s.Rule(r.call)
		if got.Action != r.want || r.surface != "" && got.Decisive.Surface != r.surface {
			t.Errorf("%s: %s by %s %q, want %s by %s", r.name, got.Action, got.Decisive.Surface, got.Decisive.MatchedPattern, r.want, r.surface)
		}
	}
}

func TestPathArguments(t *testing.T) {
	t.Parallel()
	keys := `"pathArguments":{"frob":"target","move":["from",{"argument":"to","direction":"write"}],"read_file":["also"]}`
	rules := `{"*":"allow","path":{"*":"allow","*.env":"deny"},"path_write":{"*":"allow","*.lock":"deny"}}`
	toolRows(t, keys, []row{
		{"what is declared holds a path", rules, on("frob", m{"target": ".env"}), Deny, "path", ""},
		{"a list of paths", rules, on("frob", m{"target": []any{"a", ".env"}}), Deny, "path", ""},
		{"what is no text asks", rules, on("frob", m{"target": m{"a": 1}}), Ask, "frob", ""},
		{"a direction that is declared", rules, on("move", m{"from": "a", "to": "b.lock"}), Deny, "path", ""},
		{"a known tool has its own besides", rules, on("read_file", m{"file_path": ".env", "also": "a"}), Deny, "path", ""},
		{"a known tool and what is declared", rules, on("read_file", m{"file_path": "a", "also": ".env"}), Deny, "path", ""},

		{"nothing else is a path", rules, on("frob", m{"path": ".env", "target": "a"}), Allow, "frob", ""},
		{"no argument", rules, on("frob", nil), Allow, "frob", ""},
		{"a plain file", rules, on("frob", m{"target": "a"}), Allow, "frob", ""},
		{"both ends of a move", rules, on("move", m{"from": "a", "to": "b"}), Allow, "move", ""},
		{"a tool that is not declared", rules, on("other", m{"target": ".env"}), Allow, "other", ""},
		{"a known tool and a plain file", rules, on("read_file", m{"file_path": "a", "also": "b"}), Allow, "read", ""},
	})
}

func TestShellTools(t *testing.T) {
	t.Parallel()
	keys := `"shellTools":{"exec":{"command":"cmd","workdir":"dir"},"run":{"commandArgument":"line"}}`
	rules := `{"*":"ask","bash":{"*":"allow","rm *":"deny"},"path":{"*":"allow","*.env":"deny"},"external_directory":"ask","exec":"deny"}`
	toolRows(t, keys, []row{
		{"a denied command", rules, on("exec", m{"cmd": "ls && rm x"}), Deny, "bash", ""},
		{"a denied path", rules, on("exec", m{"cmd": "cat .env"}), Deny, "path", ""},
		{"a denied path in another directory", rules, on("exec", m{"cmd": "cat .env", "dir": "src"}), Deny, "path", ""},
		{"another directory outside", rules, on("exec", m{"cmd": "ls", "dir": "/opt"}), Ask, "external_directory", ""},
		{"a relative path from a directory outside", rules, on("exec", m{"cmd": "cat ./x", "dir": "/etc"}), Ask, "external_directory", ""},
		{"the command under another name", rules, on("exec", m{"command": "rm x"}), Deny, "bash", ""},

		{"an allowed command, whatever the same layer says of the name", rules, on("exec", m{"cmd": "ls"}), Allow, "bash", ""},
		{"up from a directory inside", rules, on("exec", m{"cmd": "cat ../x", "dir": "/repo/a/b"}), Allow, "bash", ""},
		{"up from a relative directory", rules, on("exec", m{"cmd": "cat ../x", "dir": "a"}), Allow, "bash", ""},
		{"after a cd back", rules, on("exec", m{"cmd": "cd .. && cat ./x", "dir": "a"}), Allow, "bash", ""},
		{"no command", rules, on("exec", nil), Allow, "bash", ""},
		{"another shell", rules, on("run", m{"line": "ls"}), Allow, "bash", ""},
	})
	over, err := Read(AgentLayer("x"), "agent", []byte(`{"permission":{"exec":"deny"}}`))
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := Read(Fleet(), "fleet", []byte(`{"permission":{"bash":"allow"},`+keys+`}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, trust := range []bool{true, false} {
		if got := Layered(trust, fleet, over).Rule(on("exec", m{"cmd": "ls"})); got.Action != Deny {
			t.Errorf("another layer's deny of a declared shell is lost: %s", got.Action)
		}
	}
}

func TestTrustedReadPaths(t *testing.T) {
	t.Parallel()
	keys := `"trustedReadPaths":["/opt/lib","~/.cache/docs/","/srv/*/pkg/*"]`
	rules := `{"*":"allow","external_directory":"deny","path":{"*.env":"deny"}}`
	toolRows(t, keys, []row{
		{"a file below", rules, on("read", m{"path": "/opt/lib/a/b"}), Allow, "read", ""},
		{"the folder itself", rules, on("ls", m{"path": "/opt/lib"}), Allow, "ls", ""},
		{"below the home", rules, on("read", m{"path": "~/.cache/docs/a"}), Allow, "read", ""},
		{"by a pattern", rules, on("read", m{"path": "/srv/x/pkg/a"}), Allow, "read", ""},
		{"a command that only reads", rules, bash("cat /opt/lib/a"), Allow, "bash", ""},

		{"beside it", rules, on("read", m{"path": "/opt/library"}), Deny, "external_directory", ""},
		{"up from it", rules, on("read", m{"path": "/opt/lib/../x"}), Deny, "external_directory", ""},
		{"a write", rules, on("write", m{"path": "/opt/lib/a"}), Deny, "external_directory", ""},
		{"a command that may write", rules, bash("frob /opt/lib/a"), Deny, "external_directory", ""},
		{"what a path rule denies", rules, on("read", m{"path": "/opt/lib/.env"}), Deny, "path", ""},
		{"a link out of it", rules, on("read", m{"path": "/opt/lib/a"}, Path{"/opt/lib/a", "/etc/shadow"}), Deny, "external_directory", ""},
	})
}

func TestKeysForToolsAreTheFleetsAndStrict(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{
		`{"pathArguments":{"frob":"target"}}`, `{"pathArguments":{"frob":[]}}`, `{"shellTools":{"exec":{"command":"cmd"}}}`, `{"trustedReadPaths":["~/x"]}`,
	} {
		if _, err := Read(Fleet(), "f", []byte(doc)); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
		if _, err := Read(ProjectLayer("p"), "f", []byte(doc)); err == nil {
			t.Errorf("%s: a project may say it", doc)
		}
	}
	for _, doc := range []string{
		`{"pathArguments":{"frob":7}}`, `{"pathArguments":{"frob":{"direction":"read"}}}`, `{"pathArguments":{"frob":{"argument":"a","direction":"up"}}}`,
		`{"pathArguments":{"":"a"}}`, `{"pathArguments":{"Read":"a"}}`, `{"pathArguments":[]}`, `{"shellTools":{"exec":{}}}`, `{"shellTools":{"exec":"cmd"}}`,
		`{"shellTools":{"exec":{"command":""}}}`, `{"trustedReadPaths":["docs"]}`, `{"trustedReadPaths":["/"]}`, `{"trustedReadPaths":["/*"]}`, `{"trustedReadPaths":["/a/*/../b"]}`,
	} {
		if _, err := Read(Fleet(), "f", []byte(doc)); err == nil {
			t.Errorf("%s: read", doc)
		}
	}
}

func TestASecretInTheCommandOfAnyShell(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, `{"permission":{"*":"ask","external_directory":"allow"},"modelDelegation":{"allowedSurfaces":["*"]},"shellTools":{"exec":{"command":"cmd"}}}`)
	for _, r := range []struct {
		call Call
		want bool
	}{
		{bash("cat .e'nv'"), false},
		{on("run_shell_command", m{"command": "cat .e'nv'"}), false},
		{on("exec", m{"cmd": "cat .e'nv'"}), false},
		{on("shell", m{"command": []any{"bash", "-c", "cat .e'nv'"}}), false},
		{bash("cat a"), true},
		{on("run_shell_command", m{"command": "cat a"}), true},
		{on("exec", m{"cmd": "cat a"}), true},
		{on("shell", m{"command": []any{"cat", "a"}}), true},
	} {
		open := s.Rule(r.call).Open()
		if ok, why := s.LinkMayAllow(open, r.call); ok != r.want {
			t.Errorf("%s %s: %t (%s)", r.call.Tool, r.call.Input, ok, why)
		}
	}
}
