package shell

import (
	"slices"
	"strings"
)

// grammar is the options of a program that are known to be harmless, and how
// they take their values. Every other option keeps a command from being
// simple: behind one, nobody knows which word is the program's input.
type grammar struct {
	// flags are short options without a value, valued those that take the rest
	// of their word or the next one, glued those that take the rest only.
	flags, valued, glued string
	// long are names without dashes. One ending in '=' takes the next word as
	// its value, one ending in '*' is the front of many, one ending in '*=' of
	// many that may take it.
	long []string
	// last is a short option behind which nothing is an option.
	last byte
	// single: a word behind one dash is a long option.
	single bool
	// plus: words with a plus in front are options too.
	plus bool
}

// read parts args at the first operand. odd is the first option that is not
// known: nothing behind it is proven. The word behind last is an operand.
func (g grammar) read(args []string) (operands []string, odd string) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return args[i+1:], ""
		}
		if len(a) < 2 || a[0] != '-' && !(g.plus && a[0] == '+') {
			return args[i:], ""
		}
		takes, stop, odd := g.option(a)
		switch {
		case odd != "":
			return nil, odd
		case stop:
			return args[i+1:], ""
		case takes == valueNext, takes == valueMaybe && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			i++
		}
	}
	return nil, ""
}

// How an option takes a value from the next word.
const (
	valueNone = iota
	valueNext
	valueMaybe
)

func (g grammar) option(a string) (takes int, stop bool, odd string) {
	if g.single || strings.HasPrefix(a, "--") {
		return g.longOption(a)
	}
	for i := 1; i < len(a); i++ {
		c := a[i]
		switch {
		case strings.IndexByte(g.flags, c) >= 0:
		case strings.IndexByte(g.glued, c) >= 0:
			return valueNone, false, ""
		case c == g.last && c != 0:
			return valueNone, true, ""
		case strings.IndexByte(g.valued, c) >= 0:
			switch {
			case i+1 == len(a):
				return valueNext, false, ""
			case g.plus:
				// A shell reads on in the word, and takes the value from the next.
				return valueNone, false, "-" + a[i:]
			}
			return valueNone, false, ""
		default:
			return valueNone, false, "-" + a[i:i+1]
		}
	}
	return valueNone, false, ""
}

func (g grammar) longOption(a string) (takes int, stop bool, odd string) {
	name, _, inline := strings.Cut(strings.TrimLeft(a, "-"), "=")
	for _, l := range g.long {
		front, valued := strings.CutSuffix(l, "=")
		front, many := strings.CutSuffix(front, "*")
		if name != front && !(many && strings.HasPrefix(name, front)) {
			continue
		}
		switch {
		case inline || !valued:
			return valueNone, false, ""
		case many:
			return valueMaybe, false, ""
		}
		return valueNext, false, ""
	}
	return valueNone, false, "--" + name
}

// interpreter says how a language is handed a program in its arguments.
type interpreter struct {
	// letters and names are the options that do so: those of which a person is
	// told that they run a program. Options in neither list are not proven.
	letters string
	names   []string
	grammar
	// always: every use runs what its arguments or its input say.
	always bool
}

var (
	evalNames = []string{"eval", "print", "interactive", "run", "execute", "exec", "command", "init", "rc", "process", "define"}
	version   = []string{"version", "help"}
)

