package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Place says where a unit stands in the text that Locate read. What stands there
// in another spelling (a payload with escapes in it, the lines that a backslash
// joins) has the span of the word or the text that holds it.
type Place struct {
	// Span is the whole command with its redirections.
	Span Span
	// Words and Assigns are those of Unit.Words and Unit.Assigns.
	Words, Assigns []Span
	// Exact says that the unit is read from the text as it stands, not from one
	// that was made of it.
	Exact bool
}

// Locate is Read, with a Place in every unit. whole is false where a part of the
// text, or a text that it hands to a shell, is opaque or not known before it
// runs: there may be commands that are not among the units.
func Locate(text string) (c Command, whole bool) {
	gaps := false
	f := &frame{exact: true, outer: Span{0, len(text)}, gaps: &gaps}
	c = read(text, 0, start, f)
	for i := range c.Units {
		u := &c.Units[i]
		gaps = gaps || len(u.Words) > 0 && u.Kind(0) != Fixed // nobody knows which program it is
	}
	return c, !gaps && c.Structure != WhyContinuation
}

// frame says how offsets in a text that is being read become offsets in the text
// that Locate was given. It is nil where nobody asked for places.
type frame struct {
	// base is added to an offset if exact; else all of the text has the span outer.
	base  int
	exact bool
	outer Span
	// gaps becomes true where something could not be read.
	gaps *bool
}

// inexact is the frame of a text made from the one of f.
func (f *frame) inexact() *frame {
	if f == nil {
		return nil
	}
	return &frame{outer: f.outer, gaps: f.gaps}
}

// gap notes that something could not be read.
func (f *frame) gap() {
	if f != nil {
		*f.gaps = true
	}
}

// span is where the bytes of a text stand.
func (f *frame) span(from, to int) Span {
	if !f.exact || from < 0 || from >= to || f.base+to > f.outer.End {
		return f.outer
	}
	return Span{f.base + from, f.base + to}
}

func (f *frame) node(n syntax.Node) Span {
	return f.span(int(n.Pos().Offset()), int(n.End().Offset()))
}

// locate notes where words stand in the text that is being read. Braces make
// several of one.
func locate(words []word, n syntax.Node) []word {
	for i := range words {
		words[i].from, words[i].to = int(n.Pos().Offset()), int(n.End().Offset())
	}
	return words
}

// placeCall notes where a simple command stands.
func (w *walker) placeCall(u *Unit, s *syntax.Stmt, assigns []*syntax.Assign) {
	if w.frame == nil {
		return
	}
	from, to := int(s.Cmd.Pos().Offset()), int(s.Cmd.End().Offset())
	for _, r := range s.Redirs { // the text of a here-document stands behind other commands
		if r.Word == nil {
			continue
		}
		from, to = min(from, int(r.Pos().Offset())), max(to, int(r.Word.End().Offset()))
	}
	u.Place = &Place{Span: w.frame.span(from, to), Exact: w.frame.exact}
	for _, a := range assigns {
		u.Place.Assigns = append(u.Place.Assigns, w.frame.node(a))
	}
}

// placeWords notes where the words of a unit stand. One that another command
// carries has the span of its words.
func (w *walker) placeWords(u *Unit, words []word) {
	if w.frame == nil {
		return
	}
	carried := u.Place == nil
	if carried {
		u.Place = &Place{Span: w.frame.outer, Exact: w.frame.exact}
	}
	u.Place.Words = make([]Span, len(words))
	known := len(words) > 0
	for i, r := range words {
		u.Place.Words[i] = w.frame.span(r.from, r.to)
		known = known && r.to > r.from
	}
	if carried && known {
		u.Place.Span = w.frame.span(words[0].from, words[len(words)-1].to)
	}
}

// readsInput says whether a shell takes its commands from an input that the text
// does not hold, as behind a pipe.
func readsInput(words []string, fed feed) bool {
	if !isShell(words[0]) || !fed.is || len(fed.texts) > 0 {
		return false
	}
	options, operands := cut(words[1:], shellValued)
	return len(operands) == 0 || clustered(options, "s")
}

// readsPipe says whether a shell takes its commands from a file that is none but
// what another command, or the text itself, writes to it.
func readsPipe(texts []string, words []word) bool {
	if name := programName(texts[0]); !isShell(texts[0]) && name != "source" && name != "." {
		return false
	}
	for i, t := range texts[1:] {
		if i+1 < len(words) && words[i+1].pipe || t == "/dev/stdin" || strings.HasPrefix(t, "/dev/fd/") || strings.HasPrefix(t, "/proc/self/fd/") {
			return true
		}
	}
	return false
}

// placeRough notes where the pieces stand into which an opaque text was cut.
func (f *frame) placeRough(u *Unit) {
	if f != nil {
		u.Place = &Place{Span: f.outer, Words: make([]Span, len(u.Words))}
		for i := range u.Place.Words {
			u.Place.Words[i] = f.outer
		}
	}
}

// payloadFrame is the frame of a payload that stands in one of words, or in what
// the command is fed.
func (w *walker) payloadFrame(u *Unit, words []word, payload string) *frame {
	if w.frame == nil {
		return nil
	}
	f := w.frame.inexact()
	if u.Place != nil {
		f.outer = u.Place.Span
	}
	for _, r := range words[min(1, len(words)):] {
		if !strings.HasSuffix(r.text, payload) || r.to <= r.from {
			continue
		}
		if !r.fixed() || r.pipe {
			f.gap() // what the shell computes is not the text that stands here
		}
		f.outer = w.frame.span(r.from, r.to)
		if at := strings.LastIndex(w.text[r.from:r.to], payload); at >= 0 && w.frame.exact {
			f.base, f.exact = f.outer.Start+at, true
		}
		return f
	}
	for _, r := range words[min(1, len(words)):] {
		if !r.fixed() || r.pipe {
			f.gap() // eval and its kin join their words
		}
	}
	return f
}

// placeDeclaration notes where a declaration stands. Its words are the name and
// one for each argument.
func (w *walker) placeDeclaration(u *Unit, s *syntax.Stmt, cmd *syntax.DeclClause) {
	w.placeCall(u, s, nil)
	if u.Place == nil {
		return
	}
	u.Place.Words = append(u.Place.Words, w.frame.node(cmd.Variant))
	for _, a := range cmd.Args {
		u.Place.Words = append(u.Place.Words, w.frame.node(a))
	}
}

// placeTime notes where the reserved word time stands, with what it measures.
func (w *walker) placeTime(u *Unit, cmd *syntax.TimeClause) {
	if w.frame != nil {
		from := int(cmd.Pos().Offset())
		u.Place = &Place{Span: w.frame.node(cmd), Words: []Span{w.frame.span(from, from+len("time"))}, Exact: w.frame.exact}
	}
}
