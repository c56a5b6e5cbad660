package shellcommand

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func texts(pieces []piece) []string {
	out := make([]string, len(pieces))
	for i, p := range pieces {
		out[i] = p.text
	}
	return out
}

// Texts whose commands are found, by which width, and those that are not: each
// refused one differs from one that is cut by what hides a command.
func TestCut(t *testing.T) {
	t.Parallel()
	cuts := []struct {
		name, text string
		width      width
		want       []string
	}{
		{"a list in a shell's word", "bash -c 'git status && git diff'", narrow, []string{"git status", "git diff"}},
		{"a login shell's", `bash -lc "git status; git log"`, narrow, []string{"git status", "git log"}},
		{"a shell by its path", "/bin/sh -ec 'make'", narrow, []string{"make"}},
		{"with settings in front", "bash -euo pipefail -c 'make | cat'", narrow, []string{"make", "cat"}},
		{"quotes in quotes", `bash -c "grep \"a b\" f"`, narrow, []string{`grep "a b" f`}},
		{"a shell in a shell", `sh -c 'bash -c "git status; ls"'`, narrow, []string{"git status", "ls"}},
		{"eval of a literal", "eval 'git status; git diff'", narrow, []string{"git status", "git diff"}},
		{"eval of several words", "eval git status", narrow, []string{"git status"}},
		{"beside other commands", "git fetch && bash -c 'make test' || echo no", narrow, []string{"git fetch", "make test", "echo no"}},
		{"behind a modifier", "timeout 60 bash -c 'npm test'", narrow, []string{"npm test"}},
		{"a modifier inside", "bash -c 'timeout 60 npm test'", narrow, []string{"timeout 60 npm test"}},
		{"in a group", "(bash -c 'make') && { ls; }", narrow, []string{"make", "ls"}},
		{"in a condition", "if git diff --quiet; then bash -c 'npm test'; else ls; fi", narrow, []string{"git diff --quiet", "npm test", "ls"}},
		{"with comments", "bash -c 'git status # look; rm x\nls' # and; rm y", narrow, []string{"git status", "ls"}},
		{"quiet", "bash -c 'make' >/dev/null 2>&1", narrow, []string{"make"}},
		{"in the background", "bash -c 'make' & ls", narrow, []string{"make", "ls"}},
		{"a redirection of a command", "bash -c 'git diff > d.patch'", narrow, []string{"git diff > d.patch"}},
		{"a dollar that single quotes hold", `bash -c "awk '{print \$1}' f" | cat`, narrow, []string{"awk '{print $1}' f", "cat"}},

		{"a here-document", "bash <<'EOF'\ngit status\ngit diff --stat\nEOF", wide, []string{"git status", "git diff --stat"}},
		{"a here-document with settings", "bash -eu <<'EOF'\ngit status # now\nEOF\n", wide, []string{"git status"}},
		{"a here-string", "sh <<< 'git status; ls'", wide, []string{"git status", "ls"}},
		{"a wrapper that changes nothing", "stdbuf -oL git log | cat", wide, []string{"git log", "cat"}},
		{"a wrapper with a shell", "setsid -w bash -c 'make test'", wide, []string{"make test"}},
		{"exec in front", "exec git status", wide, []string{"git status"}},
		{"exec in a shell's word", "bash -c 'cd web && exec npm test'", wide, []string{"cd web", "npm test"}},
	}
	for _, row := range cuts {
		t.Run("cut/"+row.name, func(t *testing.T) {
			got, err := cut(row.text, row.width)
			if err != nil || !slices.Equal(texts(got), row.want) {
				t.Errorf("%q: %q, %v", row.text, texts(got), err)
			}
			if _, err := cut(row.text, narrow); (err == nil) != (row.width == narrow) {
				t.Errorf("%q, narrow: %v", row.text, err)
			}
			if _, err := faithful(row.text, row.want); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDirectoriesOfPieces(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"bash -c make": {""}, "cd web && bash -c make": {"web"}, "cd web && bash -c 'cd src && make'": {"web/src"}, "bash -c 'cd web'; make": {""},
		"cd web; bash -c make": {"web", ""}, "(cd web && bash -c ls); make": {""}, "bash <<'E'\ncd web && make\nE": {"web"},
	} {
		got, err := cut(text, wide)
		if err != nil || !slices.Equal(got[len(got)-1].dirs, want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"cd - && bash -c make", "eval 'cd /srv'; make", "eval 'pushd web' && bash -c make"} {
		if got, err := cut(text, wide); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// FuzzFaithful: whatever a claim is true of, it is not true of the same text
// with a command more in it, wherever that stands and however it is written.
func FuzzFaithful(f *testing.F) {
	for _, s := range []string{
		"bash -c 'git status && git diff'", `bash -c "grep \"a b\" f"`, "bash <<'EOF'\ngit status\nls # x\nEOF\n", "sh <<< 'ls; id'", "stdbuf -oL ls | cat",
		"if ls; then bash -c 'id'; fi", "timeout 5 bash -c ls # x", "eval 'ls' & (id)", "bash -c 'awk \"{print}\" f > g' 2>&1", "exec ls",
	} {
		for at := 0; at < len(s); at += 3 {
			f.Add(s, at, byte(at))
		}
	}
	more := []string{";zzevil;", "$(zzevil)", "`zzevil`", "\nzzevil\n", "|zzevil|", "&zzevil&", "<(zzevil)", "&&zzevil&&", "';zzevil;'", "\";zzevil;\"", "$zzevil", "${zz:-$(zzevil)}", "zzevil(){", "\\\n"}
	f.Fuzz(func(t *testing.T, text string, at int, which byte) {
		pieces, err := cut(text, wide)
		if err != nil {
			if !errors.Is(err, errUncut) || pieces != nil {
				t.Errorf("%q: %+v, an error of no kind: %v", text, pieces, err)
			}
			return
		}
		claims := texts(pieces)
		if strings.Contains(text, "zzevil") || at < 0 || at > len(text) {
			return
		}
		hidden := more[int(which)%len(more)]
		with := text[:at] + hidden + text[at:]
		if _, err := faithful(with, claims); err == nil && !inComment(text, at) {
			t.Errorf("%q passes for %q", with, claims)
		}
		for i := range claims {
			if fewer := slices.Delete(slices.Clone(claims), i, i+1); len(claims) > 1 {
				if _, err := faithful(text, fewer); err == nil && !slices.Equal(fewer, claims) {
					t.Errorf("%q passes for %q", text, fewer)
				}
			}
		}
	})
}

// inComment says, roughly, whether a place may stand in a comment, where a text
// may hold what it likes.
func inComment(text string, at int) bool {
	line := text[strings.LastIndexByte(text[:at], '\n')+1 : at]
	return strings.Contains(line, "#")
}
