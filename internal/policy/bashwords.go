package policy

import (
	"strings"

	"github.com/assent-dev/assent/internal/shell"
)

// maxSuffixes bounds the words of a command that are looked at as the start of
// another one.
const maxSuffixes = 256

// maxSuffixText bounds their words times the length of the command, in bytes:
// each of them is compared with every rule.
const maxSuffixText = 256 << 10

// couldBe says whether a command with words that the shell computes could turn
// out to be one that a later rule than the one at at denies or asks about.
func (r *shellRuling) couldBe(u *shell.Unit, at int) bool {
	wild := ""
	for i := len(r.rules) - 1; i > at; i-- {
		rule := r.rules[i]
		if rule.action == Allow || rule.pattern.w.any() || rule.action == Ask && r.s.Yolo() && !rule.humanOnly {
			continue
		}
		if rule.anyOrder {
			if rule.flagged(u, true) {
				return true
			}
			continue
		}
		if wild == "" {
			wild = wildText(u)
		}
		if r.meets(rule.pattern.w, wild) {
			return true
		}
	}
	return false
}

// wildText is a command with a star for every word that is computed.
func wildText(u *shell.Unit) string {
	words := u.Subcommand()
	from := len(u.Words) - len(words)
	out := make([]string, len(words))
	for i, w := range words {
		if out[i] = w; u.Kind(from+i) != shell.Fixed && !(i == 0 && from > 0) {
			out[i] = "*"
		}
	}
	if len(out) > 0 {
		out[0] = out[0][strings.LastIndexByte(out[0], '/')+1:]
	}
	return strings.Join(out, " ")
}

// meets says whether some text matches both the pattern and wild.
func (r *shellRuling) meets(w wildcard, wild string) bool {
	if w.hasBare && r.meets(*w.bare, wild) {
		return true
	}
	front, _, _ := strings.Cut(wild, "*")
	mine := w.text[:len(w.text)-len(strings.TrimLeft(w.text, "*?"))]
	if mine == "" {
		mine, _, _ = strings.Cut(strings.ReplaceAll(w.text, "?", "*"), "*")
		if !strings.HasPrefix(front, mine) && !strings.HasPrefix(mine, front) {
			return false
		}
	}
	r.effort += (len(w.text) + 1) * (len(wild) + 1)
	return r.effort > maxEffort || overlap(w.text, wild)
}

// passesOn says whether a program of which nothing is known is given words that
// are a command which a rule denies or asks about: it may run them.
func (r *shellRuling) passesOn(u *shell.Unit) bool {
	if len(u.Words) < 2 || u.Closed() || !r.strictNamed() {
		return false
	}
	if len(u.Words) > maxSuffixes || len(u.Words)*len(u.Text) > maxSuffixText || u.HandsCode() {
		return true
	}
	inner, from := *u, 0
	for i := 1; i < len(u.Words); i++ {
		from += len(u.Words[i-1]) + 1
		inner.Words, inner.Kinds = u.Words[i:], nil
		inner.Text = u.Text[from:] // the words joined by blanks
		inner.Shape = inner.Text
		if at := r.last(&inner, values{exact: []string{inner.Text}, wide: inner.Readings()}); at >= 0 {
			if rule := r.rules[at]; rule.action != Allow && !rule.pattern.w.any() && !strings.HasPrefix(rule.pattern.text, "*") {
				return true
			}
		}
	}
	return false
}

// strictNamed says whether any rule denies or asks about a command by name.
func (r *shellRuling) strictNamed() bool {
	for _, rule := range r.rules {
		if rule.action != Allow && !rule.pattern.w.any() {
			return true
		}
	}
	return false
}

// flagged says whether a rule for flags in any order speaks of a command: the
// words of its pattern that are no flags stand in front, and every flag is one
// of the command's own. maybe: a word that the shell computes may be a flag.
func (r *rule) flagged(u *shell.Unit, maybe bool) bool {
	if len(u.Words) == 0 {
		return false
	}
	var flags, front []string
	for _, w := range strings.Fields(r.pattern.text) {
		if len(w) > 1 && w[0] == '-' {
			flags = append(flags, w)
		} else {
			front = append(front, w)
		}
	}
	words := u.Subcommand()
	from := len(u.Words) - len(words)
	var plain, own []string
	unknown := false
	for i, w := range words {
		at := from + i
		switch {
		case i > 0 && u.Kind(at) != shell.Fixed:
			unknown, plain = true, append(plain, "*")
		case i > 0 && len(w) > 1 && w[0] == '-':
			if !u.IsProse(at) {
				own = append(own, w)
			}
		default:
			plain = append(plain, w)
		}
	}
	if base := plain[0][strings.LastIndexByte(plain[0], '/')+1:]; base != "" {
		plain[0] = base
	}
	pattern := strings.Join(front, " ")
	if !strings.HasSuffix(pattern, "*") {
		pattern += " *"
	}
	text, w := strings.Join(plain, " "), compileWildcard(pattern)
	if !w.match(text) && !(maybe && unknown && (overlap(pattern, text) || w.hasBare && overlap(w.bare.text, text))) {
		return false
	}
	for _, f := range flags {
		if !hasFlag(own, f) && !(maybe && unknown) {
			return false
		}
	}
	return true
}

// hasFlag says whether a flag is among the words: a long one also abbreviated,
// or with a value, a short one also in a cluster.
func hasFlag(words []string, flag string) bool {
	for _, w := range words {
		name, _, _ := strings.Cut(w, "=")
		switch {
		case w == flag, name == flag:
			return true
		case strings.HasPrefix(flag, "--"):
			if len(name) > 3 && strings.HasPrefix(flag, name) {
				return true
			}
		case len(flag) == 2 && !strings.HasPrefix(w, "--") && strings.Contains(name[1:], flag[1:]):
			return true
		}
	}
	return false
}
