package shell

import (
	"path"
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
	"xargs":         {valued: " -I -n -P -L -d -E -s -a --max-args --max-procs --max-lines --delimiter --replace --arg-file --max-chars "},
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
	"docker":           {},
	"podman":           {},
	"kubectl":          {},
}

// reached are the carriers that only carry behind some subcommands; they are
// otherwise programs like any other.
var reached = map[string][]string{
	"docker":  {"run", "exec", "compose"},
	"podman":  {"run", "exec"},
	"kubectl": {"exec", "run", "debug"},
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
func isShell(program string) bool { return slices.Contains(shells, path.Base(program)) }

// carried finds the commands and shell texts in the arguments of words.
func carried(words []string) load {
	if len(words) == 0 {
		return load{}
	}
	name := path.Base(words[0])
	if len(words) == 1 {
		return load{by: name}
	}
	l := load{by: name}
	switch {
	case strings.HasPrefix(words[0], "$"):
		// A program from an empty variable leaves the next word as the program.
		l.by, l.commands = words[0], [][]string{words[1:]}
	case isShell(name):
		l.payloads = flagged(words[1:], "c")
	case name == "find" || name == "fd" || name == "fdfind":
		l.commands = executed(words[1:])
	case name == "trap":
		l.payloads = words[1:2]
	case name == "su" || name == "script" || name == "runuser" || name == "npx":
		l.payloads = flagged(words[1:], "c")
		l.commands = behind(carriers[name], words[1:])
	case name == "nix-shell":
		l.payloads = following(words[1:], "--run", "--command")
	case name == "source" || name == "." || reached[name] != nil:
		// A file's content, or a command in another place: nothing to read here
		// that the rules of this place speak of.
	default:
		c, ok := carriers[name]
		if !ok {
			return load{}
		}
		l.commands = behind(c, words[1:])
		if c.joined {
			l.payloads, l.commands = joinEach(l.commands), nil
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
	options, operands := cut(args, shellValued)
	if clustered(options, letters) && len(operands) > 0 {
		return operands[:1]
	}
	return nil
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
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
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
