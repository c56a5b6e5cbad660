package policy

import (
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/assent-dev/assent/internal/shell"
)

// slowSelf says by the patterns alone, one after the other and without the fast
// look in front, what the built-in rules say of a clean absolute path.
func slowSelf(abs string, dir direction) Action {
	out := Allow
	for _, r := range BuiltinRules() {
		if r.Surface == surfaceBash || directionOf(r.Surface)&dir == 0 || r.Action == Ask && dir&writes == 0 || strings.HasPrefix(r.Pattern, "~") || r.Pattern == "." {
			continue
		}
		if slowMatch(foldText(r.Pattern), foldText(abs)) {
			out = stricter(out, r.Action)
		}
	}
	return out
}

// FuzzSelfPaths holds the fast look, which must not overlook a path, and the
// reading of paths against the patterns themselves.
func FuzzSelfPaths(f *testing.F) {
	for _, p := range []string{
		".claude/settings.json", "a/../.claude/x/../settings.local.json", "/home/x/.config/assent", "share/assent/x", "ASSENT/local.json", "b.CREDS", "c.nk/..",
		"/etc/codex/x", "/etc/claude-code", ".pi//agent/./npm/x", "opencode.json", ".opencode/plugin/a", "/opt/x/bin/assent", "$XDG_CONFIG_HOME/assent/x",
		"$CODEX_HOME/config.toml", "/run/assent", ".assent", "src/assent/main.go", "\u017fettings.json", ".claude/\u017fettings.json",
	} {
		f.Add(p, "/repo", false)
		f.Add(p, "/home/x/.claude", true)
		f.Add(p, "/home/x/.config", false)
	}
	s := Empty()
	f.Fuzz(func(t *testing.T, typed, cwd string, fold bool) {
		if !path.IsAbs(cwd) || typed == "" || len(typed)+len(cwd) > 200 || strings.ContainsAny(typed, "~\"' \t\n@\\") || strings.HasPrefix(typed, "$PWD") ||
			strings.HasPrefix(typed, "${PWD}") || strings.HasPrefix(typed, "$HOME") || strings.HasPrefix(typed, "${HOME}") || strings.Contains(cwd, `\`) || stream(typed) {
			t.Skip()
		}
		call := Call{Cwd: cwd}
		if fold {
			call.Platform = "darwin"
		}
		at := placeOf(call)
		abs := typed
		if !path.IsAbs(typed) {
			abs = cwd + "/" + typed
		}
		abs = path.Clean(abs)
		for _, dir := range []direction{reads, writes} {
			e := evaluation{s: s, place: at}
			e.guard(&at, typed, use{dir: dir, folder: dir == writes}, 0)
			got := Allow
			for _, entry := range e.out.Entries {
				got = stricter(got, entry.Action)
			}
			// A system that tells letters apart may have them folded all the same.
			if want := slowSelf(abs, dir); got != want && (fold || ascii(abs)) {
				t.Errorf("%q in %q (%v): %s, want %s", typed, cwd, dir, got, want)
			}
		}
	})
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}

// FuzzSelfShell: no text makes the built-in rules panic, and none that holds a
// command of Assent's for people, alone on its line, passes.
func FuzzSelfShell(f *testing.F) {
	for _, text := range []string{"", "ls", "cd ~/.claude && tee x", "echo $(assent)", "rm .c*", "cp -t", "tar xf", "mv", "git", "go run", "docker exec", "systemctl", "kill -1", "sed -i s/a/b/ opencode.json", "RM -rf ~", "git apply x", "x -o.claude/settings.json", "touch a.creds"} {
		f.Add(text)
	}
	s, err := Compile(LayerFleet, []byte(openPolicy))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip() // no call can hold it
		}
		if !utf8.ValidString(text) {
			t.Skip() // no message holds it
		}
		s.Rule(bash(text))
		plainIsPlain(t, s, text)
		behind := s.Rule(bash("assent answer 01K allow\n" + text))
		if behind.Action == Allow {
			t.Errorf("%q behind it lets it pass", text)
		}
	})
}

// plainIsPlain: the fast look overlooks no word.
func plainIsPlain(t *testing.T, s *Snapshot, text string) {
	t.Helper()
	c := bash(text)
	e := evaluation{s: s, tool: surfaceBash, place: placeOf(c)}
	x := selfText{evaluation: &e, cmd: shell.Read(text)}
	for i := range x.cmd.Units {
		u := &x.cmd.Units[i]
		at := e.place.at(u.Dir, u.Lost)
		if len(u.Words) == 0 || !x.plain(&at, u) {
			continue
		}
		if x.words(&at, i, x.own(i)); len(e.out.Entries) > 0 || x.flow.dir != 0 {
			t.Errorf("%q is held for plain: %+v", u.Words, e.out.Entries)
		}
	}
}