// interpreters by name without its version.
var interpreters = map[string]interpreter{
	"python": {letters: "ci", grammar: grammar{flags: "bBdEhIOPqRsSuvVx?", valued: "WX", last: 'm',
		long: []string{"version", "help", "help-env", "help-xoptions", "help-all", "check-hash-based-pycs="}}},
	"perl": {letters: "eEMm", grammar: grammar{flags: "cwWtTUXnpalsSv0123456789", valued: "I", glued: "V", long: version}},
	"ruby": {letters: "e", grammar: grammar{flags: "acdlnpsSvw", valued: "ICrE", glued: "WKTF0",
		long: []string{"version", "help", "verbose", "debug", "yjit*", "jit*", "enable=", "disable=", "enable-*", "disable-*", "encoding=",
			"external-encoding=", "internal-encoding="}}},
	"node": {letters: "epi", grammar: grammar{flags: "chv", valued: "rC",
		long: []string{"version", "help", "check", "v8-options", "title=", "require=", "import=", "loader=", "experimental-loader=", "conditions=",
			"env-file=", "env-file-if-exists=", "run=", "watch", "watch-path=", "watch-preserve-output", "test", "test-*=", "experimental-*=",
			"no-*", "trace-*=", "inspect*", "max-*=", "harmony*", "allow-*=", "report-*=", "cpu-prof*=", "heap-prof*=", "heapsnapshot-*=", "prof",
			"preserve-symlinks*", "enable-source-maps", "disable-warning=", "unhandled-rejections=", "use-*", "expose-gc", "expose_gc", "stack-size=",
			"permission", "throw-deprecation", "pending-deprecation", "frozen-intrinsics", "icu-data-dir=", "dns-result-order=", "secure-heap*=",
			"tls-*", "openssl-*", "zero-fill-buffers", "input-type=", "abort-on-uncaught-exception"}}},
	"bun": {letters: "ep", grammar: grammar{flags: "bhv", valued: "rc",
		long: []string{"version", "revision", "help", "bun", "watch", "hot", "silent", "smol", "inspect*", "cwd=", "config=", "env-file=", "preload=", "filter=", "port="}}},
	"php": {letters: "rBREFa", grammar: grammar{flags: "nqvihwlsmC", valued: "cfzSt", long: []string{"version", "help", "ini", "info", "lint", "modules",
		"syntax-check", "php-ini=", "file="}}},
	"lua": {letters: "ei", grammar: grammar{flags: "vEW", valued: "l"}},
	"r": {letters: "e", grammar: grammar{flags: "qs", valued: "f", long: []string{"version", "help", "vanilla", "no-*", "slave", "quiet", "silent",
		"verbose", "file="}}},
	"osascript": {letters: "ei", grammar: grammar{valued: "ls"}},
	"expect":    {letters: "c", grammar: grammar{flags: "Nnv", valued: "f"}},
	"julia": {letters: "eEpLi", grammar: grammar{flags: "qvhO", valued: "tJ", long: []string{"version", "help", "project", "threads=", "startup-file=",
		"color=", "optimize*", "check-bounds=", "quiet", "depwarn=", "warn-overwrite="}}},
	"ts-node": {letters: "epi", grammar: grammar{flags: "TDhvsHS", valued: "PrCO", long: []string{"version", "help", "esm", "files", "transpile-only",
		"swc", "project=", "require=", "compiler*=", "log-error", "show-config", "type-check"}}},
	"tsx": {letters: "epi", grammar: grammar{flags: "hv", valued: "rC", long: []string{"version", "help", "watch", "no-*", "tsconfig=", "test", "test-*=",
		"env-file=", "inspect*", "require=", "import=", "conditions="}}},
	"elixir": {letters: "e", grammar: grammar{flags: "vh", valued: "rS", long: []string{"version", "help", "no-*"}}},
	"groovy": {letters: "e", grammar: grammar{flags: "hvd", long: version}},
	"racket": {letters: "eif", grammar: grammar{flags: "vhdn", valued: "tlpurk", long: version}},
	"guile":  {letters: "c", grammar: grammar{flags: "hvqs", valued: "L", long: []string{"version", "help", "no-*"}}},
	"octave": {grammar: grammar{flags: "qVhfW", long: []string{"version", "help", "no-*", "quiet", "silent"}}},
	"swift":  {letters: "e", grammar: grammar{single: true, long: version}},
	"ghci":   {always: true}, "irb": {always: true}, "tclsh": {always: true}, "gdb": {always: true}, "lldb": {always: true}, "erl": {always: true},
	"powershell": {always: true}, "m4": {always: true}, "dc": {always: true}, "gnuplot": {always: true}, "ed": {always: true}, "ex": {always: true},
	"jshell": {always: true}, "ipython": {always: true}, "wish": {always: true}, "emacs": {letters: "lf", grammar: grammar{single: true,
		long: []string{"version", "help", "nw", "Q", "q", "no-*", "quick"}}},
	"vim": {letters: "cSsuU", grammar: grammar{flags: "RneMmopdbNZXthO", long: []string{"version", "help", "clean", "noplugin", "not-a-term"}, plus: true}},
}

