package shellcommand

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/assent-dev/assent/internal/shell"
)

// deaf are programs that take nothing from their input, whatever their words
// are. What prompts, or takes a list of files or a text from its input if told
// to, is missing here on purpose.
var deaf = []string{":", "true", "false", "echo", "printf", "pwd", "cd", "ls", "mkdir", "rmdir", "touch", "basename", "dirname", "realpath", "readlink", "stat", "which",
	"type", "id", "whoami", "uname", "nproc", "sleep", "test", "[", "set", "exit", "break", "continue", "wait", "chmod"}

// deafGit are git's subcommands that take nothing from their input unless a
// word says so, "-" or one that holds "stdin". Not fetch, which knows --std.
var deafGit = []string{"status", "diff", "log", "show", "rev-parse"}

// hears says whether a command may read of its input. A shell that reads its
// commands there goes on behind what it took: with "head -c 6" in front, the
// line "echo 'x; y'" is the line "x; y'".
func hears(u *shell.Unit) bool {
	if u.Modifier {
		return false // what it carries is a unit too
	}
	switch {
	case u.Program() != "git":
		return !slices.Contains(deaf, u.Program())
	case len(u.Words) < 2 || !u.Literal || !slices.Contains(deafGit, u.Words[1]):
		return true
	}
	return slices.ContainsFunc(u.Words[2:], func(word string) bool { return word == "-" || strings.Contains(word, "stdin") })
}

// listLines is list for the text that a shell reads as its input, line by line:
// each line is read before any of it runs, and what stands on a later one can be
// taken away by what runs before.
func (w *walk) listLines(stmts []*syntax.Stmt, fed bool) error {
	for _, s := range stmts {
		line := w.text[int(s.End().Offset()):]
		_, later, _ := strings.Cut(line, "\n")
		w.script = strings.TrimSpace(later) != ""
		if err := w.stmt(s, fed); err != nil {
			return err
		}
	}
	return nil
}
