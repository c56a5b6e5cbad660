package policy

import (
	"path"
	"strings"
)

// pattern is a rule's pattern, with the home directory that may stand in front
// of it.
type pattern struct {
	// text is the pattern as the author wrote it, and what is reported.
	text string
	w    wildcard
	// home is set where the pattern starts with ~ or $HOME: it is what follows.
	home *wildcard
}

// compilePattern compiles the pattern of a rule.
func compilePattern(text string) pattern {
	p := pattern{text: text, w: compileWildcard(text)}
	if rest, ok := cutHome(text); ok && !strings.HasPrefix(text, "${") {
		w := compileWildcard(collapse(rest))
		p.home = &w
	}
	return p
}

// compilePathPattern compiles a pattern of paths. Paths are matched clean, so
// the pattern is brought into the same form.
func compilePathPattern(text string) pattern {
	clean := text
	for strings.HasPrefix(clean, "./") {
		clean = clean[2:]
	}
	p := compilePattern(collapse(clean))
	p.text = text
	return p
}

// lowerPattern is a pattern folded, the name of the home left as it is.
func lowerPattern(text string) string {
	rest, ok := cutHome(text)
	if !ok {
		return foldText(text)
	}
	return strings.TrimSuffix(text, rest) + foldText(rest)
}

// collapse brings the fixed front of a pattern into the form of a clean path.
// What stands behind the first wildcard is left alone: what it would be joined
// to is not known.
func collapse(s string) string {
	front, rest := s, ""
	if i := strings.IndexAny(s, "*?"); i >= 0 {
		i = strings.LastIndexByte(s[:i], '/') + 1
		front, rest = s[:i], s[i:]
	}
	if front == "" {
		return s
	}
	clean := path.Clean(front)
	if rest != "" && clean != "/" {
		clean += "/"
	}
	return clean + rest
}

// climbs says whether a pattern goes up behind a wildcard, which no clean path
// does.
func climbs(s string) bool { return strings.Contains("/"+collapse(s)+"/", "/../") }

// cutHome removes a home directory in front of s.
func cutHome(s string) (rest string, ok bool) {
	for _, prefix := range []string{"~", "$HOME", "${HOME}"} {
		if rest, ok := strings.CutPrefix(s, prefix); ok && (rest == "" || rest[0] == '/') {
			return rest, true
		}
	}
	return "", false
}

// match says whether the pattern matches value. strict is set for rules that
// deny or ask, which match in every reading there is; an allow of "~/x" is not
// one of a folder that an agent named "~". home is absolute and
// clean, or empty where it is not known.
func (p *pattern) match(value, home string, strict bool) bool {
	if (strict || p.home == nil) && p.w.match(value) {
		return true
	}
	if p.home == nil || home == "" {
		return false
	}
	rest, ok := strings.CutPrefix(value, strings.TrimSuffix(home, "/"))
	return ok && (rest == "" || rest[0] == '/') && p.home.match(rest)
}
