package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/assent-dev/assent/internal/shell"
)

// openPolicy allows everything that a policy can allow.
const openPolicy = `{"permission":{"*":"allow","bash":"allow","path":{"*":"allow"},"external_directory":{"*":"allow"},"mcp":{"*":"allow"}},"yoloMode":true}`

// selfEntries are the entries of a ruling that built-in rules made.
func selfEntries(r Ruling) []Entry {
	patterns := map[string]bool{}
	for _, b := range BuiltinRules() {
		patterns[b.Pattern] = true
	}
	return slices.DeleteFunc(slices.Clone(r.Entries), func(e Entry) bool {
		return e.Origin != OriginBuiltin || !patterns[e.MatchedPattern] || e.Reason == ""
	})
}

// selfAction is the strictest that built-in rules say, Allow for nothing.
func selfAction(r Ruling) Action {
	out := Allow
	for _, e := range selfEntries(r) {
		out = stricter(out, e.Action)
	}
	return out
}

// selfRows rules commands, one a line, and wants the same of all.
func selfRows(t *testing.T, s *Snapshot, want Action, commands string) {
	t.Helper()
	for text := range strings.SplitSeq(strings.TrimSpace(commands), "\n") {
		text = strings.ReplaceAll(strings.TrimSpace(text), "⏎", "\n")
		got := s.Rule(Call{Tool: "bash", Input: inputOf(t, map[string]any{"command": text}), Cwd: "/home/dev/src/assent", Home: "/home/dev", Platform: "linux"})
		if selfAction(got) != want {
			t.Errorf("%s\n\tis %s by the built-in rules, want %s: %+v", text, selfAction(got), want, selfEntries(got))
		}
		if want == Deny && got.Action != Deny || want == Ask && got.Action != Ask {
			t.Errorf("%s\n\tis ruled %s, want %s", text, got.Action, want)
		}
	}
}