func init() {
	for name, same := range map[string]string{
		"pypy": "python", "nodejs": "node", "luajit": "lua", "rscript": "r", "jruby": "ruby", "emacsclient": "emacs", "iex": "elixir",
		"vi": "vim", "nvim": "vim", "view": "vim", "vimdiff": "vim", "gvim": "vim", "rvim": "vim", "vim.basic": "vim", "vim.tiny": "vim",
	} {
		interpreters[name] = interpreters[same]
	}
}

// editors open on nothing: they read no program from their input.
var editors = []string{"vim", "vi", "nvim", "view", "vimdiff", "gvim", "rvim", "vim.basic", "vim.tiny", "emacs", "emacsclient"}

// shellGrammar is what shells take in front of a script.
var shellGrammar = interpreter{letters: "csiC", names: []string{"init-file", "rcfile", "command", "init-command"}, grammar: grammar{
	flags: "abefhkmnptuvxBEHPTlNr", valued: "oO", plus: true,
	long: []string{"version", "help", "norc", "noprofile", "posix", "verbose", "restricted", "login", "no-rcs", "no-config"},
}}

// programInArguments names what keeps an interpreter's command from being
// simple: it is handed its program in its arguments or reads it from its input.
func programInArguments(name string, args []string) string {
	in, ok := interpreters[name]
	if !ok {
		in, ok = interpreters[strings.TrimRight(name, "0123456789.-")]
	}
	if isShell(name) {
		in, ok = shellGrammar, true
	}
	if !ok {
		return ""
	}
	if in.always {
		if len(args) == 1 && (args[0] == "--version" || args[0] == "--help") {
			return ""
		}
		return WhyInterpreter + ":" + name
	}
	operands, odd := in.read(args)
	switch {
	case odd != "" && in.hands(odd):
		return WhyInterpreter + ":" + name
	case odd != "":
		return WhyRuns + ":" + name
	case slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "data:") || strings.Contains(a, "=data:") }):
		return WhyInterpreter + ":" + name // a module's text in its name
	case len(operands) > 0 && stream(operands[0]), slices.ContainsFunc(args[:len(args)-len(operands)], streamed):
		return WhyInterpreter + ":" + name
	case len(operands) == 0 && (len(args) == 0 || isShell(name) && !slices.Contains(args, "--version") && !slices.Contains(args, "--help")):
		if len(args) == 0 && slices.Contains(editors, name) {
			return ""
		}
		return WhyInterpreter + ":" + name
	case in.last != 0:
		return moduleWhy(name, args, operands)
	}
	return ""
}

// hands says whether an option that is not harmless is known to hand over a
// program.
func (in interpreter) hands(odd string) bool {
	if !strings.HasPrefix(odd, "--") {
		return strings.ContainsAny(in.letters, odd[1:])
	}
	names := in.names
	if names == nil {
		names = evalNames
	}
	return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(odd[2:], n) })
}

// evaluating are python's modules that run the text in their arguments or
// input.
var evaluating = []string{"timeit", "code", "pdb", "asyncio", "IPython", "runpy", "idlelib", "bdb", "ptpython", "bpython"}

// moduleWhy is programInArguments for python -m, a program by its name like
// any other.
func moduleWhy(name string, args, operands []string) string {
	at := len(args) - len(operands) - 1
	if at < 0 || len(args[at]) < 2 || args[at][0] != '-' || strings.HasPrefix(args[at], "--") {
		return ""
	}
	_, module, ok := strings.Cut(args[at], "m")
	if !ok {
		return ""
	}
	if module == "" && len(operands) > 0 {
		module = operands[0]
	}
	module, _, _ = strings.Cut(module, ".")
	if slices.Contains(evaluating, module) {
		return WhyInterpreter + ":" + name
	}
	return ""
}
