package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// walker takes the commands out of one tree.
type walker struct {
	text  string
	depth int // of payloads
	units []Unit
	loose []string
	// claimed are the words that belong to a unit.
	claimed map[*syntax.Word]bool
}

// file walks the tree; false if it nests deeper than MaxNesting.
func (w *walker) file(file *syntax.File) bool {
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
		w.node(n)
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

func (w *walker) node(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.Stmt:
		w.stmt(n)
	case *syntax.Word:
		if !w.claimed[n] {
			w.claimed[n] = true
			w.loose = append(w.loose, w.words(n).texts...)
		}
	}
}

// stmt takes the unit of one statement, if it has one of its own.
func (w *walker) stmt(s *syntax.Stmt) {
	u := Unit{Literal: true, Redirects: w.redirects(s.Redirs)}
	switch cmd := s.Cmd.(type) {
	case *syntax.CallExpr:
		w.call(&u, cmd)
	case *syntax.DeclClause:
		w.declaration(&u, cmd)
	}
	if len(u.Words) == 0 && len(u.Redirects) == 0 && len(u.Assigns) == 0 {
		return
	}
	u.Text = strings.Join(u.Words, " ")
	if len(u.Words) == 0 {
		u.Text = w.source(s)
		u.Literal = false
	}
	w.add(u, w.fed(s.Redirs))
}

// call fills u from a simple command.
func (w *walker) call(u *Unit, cmd *syntax.CallExpr) {
	for _, a := range cmd.Assigns {
		u.Assigns = append(u.Assigns, w.assign(a))
	}
	for _, arg := range cmd.Args {
		w.claimed[arg] = true
		r := w.words(arg)
		u.Words = append(u.Words, r.texts...)
		u.Literal = u.Literal && r.literal
	}
}

// declaration fills u from export, declare and their kin, which the parser
// reads as clauses of their own.
func (w *walker) declaration(u *Unit, cmd *syntax.DeclClause) {
	u.Words, u.Literal = []string{cmd.Variant.Value}, false
	for _, a := range cmd.Args {
		u.Words = append(u.Words, w.assign(a))
	}
}

// assign is an assignment as "NAME=value", the value unquoted where it is one
// word. Its words stay loose: an assigned value is often a file's name.
func (w *walker) assign(a *syntax.Assign) string {
	if a.Name == nil || a.Value == nil || a.Index != nil || a.Array != nil || a.Naked {
		return w.source(a)
	}
	return a.Name.Value + "=" + strings.Join(w.words(a.Value).texts, " ")
}

// redirects lists those that name a file.
func (w *walker) redirects(all []*syntax.Redirect) []Redirect {
	var out []Redirect
	for _, r := range all {
		if r.Word != nil {
			w.claimed[r.Word] = true
		}
		if r.Hdoc != nil {
			w.claimed[r.Hdoc] = true
		}
		read, write := direction(r)
		if !read && !write {
			continue
		}
		got := w.words(r.Word)
		for _, t := range got.texts {
			out = append(out, Redirect{Target: t, Literal: got.literal, Read: read, Write: write})
		}
	}
	return out
}

// direction says which way a redirection to a file goes; neither for a
// duplicated descriptor or a here-document.
func direction(r *syntax.Redirect) (read, write bool) {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return false, false
	case syntax.RdrIn:
		return true, false
	case syntax.RdrInOut:
		return true, true
	case syntax.DplIn, syntax.DplOut:
		// >&file writes a file; only digits and '-' name a descriptor.
		target := r.Word.Lit()
		if target != "" && strings.Trim(target, "0123456789-") == "" {
			return false, false
		}
		return r.Op == syntax.DplIn, r.Op == syntax.DplOut
	}
	return false, true
}

// fed is the text that here-documents and here-strings feed to a command.
func (w *walker) fed(redirs []*syntax.Redirect) []string {
	var texts []string
	for _, r := range redirs {
		switch {
		case r.Hdoc != nil:
			texts = append(texts, strings.Join(w.words(r.Hdoc).texts, " "))
		case r.Op == syntax.WordHdoc && r.Word != nil:
			texts = append(texts, strings.Join(w.words(r.Word).texts, " "))
		}
	}
	return texts
}

// add appends u, the commands that it carries, and those that a shell would
// read from what it is fed.
func (w *walker) add(u Unit, fed []string) {
	if len(w.units) >= maxUnits {
		panic("shell: more commands than are looked at") // read turns it into Opaque
	}
	w.units = append(w.units, u)
	load := carried(u.Words)
	if isShell(u.Program()) {
		load.payloads = append(load.payloads, fed...)
	}
	if w.depth >= maxPayloads {
		return
	}
	for _, inner := range load.commands {
		w.depth++
		w.add(Unit{Text: strings.Join(inner, " "), Words: inner, Literal: u.Literal, Via: load.by}, fed)
		w.depth--
	}
	for _, payload := range load.payloads {
		w.payload(payload, load.by)
	}
}

// payload adds the commands of a text that a shell would be handed.
func (w *walker) payload(text, by string) {
	inner := read(text, w.depth+1)
	for _, u := range inner.Units {
		if len(w.units) >= maxUnits {
			panic("shell: more commands than are looked at") // read turns it into Opaque
		}
		if u.Via == "" {
			u.Via = by
		}
		w.units = append(w.units, u)
	}
	w.loose = append(w.loose, inner.Loose...)
}

// why names what keeps the tree from being one simple command.
func (w *walker) why(file *syntax.File) string {
	if len(file.Stmts) != 1 {
		return emptyOr(file, WhyNotSimple)
	}
	s := file.Stmts[0]
	call, ok := s.Cmd.(*syntax.CallExpr)
	if s.Cmd == nil {
		return WhyRedirect
	}
	if !ok || s.Negated || s.Background || s.Coprocess || s.Disown {
		return WhyNotSimple
	}
	if len(call.Assigns) > 0 {
		return WhyAssignment
	}
	if !w.units[0].Literal {
		return WhyExpansion
	}
	if slices.ContainsFunc(s.Redirs, effective) {
		return WhyRedirect
	}
	if !plainProgram(w.units[0].Program()) {
		return WhyNotSimple
	}
	return programWhy(w.units[0].Words)
}

// reserved are words that bash reads as syntax where a command may stand, which
// the parser does not all refuse there.
var reserved = []string{
	"if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in", "select", "function",
	"time", "coproc", "{", "}", "!", "[[", "]]",
}

// plainProgram says whether a word reads as the name of a program. The one word
// "git ../evil" is a path, and joined to others would read like git's.
func plainProgram(word string) bool {
	return word != "" && !strings.ContainsAny(word, " \t\n") && !slices.Contains(reserved, word)
}

func emptyOr(file *syntax.File, why string) string {
	if len(file.Stmts) == 0 {
		return WhyNoCommand
	}
	return why
}

// effective says whether a redirection does more than silence a descriptor or
// point it at another.
func effective(r *syntax.Redirect) bool {
	if r.N != nil && strings.Trim(r.N.Value, "0123456789") != "" {
		return true // {name}>file assigns a variable
	}
	target := r.Word.Lit()
	switch r.Op {
	case syntax.DplIn, syntax.DplOut:
		return target == "" || strings.Trim(target, "0123456789-") != ""
	case syntax.RdrIn, syntax.RdrOut, syntax.AppOut, syntax.RdrAll, syntax.AppAll:
		return target != "/dev/null"
	}
	return true
}

// source is the text of a node as written.
func (w *walker) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(w.text) || from > to {
		return w.text
	}
	return w.text[from:to]
}
