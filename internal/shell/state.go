package shell

import (
	"path"
	"slices"
	"strings"
)

// maxDirs bounds the directories in which a command may run before nobody can
// tell.
const maxDirs = 4

// maxDirLength bounds the name of a directory that is followed, in bytes.
const maxDirLength = 4096

// state is where the shell may stand: one of dirs, or anywhere if lost. Without
// either, the place in the text is not reached.
type state struct {
	dirs []string
	lost bool
}

var start = state{dirs: []string{""}}

// home says whether the shell stands where the call does.
func (s state) home() bool { return !s.lost && len(s.dirs) == 1 && s.dirs[0] == "" }

func (s state) reached() bool { return s.lost || len(s.dirs) > 0 }

// or is where the shell may stand if it may stand at either.
func (s state) or(other state) state {
	if !other.reached() || !s.lost && !other.lost && slices.Equal(s.dirs, other.dirs) {
		return s
	}
	if !s.reached() {
		return other
	}
	out := state{dirs: slices.Clone(s.dirs), lost: s.lost || other.lost}
	for _, d := range other.dirs {
		if !slices.Contains(out.dirs, d) {
			out.dirs = append(out.dirs, d)
		}
	}
	if len(out.dirs) > maxDirs {
		return state{dirs: out.dirs[:1], lost: true}
	}
	return out
}

// place writes into a unit where it runs.
func (s state) place(u *Unit) {
	if len(s.dirs) > 0 {
		u.Dir, u.Elsewhere = s.dirs[0], s.dirs[1:]
	}
	u.Lost = s.lost
}

// nowhere is a state in which nobody can tell where the shell stands.
func (s state) nowhere() state { return state{dirs: s.dirs, lost: true} }

// moved is where the shell stands after a command, if it succeeds and if it
// fails. Only its own commands move it or end it.
func moved(words []word, at state) (ok, fail state) {
	for len(words) > 1 && words[0].fixed() && (words[0].text == "command" || words[0].text == "builtin") {
		words = words[1:]
		for len(words) > 0 && words[0].fixed() && (words[0].text == "-p" || words[0].text == "--") {
			words = words[1:]
		}
	}
	if len(words) == 0 || !words[0].fixed() {
		return at, at
	}
	switch words[0].text {
	case "exit":
		// Of more words, "exit" takes none and goes on; "return" and "logout" fail
		// outside of a function and a login shell.
		if len(words) == 1 || len(words) == 2 && words[1].fixed() && digits(words[1].text) {
			return state{}, state{}
		}
		return at, at
	case "pushd":
		if len(words) == 2 && words[1].fixed() && !strings.HasPrefix(words[1].text, "-") && !strings.HasPrefix(words[1].text, "+") {
			return at.cd(words[1:]), at
		}
		return at.nowhere(), at
	case "popd", "chdir":
		return at.nowhere(), at
	case "cd":
		return at.cd(words[1:]), at
	}
	return at, at
}

// cd is where "cd args" leads.
func (s state) cd(args []word) state {
	for len(args) > 0 && args[0].fixed() && (args[0].text == "--" || args[0].text == "-L") {
		args = args[1:]
	}
	target := "~"
	switch {
	case len(args) > 1, len(args) == 1 && (!args[0].fixed() || args[0].pipe || strings.HasPrefix(args[0].text, "-")):
		return s.nowhere()
	case len(args) == 1:
		target = args[0].text
	}
	for _, home := range []string{"$HOME", "${HOME}"} {
		if rest, ok := strings.CutPrefix(target, home); ok && (rest == "" || rest[0] == '/') {
			target = "~" + rest
		}
	}
	for _, here := range []string{"$PWD", "${PWD}"} {
		if rest, ok := strings.CutPrefix(target, here); ok && (rest == "" || rest[0] == '/') {
			target = "." + rest
		}
	}
	out := s.to(target)
	if len(args) == 1 && args[0].folder {
		out = out.or(s.to("./" + args[0].text))
	}
	return out
}

// to is where a target leads.
func (s state) to(target string) state {
	out := state{lost: s.lost && !rooted(target)}
	for _, d := range s.dirs {
		next, ok := joined(d, target)
		if !ok || len(next) > maxDirLength {
			return s.nowhere()
		}
		if !slices.Contains(out.dirs, next) {
			out.dirs = append(out.dirs, next)
		}
	}
	return out
}

// rooted says whether a path means the same wherever the shell stands.
func rooted(p string) bool {
	return strings.HasPrefix(p, "/") || p == "~" || strings.HasPrefix(p, "~/")
}

// joined is target as seen from dir; ok is false where it leads above a home
// directory whose place is not known here.
func joined(dir, target string) (string, bool) {
	switch {
	case target == "" || target == ".":
		return dir, true
	case strings.HasPrefix(target, "/"):
		return path.Clean(target), true
	case rooted(target):
		dir, target = "~", strings.TrimPrefix(target[1:], "/")
	}
	if dir != "~" && !strings.HasPrefix(dir, "~/") {
		out := path.Join(dir, target)
		if out == "." {
			out = ""
		}
		if strings.HasPrefix(out, "~") || strings.HasPrefix(out, "$") {
			out = "./" + out // a folder of that name, not the home directory
		}
		return out, true
	}
	inner := path.Join(strings.TrimPrefix(dir[1:], "/"), target)
	if inner == ".." || strings.HasPrefix(inner, "../") {
		return "", false
	}
	if inner == "" || inner == "." {
		return "~", true
	}
	return "~/" + inner, true
}
