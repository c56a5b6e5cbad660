package policy

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/shell"
)

// commands warns of shell patterns that do not do what they seem to say. It
// asks the engine itself: a pattern that is typed as a command, its wildcards
// filled in, has to match that command.
func (l *linter) commands() {
	rules := l.s.rules.rules
	for i := range rules {
		if r := &rules[i]; r.surface.text == surfaceBash && r.pattern.text != "" {
			l.command(r)
		}
	}
}

func (l *linter) command(r *rule) {
	if r.action == Allow {
		if why := neverAllows(r.pattern.w); why != "" {
			l.warn(r.at, "bash %q never allows anything: %s", clip(r.pattern.text), why)
		}
		return
	}
	why, whole := neverFound(r.pattern.w)
	switch {
	case why == "":
	case whole:
		l.warn(r.at, "bash %q matches only a text that is typed like this as a whole: %s; to stop a command wherever it stands, name it alone",
			clip(r.pattern.text), why)
	case r.action == Ask:
		l.warn(r.at, "bash %q matches no command, so its guidance and humanOnly never count: %s", clip(r.pattern.text), why)
	default:
		l.warn(r.at, "bash %q is a deny that stops nothing: %s", clip(r.pattern.text), why)
	}
}

// neverAllows says why no command that the pattern is typed like can be allowed
// by it, "" if one can.
func neverAllows(w wildcard) string {
	why := ""
	for _, typed := range typedLike(w.text) {
		cmd := shell.Read(typed)
		if cmd.Simple && slices.ContainsFunc(cmd.Units, func(u shell.Unit) bool {
			return !u.Modifier && (w.match(u.Shape) || w.literal() && w.text == u.Text)
		}) {
			return ""
		}
		if why == "" {
			why = whyUnlike(w.text, cmd)
		}
	}
	return why
}

// neverFound says why a deny or ask finds none of the commands that the pattern
// is typed like, "" if it finds one; whole says that it matches whole texts.
func neverFound(w wildcard) (why string, whole bool) {
	for i, typed := range typedLike(w.text) {
		cmd := shell.Read(typed)
		for _, u := range cmd.Units {
			for _, text := range append(u.Readings(), u.Text) {
				if w.match(text) {
					return "", false
				}
			}
		}
		if i == 0 {
			why = whyUnlike(w.text, cmd)
			whole = w.match(strings.TrimSpace(typed)) && (!cmd.Simple || strings.ContainsAny(w.text, shellSeparators))
		}
	}
	return why, whole
}

// typedLike are commands that somebody may have had in mind with a pattern: its
// wildcards filled in with words and options, the last one also with what closes
// a substitution.
func typedLike(pattern string) []string {
	pattern = strings.ReplaceAll(pattern, "?", "x")
	for _, quote := range []string{"'", `"`} {
		if strings.Count(pattern, quote) == 1 { // an apostrophe: nobody can type it bare
			pattern = strings.Replace(pattern, quote, `\`+quote, 1)
		}
	}
	last := strings.LastIndexByte(pattern, '*')
	if last < 0 {
		return []string{pattern}
	}
	var out []string
	for _, fill := range []string{"x", "", "-v", "version", "x x", "/x"} {
		for _, end := range []string{"", ")", "`", "}"} {
			out = append(out, strings.ReplaceAll(pattern[:last], "*", fill)+fill+end+pattern[last+1:])
		}
	}
	return out
}

// shellSigns are what the shell reads as more than a word, longest first.
var shellSigns = []string{"&&", "||", "$(", "\n", ";", "|", "&", ">", "<", "`"}

// whyUnlike says why a pattern does not match the command that it was typed
// like, or why that command cannot be allowed.
func whyUnlike(pattern string, cmd shell.Command) string {
	if words := strings.Join(strings.Fields(pattern), " "); words != pattern && !strings.Contains(pattern, "\n") {
		return "a command's words are joined by single blanks before they are matched; write \"" + words + "\""
	}
	if strings.Count(pattern, `"`) > 1 || strings.Count(pattern, "'") > 1 {
		return "a command is matched without its quotes; write \"" + strings.NewReplacer(`"`, "", "'", "").Replace(pattern) + "\""
	}
	kind, _, _ := strings.Cut(cmd.Why, ":")
	switch kind {
	case shell.WhyWrapper, shell.WhyInterpreter, shell.WhyOption, shell.WhyRuns:
		return whyNotSimple(cmd) + ", so every such command asks at least"
	case shell.WhyAssignment:
		return "variables set in front of a command are no part of the text that is matched, and such a command asks at least"
	}
	if why := whyOneUnlike(cmd); why != "" {
		return why
	}
	for _, sign := range shellSigns {
		if strings.Contains(pattern, sign) {
			return "rules are matched against one command at a time, and " + quoteSign(sign) + " is no part of one unless it is quoted"
		}
	}
	return whyNotSimple(cmd) + ", unless that is quoted"
}

// whyOneUnlike says what about a proven command is no part of its text.
func whyOneUnlike(cmd shell.Command) string {
	if !cmd.Simple || len(cmd.Units) == 0 {
		return ""
	}
	switch first := cmd.Units[0]; {
	case first.Modifier:
		return "what stands behind " + first.Program() + " is ruled by itself; name that alone"
	case len(cmd.Units) > 1:
		return ""
	case len(first.Assigns) > 0 && len(first.Words) > 0:
		return "variables set in front of a command are no part of the text that is matched; leave them out"
	case first.Shape == first.Text:
		return "redirections and comments are no part of the text that is matched; leave them out"
	}
	return ""
}

func quoteSign(sign string) string {
	if sign == "\n" {
		return "a line break"
	}
	return `"` + sign + `"`
}
