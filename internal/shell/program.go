package shell

import (
	"path"
	"slices"
	"strings"
)

// doors are options by which an ordinary program runs another one, or deletes
// and writes where its rule does not say so. One ending in '*' is a prefix.
var doors = map[string][]string{
	"find":  {"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint*", "-fls"},
	"fd":    {"-x*", "-X*", "--exec*"},
	"tar":   {"--checkpoint-action*", "--to-command*", "-I*", "--use-compress-program*", "-F*", "--info-script*", "--new-volume-script*", "--rsh-command*"},
	"rg":    {"--pre", "--pre=*", "--hostname-bin*"},
	"sort":  {"--compress-program*"},
	"go":    {"-exec*", "-toolexec*", "--exec*", "--toolexec*", "-vettool*", "--vettool*"},
	"rsync": {"-e*", "--rsh*", "--rsync-path*"},
	"scp":   {"-S*", "-o*"},
	"make":  {"SHELL=*", "--eval*"},
	"man":   {"-P*", "--pager*", "-H*"},
	"zip":   {"-TT*", "--unzip-command*"},
	"vim":   {"-c*", "+*", "--cmd*"},
	"vi":    {"-c*", "+*", "--cmd*"},
}

// gitDoors are those of git behind its subcommand; in front of it, -c and the
// like are doors and behind it they are everyday options.
var gitDoors = []string{"--ext-diff", "--upload-pack*", "--receive-pack*", "--exec*", "--open-files-in-pager*", "--extcmd*", "--output*"}

// gitRunners are git's subcommands that run what they are handed, with the
// word or option that makes them do so ("" for any use).
var gitRunners = map[string][]string{
	"bisect": {"run"}, "submodule": {"foreach"}, "filter-branch": {""}, "rebase": {"-x"}, "difftool": {""},
	"mergetool": {""}, "clone": {"-c", "--config", "-u", "--template"}, "grep": {"-O"}, "config": {"--edit", "-e"},
}

// programWhy names what keeps a command of literal words from being simple:
// its program runs other commands from its arguments. "" if nothing is known
// against it.
func programWhy(words []string) string {
	name, args := path.Base(words[0]), words[1:]
	switch {
	case isShell(name):
		if opensShell(args) {
			return WhyInterpreter + ":" + name
		}
		return ""
	case inline(name, args):
		return WhyInterpreter + ":" + name
	case wraps(name, args):
		return WhyWrapper + ":" + name
	case name == "git":
		return gitWhy(args)
	}
	if door := firstDoor(doors[name], args); door != "" {
		return WhyOption + ":" + name + " " + door
	}
	return ""
}

// wraps says whether a command is a carrier in use. "command -v" runs nothing.
func wraps(name string, args []string) bool {
	if subs, ok := reached[name]; ok {
		return slices.ContainsFunc(args, func(s string) bool { return slices.Contains(subs, s) })
	}
	_, ok := carriers[name]
	asks := name == "command" && len(args) > 0 && (args[0] == "-v" || args[0] == "-V")
	return ok && !asks
}

// firstDoor returns the first of doors that args use, "" if they use none.
func firstDoor(doors, args []string) string {
	for _, a := range args {
		for _, door := range doors {
			prefix, open := strings.CutSuffix(door, "*")
			if a == door || open && strings.HasPrefix(a, prefix) {
				return prefix
			}
		}
	}
	return ""
}

// gitValued are git's own options that take the next word.
const gitValued = " -C --git-dir --work-tree --namespace -c --config-env --super-prefix "

// gitWhy is programWhy for git.
func gitWhy(args []string) string {
	global, rest := cut(args, gitValued)
	if door := firstDoor([]string{"-c*", "--config-env*", "--exec-path*"}, global); door != "" {
		return WhyOption + ":git " + door
	}
	if len(rest) == 0 {
		return ""
	}
	for _, mark := range gitRunners[rest[0]] {
		if mark == "" || firstDoor([]string{mark}, rest[1:]) != "" {
			return WhyOption + ":git " + strings.TrimSpace(rest[0]+" "+mark)
		}
	}
	if door := firstDoor(gitDoors, rest[1:]); door != "" {
		return WhyOption + ":git " + door
	}
	return ""
}

// opensShell says whether a shell would take its commands from an argument or
// from its input, so that its words do not say what runs.
func opensShell(args []string) bool {
	if slices.Contains(args, "--version") || slices.Contains(args, "--help") {
		return len(args) > 1
	}
	options, operands := cut(args, shellValued)
	return len(operands) == 0 || operands[0] == "-" || clustered(options, "csi") ||
		firstDoor([]string{"--init*", "--rc*"}, options) != ""
}

// interpreter says how a language is handed a program in its arguments.
type interpreter struct {
	// letters are the short options that do so; valued are others that take
	// the next word.
	letters, valued string
	// always: every use runs what its arguments or its input say.
	always bool
}

// interpreters by name without its version.
var interpreters = map[string]interpreter{
	"python": {letters: "ci", valued: " -W -X "}, "pypy": {letters: "ci", valued: " -W -X "},
	"perl": {letters: "eE", valued: " -I "}, "ruby": {letters: "e", valued: " -r -I -E -C "},
	"node":   {letters: "epi", valued: " -r -C --require --import --loader --conditions --env-file "},
	"nodejs": {letters: "epi", valued: " -r -C --require --import "}, "bun": {letters: "ep"},
	"php": {letters: "rBREa", valued: " -d -c "}, "lua": {letters: "ei", valued: " -l "}, "luajit": {letters: "ei", valued: " -l "},
	"Rscript": {letters: "e"}, "R": {letters: "e"}, "ghci": {always: true}, "osascript": {letters: "ei"},
	"tclsh": {always: true}, "expect": {letters: "c"}, "gdb": {always: true}, "powershell": {always: true}, "pwsh": {always: true},
}

// inline says whether an interpreter is handed its program in its arguments or
// would read it from its input.
func inline(name string, args []string) bool {
	switch name {
	case "awk", "gawk", "mawk", "nawk":
		return slices.ContainsFunc(args, awkRuns)
	case "deno":
		return len(args) == 0 || args[0] == "eval" || args[0] == "repl"
	}
	in, ok := interpreters[strings.TrimRight(name, "0123456789.")]
	if !ok {
		return false
	}
	options, operands := cut(args, in.valued)
	if i := slices.Index(options, "-m"); i >= 0 && strings.HasPrefix(name, "py") {
		// python -m module: a program by its name, like any other.
		return clustered(options[:i], in.letters)
	}
	return in.always || len(args) == 0 || clustered(options, in.letters) ||
		firstDoor([]string{"--eval*", "--print*", "--interactive*"}, options) != "" ||
		len(operands) > 0 && operands[0] == "-"
}

// awkRuns says whether an awk program can start a command or write a file.
func awkRuns(program string) bool {
	return strings.Contains(program, "system") || strings.ContainsAny(program, "|>") || strings.Contains(program, "getline")
}
