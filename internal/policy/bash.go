package policy

import (
	"strings"

	"github.com/assent-dev/assent/internal/shell"
)

// bash rules a shell call. Denies and asks match every command found anywhere
// in the text, in every reading; an allow needs a rule for every command and
// the proof that they do no more than they say.
func (e *evaluation) bash() {
	text, ok := e.args["command"].(string)
	if !ok {
		e.add(strict(e.s.entry(surfaceBash, e.place.home, "", values{wide: []string{""}})))
		e.add(floor(surfaceBash, "", "no-command", "the call holds no command text"))
		return
	}
	cmd := e.readText(text)
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
	if _, ok := e.args["command"]; ok && len(e.args) == 1 {
		return
	}
	for _, key := range sortedKeys(e.args) {
		lower := strings.ToLower(key)
		if v := e.args[key]; key == "command" || v == nil || v == "" || !commandKeys[lower] && (!pathKeys[lower] || lower == "directory" || lower == "dir") {
			continue
		}
		e.add(floor(surfaceBash, key, "unknown-argument", "the call holds an argument that may change what runs"))
	}
}

// shell adds the units of a command, and what the shell rules and the built-in
// ones say of them.
func (e *evaluation) shell(cmd shell.Command) {
	r := shellRuling{evaluation: e, index: e.s.rules.index(surfaceBash), cmd: cmd, idle: true}
	r.rules = r.index.rules
	for i := range cmd.Units {
		r.idle = r.idle && cmd.Units[i].Idle
	}
	for i := range cmd.Units {
		r.unit(i)
	}
	r.whole()
	e.selfShell(cmd)
}

// shellRuling is the ruling of one shell text in the making.
type shellRuling struct {
	*evaluation
	index *index
	rules []*rule
	cmd   shell.Command
	// idle: no program runs at all.
	idle bool
	// named: a rule names the command that carries the units which follow.
	named bool
}

// unit rules one command of the text.
func (r *shellRuling) unit(i int) {
	u := &r.cmd.Units[i]
	v := r.spellings(u)
	at := r.last(u, v)
	var found *rule
	if at >= 0 {
		found = r.rules[at]
	}
	got := r.s.decided(found, surfaceBash, u.Text, r.place.home, v)
	got.Unit = i
	named := found != nil && !found.pattern.w.any()
	carried := u.Via != "" && !u.Decides
	why := ""
	if !r.cmd.Opaque && !carried {
		r.named = named
		why = r.missing(u, at, got.Action)
	}
	shown := Unit{Text: u.Text, Action: got.Action, Pattern: got.MatchedPattern, Note: note(u)}
	switch {
	case got.Action == Allow && why != "":
		shown.Action, shown.Pattern = Ask, "<"+why+">"
	case !named && r.optional(u, carried, got.Action):
		// The rule for everything does not speak of this one.
		if shown.Action = Allow; u.Modifier {
			shown.Pattern = "<modifier>"
		}
	case r.cmd.Opaque || carried:
		if got.Action != Allow {
			r.add(got)
		}
	default:
		r.add(got)
	}
	r.out.Units = append(r.out.Units, shown)
	if why != "" && got.Action != Deny {
		f := floor(surfaceBash, u.Text, why, whyNot(why))
		f.Unit = i
		r.add(f)
	}
}

// optional says whether a command that no rule names needs none: what carries
// another one and leaves it to that, what runs no program beside others that
// do, and what stands inside a command that a rule allows by name, where the
// carrier asks anyway.
func (r *shellRuling) optional(u *shell.Unit, carried bool, action Action) bool {
	return !r.cmd.Opaque && (u.Modifier || u.Idle && !r.idle || carried && r.named && action == Deny)
}

