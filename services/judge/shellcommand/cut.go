// Package shellcommand is the link for shell commands that the reading of the
// rules calls opaque: texts that a shell is handed, commands behind wrappers.
package shellcommand

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/assent-dev/assent/internal/shell"
)

// errUncut: a text that is not known to be made of plain commands and of what
// stands between them. The text says which part is not.
var errUncut = errors.New("not known to be made of plain commands alone")

func uncut(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errUncut, fmt.Sprintf(format, args...))
}

// width says how many forms a cut knows.
type width bool

const (
	// narrow: lists, pipes, groups, and texts that stand whole in one word of a
	// shell or of eval. This reading cuts these by itself.
	narrow width = false
	// wide: texts too that a shell reads as its input, and commands behind
	// wrappers that change nothing of what they run. An allow for these needs a
	// second reader, who is not shown this cut and comes to the same.
	wide width = true
)

// piece is one command of a text, as it is written there or in a text that a
// shell inside of it is handed.
type piece struct {
	text string
	// dirs are all directories in which it may run, relative to the call's, "" for
	// the call's own. Never empty.
	dirs []string
}

const (
	maxPieces = 24
	maxLevels = 8
)

// cut takes text apart into the commands that it runs. It accounts for every
// byte: what is neither one of them nor known to stand between two, as an
// operator, a blank or a comment does, is an error. It refuses whatever would
// make a command of something else: expansions, functions, aliases, input for
// an interpreter.
//
// Two readings have to agree: the walk of this package, which knows a few forms
// and refuses the others, and the one of internal/shell, which looks for
// commands wherever they may hide. Pure; safe for concurrent use.
func cut(text string, w width) (pieces []piece, err error) {
	defer func() {
		if recover() != nil { // a parser that fails on hostile text
			pieces, err = nil, uncut("it cannot be read")
		}
	}()
	c := &cutter{width: w}
	if err := c.text(text, place{}); err != nil {
		return nil, err
	}
	if len(c.pieces) == 0 {
		return nil, uncut("it holds no command")
	}
	if err := c.agree(shell.Read(text)); err != nil {
		return nil, err
	}
	// One piece may make another command of a later one, as by writing the file
	// that it runs; a payload hides that from the reading of the whole.
	if flat := shell.Read(script(c.pieces)); !flat.Simple {
		return nil, uncut("%s among its commands", flat.Why)
	}
	return c.pieces, nil
}

// script is pieces as one text without anything around them.
func script(pieces []piece) string {
	texts := make([]string, len(pieces))
	for i, p := range pieces {
		texts[i] = p.text
	}
	return strings.Join(texts, "\n")
}

// cutter is one cut in the making.
type cutter struct {
	width  width
	pieces []piece
	// units are what the other reading has to have found, in this order.
	units []expected
}

// expected is a unit that this walk has accounted for.
type expected struct {
	shell.Unit
	// piece is its index among the pieces; -1 for what only carries others.
	piece int
	// wraps: it is a wrapper, behind which the other reading may see more
	// commands than one, in case an option takes a value.
	wraps bool
}

// place is where a text stands.
type place struct {
	level int
	// fed: its commands find something to read on their input.
	fed bool
	// evaled: it runs in the shell that runs what follows it too.
	evaled bool
	// lines: a shell reads it as its input.
	lines bool
	// script: the input of its commands is a text that a shell reads further
	// commands from.
	script bool
}

// text walks a text that a shell is handed.
func (c *cutter) text(text string, at place) error {
	if at.level > maxLevels {
		return uncut("it is nested too deep")
	}
	if read := shell.Read(text); read.Opaque || read.Structure != "" {
		return uncut("%s", read.Why)
	}
	// Shells and parsers differ over where this joins two lines.
	if strings.Contains(text, "\\\n") || strings.HasSuffix(text, `\`) {
		return uncut("it joins lines")
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
	if err != nil {
		return uncut("it is not valid shell syntax")
	}
	walk := walk{cutter: c, text: text, place: at}
	if at.lines {
		return walk.listLines(file.Stmts, at.fed)
	}
	return walk.list(file.Stmts, at.fed)
}

// agree holds the units that the walk accounted for against all that the other
// reading found.
func (c *cutter) agree(read shell.Command) error {
	if len(read.Loose) > 0 {
		return uncut("it holds words outside of any command")
	}
	found := slices.DeleteFunc(slices.Clone(read.Units), group)
	var wrappers []shell.Unit
	for _, want := range c.units {
		found = beyond(wrappers, found, want.Unit)
		if len(found) == 0 || !same(found[0], want.Unit) {
			return uncut("two readings of it find different commands")
		}
		got := found[0]
		if want.wraps {
			wrappers = append(wrappers, got)
		}
		if found = found[1:]; want.piece < 0 {
			continue
		}
		// What is proven of a command alone need not be of the same one in this
		// place: it may run what another piece writes, or read what one prints.
		if got.Why != "" {
			return uncut("%s in this place", got.Why)
		}
		if got.Lost {
			return uncut("it is not known where %s runs", got.Program())
		}
		c.pieces[want.piece].dirs = append([]string{got.Dir}, got.Elsewhere...)
	}
	if len(beyond(wrappers, found, shell.Unit{})) > 0 {
		return uncut("two readings of it find different commands")
	}
	return nil
}

// beyond leaves out what the other reading takes for commands in case an option
// of a wrapper has a value. The walk knows those options.
func beyond(wrappers, found []shell.Unit, want shell.Unit) []shell.Unit {
	for len(found) > 0 && !same(found[0], want) && slices.ContainsFunc(wrappers, func(w shell.Unit) bool {
		n := len(w.Words) - len(found[0].Words)
		return found[0].Via == w.Program() && n > wrapped(w.Words) && slices.Equal(w.Words[n:], found[0].Words)
	}) {
		found = found[1:]
	}
	return found
}

// group says whether a unit is the text of a subshell, whose commands are units
// as well.
func group(u shell.Unit) bool {
	return len(u.Words) == 0 && len(u.Redirects) == 0 && strings.HasPrefix(u.Text, "(") && !u.Idle
}

func same(a, b shell.Unit) bool {
	return slices.Equal(a.Words, b.Words) && slices.Equal(a.Kinds, b.Kinds) && a.Shape == b.Shape &&
		slices.Equal(a.Redirects, b.Redirects) && slices.Equal(a.Assigns, b.Assigns)
}
