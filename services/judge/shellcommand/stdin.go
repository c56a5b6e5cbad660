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

// deafUnder are subcommands that take nothing from their input unless a word
// says so: "-", one that holds "stdin", or an option of git add that asks. Not
// git fetch, which knows --std, and nothing that runs what a project says.
var deafUnder = map[string][]string{
	"git": {"status", "diff", "log", "show", "rev-parse", "add"},
	"go":  {"build", "vet"},
}

// hears says whether a command may read of its input. A shell that reads its
// commands there goes on behind what it took: with "head -c 6" in front, the
// line "echo 'x; y'" is the line "x; y'".
func hears(u *shell.Unit) bool {
	if u.Modifier {
		return false // what it carries is a unit too
	}
	under, known := deafUnder[u.Program()]
	switch {
	case !known:
		return !slices.Contains(deaf, u.Program())
	case len(u.Words) < 2 || !u.Literal || !slices.Contains(under, u.Words[1]):
		return true
	}
	return slices.ContainsFunc(u.Words[2:], func(word string) bool {
		asks := u.Words[1] == "add" && strings.HasPrefix(word, "-") && !slices.Contains([]string{"-A", "--all", "-u", "--"}, word)
		return word == "-" || strings.Contains(word, "stdin") || asks
	})
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