// missing is what keeps a command from being allowed by the rule at at, "" if
// nothing does.
func (r *shellRuling) missing(u *shell.Unit, at int, action Action) string {
	switch {
	case u.Why != "":
		return u.Why
	case action == Deny || u.Modifier:
		return ""
	case u.Shape != u.Text && r.couldBe(u, at):
		return shell.WhyExpansion
	case r.passesOn(u):
		return shell.WhyWrapper + ":" + u.Program()
	}
	return ""
}

// spellings are the texts under which rules may speak of a command. Its words
// as typed prove what it is; its other readings only deny and ask. Where the
// file system finds a program in any letter case, so do these.
func (r *shellRuling) spellings(u *shell.Unit) values {
	v := values{exact: []string{u.Text}, wide: u.Readings()}
	if u.Shape != u.Text && u.Shape != "" {
		v.exact[0], v.wide = u.Shape, append(v.wide, u.Text)
	}
	if plain := u.Plain(); plain != "" {
		v.exact = append(v.exact, plain) // git -C web status
	}
	if r.place.fold && len(u.Words) > 0 {
		small := *u
		small.Words = append([]string{strings.ToLower(u.Words[0])}, u.Words[1:]...)
		v.wide = append(append(v.wide, strings.Join(small.Words, " ")), small.Readings()...)
	}
	return v
}

// last is the position of the last rule that matches a command, -1 if none
// does.
func (r *shellRuling) last(u *shell.Unit, v values) int {
	return r.index.last(v, r.place.home, func(rule *rule) bool {
		return rule.anyOrder && rule.flagged(u, false) || u.Shape != u.Text && rule.pattern.text == u.Text
	})
}

// whole adds what is said of the text as a whole: rules whose pattern holds what
// stands between commands, and what keeps its structure from being proven.
func (r *shellRuling) whole() {
	text := strings.TrimSpace(r.cmd.Text)
	switch v := (values{exact: []string{text}}); {
	case r.cmd.Opaque || r.cmd.Structure != "":
		if got := r.s.entry(surfaceBash, r.place.home, text, v); got.Action == Deny || len(r.cmd.Units) == 0 {
			r.add(strict(got))
		}
		r.add(floor(surfaceBash, text, r.cmd.Structure, whyNot(r.cmd.Structure)))
	case len(r.cmd.Units) == 0:
		// A comment: nothing runs.
		r.add(r.s.entry(surfaceBash, r.place.home, "", values{exact: []string{""}}))
	case strings.ContainsAny(text, shellSeparators):
		found := r.s.rules.last(surfaceBash, r.place.home, v)
		if found != nil && found.action != Allow && strings.ContainsAny(found.pattern.text, shellSeparators) {
			r.add(r.s.decided(found, surfaceBash, text, r.place.home, v))
		}
	}
}

// shellSeparators are the characters that stand between the commands of a text,
// and never unquoted in one.
const shellSeparators = ";|&<>()`\n"

func note(u *shell.Unit) string {
	switch {
	case u.Via != "":
		return "run by " + u.Via
	case u.Modifier:
		return "runs the command behind it"
	}
	return ""
}

// whyNotSimple says to a person why an allow was not enough.
func whyNotSimple(cmd shell.Command) string { return whyNot(cmd.Why) }

// whyNot says to a person what is missing for the proof of a command.
func whyNot(why string) string {
	kind, about, _ := strings.Cut(why, ":")
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
		return "the shell would expand words of the command, and what they become could change what runs"
	case shell.WhyAssignment:
		return "the command sets variables that can change what runs"
	case shell.WhyRedirect:
		return "the command redirects its input or output, and not to a file that is known by name"
	case shell.WhyWrapper:
		return about + " runs other commands from its arguments"
	case shell.WhyInterpreter:
		return about + " runs a program from its arguments or its input"
	case shell.WhyRuns:
		return about + " can run other commands, and nothing shows that it does not here"
	case shell.WhyOption:
		return about + " can run other commands or change files"
	case shell.WhyContinuation:
		return "shells differ over how the lines of the command are joined"
	}
	return "the command is made of parts that cannot be proven harmless"
}