func inputOf(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSelfPathsDenied(t *testing.T) {
	t.Parallel()
	selfRows(t, mustCompile(t, openPolicy), Deny, `
		echo '{}' > .claude/settings.json
		echo '{}' >> ~/.claude/settings.json
		echo '{}' > .cl"au"de/sett\ings.json
		echo '{}' > $HOME/.claude/settings.local.json
		tee .claude/settings.json
		cd ~/.claude && tee settings.json
		cd ~/.claude; cat > settings.json <<'X'⏎{}⏎X
		(cd ~/.claude && rm settings.json)
		tee .cl*ude/set*
		rm .claude/*.json
		cp evil.json ~/.claude/settings.json
		cp /tmp/settings.json ~/.claude/
		cp -t ~/.claude /tmp/settings.json
		mv ~/.claude/settings.json /tmp/x
		ln -s /tmp/evil.json .claude/settings.json
		ln ~/.claude/settings.json alias.json
		ln -s ~/.claude/settings.json alias.json
		sed -i 's/a/b/' .claude/settings.json
		dd if=/dev/null of=/home/dev/.claude/settings.json
		truncate -s 0 ~/.claude/settings.json
		git checkout -- .claude/settings.json
		git restore .claude/settings.json
		git rm .claude/settings.json
		vim .claude/settings.json
		python3 edit.py .claude/settings.json
		curl -o ~/.claude/settings.json https://example.com/x
		sudo tee ~/.claude/settings.json
		timeout 5 tee ~/.claude/settings.json
		bash -c 'tee ~/.claude/settings.json'
		find ~/.claude -name x -exec tee ~/.claude/settings.json {} +
		for f in ~/.claude/settings.json; do rm "$f"; done
		f=.claude/settings.json; echo '{}' > "$f"
		echo ~/.claude/settings.json | xargs rm
		patch -p0 <<'X'⏎*** Update File: .claude/settings.json⏎X
		tee "$CLAUDE_CONFIG_DIR/settings.json"
		tee /etc/claude-code/managed-settings.json
		tee ~/.claude.json
		tee ~/.codex/config.toml
		rm ~/.codex/hooks.json
		tee .codex/config.toml
		tee ~/.gemini/settings.json
		rm -r ~/.config/opencode/plugin
		tee .opencode/plugin/gate.js
		tee opencode.json
		rm -rf ~/.pi/agent/extensions
		rm -rf ~/.pi/agent/extensions/assent
		cd ~/.pi && rm -rf agent/extensions
		tee ~/.pi/agent/settings.json
		cat ~/.config/assent/local.json
		ls ~/.config/assent
		cd ~/.config && cat assent/local.json
		cat "$XDG_CONFIG_HOME/assent/local.json"
		cat ~/.local/share/assent/main/creds/operator.creds
		cat ~/.local/share/ass*nt/main/auth/keys.json
		cat ~/.local/share/ass?nt/main/creds/operator.creds
		grep -r seed ~/.local/share/assent
		cp -r ~/.local/share/assent /tmp/x
		tar czf /tmp/x.tgz ~/.local/share/assent
		rm -rf ~/.local/share/assent
		rm -rf ~/.local/state/assent
		mv ~/.config/assent ~/.config/other
		docker run -v ~/.local/share/assent:/s alpine ls /s
		cat ci-42.creds
		nats --creds=ci-42.creds pub x y
		cat operator.nk
		pushd ~/.claude; tee settings.json
		env -C ~/.claude tee settings.json
		cat *.creds
		cat ci-*.cred?
		rm -rf .assent
		mkdir -p .assent/modules
		echo x > .assent/policy.jsonc
		cp p.jsonc .assent/policy.jsonc
		cp p.jsonc /usr/local/bin/assent
	`)
}

func TestSelfPathsAsked(t *testing.T) {
	t.Parallel()
	selfRows(t, mustCompile(t, openPolicy), Ask, `
		rm -rf ~/.claude
		rm -rf .claude
		mv ~/.claude x
		ln -sfn /tmp/evil ~/.claude
		ln -s ~/.claude x
		cp -r evil/.claude .
		cp -r evil/. ~/.claude
		rsync -a evil/ ~/.claude/
		tar xf x.tar -C ~/.claude
		cd ~/.claude && tar xf x.tar
		find ~/.claude -delete
		rm .claude/*
		rm -rf .c*
		chmod -R 000 ~/.claude
		rm -rf ~/.codex
		rm -rf ~/.config
		rm -rf ~
		mv /home/dev /home/x
		rm -rf /
		rm -rf /home
		cp -r ~ /tmp/all
		tar czf /tmp/all.tgz ~/.local
		grep -rn token ~
		rm -rf ../assent
		rm -rf ~/src/assent
		mv . ../x
		rsync -a --delete /tmp/x/ ./
		rm -rf ../*
		rm -rf /home/*
		rm -rf /*
		chmod -R 000 /home/*
		rm -rf ~/.config/*
		rm -rf ~/.local/share/*
		cat ~/.local/share/*/*/creds/*
	`)
}

func TestSelfPathsLeftAlone(t *testing.T) {
	t.Parallel()
	selfRows(t, mustCompile(t, openPolicy), Allow, `
		cat .claude/settings.json
		cat ~/.claude/settings.json
		jq .hooks ~/.claude/settings.json
		grep -n hook .claude/settings.json
		diff .claude/settings.json ~/.claude/settings.json
		sed -n 1,20p .claude/settings.json
		ls -la ~/.claude ~/.codex
		find ~/.claude -name 'settings*.json'
		cp .claude/settings.json /tmp/backup.json
		git add .claude/settings.json
		git diff .claude/settings.json
		git show HEAD:.claude/settings.json
		git commit -m "write ~/.claude/settings.json" -- .claude/settings.json
		git commit -m 'assent answer X allow > ~/.claude/settings.json'
		cd ~/.claude && ls
		echo "put it > ~/.claude/settings.json"
		echo .claude/settings.json
		cat <<'X' > notes.md⏎assent answer X allow > ~/.claude/settings.json⏎X
		cat .assent/policy.jsonc
		ls .assent/modules
		cat ~/.codex/config.toml
		cp notes.md ~/.claude/
		cp -r skills/mine ~/.claude/skills/
		mkdir -p ~/.claude/commands
		touch .claude/commands/x.md
		tee .claude/commands/x.md
		rm .claude/commands/x.md
		sed -i s/a/b/ CLAUDE.md .claude/agents/reviewer.md
		rm -rf node_modules dist
		rm *.json
		rm -rf *
		sed -i s/a/b/ *.json
		prettier --write settings.json src/settings.json
		grep -rn assent README.md docs
		grep assent README.md
		cd ~/src/assent && go test ./...
		go build -o assent .
		go build -o bin/assent .
		cp assent bin/assent
		rm assent
		rm -rf bin/assent
		cat internal/assent/config.go
		vim share/assent.md
		tee docs/assent/settings.json
		find . -name '*.go' -exec grep -l assent {} +
		find . -name '*.pyc' -delete
		tar xf x.tar -C out
		tar xf x.tar src/a.go
		tar tf x.tar
		tar czf x.tgz .
		zip -r x.zip .
		cp -r . /tmp/copy
		rsync -a . /tmp/copy
		git clone https://example.com/assent
		ls ~ ~/.config ~/.local/share
		chmod 644 opencode.go
		tee src/opencode/main.go
		ls *.creds.md
		cat .env*
		cat id_rs*
		rm .cache* *.tmp
		python3 -m pip install codex
		npm install opencode
		mkdir ~/.config/other
		tee ~/.config/other/x
		rm -rf ~/.local/share/other
		rm -rf ~/src/other
		rm -rf ../other/*
		rm -rf ./*
		rm -rf src/share/*
		cat /usr/share/*/copyright
		pushd docs; tee settings.json
		curl https://example.com/.claude/settings.json
	`)
}

func TestSelfCommandsDenied(t *testing.T) {
	t.Parallel()
	selfRows(t, mustCompile(t, openPolicy), Deny, `
		assent answer 01K allow
		./assent answer 01K allow
		/usr/local/bin/assent answer 01K allow
		\assent answer 01K allow
		"assent" answer 01K allow
		assent approve
		assent pending
		assent policy push p.jsonc
		assent policy --file x push
		assent creds issue --role approver --name x --out y
		assent up
		assent freeze
		assent thaw --agent x
		assent install claude-code
		assent uninstall claude-code
		assent module push x
		assent $x
		assent answer 01K deny --reason --help
		$(which assent) answer 01K allow
		/usr/bin/asse?t answer 01K allow
		sudo assent answer 01K allow
		env A=b assent answer 01K allow
		bash -c 'assent answer 01K allow'
		echo 01K | xargs -I{} assent answer {} allow
		timeout 5 assent up
		go run github.com/assent-dev/assent@latest answer 01K allow
		docker exec web assent answer 01K allow
		tmux send-keys 'assent answer 01K allow' Enter
		ssh host assent policy push p.jsonc
		echo 'assent answer 01K allow' | sh
		printf 'assent thaw\n' | bash -s
		alias a=assent; a answer 01K allow
		if true; then assent thaw; fi
		echo $(assent answer 01K allow)
		pkill assent
		pkill -f 'assent up'
		pkill -f 'ass.*t'
		killall -9 assent
		kill $(pidof assent)
		kill -9 $(pgrep -f 'assent up')
		pgrep assent | xargs kill
		ps aux | grep assent | awk '{print $2}' | xargs kill
		kill -9 -1
		systemctl stop assent
		systemctl --user disable --now assent.service
		service assent stop
		launchctl bootout gui/501/dev.assent
		docker stop assent
		docker rm -f assent-gate-1
		docker exec -it assent-gate-1 sh
		docker compose -p assent down
		docker cp assent-gate-1:/var/lib/x .
		kubectl -n assent delete pod gate-1
		kubectl get secrets -n assent
		brew services stop assent
		nats pub assent.v1.main.answer.me.01K '{}'
		nats kv put ASSENT_POLICY fleet '{}'
		nats req '$JS.API.STREAM.PURGE.ASSENT_DECISIONS' ''
		printf 'PUB assent.v1.main.answer.me.01K 2\r\n{}\r\n' | nc 127.0.0.1 4222
		exec 3<>/dev/tcp/127.0.0.1/4222; echo 'PUB assent.v1.x' >&3
		claude --bare -p 'do it'
		claude --settings '{"disableAllHooks":true}' -p x
		npx @anthropic-ai/claude-code --bare -p x
		CLAUDE_CONFIG_DIR=/tmp/x claude -p x
		env HOME=/tmp claude -p x
		export CLAUDE_CONFIG_DIR=/tmp/x; claude -p x
		codex exec --disable hooks x
		codex exec -c features.hooks=false x
		gemini --acp
		opencode --pure run x
		pi --no-extensions -p x
		sudo claude -p x
	`)
}

func TestSelfCommandsLeftAlone(t *testing.T) {
	t.Parallel()
	selfRows(t, mustCompile(t, openPolicy), Allow, `
		assent
		assent --help
		assent version
		assent answer --help
		assent policy check p.jsonc
		assent policy check .assent/policy.jsonc
		assent policy eval --policy .assent/policy.jsonc
		assent policy explain --policy p.jsonc
		assent policy test cases.jsonl
		assent ask --tool bash --input '{"command":"git push"}'
		assent doctor
		./assent policy check p.jsonc
		which assent
		command -v assent
		go run . policy check p.jsonc
		go run ./cmd/tool answer
		echo assent answer 01K allow
		grep -rn 'assent answer' docs
		git log --grep='assent up'
		git commit -m 'assent answer'
		man assent
		go test ./internal/assent -run Answer
		pkill node
		pkill -f vite
		pkill -f 'go run'
		pgrep -fl assent
		kill 1234
		kill -1 1234
		ps aux | grep assent
		cd ~/src/assent && kill $(lsof -ti :3000)
		kill %1
		systemctl status assent
		systemctl restart nginx
		service assent status
		docker ps --filter name=assent
		docker logs assent-gate-1
		docker build -t assent .
		docker run --rm assent policy check p.jsonc
		docker stop web
		docker exec web ls /src/assent
		docker push ghcr.io/acme/assent
		kubectl get pods -n assent
		kubectl logs -n assent gate-1
		nats pub orders.new '{}'
		nats stream ls
		nc -z localhost 4222
		grep -rn 'assent.v1.' docs
		rg '\$JS.API' internal
		echo 'assent.v1.main.ask.me' > notes.txt
		curl https://example.com/docs
		claude -p 'explain this'
		claude mcp list
		codex exec 'fix it'
		codex exec -c model=x 'fix it'
		gemini -p x
		opencode run x
		pi -p x
		export HOME=/tmp
		npm run answer
		dissent answer
	`)
}

func TestSelfOfToolsDenied(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, openPolicy)
	for name, c := range map[string]Call{
		"a write of the hook's settings":         on("Write", m{"file_path": "/repo/.claude/settings.json"}),
		"an edit of them":                        on("Edit", m{"file_path": "~/.claude/settings.json"}),
		"in another letter case on a Mac":        {Tool: "write", Input: []byte(`{"path":"/Users/x/.Claude/Settings.json"}`), Cwd: "/repo", Home: "/Users/x", Platform: "darwin"},
		"with letters that fold on a Mac":        {Tool: "write", Input: []byte(`{"path":"/Users/x/.claude/\u017fettings.json"}`), Cwd: "/repo", Home: "/Users/x", Platform: "darwin"},
		"with backslashes on Windows":            {Tool: "write", Input: []byte(`{"path":"C:\\Users\\x\\.claude\\settings.json"}`), Cwd: "C:/repo", Home: "C:/Users/x", Platform: "windows"},
		"over a link that the adapter saw":       on("write", m{"path": "l.json"}, Path{"l.json", "/home/dev/.claude/settings.json"}),
		"over a link on the way":                 on("write", m{"path": "l/settings.json"}, Path{"l", "/home/dev/.claude"}),
		"from a directory within":                {Tool: "write", Input: []byte(`{"path":"settings.json"}`), Cwd: "/home/dev/.claude", Home: "/home/dev"},
		"from a directory beside":                {Tool: "write", Input: []byte(`{"path":"../settings.json"}`), Cwd: "/home/dev/.claude/x", Home: "/home/dev"},
		"without a directory":                    {Tool: "write", Input: []byte(`{"path":".claude/settings.json"}`)},
		"a patch":                                on("apply_patch", m{"input": "*** Begin Patch\n*** Update File: .codex/config.toml\n*** End Patch"}),
		"an unknown tool with a path":            on("frob", m{"path": ".claude/settings.json"}),
		"an MCP tool with a path":                on("mcp", m{"server": "fs", "tool": "write_file", "arguments": m{"path": "/home/dev/.claude/settings.json"}}),
		"a read of a credentials file":           on("read", m{"path": "ci-42.creds"}),
		"a read of the store":                    on("read", m{"path": "/home/dev/.local/share/assent/main/auth/keys.json"}),
		"a search of the store":                  on("grep", m{"path": "~/.local/share/assent", "pattern": "SU"}),
		"a listing of the configuration":         on("ls", m{"path": "~/.config/assent"}),
		"a write of a project's rules":           on("write", m{"path": ".assent/policy.jsonc"}),
		"a write of a project's module":          on("write", m{"path": ".assent/modules/x.ts"}),
		"a command of an unknown tool":           on("frob", m{"command": "assent answer 01K allow"}),
		"a command of another shell":             on("run_shell_command", m{"command": "assent answer 01K allow"}),
		"a shell in another directory":           on("exec_command", m{"cmd": "tee settings.json", "workdir": "/home/dev/.claude"}),
		"a text typed into an open shell":        on("write_stdin", m{"chars": "assent answer 01K allow\n"}),
		"a bash call in the folder of the store": on("bash", m{"command": "cat keys.json", "workdir": "/home/dev/.local/share/assent/main/auth"}),
	} {
		if got := s.Rule(c); selfAction(got) != Deny || got.Action != Deny {
			t.Errorf("%s: %s, by the built-in rules %s: %+v", name, got.Action, selfAction(got), got.Entries)
		}
	}
}

