package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// tameOutput is a command whose output is one word that is neither an option
// nor a path: a revision, a branch, a date, a number. The text is the front of
// the command, and how many more words may follow.
type tameOutput struct {
	front []string
	more  int
}

var tameOutputs = []tameOutput{
	{[]string{"git", "rev-parse", "HEAD"}, 0}, {[]string{"git", "rev-parse", "--short", "HEAD"}, 0}, {[]string{"git", "rev-parse", "--abbrev-ref", "HEAD"}, 0},
	{[]string{"git", "branch", "--show-current"}, 0}, {[]string{"git", "merge-base"}, 2}, {[]string{"git", "symbolic-ref", "--short", "HEAD"}, 0},
	{[]string{"git", "describe", "--tags"}, 2}, {[]string{"git", "rev-list", "--count"}, 1}, {[]string{"git", "write-tree"}, 0},
	{[]string{"date"}, 1}, {[]string{"nproc"}, 0}, {[]string{"id", "-u"}, 0}, {[]string{"id", "-g"}, 0}, {[]string{"uname", "-s"}, 0}, {[]string{"uname", "-m"}, 0},
	{[]string{"whoami"}, 0}, {[]string{"hostname"}, 0}, {[]string{"uuidgen"}, 0},
}

// tame says whether a substitution holds nothing but such a command.
func tame(stmts []*syntax.Stmt) bool {
	if len(stmts) != 1 {
		return false
	}
	s := stmts[0]
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Negated || s.Background || len(call.Assigns) > 0 || len(s.Redirs) > 0 {
		return false
	}
	words := make([]string, len(call.Args))
	for i, a := range call.Args {
		lit, ok := onlyLit(a)
		if !ok || !plainValue(lit) {
			return false
		}
		words[i] = lit
	}
	return slices.ContainsFunc(tameOutputs, func(t tameOutput) bool {
		n := len(t.front)
		if len(words) < n || len(words) > n+t.more || !slices.Equal(words[:n], t.front) {
			return false
		}
		for _, w := range words[n:] {
			// A date says what its format says.
			if strings.HasPrefix(w, "-") && w != "-u" && w != "--always" || w[0] == '+' && (len(w) < 2 || w[1] != '%') {
				return false
			}
		}
		return true
	})
}
