package shell

import (
	"slices"
	"strings"
)

// programWhy names what keeps a command of literal words from being simple:
// its program runs other commands from its arguments. "" if nothing is known
// against it. Interpreters, and programs whose scripts stand in a word, have to
// prove that they do not.
func programWhy(words []string) string {
	name, args := programName(words[0]), words[1:]
	if why := programInArguments(name, args); why != "" {
		return why
	}
	if wraps(name, args) {
		return WhyWrapper + ":" + name
	}
	if name == "git" {
		return gitWhy(args)
	}
	if door := doorOf(name, args); door != "" {
		return WhyOption + ":" + name + " " + door
	}
	return scriptWhy(name, args)
}

// scriptWhy is programWhy for programs whose scripts can do more than they say.
func scriptWhy(name string, args []string) string {
	runs := evaluates(name, args)
	switch name {
	case "awk", "gawk", "mawk", "nawk", "original-awk", "bwk":
		if awkRuns(args) {
			return WhyInterpreter + ":" + name
		}
	case "deno":
		if len(args) == 0 || slices.Contains(args, "eval") || slices.Contains(args, "repl") {
			return WhyInterpreter + ":" + name
		}
	case "sed":
		runs = sedRuns(args)
	case "sqlite3":
		runs = sqliteRuns(args)
	case "uniq":
		runs = uniqWrites(args)
	case "crontab":
		runs = len(args) != 1 || args[0] != "-l"
	}
	if runs {
		return WhyRuns + ":" + name
	}
	return ""
}

// ProgramName is the name by which the program of a word is known to rules: git,
// of /usr/bin/git, GIT and git.exe.
func ProgramName(word string) string { return programName(word) }

// programName is the name by which a program is known here: without its folder,
// without what shells and systems put around it, in lower case, as some file
// systems find it.
func programName(word string) string {
	from, plain := 0, true
	for i := range len(word) {
		switch c := word[i]; {
		case c == '/' || c == '\\':
			from = i + 1
		case c >= 'a' && c <= 'z':
		default:
			plain = false // a letter in upper case, an ending, a sign
		}
	}
	name := word[from:]
	if !plain {
		name = strings.TrimPrefix(strings.ToLower(name), "=") // zsh: the path of a command
		for _, ending := range []string{".exe", ".cmd", ".bat"} {
			name = strings.TrimSuffix(name, ending)
		}
		if strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") {
			return "ld.so"
		}
	}
	if rest, ok := strings.CutPrefix(name, "g"); ok && slices.Contains(gnuNames, rest) {
		return rest
	}
	return name
}

// gnuNames are programs that some systems know with a g in front.
var gnuNames = []string{"tar", "sed", "find", "xargs", "timeout", "env", "nice", "nohup", "stdbuf", "chroot", "sort", "uniq", "split", "shuf", "wc",
	"du", "time", "install", "test"}

// wraps says whether a command is a carrier in use. "command -v" runs nothing.
func wraps(name string, args []string) bool {
	if _, ok := reached[name]; ok {
		_, found := behindReached(name, args)
		return found
	}
	_, ok := carriers[name]
	switch {
	case !ok:
		return false
	case name == "command":
		return len(args) == 0 || args[0] != "-v" && args[0] != "-V"
	}
	return len(args) == 0 || len(args) > 1 || !slices.Contains([]string{"--version", "--help", "-V"}, args[0])
}