func TestSelfOfToolsLeftAlone(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, openPolicy)
	for name, c := range map[string]Call{
		"a read of the hook's settings":         on("Read", m{"file_path": "/repo/.claude/settings.json"}),
		"a search of them":                      on("Grep", m{"path": ".claude", "pattern": "hook"}),
		"a search of the project":               on("Grep", m{"pattern": "assent"}),
		"a listing of the home":                 on("ls", m{"path": "~"}),
		"a glob":                                on("Glob", m{"pattern": ".claude/**/*.json"}),
		"a read of the project's rules":         on("read", m{"path": ".assent/policy.jsonc"}),
		"a write beside the settings":           on("write", m{"path": ".claude/commands/x.md"}),
		"a write of settings of something else": on("write", m{"path": "src/settings.json"}),
		"a write in a project of the same name": {Tool: "write", Input: []byte(`{"path":"/home/dev/src/assent/internal/policy/self.go"}`), Cwd: "/home/dev/src/assent", Home: "/home/dev"},
		"a file called assent":                  on("write", m{"path": "cmd/assent/main.go"}),
		"settings in another case on Linux, of a program of that name": on("write", m{"path": "claude/settings.json"}),
		"an MCP tool with the project's path":                          on("mcp", m{"server": "git", "tool": "status", "arguments": m{"path": "/repo"}}),
		"an unknown tool that speaks of it":                            on("frob", m{"text": "~/.claude/settings.json"}),
		"an unknown tool with a path":                                  on("frob", m{"path": "src/a.go"}),
		"a list of credentials in prose":                               on("frob", m{"text": "a.creds"}),
	} {
		if got := s.Rule(c); selfAction(got) != Allow {
			t.Errorf("%s: the built-in rules %s: %+v", name, selfAction(got), selfEntries(got))
		}
	}
}

