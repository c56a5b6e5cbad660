package shell

import (
	"slices"
	"strings"
)

// carrier describes a program that runs the command in its own arguments.
type carrier struct {
	// valued are its options that take the next word as their value.
	valued string
	// operands is how many words stand between the options and the command, as
	// the duration of timeout.
	operands int
	// assigns: NAME=value words may stand in front of the command.
	assigns bool
	// joined: the words are joined and handed to a shell, as eval does.
	joined bool
	// texts: a word with blanks may be a text for a shell.
	texts bool
}

// carriers by base name. An option in valued is written as the agent would
// write it, each between blanks.
var carriers = map[string]carrier{
	"sudo":          {valued: " -u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir --chroot ", assigns: true},
	"doas":          {valued: " -u -C ", assigns: true},
	"pkexec":        {valued: " --user "},
	"run0":          {valued: " -u --user -g --group -D --chdir "},
	"env":           {valued: " -u -C --unset --chdir ", assigns: true},
	"command":       {},
	"builtin":       {},
	"exec":          {valued: " -a "},
	"nohup":         {},
	"nice":          {valued: " -n --adjustment "},
	"ionice":        {valued: " -c -n --class --classdata "},
	"chrt":          {valued: " -T -P -D ", operands: 1},
	"taskset":       {operands: 1},
	"timeout":       {valued: " -s -k --signal --kill-after ", operands: 1},
	"time":          {valued: " -f -o --format --output "},
	"stdbuf":        {valued: " -i -o -e --input --output --error "},
	"setsid":        {},
	"setarch":       {operands: 1},
	"linux32":       {},
	"linux64":       {},
	"chroot":        {operands: 1},
	"unshare":       {valued: " -S -G -R -w --setuid --setgid --root --wd "},
	"nsenter":       {valued: " -t -S -G --target --setuid --setgid "},
	"bwrap":         {},
	"firejail":      {},
	"fakeroot":      {},
	"proxychains":   {valued: " -f "},
	"torsocks":      {},
	"strace":        {valued: " -e -o -p -s -u -E -P -a -b -I -O -S -X "},
	"ltrace":        {valued: " -e -o -p -s -u -a -l -n -x "},
	"xargs":         {valued: " -I -n -P -L -d -E -s -a --max-args --max-procs --delimiter --arg-file --max-chars "},
	"rust-parallel": {}, "rush": {},
	"parallel":         {valued: " -j -n -N -L -I --jobs --colsep --delay --joblog --results -a "},
	"watch":            {valued: " -n --interval ", joined: true},
	"flock":            {valued: " -w -E --timeout --conflict-exit-code ", operands: 1},
	"busybox":          {},
	"toybox":           {},
	"caffeinate":       {valued: " -t -w "},
	"systemd-run":      {valued: " -p -u -E -t -M -H --unit --property --setenv --uid --gid --slice --description --machine --host "},
	"runuser":          {valued: " -u -g -G --user --group "},
	"setpriv":          {valued: " --reuid --regid --groups --inh-caps --ambient-caps --bounding-set --securebits "},
	"ssh":              {valued: " -p -i -o -l -F -J -L -R -D -b -c -E -e -I -m -O -Q -S -W -w -B ", operands: 1, joined: true},
	"script":           {valued: " -c -I -O -B -o -E --command --log-io --log-out --log-in "},
	"su":               {valued: " -c -g -G -s -w --command --group --shell "},
	"entr":             {},
	"rlwrap":           {},
	"dbus-run-session": {},
	"xvfb-run":         {valued: " -n -s -f -e -p -w "},
	"eval":             {joined: true},
	"trap":             {},
	"source":           {},
	".":                {},
	"nix-shell":        {valued: " -p --run --command "},
	"npx":              {valued: " -p --package -c --call "},
	"prlimit":          {}, "numactl": {valued: " -N -m -i -C -p "}, "valgrind": {}, "unbuffer": {}, "ssh-agent": {valued: " -a -E -P -t "},
	"x86_64": {}, "i386": {}, "i486": {}, "i586": {}, "i686": {}, "uname26": {}, "catchsegv": {}, "run-parts": {}, "ld.so": {},
	"tmux": {texts: true}, "screen": {texts: true}, "at": {}, "batch": {}, "hyperfine": {texts: true}, "watchexec": {texts: true},
	"nodemon": {texts: true}, "sem": {texts: true}, "sg": {operands: 1, texts: true}, "vidir": {}, "chronic": {}, "ifne": {},
	"noglob": {}, "nocorrect": {}, "-": {}, "fc": {}, "uvx": {}, "bunx": {}, "pipx": {}, "gosu": {operands: 1}, "su-exec": {operands: 1},
	"setuidgid": {operands: 1}, "envdir": {operands: 1}, "chpst": {valued: " -u -U -b -e -/ -C -n -l -L -m -d -o -p -f -c -t -r "},
	"softlimit": {}, "dumb-init": {}, "tini": {}, "aa-exec": {valued: " -p -n "}, "runcon": {operands: 1}, "choom": {valued: " -n -p "},
	"cpulimit": {valued: " -l -p -e "}, "trickle": {valued: " -d -u -s -w -t -l -n "}, "proot": {valued: " -r -b -w -q "}, "tsocks": {},
	"proxychains4": {valued: " -f "}, "sshpass": {valued: " -p -f -d -P "}, "autossh": {}, "mosh": {}, "faketime": {operands: 1},
	"datefudge": {operands: 1}, "eatmydata": {}, "ccache": {}, "distcc": {}, "mpirun": {valued: " -n -np "}, "mpiexec": {valued: " -n -np "},
	"srun": {}, "sbatch": {}, "cgexec": {valued: " -g "}, "systemd-inhibit": {}, "dbus-launch": {}, "rr": {}, "heaptrack": {}, "dtach": {},
	"abduco": {}, "setlock": {operands: 1}, "lockf": {operands: 1}, "dotenv": {}, "dotenvx": {}, "cross-env": {assigns: true}, "fakechroot": {},
}

