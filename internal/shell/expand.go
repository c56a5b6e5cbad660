package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// inside walks what an expansion holds: the commands of its substitutions, and
// the words that may become its value.
func (w *walker) inside(node syntax.Node, at state) {
	if p, ok := node.(*syntax.ParamExp); ok && p.Short && p.Index == nil {
		return
	}
	syntax.Walk(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			w.substitution(n, n.Stmts, at)
			return false
		case *syntax.ProcSubst:
			w.substitution(n, n.Stmts, at)
			return false
		case *syntax.Word:
			w.looseWord(n, at)
		}
		return true
	})
}

// substitution walks the commands of one substitution, once: braces make
// several words of one.
func (w *walker) substitution(node syntax.Node, stmts []*syntax.Stmt, at state) {
	if w.first(node) {
		_, isPipe := node.(*syntax.ProcSubst)
		if sub, ok := node.(*syntax.CmdSubst); ok && sub.Backquotes {
			w.backquotes++
			defer func() { w.backquotes-- }()
		}
		w.list(stmts, at, setting{fed: isPipe, inside: true, forced: w.forced})
	}
}

// first says whether a node is seen for the first time.
func (w *walker) first(node syntax.Node) bool {
	if w.seen == nil {
		w.seen = map[syntax.Node]bool{}
	}
	before := w.seen[node]
	w.seen[node] = true
	return !before
}

// looseWord notes a word that belongs to no command.
func (w *walker) looseWord(node *syntax.Word, at state) (odd bool) {
	if len(node.Parts) == 0 || !w.first(node) {
		return false
	}
	for _, r := range w.words(node, at) {
		odd = odd || r.odd
		w.loose = append(w.loose, r.text)
	}
	return odd
}

// quotesInQuotes says whether an expansion in double quotes holds single quotes
// with something to expand between them. In "${x:-'$(rm y)'}" they quote
// nothing, whatever this parser says, so what stands there is read once more.
func (w *walker) quotesInQuotes(p *syntax.ParamExp, at state) (found bool) {
	syntax.Walk(p, func(n syntax.Node) bool {
		q, ok := n.(*syntax.SglQuoted)
		if !ok || !strings.ContainsAny(q.Value, "$`") {
			return true
		}
		found = true
		if w.first(q) && w.depth < maxPayloads {
			w.payload(`: "`+q.Value+`"`, "", at, w.frame.inexact())
		}
		return false
	})
	return found
}

// knownDir says whether p is one of the variables whose value is a fact of the
// call: the home directory, and the working directory as long as nothing left
// it. A text that assigns them is not proven.
func (w *walker) knownDir(p *syntax.ParamExp, at state) bool {
	if p.Param == nil || !bare(p) {
		return false
	}
	return p.Param.Value == "HOME" || p.Param.Value == "PWD" && at.home()
}

// bare says whether p is $x or ${x} and nothing more.
func bare(p *syntax.ParamExp) bool {
	return plainParam(p) && !p.Length && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil
}

// plainParam says whether p is of a form whose only effect is its value.
func plainParam(p *syntax.ParamExp) bool {
	return p.Param != nil && p.Flags == nil && !p.Excl && !p.Width && !p.IsSet && p.Split == 0 && p.GlobSubst == 0 && p.RcExpand == 0 &&
		p.NestedParam == nil && len(p.Modifiers) == 0 && p.Names == 0
}

// harmless says whether an expansion has no effect but its value. ${x:=y}
// assigns, ${!x} and ${x@P} expand a value once more, and an index or offset is
// arithmetic, in which a variable's value may hold a substitution.
func (w *walker) harmless(p *syntax.ParamExp) bool {
	switch {
	case !plainParam(p), p.Index != nil && !w.harmlessIndex(p.Index):
		return false
	case p.Slice != nil:
		return (p.Slice.Offset == nil || w.countable(p.Slice.Offset)) && (p.Slice.Length == nil || w.countable(p.Slice.Length))
	case p.Exp != nil:
		return p.Exp.Op != syntax.AssignUnset && p.Exp.Op != syntax.AssignUnsetOrNull && p.Exp.Op < syntax.MatchEmpty ||
			p.Exp.Op >= syntax.UpperFirst && p.Exp.Op < syntax.OtherParamOps
	}
	return true
}

