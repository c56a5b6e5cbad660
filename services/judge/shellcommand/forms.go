package shellcommand

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/assent-dev/assent/internal/shell"
)

// shells whose reading of a text is the one that this package takes it for. Not
// zsh, whose glob qualifiers run commands, and no shell of a project's own.
var shells = []string{"bash", "sh", "dash"}

func plainShell(program string) bool {
	dir, name := path.Split(program)
	return slices.Contains(shells, name) && (dir == "" || dir == "/bin/" || dir == "/usr/bin/")
}

// isShell says whether a command may be a shell, whatever its path is.
func isShell(call *syntax.CallExpr) bool {
	word, ok := onlyLiteral(call.Args[0])
	return !ok || slices.Contains(shells, path.Base(word))
}

// handed is the text that a command hands to a shell in one of its words.
func handed(u *shell.Unit) (text string, found bool, err error) {
	switch {
	case u.Words[0] == "eval":
		if !u.Literal || len(u.Words) < 2 || strings.HasPrefix(u.Words[1], "-") {
			return "", false, uncut("it is not known what eval runs")
		}
		return strings.Join(u.Words[1:], " "), true, nil
	case !plainShell(u.Words[0]):
		return "", false, nil
	}
	at := textOption(u.Words[1:])
	// A text that looks like an option is one to some shells.
	if at < 0 || !u.Literal || at+2 != len(u.Words)-1 || strings.HasPrefix(u.Words[at+2], "-") || strings.HasPrefix(u.Words[at+2], "+") {
		return "", false, uncut("it is not known what %s runs", u.Words[0])
	}
	return u.Words[at+2], true, nil
}

// shellFlags are options of shells that change nothing of which commands a text
// holds; -c is not among them. Not -i and -s, which read more than the text.
const shellFlags = "leuxv"

// settings are what -o may set.
var settings = []string{"pipefail", "errexit", "nounset", "xtrace"}

// textOption is the index of the option that says that the next word is the
// text, -1 where there is none or anything else stands in front.
func textOption(args []string) int {
	for i := 0; i < len(args); i++ {
		cluster, ok := strings.CutPrefix(args[i], "-")
		if !ok || cluster == "" {
			return -1
		}
		set := strings.HasSuffix(cluster, "o")
		rest := strings.TrimSuffix(cluster, "o")
		if strings.Trim(rest, shellFlags+"c") != "" || set && strings.Contains(rest, "c") {
			return -1
		}
		if strings.Contains(rest, "c") {
			return i
		}
		if set {
			if i++; i >= len(args) || !slices.Contains(settings, args[i]) {
				return -1
			}
		}
	}
	return -1
}

// readsInput says whether a shell with these arguments reads its commands from
// its input, and nothing else.
func readsInput(args []string) bool {
	for i := 0; i < len(args); i++ {
		cluster, ok := strings.CutPrefix(args[i], "-")
		if !ok || cluster == "" || strings.Trim(cluster, shellFlags+"so") != "" {
			return false
		}
		if strings.Contains(cluster, "o") {
			if i++; !strings.HasSuffix(cluster, "o") || strings.Count(cluster, "o") != 1 || i >= len(args) || !slices.Contains(settings, args[i]) {
				return false
			}
		}
	}
	return true
}

// wrappers change when, how loud or how fast a command runs, and nothing else.
// Each says how many words its option takes, 0 for one that is not known.
var wrappers = map[string]func(option string) int{
	"exec":       func(string) int { return 0 },
	"unbuffer":   func(string) int { return 0 },
	"chronic":    func(string) int { return 0 },
	"setsid":     func(o string) int { return known(o, "-w", "--wait") },
	"caffeinate": func(o string) int { return known(o, "-i", "-d", "-m", "-s", "-u") },
	"stdbuf":     func(o string) int { return known(o, "-oL", "-o0", "-eL", "-e0", "-i0") },
	"ionice":     func(o string) int { return known(o, "-c1", "-c2", "-c3", "-t") },
}

func known(option string, options ...string) int {
	if slices.Contains(options, option) {
		return 1
	}
	return 0
}

// wrapped is the index of the command behind a wrapper, 0 where words are none.
func wrapped(words []string) int {
	options, ok := wrappers[words[0]]
	if !ok {
		return 0
	}
	i := 1
	for i < len(words) && strings.HasPrefix(words[i], "-") {
		n := options(words[i])
		if n == 0 {
			return 0
		}
		i += n
	}
	if i >= len(words) {
		return 0
	}
	return i
}