// reached are programs that only carry behind some of their subcommands.
var reached = map[string][]string{
	"docker": {"run", "exec"}, "podman": {"run", "exec"}, "nerdctl": {"run", "exec"}, "docker-compose": {"run", "exec"},
	"kubectl": {"exec", "run", "debug"}, "oc": {"exec", "run", "debug", "rsh"},
	"npm": {"exec", "x", "explore"}, "pnpm": {"exec", "dlx"}, "yarn": {"exec", "dlx", "node"}, "bun": {"x"},
	"uv": {"run", "tool"}, "poetry": {"run"}, "pipenv": {"run", "shell"}, "pdm": {"run"}, "hatch": {"run"}, "rye": {"run"}, "bundle": {"exec"},
	"nix": {"develop", "shell", "run"}, "guix": {"shell", "environment", "time-machine"}, "direnv": {"exec"}, "mise": {"exec", "x"}, "asdf": {"exec"},
	"conda": {"run"}, "mamba": {"run"}, "micromamba": {"run"}, "rbenv": {"exec"}, "pyenv": {"exec"}, "nodenv": {"exec"}, "rustup": {"run"},
	"opam": {"exec"}, "stack": {"exec"}, "cabal": {"exec"}, "dune": {"exec"}, "op": {"run"}, "doppler": {"run"}, "aws-vault": {"exec"},
	"perf": {"stat", "record", "trace", "mem", "c2c", "kvm", "sched", "lock", "timechart"}, "arch": {"-x86_64", "-arm64", "-arch"},
	"distrobox": {"enter", "run"}, "toolbox": {"run"}, "flatpak": {"run"}, "cargo": {"watch"},
}

