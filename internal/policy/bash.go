package policy

import (
	"strings"

	"github.com/assent-dev/assent/internal/shell"
)

// bash rules a shell call. Denies and asks match every command found anywhere
// in the text, in every reading; an allow needs the proof that the text is one
// simple command.
func (e *evaluation) bash() {
	text, ok := e.args["command"].(string)
	if !ok {
		e.add(strict(e.s.entry(surfaceBash, e.place.home, "", values{wide: []string{""}})))
		e.add(floor(surfaceBash, "", "no-command", "the call holds no command text"))
		return
	}
	cmd := shell.Read(text)
	e.shell(cmd)
	e.shellPaths(cmd)
	e.hostPaths()
	e.unknownCommands()
	for _, key := range []string{"cwd", "workdir", "directory", "dir", "working_directory", "workingDirectory", "working_dir"} {
		if dir, _ := e.args[key].(string); dir != "" {
			e.crossing(dir, both, 0)
			e.add(floor(surfaceBash, dir, "other-directory", "the command would run in another directory than the call says"))
		}
	}
}

// unknownCommands keeps a shell call from being allowed that may hold more to
// run than its command.
func (e *evaluation) unknownCommands() {
	for _, key := range sortedKeys(e.args) {
		lower := strings.ToLower(key)
		if v := e.args[key]; key == "command" || v == nil || v == "" || !commandKeys[lower] && (!pathKeys[lower] || lower == "directory" || lower == "dir") {
			continue
		}
		e.add(floor(surfaceBash, key, "unknown-argument", "the call holds an argument that may change what runs"))
	}
}

// shell adds the units of a command and what the shell rules say of them.
func (e *evaluation) shell(cmd shell.Command) {
	for i, u := range cmd.Units {
		got := e.s.unitEntry(surfaceBash, e.place, u)
		got.Unit = i
		e.out.Units = append(e.out.Units, Unit{Text: u.Text, Action: got.Action, Pattern: got.MatchedPattern, Note: note(u)})
		if cmd.Simple || got.Action != Allow {
			e.add(got)
		}
	}
	if cmd.Simple {
		return
	}
	whole := strings.TrimSpace(cmd.Text)
	if got := e.s.entry(surfaceBash, e.place.home, whole, values{exact: []string{whole}}); got.Action == Deny || len(cmd.Units) == 0 {
		e.add(strict(got))
	}
	e.add(floor(surfaceBash, whole, cmd.Why, whyNotSimple(cmd)))
}

// unitEntry is what the rules of a shell surface say of one command. Its text
// as typed proves what it is; its other readings only deny and ask.
// Where the file system finds a program in any letter case, so do these.
func (s *Snapshot) unitEntry(surface string, p place, u shell.Unit) Entry {
	v := values{exact: []string{u.Text}, wide: u.Readings()}
	if p.fold && len(u.Words) > 0 {
		small := u
		small.Words = append([]string{strings.ToLower(u.Words[0])}, u.Words[1:]...)
		v.wide = append(append(v.wide, strings.Join(small.Words, " ")), small.Readings()...)
	}
	return s.entry(surface, p.home, u.Text, v)
}

func note(u shell.Unit) string {
	if u.Via == "" {
		return ""
	}
	return "run by " + u.Via
}

// whyNotSimple says to a person why an allow was not enough.
func whyNotSimple(cmd shell.Command) string {
	kind, about, _ := strings.Cut(cmd.Why, ":")
	switch kind {
	case shell.WhyNoCommand:
		return "there is no command in the text"
	case shell.WhyTooLarge:
		return "the command is too large to be read"
	case shell.WhyTooDeep:
		return "the command is nested too deep to be read"
	case shell.WhyUnparseable:
		return "the command is not valid shell syntax"
	case shell.WhyControl:
		return "the command holds control characters"
	case shell.WhyExpansion:
		return "the shell would expand words of the command, so what runs is not what is written"
	case shell.WhyAssignment:
		return "the command sets variables, which can change what runs"
	case shell.WhyRedirect:
		return "the command redirects its input or output to a file"
	case shell.WhyWrapper:
		return about + " runs other commands from its arguments"
	case shell.WhyInterpreter:
		return about + " runs a program from its arguments or its input"
	case shell.WhyRuns:
		return about + " can run other commands, and nothing shows that it does not here"
	case shell.WhyOption:
		return about + " can run other commands or change files"
	}
	return "only one simple command can be allowed by a rule"
}
