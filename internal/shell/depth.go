package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// levels is the most levels that a text can nest: everything in it that could
// open one.
func levels(text string) int {
	n, word := 0, 0
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z':
			continue
		case strings.IndexByte("([{`!~-+", c) >= 0:
			n++
		}
		if opens(text[word:i]) {
			n++
		}
		word = i + 1
	}
	return n
}

// fits measures how deep a tree nests.
func fits(file *syntax.File) bool {
	var open []bool // for each node above: does it count as a level
	level, fits := 0, true
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			if open[len(open)-1] {
				level--
			}
			open = open[:len(open)-1]
			return false
		}
		counts := nests(n)
		if counts {
			level++
		}
		fits = fits && level <= MaxNesting
		if !fits {
			if counts {
				level--
			}
			return false
		}
		open = append(open, counts)
		return true
	})
	return fits
}

// nests says whether n is a level of nesting.
func nests(n syntax.Node) bool {
	switch n.(type) {
	case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.Subshell, *syntax.Block, *syntax.IfClause,
		*syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.FuncDecl, *syntax.ParamExp,
		*syntax.ArithmExp, *syntax.ParenArithm, *syntax.ParenTest, *syntax.UnaryArithm, *syntax.UnaryTest,
		*syntax.TimeClause, *syntax.CoprocClause:
		return true
	}
	return false
}