// elsewhere are those of reached that carry to a place of which the rules of
// this one do not speak.
var elsewhere = []string{"docker", "podman", "nerdctl", "docker-compose", "kubectl", "oc"}

// plainSubcommands of the package managers take words that only look like a
// subcommand that carries.
var plainSubcommands = []string{"run", "run-script", "test", "t", "start", "install", "i", "add", "ci", "build", "ls", "list", "view", "info", "outdated",
	"audit", "remove", "update", "lint", "publish", "pack", "version", "why", "dev"}

// behindReached returns what stands behind the subcommand that carries; found
// is false where none is used.
func behindReached(name string, args []string) (rest []string, found bool) {
	packages := slices.Contains([]string{"npm", "pnpm", "yarn", "bun"}, name)
	for i, a := range args {
		if slices.Contains(reached[name], a) {
			return args[i+1:], true
		}
		// Behind an option, the word may be its value.
		if packages && slices.Contains(plainSubcommands, a) && (i == 0 || !strings.HasPrefix(args[i-1], "-")) {
			return nil, false
		}
	}
	return nil, false
}

// shells read their commands from an argument or from their input.
var shells = []string{"sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "rbash", "pwsh"}

// load is what one command carries.
type load struct {
	by       string
	commands [][]string
	payloads []string
}

// isShell says whether program, as written, is a shell.
func isShell(program string) bool { return slices.Contains(shells, programName(program)) }

// carried finds the commands and shell texts in the arguments of words.
func carried(words []string) load {
	if len(words) == 0 {
		return load{}
	}
	name := programName(words[0])
	if len(words) == 1 {
		return load{by: name}
	}
	l := load{by: name}
	switch {
	case strings.HasPrefix(words[0], "$"):
		// A program from an empty variable leaves the next word as the program.
		l.by, l.commands = words[0], [][]string{words[1:]}
	case isShell(name):
		// Not appended to: what flagged finds is a part of the command's own words.
		l.payloads = slices.Concat(flagged(words[1:], "c"), spelled(words[1:]))
	case name == "find" || name == "fd" || name == "fdfind":
		l.commands = executed(words[1:])
	case name == "command" && !wraps(name, words[1:]):
		// "command -v rm" only says where rm is.
	case name == "trap":
		l.payloads = words[1:2]
	case name == "su" || name == "script" || name == "runuser" || name == "npx" || name == "flock":
		// They take -c behind their operands, too.
		l.payloads = slices.Concat(flagged(words[1:], "c"), following(words[1:], "-c", "-lc", "--command", "--session-command"),
			glued(words[1:], "--command=", "--session-command="))
		l.commands = behind(carriers[name], words[1:])
	case name == "nix-shell":
		l.payloads = following(words[1:], "--run", "--command")
	case name == "env":
		l.commands = behind(carriers[name], words[1:])
		l.payloads = append(glued(words[1:], "-S", "--split-string="), following(words[1:], "-S", "-iS", "-vS", "-0S", "--split-string")...)
	case name == "source" || name == "." || slices.Contains(elsewhere, name):
		// A file's content, or a command in another place: nothing to read here
		// that the rules of this place speak of.
	case reached[name] != nil:
		rest, _ := behindReached(name, words[1:])
		l.commands = behind(carrier{}, rest)
	default:
		c, ok := carriers[name]
		if !ok {
			return load{}
		}
		if c.texts {
			l.payloads = blanked(words[1:])
		}
		l.commands = behind(c, words[1:])
		if c.joined {
			l.payloads, l.commands = append(l.payloads, joinEach(l.commands)...), nil
		}
	}
	return l
}

func joinEach(commands [][]string) []string {
	var texts []string
	for _, c := range commands {
		texts = append(texts, strings.Join(c, " "))
	}
	return texts
}

// behind finds the commands behind the options of a carrier. Where an option
// is not known, its next word may be its value or the command: both count.
func behind(c carrier, args []string) [][]string {
	var out [][]string
	operands := c.operands
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			continue
		case len(a) > 1 && a[0] == '-':
			if strings.Contains(c.valued, " "+a+" ") {
				i++
			} else if i+2 < len(args) && !strings.Contains(a, "=") && !strings.HasPrefix(args[i+1], "-") && operands == 0 {
				out = append(out, args[i+2:])
			}
			continue
		case c.assigns && strings.Contains(a, "=") && !strings.HasPrefix(a, "="):
			continue
		case operands > 0:
			operands--
			continue
		}
		return append([][]string{args[i:]}, out...)
	}
	return nil
}