// shellChangers are builtins after which a later word may name another command
// than it says, or a command runs that no word names.
var shellChangers = []string{"alias", "unalias", "hash", "enable", "trap", "source", ".", "shopt", "export", "declare", "typeset", "local", "readonly",
	"unset", "eval", "exec", "let", "read", "mapfile", "readarray", "bind", "complete", "fc", "history", "getopts", "builtin", "emulate", "setopt",
	"unsetopt", "zmodload", "autoload", "function", "coproc"}

func changesShell(u *shell.Unit) bool {
	return slices.Contains(shellChangers, u.Program()) || u.Program() == "printf" && slices.ContainsFunc(u.Words[1:], func(w string) bool { return strings.HasPrefix(w, "-v") })
}

// shellMovers are builtins that change where or whether the rest of the same
// shell's text runs. Inside of eval the other reading does not follow them out.
var shellMovers = []string{"cd", "pushd", "popd", "set", "exit", "return", "break", "continue", "umask", "ulimit", "wait"}

func movesShell(u *shell.Unit) bool { return slices.Contains(shellMovers, u.Program()) }

// literal refuses a command of which any part is computed by the shell.
func literal(s *syntax.Stmt) (err error) {
	syntax.Walk(s, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp, *syntax.ExtGlob, *syntax.ArrayExpr:
			err = uncut("the shell computes a part of it")
		case *syntax.SglQuoted:
			if n.Dollar {
				err = uncut("it holds a coded string")
			}
		case *syntax.DblQuoted:
			if n.Dollar {
				err = uncut("it holds a translated string")
			}
		}
		return err == nil
	})
	return err
}

// bare refuses a carrier with assignments in front or files behind: they would
// be those of every command that it runs.
func bare(s *syntax.Stmt, call *syntax.CallExpr) error {
	if len(call.Assigns) > 0 {
		return uncut("a variable is set for a shell")
	}
	for _, r := range s.Redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			continue
		case syntax.DplOut:
			if to, ok := onlyLiteral(r.Word); ok && (to == "1" || to == "2") {
				continue
			}
		case syntax.RdrOut, syntax.RdrAll:
			if to, ok := onlyLiteral(r.Word); ok && to == "/dev/null" {
				continue
			}
		}
		return uncut("a shell reads or writes a file")
	}
	return nil
}

// input is the here-document or here-string of a command; nil for none.
func input(s *syntax.Stmt) *syntax.Redirect {
	for _, r := range s.Redirs {
		if r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc {
			return r
		}
	}
	return nil
}

// body is the text of a here-document that has the one input of its command.
func body(doc *syntax.Redirect) (string, error) {
	if doc.N != nil && doc.N.Value != "0" || doc.Op == syntax.DashHdoc {
		return "", uncut("a here-document that is not plainly the input")
	}
	w := doc.Hdoc
	if doc.Op == syntax.WordHdoc {
		w = doc.Word
	} else if _, quoted := onlyQuoted(doc.Word); !quoted {
		return "", uncut("the shell computes a part of a here-document")
	}
	if w == nil {
		return "", nil
	}
	if doc.Op == syntax.WordHdoc {
		text, ok := onlyLiteral(w)
		if !ok {
			return "", uncut("a word of it is computed")
		}
		return text, nil
	}
	var b strings.Builder
	for _, p := range w.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			return "", uncut("the shell computes a part of a here-document")
		}
		b.WriteString(lit.Value)
	}
	return b.String(), nil
}

// onlyQuoted is a word in single quotes and nothing else.
func onlyQuoted(w *syntax.Word) (string, bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	q, ok := w.Parts[0].(*syntax.SglQuoted)
	if !ok || q.Dollar {
		return "", false
	}
	return q.Value, true
}

// onlyLiteral is a word of plain letters, or one that single quotes hold whole.
func onlyLiteral(w *syntax.Word) (string, bool) {
	if text, ok := onlyQuoted(w); ok {
		return text, true
	}
	if len(w.Parts) != 1 {
		return "", false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.Lit:
		return p.Value, !strings.ContainsAny(p.Value, `\*?[]{}~`)
	case *syntax.DblQuoted:
		if len(p.Parts) != 1 || p.Dollar {
			return "", false
		}
		lit, ok := p.Parts[0].(*syntax.Lit)
		return litValue(lit), ok && !strings.Contains(lit.Value, `\`)
	}
	return "", false
}

func litValue(l *syntax.Lit) string {
	if l == nil {
		return ""
	}
	return l.Value
}

// start and end are where a command stands, its redirections included.
func start(s *syntax.Stmt, call *syntax.CallExpr) int {
	from := int(call.Pos().Offset())
	for _, r := range s.Redirs {
		from = min(from, int(r.Pos().Offset()))
	}
	return from
}

func end(s *syntax.Stmt, call *syntax.CallExpr) int {
	to := int(call.End().Offset())
	for _, r := range s.Redirs {
		to = max(to, int(r.End().Offset()))
	}
	return to
}
