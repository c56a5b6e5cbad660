package shell

import "mvdan.cc/sh/v3/syntax"

func (w *walker) ifClause(cmd *syntax.IfClause, at state, c setting) (ok, fail state) {
	okCond, failCond := w.list(cmd.Cond, at, c)
	if len(cmd.Cond) == 0 {
		failCond = state{} // a plain else
	}
	ok, fail = w.list(cmd.Then, okCond.orElse(at), c)
	ok, fail = ok.when(okCond), fail.when(okCond)
	if cmd.Else == nil {
		return ok.or(failCond), fail
	}
	ok2, fail2 := w.ifClause(cmd.Else, failCond.orElse(at), c)
	return ok.or(ok2.when(failCond)), fail.or(fail2.when(failCond))
}

// loop walks what may run more than once. Where it moves the shell, nobody can
// tell in which directory the next round runs.
func (w *walker) loop(body func(state) state, at state) (ok, fail state) {
	from := len(w.units)
	out := at.or(body(at))
	if out.lost || len(out.dirs) != len(at.dirs) {
		for i := from; i < len(w.units); i++ {
			w.units[i].Lost = true
		}
		out = at.nowhere()
	}
	return out, out
}

// forClause walks a for loop, once for every value of its variable where these
// are few and known.
func (w *walker) forClause(cmd *syntax.ForClause, at state, c setting) (ok, fail state) {
	items, name := w.forHead(cmd, at)
	round := func(at state) state {
		ok, fail := w.list(cmd.Do, at, c)
		return at.or(ok).or(fail)
	}
	return w.loop(func(at state) state {
		out := at
		if w.each(name, items, int(cmd.DonePos.Offset())-int(cmd.DoPos.Offset()), func() { out = out.or(round(at)) }) {
			return out
		}
		return round(at)
	}, at)
}

// forHead walks the first line of a for loop.
func (w *walker) forHead(cmd *syntax.ForClause, at state) (items []word, name string) {
	if cmd.Select || cmd.Braces {
		w.fail(WhyNotSimple)
	}
	switch head := cmd.Loop.(type) {
	case *syntax.WordIter:
		numbers := len(head.Items) > 0
		for _, item := range head.Items {
			w.first(item)
			for _, r := range w.words(item, at) {
				w.loose = append(w.loose, r.text)
				w.oddWord(r)
				numbers = numbers && r.fixed() && digits(r.text)
				items = append(items, r)
			}
		}
		name = head.Name.Value
		w.set(name, numbers)
	case *syntax.CStyleLoop:
		for _, x := range []syntax.ArithmExpr{head.Init, head.Cond, head.Post} {
			if x == nil {
				continue
			}
			w.inside(x, at)
			if !w.countable(x) {
				w.fail(WhyExpansion)
			}
		}
	default:
		w.fail(WhyNotSimple)
	}
	return items, name
}

func (w *walker) oddWord(r word) {
	if r.odd {
		w.fail(WhyExpansion)
	}
}

func (w *walker) caseClause(cmd *syntax.CaseClause, at state, c setting) (ok, fail state) {
	if cmd.Braces {
		w.fail(WhyNotSimple)
	}
	if w.looseWord(cmd.Word, at) {
		w.fail(WhyExpansion)
	}
	out := at
	for _, item := range cmd.Items {
		for _, p := range item.Patterns {
			if w.looseWord(p, at) {
				w.fail(WhyExpansion)
			}
		}
		// ";&" goes on into the next.
		ok, fail := w.list(item.Stmts, out, c)
		out = out.or(ok).or(fail)
	}
	return out, out
}

// test walks the operands of [[ ]]. Those of its comparisons of numbers are
// arithmetic, and -v expands an index.
func (w *walker) test(x syntax.TestExpr, at state) {
	switch x := x.(type) {
	case *syntax.Word:
		if w.looseWord(x, at) {
			w.fail(WhyExpansion)
		}
	case *syntax.BinaryTest:
		w.test(x.X, at)
		w.test(x.Y, at)
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, side := range []syntax.TestExpr{x.X, x.Y} {
				if word, ok := side.(*syntax.Word); !ok || !w.number(word) {
					w.fail(WhyExpansion)
				}
			}
		}
	case *syntax.UnaryTest:
		w.test(x.X, at)
		if x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar {
			w.fail(WhyExpansion)
		}
	case *syntax.ParenTest:
		w.test(x.X, at)
	default:
		w.fail(WhyNotSimple)
	}
}
