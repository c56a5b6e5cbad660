package policy

import (
	"path"
	"strings"

	"github.com/assent-dev/assent/internal/shell"
)

// hole stands in a glob for what a shell computes. No command that holds the
// character itself is read.
const hole = '\x00'

// globSigns are the characters that make a part of a path a glob.
const globSigns = "*?[(\x00"

// markedNames are names of which one stands in every path that a built-in rule
// matches.
var markedNames = []string{
	".pi", ".codex", ".claude", ".assent", ".gemini", ".opencode", ".claude.json", "assent", "opencode", "opencode.json",
	"opencode.jsonc", "codex", "claude-code",
}

// partial rules a word of which the shell computes a part, as .cla${x}ude/settings.json,
// and one of curl's in which a part of the URL will stand.
func (t *selfText) partial(at *place, u *shell.Unit, k int, how use, unit int) {
	w := u.Words[k]
	form := w
	switch {
	case len(w) > maxWord:
		return
	case usedName(u) == "curl" && numberedName(w):
		at := strings.IndexByte(w, '#')
		form = w[:at] + string(hole) + strings.TrimLeft(w[at+1:], "0123456789")
	case u.Kind(k) == shell.Unknown && !homeWord(w):
		form = holed(w)
	default:
		return
	}
	for _, p := range pieces(form) {
		if strings.ContainsRune(p, hole) && !strings.ContainsAny(p, " \t\n") {
			t.globGuard(at, p, how, unit)
		}
	}
}

// holed is a word with a hole for each expansion.
func holed(word string) string {
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		switch c := word[i]; {
		case c == '`':
			end := strings.IndexByte(word[i+1:], '`')
			if end < 0 {
				end = len(word) - i - 2
			}
			i += end + 1
			b.WriteByte(hole)
		case c == '$' && i+1 < len(word):
			i += expansionLength(word[i+1:])
			b.WriteByte(hole)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// expansionLength is the length of what belongs to a dollar in front of rest.
func expansionLength(rest string) int {
	open, end := rest[0], byte(0)
	switch open {
	case '{':
		end = '}'
	case '(':
		end = ')'
	default:
		n := 0
		for n < len(rest) && (rest[n] == '_' || rest[n]|0x20 >= 'a' && rest[n]|0x20 <= 'z' || rest[n] >= '0' && rest[n] <= '9') {
			n++
		}
		return max(n, 1)
	}
	depth := 0
	for i := range len(rest) {
		switch rest[i] {
		case open:
			depth++
		case end:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(rest)
}

// selectsSettings says whether a glob could select what holds an agent's
// settings among the files of a folder: ".*" does, "*" and "*.js" do not.
func selectsSettings(name string) bool {
	tokens := globTokens(foldText(name))
	for _, marked := range markedNames {
		if marked[0] == '.' && reach(marked, tokens) {
			return true
		}
	}
	return false
}

// globGuard rules what a glob could select. It is taken at its word where it
// spells enough of what is protected, and asks where it does not.
func (e *evaluation) globGuard(at *place, word string, how use, unit int) {
	forms := at.globForms(word)
	for _, form := range forms {
		form = foldText(form)
		switch {
		case path.IsAbs(form) || drive(form):
		case len(forms) > 1:
			continue // the same as an absolute one
		default:
			form = "/" + form
		}
		tokens := globTokens(form)
		if !strings.ContainsRune(form, hole) && e.selectsWhole(at, tokens, how, word, unit) {
			return
		}
		if !globMarked(form) {
			continue
		}
		for i := range selfPathRules {
			r := &selfPathRules[i]
			if r.dir&how.dir == 0 || e.s.self.lifted&r.group != 0 || r.home || r.Action == Ask && !how.folder {
				continue
			}
			text := r.w.w.text
			if strings.Contains(text, "$") && !strings.Contains(form, "$") || r.group.has(groupCredentials) && !meansCredentials(path.Base(form)) {
				continue // a variable's name is no file's, and ".env*" means no credentials
			}
			if e.effort += (len(text) + 1) * (len(form) + 1); e.effort <= maxEffort && !reach(text, tokens) {
				continue
			}
			rule := r.BuiltinRule
			if rule.Action == Deny && !spelled(form) && !r.w.w.match(form) {
				rule.Action, rule.Reason = Ask, "this could select files that are out of reach of agents; name the files that you mean"
			}
			e.addSelf(rule, surfacePath, strings.ReplaceAll(word, string(hole), "*"), unit)
			return
		}
	}
}

// selectsWhole rules a glob that could select a folder in which the home
// directory lies, or the project.
func (e *evaluation) selectsWhole(at *place, tokens []globToken, how use, word string, unit int) bool {
	for i := range selfPathRules {
		r := &selfPathRules[i]
		below := ""
		switch {
		case e.s.self.lifted&r.group != 0:
		case how.home && r.Pattern == "~":
			below = at.home
		case how.gone && r.Pattern == ".":
			below = at.cwd
		}
		for below = foldText(below); below != "" && !root(below); below = path.Dir(below) {
			if reach(below, tokens) {
				e.addSelf(r.BuiltinRule, surfacePath, word, unit)
				return true
			}
			if path.Dir(below) == below {
				break
			}
		}
	}
	return false
}

// globMarked says whether a part of a glob could select a name without which no
// built-in rule matches, and means to: "*.json" does not mean opencode.json.
func globMarked(form string) bool {
	before, folder := "", ""
	for _, part := range strings.Split(form, "/") {
		if !strings.ContainsAny(part, globSigns) {
			if part != "" && markedName(part, before) {
				return true
			}
			folder, before = before, part
			continue
		}
		if ending := strings.TrimLeft(part, "*?\x00"); ending != part && strings.LastIndexByte(ending, '.') == 0 && equalsAny(ending, ".json", ".jsonc", ".toml") {
			continue
		}
		stem, _, _ := strings.Cut(strings.TrimLeft(part, "*?.\x00"), ".")
		if meansCredentials(part) {
			return true
		}
		if part[0] != '.' && letters(stem) < 3 && before != ".config" && folder != ".local" {
			continue
		}
		tokens := globTokens(part)
		for _, name := range markedNames {
			if reach(name, tokens) {
				return true
			}
		}
	}
	return false
}

// meansCredentials says whether a part of a glob spells the ending of a
// credentials file.
func meansCredentials(part string) bool {
	ending := part[strings.LastIndexByte(part, '.')+1:]
	tokens := globTokens(ending)
	return len(ending) < len(part) && letters(ending) > 1 && (reach("creds", tokens) || reach("nk", tokens))
}

func letters(s string) int {
	n := 0
	for _, r := range s {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			n++
		}
	}
	return n
}

// spelled says whether each glob among the parts of a path spells at least three
// letters.
func spelled(form string) bool {
	for _, part := range strings.Split(form, "/") {
		if strings.ContainsAny(part, globSigns) && letters(part) < 3 {
			return false
		}
	}
	return true
}
