package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// assignOnly is a statement that only assigns, for all that follows.
func (w *walker) assignOnly(i int, s *syntax.Stmt, cmd *syntax.CallExpr, values []word, why string, sure bool) {
	u := &w.units[i]
	u.Text, u.Idle = strings.TrimSuffix(w.source(s), ";"), true
	u.Shape = u.Text
	u.why(why)
	for j, a := range cmd.Assigns {
		number := a.Index == nil && a.Array == nil && w.numeric(a, values[j])
		w.assigned(a.Name.Value, number, number || a.Index == nil && a.Array == nil && handing(a.Name.Value, values[j]))
		if sure && a.Value != nil && !a.Append && values[j].fixed() && !values[j].pipe {
			w.bind(a.Name.Value, values[j].text)
		}
	}
}

// numeric says whether an assignment is one of a number.
func (w *walker) numeric(a *syntax.Assign, value word) bool {
	if a.Value == nil {
		return false
	}
	if value.fixed() {
		return digits(value.text)
	}
	if len(a.Value.Parts) == 1 {
		switch p := a.Value.Parts[0].(type) {
		case *syntax.ArithmExp:
			return !value.odd
		case *syntax.ParamExp:
			return plainParam(p) && p.Length && !value.odd
		}
	}
	return false
}

// assignments notes the assignments in front of unit i and returns their
// values.
func (w *walker) assignments(i int, all []*syntax.Assign, at state) (values []word, why string) {
	for _, a := range all {
		text, value, odd := w.assign(a, at)
		w.units[i].Assigns = append(w.units[i].Assigns, text)
		values = append(values, value)
		if odd {
			why = WhyAssignment
		}
	}
	return values, why
}

// assign reads one assignment: as "NAME=value", the value unquoted where it is
// one word. An assigned value is often a file's name, so its words are loose.
func (w *walker) assign(a *syntax.Assign, at state) (text string, value word, odd bool) {
	if a.Name == nil || a.Index != nil || a.Array != nil || a.Naked {
		w.assignOdd(a, at)
		number := a.Index == nil || w.countable(a.Index)
		return w.source(a), word{}, !plainName(a) || !number || w.oddElements(a.Array)
	}
	if a.Value == nil {
		return a.Name.Value + "=", word{kind: Fixed, one: true}, !plainName(a)
	}
	w.first(a.Value)
	value = w.single(a.Value, at) // braces are not expanded here
	w.loose = append(w.loose, value.text)
	return a.Name.Value + "=" + value.text, value, value.odd || !plainName(a)
}

// assignOdd walks what an array, an index or a bare name of a declaration
// holds.
func (w *walker) assignOdd(a *syntax.Assign, at state) {
	if a.Index != nil {
		w.inside(a.Index, at)
	}
	if a.Value != nil {
		w.looseWord(a.Value, at)
	}
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			if e.Index != nil {
				w.inside(e.Index, at)
			}
			if e.Value != nil && w.looseWord(e.Value, at) {
				w.fail(WhyExpansion)
			}
		}
	}
}

func (w *walker) oddElements(array *syntax.ArrayExpr) bool {
	if array == nil {
		return false
	}
	for _, e := range array.Elems {
		if e.Index != nil && !w.countable(e.Index) {
			return true
		}
	}
	return false
}

// handed says whether an assignment in front of a command is harmless. IFS is
// what read splits its line by, and no more than that.
func (w *walker) handed(a *syntax.Assign, value word, words []word) bool {
	if a.Name == nil || a.Index != nil || a.Array != nil {
		return false
	}
	if a.Name.Value == "IFS" && (words[0].text == "read" || words[0].text == "mapfile") {
		return true
	}
	// The standard tools know their variables, and no others.
	program := words[0].text
	return handing(a.Name.Value, value) || words[0].fixed() && inert[program] && a.Name.Value != "PAGER" && !changes(a.Name.Value)
}

// handedAll says whether all assignments in front of a command are harmless.
func (w *walker) handedAll(assigns []*syntax.Assign, values []word, words []word) bool {
	if len(assigns) == 0 {
		return true
	}
	// Anywhere: make may stand behind timeout.
	makes := slices.ContainsFunc(words, func(r word) bool { return isMake(r.text) })
	for i, a := range assigns {
		v := values[i]
		if !w.handed(a, v, words) || makes && !(v.fixed() && !v.pipe && makeTakes(a.Name.Value, v.text)) {
			return false
		}
	}
	return true
}

// plainName says whether an assignment is of a variable to a shell too: to this
// parser, "!{=x" is one, which is the name of a program.
func plainName(a *syntax.Assign) bool { return a.Name != nil && validName(a.Name.Value) }
