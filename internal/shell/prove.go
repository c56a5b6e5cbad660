package shell

import (
	"slices"
	"strings"
)

// proveProgram is what is missing for the proof that a command does no more
// than its words say, where its program is known by a fixed word.
func proveProgram(words []word, texts []string, fed feed) string {
	if modifies(words) > 0 {
		return "" // what it carries decides
	}
	known, pipes := true, false
	for _, r := range words {
		known = known && r.fixed()
		pipes = pipes || r.pipe
	}
	name, args := programName(texts[0]), texts[1:]
	if why := programWhy(texts); why != "" {
		return why
	}
	if fed.is && readsProgram(name, args) || pipes && interprets(name) {
		return WhyInterpreter + ":" + name
	}
	if !shellSetting(name, args) {
		return WhyNotSimple
	}
	if known || wordsHarmless(name, words) {
		return ""
	}
	return WhyExpansion
}

// shellSetting says whether a command that sets how the shell itself reads what
// follows sets nothing that matters here. set -k takes words for assignments,
// set -a hands every variable to every program, set +B expands no braces.
func shellSetting(name string, args []string) bool {
	switch name {
	case "set":
		for i, a := range args {
			switch {
			case a == "--" || a == "-":
				return true
			case i > 0 && args[i-1] == "-o" || i > 0 && strings.HasPrefix(args[i-1], "-") && strings.HasSuffix(args[i-1], "o"):
				if !slices.Contains(harmlessSettings, a) {
					return false
				}
			case len(a) > 1 && (a[0] == '-' || a[0] == '+') && strings.Trim(a[1:], "euxvho") == "":
			default:
				return false
			}
		}
	case "shopt":
		for _, a := range args {
			if a != "-s" && a != "-u" && a != "-q" && !slices.Contains(harmlessSettings, a) {
				return false
			}
		}
	case "enable", "let", "export", "declare", "typeset", "readonly", "local", "emulate", "setopt", "unsetopt", "zmodload", "autoload", "bind", "complete":
		return false // the parser reads the plain ones as clauses
	}
	return true
}

var harmlessSettings = []string{"errexit", "nounset", "xtrace", "pipefail", "verbose", "nullglob", "globstar", "failglob", "inherit_errexit"}

// interprets says whether a program takes a file for a program to run.
func interprets(name string) bool {
	_, ok := interpreters[name]
	if !ok {
		_, ok = interpreters[strings.TrimRight(name, "0123456789.-")]
	}
	return ok || isShell(name) || name == "source" || name == "." || slices.Contains(readers, name)
}

// readers are programs that take their input for commands, some of which run
// programs: sqlite3 has .shell, ftp has !.
var readers = []string{"sqlite3", "psql", "mysql", "mariadb", "ftp", "sftp", "lftp", "telnet", "mail", "mailx", "mutt", "mongo", "mongosh", "deno",
	"scala", "kotlin", "clj", "sbcl", "ocaml"}

// readsProgram says whether a program with these arguments would take its input
// for a program.
func readsProgram(name string, args []string) bool {
	switch name {
	case "sqlite3":
		operands, _ := sqliteGrammar.read(args)
		return len(operands) < 2
	case "psql", "mysql", "mariadb":
		return !slices.ContainsFunc(args, func(a string) bool { return a == "-c" || a == "-e" || strings.HasPrefix(a, "--command") })
	case "deno":
		return len(args) == 0 || slices.Contains(args, "-")
	case "node":
		if slices.Contains(args, "--test") {
			return false
		}
	}
	switch {
	case slices.Contains(readers, name), slices.Contains(editors, name):
		return true // an editor takes it for what is typed
	case !interprets(name):
		return false
	}
	return slices.Contains(args, "-") || noOperand(name, args)
}

// noOperand says whether an interpreter is given no file to run, and so reads
// its input.
func noOperand(name string, args []string) bool {
	in, ok := interpreters[name]
	if !ok {
		in = interpreters[strings.TrimRight(name, "0123456789.-")]
	}
	operands, _ := in.read(args)
	if in.last != 0 && moduleNamed(args, operands) {
		return false
	}
	return len(operands) == 0 && !slices.Contains(args, "--version") && !slices.Contains(args, "--help") && !slices.Contains(args, "-V")
}

// moduleNamed says whether python is told a module to run in the word before
// the operands, or in the last one.
func moduleNamed(args, operands []string) bool {
	at := len(args) - len(operands) - 1
	return at >= 0 && len(args[at]) > 1 && args[at][0] == '-' && !strings.HasPrefix(args[at], "--") && strings.Contains(args[at], "m")
}

// runsWritten says whether a unit runs a file that the same text writes: what
// is in it was not looked at.
func (w *walker) runsWritten(u *Unit) bool {
	if len(w.written) == 0 || len(u.Words) == 0 {
		return false
	}
	if strings.Contains(u.Words[0], "/") && w.written[base(u.Words[0])] {
		return true
	}
	name := programName(u.Words[0])
	if isMake(name) && (w.written["Makefile"] || w.written["makefile"] || w.written["GNUmakefile"]) {
		return true
	}
	if !interprets(name) && !isMake(name) && !isAwk(name) {
		return false
	}
	return slices.ContainsFunc(u.Words[1:], func(a string) bool { return w.written[base(a)] })
}

// writes are the names of the files that a command writes as its words say.
func writes(words []word) []string {
	if len(words) < 2 {
		return nil
	}
	var out []string
	switch programName(words[0].text) {
	case "tee", "touch":
		for _, r := range words[1:] {
			out = append(out, base(r.text))
		}
	case "cp", "mv", "ln", "install":
		out = append(out, base(words[len(words)-1].text))
	case "curl", "wget":
		for i, r := range words[1:] {
			if prev := words[i].text; prev == "-o" || prev == "-O" || prev == "--output" {
				out = append(out, base(r.text))
			}
		}
	}
	return out
}

// names notes the variables that bash's own commands set.
func (w *walker) names(words []word) {
	switch words[0].text {
	case "read", "mapfile", "readarray", "unset", "getopts", "wait":
		for _, r := range words[1:] {
			if name := setName(r.text); name != "" {
				w.set(name, false)
				if w.reset == nil {
					w.reset = map[string]bool{}
				}
				w.reset[name] = true
			}
		}
	}
}

// setName is the name of a variable that a word may be: also glued to its
// option, as in "read -aNAME", or with an index.
func setName(word string) string {
	if strings.HasPrefix(word, "-") {
		if i := strings.IndexAny(word, "ap"); i > 0 {
			word = word[i+1:]
		}
	}
	if word, _, _ = strings.Cut(word, "["); validName(word) {
		return word
	}
	return ""
}
