package shell

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Read reads text. It never fails and never panics: what cannot be read is
// Opaque. Safe for concurrent use.
func Read(text string) Command { return read(text, 0, start, nil) }

// read reads text, and where it holds a backslash before a line's end, also as
// a shell does that joins the lines, and as one that does not because the
// backslash ends a comment. This parser does neither in every place: `# \⏎rm x`
// is two lines to a shell, and `"$\⏎(rm x)"` is a substitution. Such a text is
// proven only if joining changes nothing and it holds no comment; each reading
// can deny.
func read(text string, depth int, from state, f *frame) Command {
	c, comment := readOnce(text, depth, from, f)
	if c.Simple && strings.HasSuffix(text, `\`) { // shells drop it, or do not
		c.Simple, c.Why, c.Structure = false, WhyContinuation, WhyContinuation
	}
	if !strings.Contains(text, continuation) {
		return c
	}
	joined, comment2 := readOnce(strings.ReplaceAll(text, continuation, ""), depth, from, f.inexact())
	comment = (comment || comment2) && strings.Contains(text, "#")
	if c.Simple && (comment || !joined.Simple || !sameCommands(c, joined)) {
		c.Simple, c.Why, c.Structure = false, WhyContinuation, WhyContinuation
	}
	if !c.Simple {
		c.also(joined)
		if strings.Contains(text, "#") {
			other, _ := readOnce(strings.ReplaceAll(text, continuation, "\n"), depth, from, f.inexact())
			c.also(other)
		}
	}
	return c
}

// sameCommands says whether two readings found the same.
func sameCommands(a, b Command) bool {
	return slices.EqualFunc(a.Units, b.Units, func(a, b Unit) bool {
		return slices.Equal(a.Words, b.Words) && slices.Equal(a.Kinds, b.Kinds) && a.Shape == b.Shape && slices.Equal(a.Redirects, b.Redirects) && slices.Equal(a.Assigns, b.Assigns) && a.Dir == b.Dir
	})
}

// also adds what another reading of the same text found.
func (c *Command) also(other Command) {
	c.Units = append(c.Units, other.Units...)
	c.Loose = append(c.Loose, other.Loose...)
	c.Handed = append(c.Handed, other.Handed...)
}

const continuation = "\\\n"

// readOnce reads text as this parser does. comment says whether it holds one.
func readOnce(text string, depth int, from state, f *frame) (c Command, comment bool) {
	if why := unfit(text); why != "" {
		return opaque(text, why, f), true
	}
	// A parser that fails on hostile text must cost its author an ask, not
	// everybody the gate.
	defer func() {
		if recover() != nil {
			c, comment = opaque(text, WhyUnparseable, f), true
		}
	}()
	file, err := parse(text)
	if err != nil {
		return opaque(text, WhyUnparseable, f), true
	}
	w := walker{text: text, depth: depth, frame: f}
	if !w.file(file, from) {
		return opaque(text, WhyTooDeep, f), true
	}
	w.finish()
	c = Command{Text: text, Units: w.units, Loose: w.loose, Handed: w.inputs, Structure: w.why}
	if c.Why = w.why; c.Why == "" {
		c.Why = unproven(c.Units)
	}
	c.Simple = c.Why == ""
	return c, strings.Contains(text, "#") && strings.Contains(text, continuation) && comments(file)
}

// unproven is what is missing for the proof of the first unit that is not
// proven and that no other unit stands for.
func unproven(units []Unit) string {
	for _, u := range units {
		if u.Why != "" && (u.Via == "" || u.Decides) {
			return u.Why
		}
	}
	return ""
}

// comments says whether a tree holds a comment.
func comments(file *syntax.File) (found bool) {
	syntax.Walk(file, func(n syntax.Node) bool {
		if _, ok := n.(*syntax.Comment); ok {
			found = true
		}
		return !found
	})
	return found
}

// unfit names what keeps text from being parsed at all, "" if nothing does. It
// is one pass without recursion.
func unfit(text string) string {
	switch {
	case len(text) > MaxText:
		return WhyTooLarge
	case strings.TrimSpace(text) == "":
		return WhyNoCommand
	case !utf8.ValidString(text), strings.ContainsFunc(text, control):
		return WhyControl
	case tooDeep(text):
		return WhyTooDeep
	}
	return ""
}

// control says whether r is a character that bash and a parser need not read
// alike: bash drops NUL and keeps a carriage return as part of a word.
func control(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }

// tooDeep counts brackets without regard to quotes. Closers in quotes and
// comments can fool it, so the openers alone are bounded too, and so are the
// words that open a level; the tree is measured exactly once there is one.
func tooDeep(text string) bool {
	depth, openers, word := 0, 0, 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '(' || c == '{' || c == '[':
			depth, openers = depth+1, openers+1
		case c == ')' || c == '}' || c == ']':
			depth = max(depth-1, 0)
		case c >= 'a' && c <= 'z':
			continue
		}
		if opens(text[word:i]) {
			openers++
		}
		word = i + 1
		if depth > MaxNesting || openers > maxOpeners {
			return true
		}
	}
	return false
}

// opens says whether a word opens a level that another one closes.
func opens(word string) bool {
	switch word {
	case "if", "while", "until", "for", "case", "select", "time", "coproc", "function":
		return true
	}
	return false
}

var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)) }}

// parse parses text. A parser that panicked is not put back.
func parse(text string) (*syntax.File, error) {
	if file := plainFile(text); file != nil {
		return file, nil
	}
	p := parsers.Get().(*syntax.Parser)
	file, err := p.Parse(strings.NewReader(text), "")
	parsers.Put(p)
	return file, err
}

// opaque cuts text at everything that might separate commands. The cut is
// rough on purpose: bash runs the good lines in front of a broken one, so a
// deny must find them.
func opaque(text, why string, f *frame) Command {
	f.gap()
	c := Command{Text: text, Why: why, Structure: why, Opaque: true}
	pieces := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(";|&\n\r(){}`\x00", r) })
	for i, piece := range pieces {
		if i == maxUnits {
			break
		}
		words := strings.Fields(strings.Map(dropQuotes, piece))
		if len(words) > 0 {
			u := Unit{Text: strings.Join(words, " "), Words: words}
			f.placeRough(&u)
			c.Units = append(c.Units, u)
		}
	}
	return c
}

func dropQuotes(r rune) rune {
	if r == '\'' || r == '"' || r == '\\' {
		return -1
	}
	return r
}
