package shell

import (
	"mvdan.cc/sh/v3/syntax"
)

// walker takes the commands out of one tree, in the order in which a shell
// would come upon them.
type walker struct {
	text  string
	depth int // of payloads
	frame *frame
	units []Unit
	loose []string
	// inputs as Handed in Command.
	inputs []string
	// why is what keeps the structure of the text from being proven.
	why string
	// forced is what keeps every command of the place that is walked from being
	// proven: the body of a function runs who knows when.
	forced string
	seen   map[syntax.Node]bool
	// numbers are the variables that the text assigns, and whether only numbers;
	// counted are those that its arithmetic takes for numbers.
	numbers map[string]bool
	counted []string
	// values are the variables whose value is known; bound and again count what
	// was spent on them.
	values       map[string]string
	bound, again int
	// valued are the variables that ever were in values, reset those that bash's
	// own commands set.
	valued, reset map[string]bool
	// exported are the variables that the text exports, unhandy those to which
	// it assigns what may not be handed to a program.
	exported, unhandy map[string]bool
	// backquotes is how many of them are open around the place.
	backquotes int
	// written are the names of the files that the text writes.
	written map[string]bool
}

// setting is what a command has from the place where it stands.
type setting struct {
	// fed: its input may be what another command or the text itself says.
	fed bool
	// inside: it stands in a substitution.
	inside bool
	// sure: whatever follows comes behind it.
	sure   bool
	forced string
	// via is the modifier in front.
	via string
}

// writes notes the name of a file that the text writes.
func (w *walker) writes(names ...string) {
	if w.written == nil {
		w.written = map[string]bool{}
	}
	for _, n := range names {
		w.written[n] = true
	}
}

func (w *walker) fail(why string) {
	if w.why == "" {
		w.why = why
	}
}

// file walks the tree; false if it nests deeper than MaxNesting.
func (w *walker) file(file *syntax.File, from state) bool {
	if levels(w.text) > MaxNesting-4 && !fits(file) {
		return false
	}
	w.list(file.Stmts, from, setting{sure: true})
	return true
}

// list walks statements one after the other.
func (w *walker) list(stmts []*syntax.Stmt, at state, c setting) (ok, fail state) {
	ok, fail = at, at
	for _, s := range stmts {
		if next := ok.or(fail); next.reached() {
			at = next
		}
		ok, fail = w.stmt(s, at, c)
	}
	return ok, fail
}

// stmt walks one statement and says where the shell stands when it succeeded
// and when it failed.
func (w *walker) stmt(s *syntax.Stmt, at state, c setting) (ok, fail state) {
	if s.Coprocess || s.Disown {
		w.fail(WhyNotSimple)
	}
	c.sure = c.sure && !s.Background
	switch cmd := s.Cmd.(type) {
	case nil:
		w.redirectOnly(s, at, c)
		ok, fail = at, at
	case *syntax.CallExpr:
		ok, fail = w.call(s, cmd, at, c)
	case *syntax.DeclClause:
		w.declaration(s, cmd, at, c)
		ok, fail = at, at
	default:
		if len(s.Redirs) > 0 {
			c.fed = w.compoundRedirects(s, at, c) || c.fed
		}
		ok, fail = w.compound(s, at, c)
	}
	if s.Negated {
		ok, fail = fail, ok
	}
	if s.Background {
		ok, fail = at, at
	}
	return ok, fail
}

// compound walks a command that is made of others.
func (w *walker) compound(s *syntax.Stmt, at state, c setting) (ok, fail state) {
	switch cmd := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		return w.binary(cmd, at, c)
	case *syntax.Block:
		return w.list(cmd.Stmts, at, c)
	}
	c.sure = false
	switch cmd := s.Cmd.(type) {
	case *syntax.Subshell:
		w.subshell(cmd, at, c)
	case *syntax.IfClause:
		return w.ifClause(cmd, at, c)
	case *syntax.WhileClause:
		return w.loop(func(at state) state {
			ok, fail := w.list(cmd.Cond, at, c)
			ok2, fail2 := w.list(cmd.Do, ok.or(fail), c)
			return ok.or(fail).or(ok2).or(fail2)
		}, at)
	case *syntax.ForClause:
		return w.forClause(cmd, at, c)
	case *syntax.CaseClause:
		return w.caseClause(cmd, at, c)
	case *syntax.TestClause:
		w.idle(s, at, c)
		w.test(cmd.X, at)
	case *syntax.ArithmCmd:
		w.idle(s, at, c)
		w.inside(cmd.X, at)
		if cmd.Unsigned || !w.countable(cmd.X) {
			w.fail(WhyExpansion)
		}
	case *syntax.TimeClause:
		return w.timed(s, cmd, at, c)
	default:
		w.unproven(s.Cmd, at, c)
	}
	return at, at
}

