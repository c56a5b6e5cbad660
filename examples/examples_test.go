package examples_test

import (
	"os"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/examples"
	"github.com/assent-dev/assent/internal/policy"
)

func call(t *testing.T, tool string, input map[string]string) policy.Call {
	t.Helper()
	b, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	return policy.Call{Tool: tool, Input: jsontext.Value(b), Cwd: "/repo", Home: "/home/dev"}
}

func compiled(t *testing.T) *policy.Snapshot {
	t.Helper()
	s, err := policy.Compile("policy.jsonc", []byte(examples.Policy))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const (
	hookSettings = "These settings decide whether your calls are asked about, so you may read them and not change them. Ask the person you work for to make the change."
	ownFiles     = "These files are Assent's own, and no agent may touch them. Go on without them, or tell the person you work for what you need and why."
)

func TestStarterRules(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	bash := func(c string) policy.Call { return call(t, "Bash", map[string]string{"command": c}) }
	file := func(tool, p string) policy.Call { return call(t, tool, map[string]string{"file_path": p}) }
	for _, r := range []struct {
		name   string
		call   policy.Call
		want   policy.Action
		reason string
	}{
		{"a file of the project is read", file("Read", "/repo/main.go"), policy.Allow, ""},
		{"the state of the repository is shown", bash("git status"), policy.Allow, ""},
		{"a directory is listed", bash("ls -la src"), policy.Allow, ""},
		{"tests are run", bash("go test ./..."), policy.Allow, ""},
		{"tests are run, standard error silenced", bash("pnpm test 2>/dev/null"), policy.Allow, ""},
		{"the sample of the secrets is read", file("Read", "/repo/.env.example"), policy.Allow, ""},

		{"the agent's own settings are read", file("Read", "/repo/.claude/settings.json"), policy.Allow, ""},
		{"a file beside the agent's settings is read", file("Read", "/repo/.claude/commands/x.md"), policy.Allow, ""},

		{"a file beside the agent's settings is written after a question", file("Write", "/repo/.claude/commands/x.md"), policy.Ask, ""},
		{"settings of something else are written after a question", file("Write", "/repo/web/settings.json"), policy.Ask, ""},
		{"the home's settings are read after a question", file("Read", "/home/dev/.claude/settings.json"), policy.Ask, ""},
		{"another program's configuration is read after a question", file("Read", "/home/dev/.config/git/config"), policy.Ask, ""},
		{"a file of the project is written after a question", file("Write", "/repo/main.go"), policy.Ask, ""},
		{"a file outside is read after a question", file("Read", "/etc/hosts"), policy.Ask, ""},
		{"an unknown tool asks", call(t, "Teleport", nil), policy.Ask, ""},
		{"an unknown command asks", bash("terraform apply"), policy.Ask, ""},
		{"a pipe into a command of which no rule speaks asks", bash("git log | sort"), policy.Ask, ""},
		{"a list with a command of which no rule speaks asks", bash("go build ./... && ./run"), policy.Ask, ""},
		{"a diff that writes a file asks", bash("git diff --output=.git/hooks/pre-commit"), policy.Ask, ""},
		{"a diff that starts a program asks", bash("git log -p --ext-diff"), policy.Ask, ""},
		{"tests through another program ask", bash("go test -exec ./run ./..."), policy.Ask, ""},
		{"a build through another tool asks", bash("go build --toolexec=./run ./..."), policy.Ask, ""},
		{"a pipe of allowed commands runs", bash("git log --oneline | head -3"), policy.Allow, ""},
		{"a list of allowed commands runs", bash("go vet ./... && go test ./... 2>&1 | tail -20"), policy.Allow, ""},
		{"a command with a time limit runs", bash("timeout 60 go test ./..."), policy.Allow, ""},
		{"branches are listed", bash("git branch --list"), policy.Allow, ""},
		{"the branch is shown", bash("git branch"), policy.Allow, ""},
		{"source files are searched", call(t, "Grep", map[string]string{"pattern": "x", "glob": "*.{go,ts}", "output_mode": "content"}), policy.Allow, ""},
		{"names of files are searched", call(t, "Grep", map[string]string{"pattern": "x", "output_mode": "files_with_matches"}), policy.Allow, ""},
		{"source files are searched by a command", bash("rg -t go TODO"), policy.Allow, ""},
		{"source files are searched by grep", bash("grep -rn --include='*.go' TODO . | head -5"), policy.Allow, ""},
		{"every file is searched after a question", bash("rg TODO"), policy.Ask, ""},
		{"secrets are searched for by name", bash("grep KEY .env"), policy.Deny, "Secrets stay out of the conversation. Read .env.example instead."},
		{"a search through a program asks", bash("rg --pre ./x TODO"), policy.Ask, ""},
		{"a search into a pager asks", bash("git grep -O./x TODO"), policy.Ask, ""},
		{"a list of tasks is written", call(t, "TodoWrite", map[string]string{"todos": "clean up"}), policy.Allow, ""},
		{"a subagent is started", call(t, "agent", map[string]string{"prompt": "find the tests"}), policy.Allow, ""},
		{"the web is asked about", call(t, "webfetch", map[string]string{"url": "https://example.com"}), policy.Ask, ""},
		{"source files are found", call(t, "Glob", map[string]string{"pattern": "**/*.go"}), policy.Allow, ""},
		{"the history of source files is shown", bash("git log -p -- '*.go'"), policy.Allow, ""},
		{"lines are counted", bash("wc -l main.go"), policy.Allow, ""},

		{"a branch is deleted behind a listing after a question", bash("git branch --list --no-list -D main"), policy.Ask, ""},
		{"a diff that writes a file asks, its flag cut short", bash("git diff --outpu=Makefile"), policy.Ask, ""},
		{"a conversion asks, its flag cut short", bash("git show --textcon x"), policy.Ask, ""},
		{"a count of files that a file names asks", bash("wc --files0-from=list"), policy.Ask, ""},
		{"a search of everything asks", call(t, "Grep", map[string]string{"pattern": "x", "output_mode": "content"}), policy.Ask, ""},
		{"a search for secrets in disguise asks", call(t, "Grep", map[string]string{"pattern": "x", "glob": "{.en[v],x}"}), policy.Ask, ""},
		{"a history of secrets in disguise asks", bash("git log -p -- ':(glob).en[v]'"), policy.Ask, ""},
		{"a push asks", bash("git push origin topic"), policy.Ask, ""},
		{"a listing outside asks", bash("ls /etc"), policy.Ask, ""},
		{"an allowed command with a substitution asks", bash("ls $(git clean -fd)"), policy.Ask, ""},

		{"npm is denied with what to use instead", bash("npm install left-pad"), policy.Deny, "Use pnpm instead"},
		{"npm is denied behind another command", bash("cd web && npm i"), policy.Deny, "Use pnpm instead"},
		{"npm is denied by its path", bash("/usr/bin/npm i"), policy.Deny, "Use pnpm instead"},
		{"a forced push is denied", bash("git push --force origin main"), policy.Deny, "History that others have is not rewritten. Push a new commit."},
		{"a forced push is denied with its flag last", bash("git push origin main --force"), policy.Deny, "History that others have is not rewritten. Push a new commit."},
		{"a forced push is denied in another directory", bash("git -C /x push -f origin main"), policy.Deny, "History that others have is not rewritten. Push a new commit."},
		{"secrets are not read", file("Read", "/repo/.env"), policy.Deny, "Secrets stay out of the conversation. Read .env.example instead."},
		{"secrets are not shown by a command", bash("head .env"), policy.Deny, "Secrets stay out of the conversation. Read .env.example instead."},
		{"keys are not read", file("Read", "/home/dev/.ssh/id_ed25519"), policy.Deny, "Keys are not an agent's business."},
		{"keys are not listed", bash("ls ~/.ssh"), policy.Deny, "Keys are not an agent's business."},
		{"the project's hook settings are not written", file("Write", "/repo/.claude/settings.json"), policy.Deny, hookSettings},
		{"the project's own local hook settings are not edited", file("Edit", ".claude/settings.local.json"), policy.Deny, hookSettings},
		{"the hook settings of a nested project are not written", file("Write", "/repo/sub/.claude/settings.json"), policy.Deny, hookSettings},
		{"the home's hook settings are not written", file("Write", "/home/dev/.claude/settings.json"), policy.Deny, hookSettings},
		{"hook settings are not overwritten by a command", bash("echo {} > .claude/settings.json"), policy.Deny, hookSettings},
		{"the hook is not moved away", bash("mv ~/.claude/settings.json /repo/x"), policy.Deny, hookSettings},
		{"Assent's credentials are not read", file("Read", "/home/dev/.config/assent/local.json"), policy.Deny, ownFiles},
		{"Assent's credentials are not shown by a command", bash("cat ~/.config/assent/local.json"), policy.Deny, ownFiles},
		{"Assent's configuration is not removed", bash("rm -rf ~/.config/assent"), policy.Deny, ownFiles},
		{"Assent's store is not written", file("Write", "/home/dev/.local/share/assent/main/x"), policy.Deny, ownFiles},
		{"Assent's store is not removed", bash("rm -rf ~/.local/share/assent"), policy.Deny, ownFiles},
		{"keys are not read by a command", bash("cat ~/.ssh/id_ed25519"), policy.Deny, "Keys are not an agent's business."},
	} {
		got := s.Rule(r.call)
		if got.Action != r.want || r.want == policy.Deny && got.Decisive.Reason != r.reason {
			t.Errorf("%s: %s (%s %q, %q), want %s %q", r.name, got.Action, got.Decisive.Surface, got.Decisive.MatchedPattern,
				got.Decisive.Reason, r.want, r.reason)
		}
	}
}

func TestStarterEndsAtAPerson(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	if got, want := s.Terminal(), (policy.Terminal{Kind: policy.TerminalHuman, MaxWait: 8 * time.Hour}); got != want {
		t.Errorf("terminal %+v, want %+v", got, want)
	}
	if len(s.Chain()) != 0 || s.Yolo() {
		t.Errorf("chain %v, yolo %v: a newcomer's policy trusts no model", s.Chain(), s.Yolo())
	}
}

func TestExamplesHaveNoWarnings(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"policy.jsonc", "chain.jsonc", "judges/policy.jsonc"} {
		doc, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		warnings, err := policy.Lint(file, doc)
		if err != nil || len(warnings) != 0 {
			t.Errorf("%s: warnings %v, error %v", file, warnings, err)
		}
	}
}
