package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// append adds a unit and returns its index.
func (w *walker) append(u Unit) int {
	if len(w.units) >= maxUnits {
		panic("shell: more commands than are looked at") // read turns it into Opaque
	}
	w.units = append(w.units, u)
	return len(w.units) - 1
}

// call walks a simple command.
func (w *walker) call(s *syntax.Stmt, cmd *syntax.CallExpr, at state, c setting) (ok, fail state) {
	i := w.append(Unit{Via: c.via, Why: c.forced, Decides: c.via != "" && c.forced == ""})
	at.place(&w.units[i])
	w.placeCall(&w.units[i], s, cmd.Assigns)
	values, why := w.assignments(i, cmd.Assigns, at)
	words := make([]word, 0, len(cmd.Args))
	for _, arg := range cmd.Args {
		if !hasBrace(arg) {
			words = append(words, w.single(arg, at))
			locate(words[len(words)-1:], arg)
			continue
		}
		words = append(words, locate(w.words(arg, at), arg)...)
	}
	if len(words) > 0 && hasBrace(cmd.Args[0]) {
		words[0].odd = true // nobody writes a program so
	}
	redirects, fed, why2 := w.redirects(s.Redirs, at)
	w.units[i].Redirects = redirects
	if why == "" {
		why = why2
	}
	if len(words) == 0 {
		w.assignOnly(i, s, cmd, values, why, c.sure)
		return at, at
	}
	if !w.handedAll(cmd.Assigns, values, words) {
		why = WhyAssignment
	}
	w.program(i, words, why, at, feed{is: c.fed || fed.is, texts: fed.texts})
	ok, fail = moved(words, at)
	if !ok.reached() && len(s.Redirs) > 0 {
		return at, at // a redirection that fails keeps "exit" from ending the shell
	}
	return ok, fail
}

// declaring are the options of declarations that only say who sees a variable.
const declaring = " -x -r -g -gx -rx -xr -a -ga -A "

// declaration is export, declare and their kin, which the parser reads as
// clauses of their own.
func (w *walker) declaration(s *syntax.Stmt, cmd *syntax.DeclClause, at state, c setting) {
	i := w.append(Unit{Words: []string{cmd.Variant.Value}, Kinds: []Kind{Fixed}, Via: c.via, Why: c.forced, Decides: c.via != "" && c.forced == ""})
	at.place(&w.units[i])
	w.placeDeclaration(&w.units[i], s, cmd)
	exports, why := cmd.Variant.Value == "export", ""
	for _, a := range cmd.Args {
		text, value, odd := w.assign(a, at)
		kind := Unknown
		switch {
		case a.Name == nil: // an option, or a word that the shell computes
			if !strings.Contains(declaring, " "+text+" ") || exports {
				odd = odd || !exports || text != "-n"
			} else {
				odd, exports = false, exports || strings.Contains(text, "x")
			}
			kind = Fixed
		case a.Naked:
			odd = odd || changes(a.Name.Value)
			kind = Fixed
			if exports {
				w.exports(a.Name.Value)
			}
		default:
			if exports {
				w.exports(a.Name.Value)
			}
			if exports && a.Array == nil && !handing(a.Name.Value, value) {
				odd = true
			}
			number := a.Array == nil && w.numeric(a, value)
			w.assigned(a.Name.Value, number, number || a.Array == nil && handing(a.Name.Value, value))
			kind = value.kind
		}
		if odd {
			why = WhyAssignment
		}
		u := &w.units[i]
		u.Words, u.Kinds = append(u.Words, text), append(u.Kinds, kind)
	}
	redirects, _, why2 := w.redirects(s.Redirs, at)
	u := &w.units[i]
	u.Redirects = redirects
	u.Text = strings.Join(u.Words, " ")
	u.Shape = u.Text
	if cmd.Variant.Value == "nameref" {
		why = WhyAssignment
	}
	u.why(why)
	u.why(why2)
}

// why notes what is missing for the proof, unless something else already is.
func (u *Unit) why(why string) {
	if u.Why == "" {
		u.Why = why
	}
}

// idle adds a statement that runs no program.
func (w *walker) idle(s *syntax.Stmt, at state, c setting) {
	text := w.source(s.Cmd)
	u := Unit{Text: text, Shape: text, Idle: true, Why: c.forced, Via: c.via}
	at.place(&u)
	w.append(u)
}

// redirectOnly is a statement without a command. One that only reads is the
// content of a file in a substitution.
func (w *walker) redirectOnly(s *syntax.Stmt, at state, c setting) {
	if len(s.Redirs) == 0 {
		w.fail(WhyNotSimple)
		return
	}
	text := w.source(s)
	i := w.append(Unit{Text: text, Shape: text, Why: c.forced, Via: c.via})
	at.place(&w.units[i])
	redirects, _, why := w.redirects(s.Redirs, at)
	u := &w.units[i]
	u.Redirects = redirects
	u.why(why)
	u.Idle = c.inside && len(s.Redirs) == 1 && s.Redirs[0].Op == syntax.RdrIn
}

// compoundRedirects are the redirections of a command made of others: accesses
// to files, and no program's. It says whether they feed the commands.
func (w *walker) compoundRedirects(s *syntax.Stmt, at state, c setting) (fed bool) {
	i := w.append(Unit{Idle: true, Why: c.forced, Via: c.via})
	at.place(&w.units[i])
	redirects, feeds, why := w.redirects(s.Redirs, at)
	u := &w.units[i]
	u.Redirects = redirects
	u.why(why)
	var texts []string
	for _, r := range s.Redirs {
		texts = append(texts, w.source(r))
	}
	u.Text = strings.Join(texts, " ")
	u.Shape = u.Text
	return feeds.is
}