func (w *walker) binary(cmd *syntax.BinaryCmd, at state, c setting) (ok, fail state) {
	switch cmd.Op {
	case syntax.AndStmt:
		ok1, fail1 := w.stmt(cmd.X, at, c)
		c.sure = false
		ok2, fail2 := w.stmt(cmd.Y, ok1.orElse(at), c)
		return ok2.when(ok1), fail1.or(fail2.when(ok1))
	case syntax.OrStmt:
		ok1, fail1 := w.stmt(cmd.X, at, c)
		c.sure = false
		ok2, fail2 := w.stmt(cmd.Y, fail1.orElse(at), c)
		return ok1.or(ok2.when(fail1)), fail2.when(fail1)
	}
	// Each command of a pipe runs in a shell of its own.
	c.sure = false
	w.stmt(cmd.X, at, c)
	c.fed = true
	w.stmt(cmd.Y, at, c)
	return at, at
}

// orElse is s, or other where s is not reached: what stands there is read all
// the same.
func (s state) orElse(other state) state {
	if s.reached() {
		return s
	}
	return other
}

// when is s if other is reached.
func (s state) when(other state) state {
	if other.reached() {
		return s
	}
	return state{}
}

// subshell walks a subshell. One around a single command does nothing that the
// command alone would not, so it is a text of its own that a rule must allow.
func (w *walker) subshell(cmd *syntax.Subshell, at state, c setting) {
	if len(cmd.Stmts) == 1 {
		s := cmd.Stmts[0]
		if call, ok := s.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 && !s.Background && len(s.Redirs) == 0 {
			u := Unit{Text: w.source(cmd), Why: c.forced, Via: c.via}
			at.place(&u)
			w.append(u)
		}
	}
	w.list(cmd.Stmts, at, c)
}

// timed walks a command behind the reserved word time, which only measures.
func (w *walker) timed(s *syntax.Stmt, cmd *syntax.TimeClause, at state, c setting) (ok, fail state) {
	u := Unit{Text: "time", Words: []string{"time"}, Kinds: []Kind{Fixed}, Shape: "time", Literal: true, Modifier: true, Via: c.via}
	w.placeTime(&u, cmd)
	if cmd.Stmt == nil {
		u.Modifier, u.Why = false, WhyNotSimple
		w.append(u)
		return at, at
	}
	at.place(&u)
	i := w.append(u)
	if call, ok := cmd.Stmt.Cmd.(*syntax.CallExpr); cmd.Stmt.Cmd == nil || ok && len(call.Assigns) > 0 {
		w.fail(WhyNotSimple) // shells differ over what "time" is then
	}
	if c.via == "" {
		c.via = "time"
	}
	ok, fail = w.stmt(cmd.Stmt, at, c)
	outer := &w.units[i]
	if i+1 < len(w.units) && w.units[i+1].Via == "time" {
		inner := w.units[i+1]
		outer.Words = append(outer.Words, inner.Words...)
		outer.Kinds = append(outer.Kinds, inner.Kinds...)
		outer.Text, outer.Shape = "time "+inner.Text, "time "+inner.Shape
		if outer.Place != nil && inner.Place != nil {
			outer.Place.Words = append(outer.Place.Words, inner.Place.Words...)
		}
	}
	return ok, fail
}

// unproven walks a command that is only looked at for what is denied.
func (w *walker) unproven(cmd syntax.Command, at state, c setting) {
	w.fail(WhyNotSimple)
	before := w.forced
	w.forced, c.forced = WhyNotSimple, WhyNotSimple
	syntax.Walk(cmd, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			w.stmt(n, at.nowhere(), c)
			return false
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
	w.forced = before
}

// finish judges what only the whole text shows.
func (w *walker) finish() {
	for _, name := range w.counted {
		if !w.numbers[name] || shellSets(name) {
			w.fail(WhyExpansion)
			return
		}
	}
	for name := range w.reset {
		if w.valued[name] {
			w.fail(WhyAssignment) // X=ls; read "X" <<< rm; $X y
			return
		}
	}
	w.handsOver()
	for i := range w.units {
		u := &w.units[i]
		if u.Why == "" && w.runsWritten(u) {
			u.Why = WhyRuns + ":" + programName(u.Words[0])
		}
	}
}

// source is the text of a node as written.
func (w *walker) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(w.text) || from > to {
		return w.text
	}
	return w.text[from:to]
}