// flagged finds the text behind a short option that holds one of letters, as
// -c or -lc: the first word that is no option.
func flagged(args []string, letters string) []string {
	for {
		options, operands := cut(args, shellValued)
		switch {
		case len(operands) == 0:
			return nil
		case clustered(options, letters) && clustered(options, "oO"):
			return operands[:min(2, len(operands))] // the first may be the value of -oc
		case clustered(options, letters):
			return operands[:1]
		case len(options) == 0 || !clustered(options[len(options)-1:], "oO"):
			return nil
		}
		args = operands[1:] // the value of -euo, and more options behind it
	}
}

// shellValued are the options of shells that take the next word.
const shellValued = " -o +o -O +O --rcfile --init-file "

// cut parts args at the first word that is no option, where valued options
// take the next word along. A lone "-" is an operand.
func cut(args []string, valued string) (options, operands []string) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return args[:i], args[i+1:]
		}
		if len(a) < 2 || a[0] != '-' && a[0] != '+' {
			return args[:i], args[i:]
		}
		if strings.Contains(valued, " "+a+" ") {
			i++
		}
	}
	return args, nil
}

// clustered says whether one of options is a cluster of short ones that holds
// one of letters.
func clustered(options []string, letters string) bool {
	return slices.ContainsFunc(options, func(a string) bool {
		return len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.ContainsAny(a[1:], letters)
	})
}

// following finds the words that stand behind any of the options.
func following(args []string, options ...string) []string {
	var out []string
	for i, a := range args[:len(args)-1] {
		if slices.Contains(options, a) {
			out = append(out, args[i+1])
		}
	}
	return out
}

// executed finds the commands behind the -exec options of find and fd.
func executed(args []string) [][]string {
	var out [][]string
	for i, a := range args {
		switch a {
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "-Hx", "--exec", "--exec-batch":
			rest := args[i+1:]
			if end := slices.IndexFunc(rest, func(s string) bool { return s == ";" || s == "+" }); end >= 0 {
				rest = rest[:end]
			}
			if len(rest) > 0 {
				out = append(out, rest)
			}
		}
	}
	return out
}

// blanked are the words that hold a blank.
func blanked(args []string) []string {
	var out []string
	for _, a := range args {
		if strings.ContainsAny(a, " \t\n") {
			out = append(out, a)
		}
	}
	return out
}

// glued is what follows any of the options in its own word.
func glued(args []string, options ...string) []string {
	var out []string
	for _, a := range args {
		for _, o := range options {
			if rest, ok := strings.CutPrefix(a, o); ok && rest != "" {
				out = append(out, rest)
			}
		}
	}
	return out
}

// spelled finds the text of shells whose option is written out, as fish's
// --command=TEXT and pwsh's -Command.
func spelled(args []string) []string {
	var out []string
	for i, a := range args {
		name, text, ok := strings.Cut(strings.ToLower(strings.TrimLeft(a, "-")), "=")
		if !strings.HasPrefix(a, "-") || !strings.HasSuffix(name, "command") && a != "-C" {
			continue
		}
		if ok {
			out = append(out, a[len(a)-len(text):])
		} else if i+1 < len(args) {
			out = append(out, strings.Join(args[i+1:], " "))
		}
	}
	return out
}
