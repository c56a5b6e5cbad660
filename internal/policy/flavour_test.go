package policy

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func windowsRows(t *testing.T, rules string, want Action, paths ...string) {
	t.Helper()
	s := mustCompile(t, permission(rules))
	for _, p := range paths {
		c := Call{Tool: "read", Input: input(m{"path": p}), Cwd: `C:\repo`, Home: `C:\Users\dev`, Platform: "windows"}
		if got := s.Rule(c); got.Action != want {
			t.Errorf("%s: %s by %s %q (%q), want %s", p, got.Action, got.Decisive.Surface, got.Decisive.MatchedPattern, got.Decisive.Value, want)
		}
	}
}

const windowsRules = `{"read":{"*":"ask","src/*":"allow","C:/repo/docs/*":"allow","C:\\repo\\lib\\*":"allow","~/notes/*":"allow","D:/data/*":"allow","//server/share/pub/*":"allow"},
	"path":{"*.env":"deny","C:/repo/keys/*":"deny","~/.ssh/*":"deny"},"external_directory":{"*":"deny","~/*":"allow","D:/data/*":"allow","//server/share/*":"allow"}}`

func TestWindowsPathsGrant(t *testing.T) {
	t.Parallel()
	windowsRows(t, windowsRules, Allow, `src\a.go`, `src/a.go`, `.\src\a.go`, `docs\..\src\a.go`, `C:\repo\src\a.go`, `c:\repo\src\a.go`, `C:/repo/src/a.go`, `/c/repo/src/a.go`,
		`docs\a.md`, `C:\repo\docs\a.md`, `lib\a`, `~\notes\x`, `C:\Users\dev\notes\x`, `D:\data\x`, `d:/data/x`, `\\server\share\pub\x`, `//server/share/pub/x`)
}

func TestWindowsPathsRefuse(t *testing.T) {
	t.Parallel()
	windowsRows(t, windowsRules, Deny, `.env`, `.ENV`, `src\.Env`, `KEYS\x`, `C:\REPO\Keys\x`, `src\..\keys\x`, `~\.SSH\id`, `.env.`, `.env `, `.env::$DATA`, `.env:x`, `\\?\C:\repo\.env`,
		`C:\Windows\x`, `..\x`, `D:\other`, `\\server\other\x`, `E:x`, `C:\repository\x`, `\Windows\x`, `\\localhost\c$\repo\keys\x`, `//127.0.0.1/C$/repo/.env`)
	// The project in other letters, and a rule on a path within it.
	windowsRows(t, `{"*":"allow","path":{"vault/*":"deny"},"external_directory":"allow"}`, Deny, `c:\REPO\vault\k`, `C:\Repo\Vault\k`, `\\LOCALHOST\C$\REPO\vault\k`)
	// What cannot be proven to be what it says asks, whatever is allowed.
	windowsRows(t, `{"*":"allow"}`, Ask, `src\SECRET~1.TXT`, `src\a.txt.`, `src\a `, `src\a::$DATA`, `\\?\C:\repo\a`, `\\.\C:\repo\a`, `C:a`, `\repo\a`, `src\NUL`, `src\com1.txt`)
}

func TestLetterCaseAndCompositionOnAMac(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, permission(`{"*":"allow","path":{"caf\u00e9/*":"deny","STRASSE":"deny","~/Keys/*":"ask"},"read":{"*":"ask","Src/*":"allow"}}`))
	for _, r := range []struct {
		path         string
		linux, apple Action
	}{
		{"cafe\u0301/x", Ask, Deny}, {"CAFE\u0301/x", Ask, Deny}, {"caf\u00e9/x", Deny, Deny}, {"stra\u00dfe", Ask, Deny}, {"~/kEYS/x", Ask, Ask},
		{"Src/x", Allow, Allow}, {"src/x", Ask, Ask}, {"Src/y/z", Allow, Allow}, {"Src/../Src/x", Allow, Allow},
	} {
		for platform, want := range map[string]Action{"linux": r.linux, "": r.linux, "freebsd": r.linux, "darwin": r.apple, "macos": r.apple, "Darwin": r.apple} {
			c := on("read", m{"path": r.path})
			c.Platform = platform
			if got := s.Rule(c); got.Action != want {
				t.Errorf("%q on %s: %s by %s %q, want %s", r.path, platform, got.Action, got.Decisive.Surface, got.Decisive.MatchedPattern, want)
			}
		}
	}
}