// harmlessIndex says whether an index is all of an array or a number.
func (w *walker) harmlessIndex(x syntax.ArithmExpr) bool {
	if word, ok := x.(*syntax.Word); ok && (word.Lit() == "@" || word.Lit() == "*") {
		return true
	}
	return w.countable(x)
}

// manyWords says whether an expansion in double quotes may be any number of
// words.
func manyWords(p *syntax.ParamExp) bool {
	if p.Param != nil && p.Param.Value == "@" || p.Repl != nil && strings.Contains(p.Param.Value, "@") {
		return true
	}
	if word, ok := p.Index.(*syntax.Word); ok && word.Lit() == "@" {
		return true
	}
	return p.Exp != nil && p.Exp.Word != nil && slices.ContainsFunc(p.Exp.Word.Parts, func(part syntax.WordPart) bool {
		_, lit := part.(*syntax.Lit)
		return !lit
	})
}

// countable says whether arithmetic only counts: numbers, and variables to
// which the text assigns nothing but numbers. Any other value is arithmetic of
// its own, and a[$(x)] in it runs x.
func (w *walker) countable(x syntax.ArithmExpr) bool {
	switch x := x.(type) {
	case *syntax.Word:
		return w.number(x)
	case *syntax.BinaryArithm:
		if name := arithmName(x.X); assigns(x.Op) && name != "" {
			if x.Op != syntax.Assgn {
				w.counted = append(w.counted, name)
			}
			w.set(name, true)
			return w.countable(x.Y)
		}
		return !assigns(x.Op) && w.countable(x.X) && w.countable(x.Y)
	case *syntax.UnaryArithm:
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			name := arithmName(x.X)
			w.set(name, true)
			return name != "" && w.countable(x.X)
		}
		return w.countable(x.X)
	case *syntax.ParenArithm:
		return w.countable(x.X)
	}
	return false
}

func assigns(op syntax.BinAritOperator) bool {
	switch op {
	case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn, syntax.AndAssgn, syntax.OrAssgn,
		syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
		return true
	}
	return false
}

// arithmName is the variable that an operand names without a dollar, "" for
// anything else.
func arithmName(x syntax.ArithmExpr) string {
	word, ok := x.(*syntax.Word)
	if !ok || len(word.Parts) != 1 {
		return ""
	}
	name := word.Lit()
	if p, ok := word.Parts[0].(*syntax.ParamExp); ok && bare(p) && !p.Dollar.IsValid() {
		name = p.Param.Value
	}
	if !validName(name) {
		return ""
	}
	return name
}

// number says whether a word of arithmetic is a number, or will be one if the
// text assigns nothing else to its variable.
func (w *walker) number(word *syntax.Word) bool {
	if lit := word.Lit(); lit != "" && digits(lit) {
		return true
	}
	if name := arithmName(word); name != "" {
		w.counted = append(w.counted, name)
		return true
	}
	if len(word.Parts) != 1 {
		return false
	}
	part := word.Parts[0]
	if q, ok := part.(*syntax.DblQuoted); ok && !q.Dollar && len(q.Parts) == 1 {
		part = q.Parts[0]
	}
	switch p := part.(type) {
	case *syntax.ArithmExp:
		return w.countable(p.X)
	case *syntax.ParamExp:
		switch {
		case !plainParam(p):
			return false
		case p.Length:
			return w.harmless(p)
		case !bare(p):
			return false
		case strings.Contains("?#$!", p.Param.Value):
			return true
		}
		w.counted = append(w.counted, p.Param.Value)
		return true
	}
	return false
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// validName says whether s is the name of a variable.
func validName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
