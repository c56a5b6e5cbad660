package shellcommand

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/assent-dev/assent/internal/shell"
)

// walk is the walk of one text. What it does not name it refuses.
type walk struct {
	*cutter
	place
	text string
}

func (w *walk) list(stmts []*syntax.Stmt, fed bool) error {
	for _, s := range stmts {
		if err := w.stmt(s, fed); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) stmt(s *syntax.Stmt, fed bool) error {
	if s.Coprocess || s.Disown {
		return uncut("it starts a coprocess")
	}
	if call, ok := s.Cmd.(*syntax.CallExpr); ok {
		return w.command(s, call, fed)
	}
	if len(s.Redirs) > 0 {
		return uncut("a redirection stands outside of a command")
	}
	switch cmd := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		if err := w.stmt(cmd.X, fed); err != nil {
			return err
		}
		if cmd.Op != syntax.Pipe && cmd.Op != syntax.PipeAll {
			return w.stmt(cmd.Y, fed)
		}
		return w.apart().stmt(cmd.Y, true)
	case *syntax.Block:
		return w.list(cmd.Stmts, fed)
	case *syntax.Subshell:
		return w.list(cmd.Stmts, fed)
	case *syntax.IfClause:
		return w.ifClause(cmd, fed)
	case *syntax.WhileClause:
		if err := w.list(cmd.Cond, fed); err != nil {
			return err
		}
		return w.list(cmd.Do, fed)
	}
	return uncut("it holds a construct that is no list of commands")
}

func (w *walk) ifClause(cmd *syntax.IfClause, fed bool) error {
	for ; cmd != nil; cmd = cmd.Else {
		if err := w.list(cmd.Cond, fed); err != nil {
			return err
		}
		if err := w.list(cmd.Then, fed); err != nil {
			return err
		}
	}
	return nil
}

// command is a simple command: one that carries a text or another command, or a
// piece.
func (w *walk) command(s *syntax.Stmt, call *syntax.CallExpr, fed bool) error {
	if len(call.Args) == 0 {
		return uncut("it sets a variable")
	}
	if len(w.pieces) >= maxPieces {
		return uncut("it holds more than %d commands", maxPieces)
	}
	if err := literal(s); err != nil {
		return err
	}
	doc := input(s)
	if doc != nil && (doc.Op != syntax.WordHdoc || isShell(call)) {
		return w.reads(s, call, doc)
	}
	own := w.source(start(s, call), end(s, call))
	units := shell.Read(own).Units
	at := 0
	for at < len(units) && units[at].Modifier {
		at++
	}
	if at == len(units) || len(units[at].Words) == 0 {
		return uncut("it holds no command")
	}
	payload, found, err := handed(&units[at])
	switch {
	case err != nil:
		return err
	case found:
		if err := bare(s, call); err != nil {
			return err
		}
		w.carriers(units[:at+1])
		return w.cutter.text(payload, place{level: w.level + 1, fed: fed || doc != nil, script: w.script && doc == nil, evaled: units[at].Words[0] == "eval"})
	case w.width == wide && at == 0 && wrapped(units[0].Words) > 0:
		return w.wrapper(s, call, units[0], fed || doc != nil)
	}
	if w.script && slices.ContainsFunc(units, func(u shell.Unit) bool { return hears(&u) }) {
		return uncut("%s may read on in the text that a shell reads", units[at].Program())
	}
	return w.piece(own, units, fed)
}

// apart is w for what has an input of its own.
func (w *walk) apart() *walk {
	own := *w
	own.script = false
	return &own
}

// piece takes the whole of a command for a piece.
func (w *walk) piece(own string, units []shell.Unit, fed bool) error {
	for i := range units {
		if changesShell(&units[i]) || w.evaled && movesShell(&units[i]) {
			return uncut("%s changes what later commands are", units[i].Program())
		}
	}
	if why := shell.Read(own).Why; why != "" {
		return uncut("%s", why)
	}
	// The other reading does not follow the input of a shell to the commands that
	// it runs: an interpreter among them would read it for a program.
	if fed {
		if why := shell.Read("true | " + own).Why; why != "" {
			return uncut("%s", why)
		}
	}
	w.pieces = append(w.pieces, piece{text: own})
	for _, u := range units {
		w.units = append(w.units, expected{Unit: u, piece: len(w.pieces) - 1})
	}
	return nil
}

// wrapper goes on behind a wrapper that changes nothing of what it runs.
func (w *walk) wrapper(s *syntax.Stmt, call *syntax.CallExpr, u shell.Unit, fed bool) error {
	if err := bare(s, call); err != nil {
		return err
	}
	n := wrapped(u.Words)
	if n >= len(call.Args) || len(u.Words) != len(call.Args) {
		return uncut("it is not known what %s runs", u.Program())
	}
	w.carriers([]shell.Unit{u})
	w.units[len(w.units)-1].wraps = true
	inner := w.source(int(call.Args[n].Pos().Offset()), int(call.Args[len(call.Args)-1].End().Offset()))
	return w.cutter.text(inner, place{level: w.level + 1, fed: fed, script: w.script, evaled: w.evaled})
}

// reads is a shell that reads its commands from a here-document or a here-string.
// Its commands read the rest of the same text.
func (w *walk) reads(s *syntax.Stmt, call *syntax.CallExpr, doc *syntax.Redirect) error {
	if w.width != wide {
		return uncut("a command reads its input from the text")
	}
	if len(s.Redirs) > 1 {
		return uncut("a shell reads or writes a file")
	}
	if err := bare(s, call); err != nil {
		return err
	}
	words := make([]string, 0, len(call.Args))
	for _, a := range call.Args {
		word, ok := onlyLiteral(a)
		if !ok {
			return uncut("a word of it is computed")
		}
		words = append(words, word)
	}
	if !plainShell(words[0]) || !readsInput(words[1:]) {
		return uncut("%s reads its input from the text", words[0])
	}
	text, err := body(doc)
	if err != nil {
		return err
	}
	kinds := make([]shell.Kind, len(words))
	for i := range kinds {
		kinds[i] = shell.Fixed
	}
	w.carriers([]shell.Unit{{Words: words, Kinds: kinds, Shape: strings.Join(words, " ")}})
	return w.cutter.text(text, place{level: w.level + 1, fed: true, lines: true})
}

func (w *walk) carriers(units []shell.Unit) {
	for _, u := range units {
		w.units = append(w.units, expected{Unit: u, piece: -1})
	}
}

func (w *walk) source(from, to int) string { return w.text[from:to] }