func TestTheProjectInOtherLettersOnAMac(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, permission(`{"*":"allow","path":{"vault/*":"deny"},"external_directory":{"*":"allow"}}`))
	for path, want := range map[string]struct{ linux, apple Action }{
		"/Repo/Vault/k": {Allow, Deny}, "/REPO/vault/k": {Allow, Deny}, "/repo/vault/k": {Deny, Deny}, "/repo/src/k": {Allow, Allow}, "/Other/vault/k": {Allow, Allow},
	} {
		for platform, want := range map[string]Action{"linux": want.linux, "darwin": want.apple} {
			c := on("read", m{"path": path})
			c.Cwd, c.Platform = "/repo", platform
			if got := s.Rule(c); got.Action != want {
				t.Errorf("%q on %s: %s by %q, want %s", path, platform, got.Action, got.Decisive.MatchedPattern, want)
			}
		}
	}
}

// walkPath is an obvious reading of a typed path: name by name.
func walkPath(base, home, typed string) string {
	for _, prefix := range []string{"~", "$HOME", "${HOME}"} {
		if typed == prefix || strings.HasPrefix(typed, prefix+"/") {
			typed = home + typed[len(prefix):]
		}
	}
	for _, prefix := range []string{"$PWD", "${PWD}"} {
		if typed == prefix || strings.HasPrefix(typed, prefix+"/") {
			typed = base + typed[len(prefix):]
		}
	}
	if !strings.HasPrefix(typed, "/") {
		typed = base + "/" + typed
	}
	var at []string
	for _, name := range strings.Split(typed, "/") {
		switch {
		case name == "" || name == ".":
		case name != "..":
			at = append(at, name)
		case len(at) > 0:
			at = at[:len(at)-1]
		}
	}
	return "/" + strings.Join(at, "/")
}

// FuzzPathCleaning: a path leads where walking it name by name leads, and what
// lies elsewhere rides on no allow.
func FuzzPathCleaning(f *testing.F) {
	for _, s := range []string{"a", "../x", "src/../x", "/repo/./src//a", "~/a/../b", "$HOME", "${HOME}/x", "$PWD/../y", "/..//etc", "src/a/../../..", "./~/x", "src/.", "..foo"} {
		f.Add(s)
	}
	s := mustCompile(f, permission(`{"*":"deny","read":{"*":"deny","src/*":"allow"},"external_directory":"allow"}`))
	f.Fuzz(func(t *testing.T, typed string) {
		if typed == "" || !utf8.ValidString(typed) {
			return
		}
		p := placeOf(Call{Cwd: "/repo", Home: "/home/dev"})
		want := walkPath("/repo", "/home/dev", typed)
		if got := p.join(typed)[0].abs; got != want {
			t.Fatalf("%q leads to %q, walking it to %q", typed, got, want)
		}
		if got := s.Rule(on("read", m{"path": typed})); got.Action == Allow && !strings.HasPrefix(want, "/repo/src/") && !isFileURL(typed) {
			t.Fatalf("%q is allowed and leads to %q", typed, want)
		}
	})
}

// FuzzWindowsPath: whatever is typed, a path that is said to be proven is
// absolute and clean, and has no name that Windows would read as another.
func FuzzWindowsPath(f *testing.F) {
	for _, s := range []string{`a\b`, `C:\x\..\y`, `\\s\h\x`, `\\?\C:\x`, `c:x`, `/c/x`, `a. \b`, `x::$DATA`, `PROGRA~1`, `..\..\..\x`, `C:\..\..`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		abs, odd := windowsPath(typed, "C:/repo")
		if odd != "" {
			return
		}
		volume, rest := windowsVolume(abs)
		if volume == "" || !strings.HasPrefix(rest, "/") || strings.Contains(rest, `\`) || strings.Contains(rest, ":") {
			t.Fatalf("%q leads to %q, which is not absolute", typed, abs)
		}
		for _, name := range strings.Split(rest[1:], "/") {
			if name == "." || name == ".." || strings.TrimRight(name, ". ") != name || shortName(name) {
				t.Fatalf("%q leads to %q, which holds %q", typed, abs, name)
			}
		}
		if again, odd := windowsPath(abs, ""); again != abs || odd != "" {
			t.Fatalf("%q leads to %q, and that to %q (%s)", typed, abs, again, odd)
		}
	})
}
