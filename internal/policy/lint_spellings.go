package policy

import "strings"

// spellings warns of patterns in a language that is not that of policies: of
// globs, of regular expressions, of paths that nobody resolves.
func (l *linter) spellings() {
	rules := l.s.rules.rules
	for i := range rules {
		r := &rules[i]
		switch {
		case !r.surface.literal():
		case pathSurface(r.surface.text):
			l.pathSpelling(r)
		case r.surface.text == surfaceBash:
			l.expression(r)
		}
	}
}

func (l *linter) pathSpelling(r *rule) {
	p := r.pattern.text
	why := ""
	switch {
	case crosscutting(r.surface.text) == surfaceExternal && !absolutePattern(p):
		why = "paths outside of the project are matched as absolute ones; write an absolute path, or begin with \"*\""
	case strings.HasPrefix(p, "${HOME}"):
		why = "${HOME} stands for itself; write \"" + "~" + strings.TrimPrefix(p, "${HOME}") + "\""
	case strings.HasPrefix(p, "~") && len(p) > 1 && p[1] != '/':
		why = "the home of another user is not looked up; write its absolute path"
	case strings.Contains(p, "**/"):
		why = "\"*\" also matches slashes here, and \"**/\" needs one more slash; write \"" + strings.NewReplacer("**/*", "*", "**/", "*").Replace(p) + "\""
	case strings.Contains(p, "{") && strings.Contains(p, ",") && strings.Contains(p, "}"):
		why = "braces stand for themselves; write a rule for each"
	case strings.Contains(p, "[") && strings.Contains(p, "]"):
		why = "brackets stand for themselves; write a rule for each, or \"?\" for one character"
	case strings.HasPrefix(p, "!"):
		why = "\"!\" stands for itself; write the exception as a rule of its own, below"
	default:
		return
	}
	l.warn(r.at, "%s %q probably does not match what was meant: %s", r.surface.text, clip(p), why)
}

// absolutePattern says whether a pattern can match an absolute path.
func absolutePattern(p string) bool {
	_, home := cutHome(p)
	return home || strings.HasPrefix(p, "/") || strings.HasPrefix(p, "*") || strings.HasPrefix(p, "?") || strings.HasPrefix(p, `\\`) || drive(p)
}

// expression warns of what looks like a regular expression.
func (l *linter) expression(r *rule) {
	p := r.pattern.text
	for _, sign := range []string{`\s`, `\b`, `\d`, `\w`, `\S`, "(?", ".*$", "[^", "|^"} {
		if strings.Contains(p, sign) || strings.HasPrefix(p, "^") {
			l.warn(r.at, "bash %q looks like a regular expression; the only wildcards are \"*\" and \"?\", and a pattern matches the whole command", clip(p))
			return
		}
	}
}