// program fills unit i with the words of a command, judges it, and adds the
// commands that it carries.
func (w *walker) program(i int, words []word, why string, at state, fed feed) {
	u := &w.units[i]
	u.fill(words)
	w.placeWords(u, words)
	u.Fed = fed.is
	u.why(judge(words, u.Words, why, fed))
	inner := modifies(words)
	if inner > 0 && w.depth >= maxPayloads {
		u.why(WhyWrapper + ":" + programName(words[0].text))
		w.frame.gap()
	}
	if u.Modifier = inner > 0 && u.Why == ""; u.Modifier {
		w.depth++
		w.carry(words[inner:], programName(words[0].text), true, at, fed)
		w.depth--
		return
	}
	if names := writes(words); names != nil {
		w.writes(names...)
	}
	w.names(words)
	w.carried(i, words, at, fed)
}

// fill sets the words of a unit and what is known of them.
func (u *Unit) fill(words []word) {
	u.Words, u.Kinds = make([]string, len(words)), make([]Kind, len(words))
	u.Literal = true
	same := true
	for i, r := range words {
		u.Words[i], u.Kinds[i] = r.text, r.kind
		u.Literal = u.Literal && r.kind == Fixed && !r.pipe
		same = same && r.shape == r.text
		if r.pipe {
			u.Prose = append(u.Prose, i)
		}
	}
	u.Text = strings.Join(u.Words, " ")
	u.Shape = u.Text
	if !same {
		shapes := make([]string, len(words))
		for i, r := range words {
			shapes[i] = r.shape
			if r.pipe {
				shapes[i] = r.text
			}
		}
		u.Shape = strings.Join(shapes, " ")
	}
	if u.Prose = append(u.Prose, prose(words)...); !slices.IsSorted(u.Prose) {
		slices.Sort(u.Prose)
	}
}

// judge is what is missing for the proof of a command.
func judge(words []word, texts []string, why string, fed feed) string {
	first := words[0]
	switch {
	case !first.fixed() || first.pipe || first.odd:
		return WhyExpansion
	case !plainProgram(first.text):
		return WhyNotSimple
	case why != "":
		return why
	}
	for _, r := range words[1:] {
		if r.odd {
			return WhyExpansion
		}
	}
	return proveProgram(words, texts, fed)
}

// reserved are words that bash reads as syntax where a command may stand, which
// the parser does not all refuse there.
var reserved = map[string]bool{
	"if": true, "then": true, "else": true, "elif": true, "fi": true, "do": true, "done": true, "case": true, "esac": true, "while": true,
	"until": true, "for": true, "in": true, "select": true, "function": true, "time": true, "coproc": true, "{": true, "}": true, "!": true,
	"[[": true, "]]": true,
}

// plainProgram says whether a word reads as the name of a program. The one word
// "git ../evil" is a path, and joined to others would read like git's.
func plainProgram(word string) bool {
	return word != "" && !strings.ContainsAny(word, " \t\n") && !reserved[word]
}

// carry adds a command that another one carries.
func (w *walker) carry(words []word, by string, decides bool, at state, fed feed) {
	i := w.append(Unit{Via: by, Decides: decides})
	at.place(&w.units[i])
	w.program(i, words, "", at, fed)
}

// carried adds the commands that a program other than a modifier carries, and
// those that a shell would read from what it is fed.
func (w *walker) carried(i int, words []word, at state, fed feed) {
	texts := w.units[i].Words
	load := carried(texts)
	if isShell(texts[0]) {
		load.payloads = slices.Concat(load.payloads, fed.texts)
	}
	if readsInput(texts, fed) || readsPipe(texts, words) {
		w.frame.gap()
	}
	if len(load.commands)+len(load.payloads) == 0 {
		return
	}
	if w.depth >= maxPayloads {
		w.frame.gap()
		return
	}
	if leaves(texts) {
		at = at.nowhere()
	}
	for _, inner := range load.commands {
		w.depth++
		w.carry(part(words, texts, inner), load.by, false, at, fed)
		w.depth--
	}
	for _, payload := range load.payloads {
		w.payload(payload, load.by, at, w.payloadFrame(&w.units[i], words, payload))
	}
}

// part is the words that inner, a part of texts, was taken from.
func part(words []word, texts, inner []string) []word {
	if from := cap(texts) - cap(inner); from >= 0 && from+len(inner) <= len(words) && (len(inner) == 0 || inner[0] == texts[from]) {
		return words[from : from+len(inner)]
	}
	out := make([]word, len(inner))
	for i, s := range inner {
		out[i] = word{text: s, shape: Hole}
	}
	return out
}

// leaves says whether a carrier may run its command in another directory.
func leaves(words []string) bool {
	for _, a := range words[1:] {
		if a == "-execdir" || a == "-okdir" || a == "-C" || a == "-D" || strings.HasPrefix(a, "--chdir") || strings.HasPrefix(a, "--workdir") ||
			strings.HasPrefix(a, "--directory") {
			return true
		}
	}
	return false
}

// payload adds the commands of a text that a shell would be handed.
func (w *walker) payload(text, by string, at state, f *frame) {
	inner := read(text, w.depth+1, at, f)
	for _, u := range inner.Units {
		if u.Via == "" {
			u.Via = by
		}
		u.Decides = false
		w.append(u)
	}
	w.loose = append(w.loose, inner.Loose...)
	w.inputs = append(w.inputs, inner.Handed...)
}