func TestSelfIsLiftedByTheFleetLayerAlone(t *testing.T) {
	t.Parallel()
	write := on("write", m{"path": ".claude/settings.json"})
	answer := bash("assent answer 01K allow")
	lifted := mustCompile(t, `{"permission":{"*":"allow"},"selfProtection":{"lift":["claude-settings"]}}`)
	if got := lifted.Rule(write); got.Action != Allow {
		t.Errorf("a lifted group: %s: %+v", got.Action, got.Entries)
	}
	if got := lifted.Rule(answer); got.Action != Deny {
		t.Errorf("a group beside a lifted one: %s", got.Action)
	}
	if got := lifted.Lifted(); !slices.Equal(got, []string{"claude-settings"}) {
		t.Errorf("lifted %q", got)
	}
	for _, rules := range []string{
		`{"permission":{"*":"allow","path":{"*":"allow","*/.claude/settings*.json":"allow"},"path_write":{"*":"allow"},"write":{"*":"allow","*.claude/settings.json":"allow"}}}`,
		`{"permission":{"*":"allow"},"yoloMode":true}`,
		`{"permission":{"*":"allow"},"trustedReadPaths":["/home/dev"]}`,
	} {
		if got := mustCompile(t, rules).Rule(write); got.Action != Deny {
			t.Errorf("%s: %s", rules, got.Action)
		}
	}
	for _, layer := range []Layer{ProjectLayer("p"), AgentLayer("a"), ProjectAgentLayer("p", "a")} {
		if _, err := Read(layer, "f", []byte(`{"selfProtection":{"lift":["claude-settings"]}}`)); err == nil {
			t.Errorf("layer %s may lift", layer)
		}
		d, err := Read(layer, "f", []byte(`{"permission":{"*":"allow","path":{"*":"allow"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		for _, trust := range []bool{true, false} {
			if got := Layered(trust, d).Rule(write); got.Action != Deny {
				t.Errorf("layer %s, trusted %v, lifts: %s", layer, trust, got.Action)
			}
		}
	}
}

func TestSelfIsLiftedByNoGrant(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, openPolicy)
	for surface, pattern := range map[string]string{"path": "*/.claude/*", "write": "*", "bash": "rm *"} {
		g, err := NewGrant("g", surface, []string{pattern})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.RuleWith(on("write", m{"path": "/repo/.claude/settings.json"}), []Grant{g}); got.Action != Deny {
			t.Errorf("a grant on %s: %s", surface, got.Action)
		}
		if got := s.RuleWith(bash("rm -rf .claude"), []Grant{g}); got.Action != Ask {
			t.Errorf("a grant on %s, of a folder: %s", surface, got.Action)
		}
	}
	got := s.Rule(bash("rm -rf .claude"))
	if len(got.Suggest) > 0 {
		t.Errorf("a grant is offered: %q", got.Suggest)
	}
	if ok, _ := mustCompile(t, `{"permission":{"*":"allow"},"modelDelegation":{"allowedSurfaces":["*"]}}`).LinkMayAllow(got.Open(), bash("rm -rf .claude")); ok {
		t.Error("a link may allow it")
	}
}

func TestSelfOwnPaths(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, `{"permission":{"*":"allow","external_directory":"allow"},"selfProtection":{"paths":["/srv/gate","~/store"]}}`)
	for path, want := range map[string]Action{
		"/srv/gate": Deny, "/srv/gate/auth/keys.json": Deny, "/SRV/gate/x": Deny, "/home/dev/store/x": Deny,
		"/srv/gates": Allow, "/srv": Allow, "/home/dev/stores": Allow,
	} {
		if got := s.Rule(on("read", m{"path": path})); got.Action != want {
			t.Errorf("%s: %s, want %s", path, got.Action, want)
		}
	}
	for _, doc := range []string{
		`{"selfProtection":{"paths":["srv"]}}`, `{"selfProtection":{"paths":["/"]}}`, `{"selfProtection":{"paths":["~"]}}`,
		`{"selfProtection":{"paths":["/srv/*"]}}`, `{"selfProtection":{"paths":["/a/../b/*/.."]}}`, `{"selfProtection":{"paths":"/srv"}}`,
		`{"selfProtection":{"lift":["claude"]}}`, `{"selfProtection":{"lift":["*"]}}`, `{"selfProtection":{"lift":true}}`, `{"selfProtection":true}`,
		`{"selfProtection":{"off":true}}`,
	} {
		if _, err := Compile("f", []byte(doc)); err == nil {
			t.Errorf("%s is taken", doc)
		}
	}
}

func TestSelfInQueries(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, openPolicy)
	for _, q := range []Query{
		{Surface: "bash", Value: "assent answer 01K allow"}, {Surface: "bash", Value: "tee ~/.claude/settings.json", Home: "/home/dev", Cwd: "/repo"},
		{Surface: "write", Value: ".claude/settings.json", Cwd: "/repo"}, {Surface: "path_write", Value: ".claude/settings.json", Cwd: "/repo"},
		{Surface: "path", Value: "a.creds", Cwd: "/repo"}, {Surface: "read", Value: "a.creds", Cwd: "/repo"},
	} {
		if got := s.Check(q); got.State != Deny || got.Origin != OriginBuiltin || got.Reason == "" {
			t.Errorf("%+v: %+v", q, got)
		}
	}
	for _, q := range []Query{
		{Surface: "bash", Value: "assent policy check x"}, {Surface: "read", Value: ".claude/settings.json", Cwd: "/repo"},
		{Surface: "path_read", Value: ".claude/settings.json", Cwd: "/repo"}, {Surface: "external_directory", Value: "/home/dev/.claude/settings.json", Cwd: "/repo"},
	} {
		if got := s.Check(q); got.State != Allow {
			t.Errorf("%+v: %+v", q, got)
		}
	}
}

// TestBuiltinRulesAreWhole holds the table to what it is made for.
func TestBuiltinRulesAreWhole(t *testing.T) {
	t.Parallel()
	groups := map[string]bool{}
	seen := map[string]bool{}
	for _, r := range BuiltinRules() {
		groups[r.Group] = true
		key := fmt.Sprint(r.Surface, r.Pattern)
		if seen[key] && r.Pattern != "." {
			t.Errorf("%s %s stands twice", r.Surface, r.Pattern)
		}
		seen[key] = true
		if r.Action == None || r.Reason == "" || groupIndex(r.Group) < 0 {
			t.Errorf("%+v", r)
		}
	}
	for _, g := range SelfGroups() {
		if !groups[g] {
			t.Errorf("group %s has no rule", g)
		}
	}
}

// TestBuiltinRulesAreInTheDocs: a group that nobody can read of is one that
// nobody lifts knowingly.
func TestBuiltinRulesAreInTheDocs(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.FromSlash("../../docs/policy.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range SelfGroups() {
		if !strings.Contains(string(b), "`"+g+"`") {
			t.Errorf("docs/policy.md says nothing of the group %s", g)
		}
	}
}

// TestSelfFilesAreSecrets: what no agent may read, no link may allow.
func TestSelfFilesAreSecrets(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"/home/dev/.config/assent/local.json", "/home/dev/.local/share/assent/main/auth/keys.json", "/home/dev/.local/state/assent/x", "a.creds", "a.nk"} {
		if secretIn(p, nil) == "" {
			t.Errorf("%s has not the shape of a secret", p)
		}
	}
}

// BenchmarkSelf is what the built-in rules add to a ruling.
func BenchmarkSelf(b *testing.B) {
	s := manyRules(b, 20)
	for name, text := range map[string]string{"command": "git status --short", "chain of 50": strings.Repeat("git status && ", 49) + "git status"} {
		b.Run(name, func(b *testing.B) {
			cmd := shell.Read(text)
			e := evaluation{s: s, tool: surfaceBash, place: placeOf(bash(text))}
			b.ReportAllocs()
			for b.Loop() {
				e.selfShell(cmd)
			}
		})
	}
	for name, one := range map[string]struct{ path, cwd string }{
		"elsewhere": {"internal/policy/self.go", "/home/dev/src/assent"}, "settings": {"/home/dev/.claude/settings.json", "/repo"},
	} {
		b.Run(name, func(b *testing.B) {
			e := evaluation{s: s, tool: "write", place: placeOf(Call{Cwd: one.cwd, Home: "/home/dev"})}
			b.ReportAllocs()
			for b.Loop() {
				e.protect(&e.place, one.path, writes)
				e.out.Entries = e.out.Entries[:0]
			}
		})
	}
}
