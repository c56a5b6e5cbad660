package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// maxBraces bounds the words that one word with braces may become.
const maxBraces = 64

// Hole stands in Unit.Shape for what the shell computes. No text that is read
// holds it, and three characters no pattern of single characters would expect.
const Hole = "\x01\x01\x01"

// someFront is the front of a word that begins with a letter or a digit, but
// nobody knows which.
const someFront = "\x02"

// word is what is known of one word of a command.
type word struct {
	text, shape string
	kind        Kind
	// front is the fixed text that every result begins with.
	front string
	// one: the shell makes exactly one word of it.
	one bool
	// pipe: the word is the name of a pipe that the shell makes, <(…).
	pipe bool
	// odd: it holds an expansion that can do more than expand.
	odd bool
	// folder: it reads like the home or working directory, and the shell may put
	// nothing in its place, as between quotes: then it is a folder of that name.
	folder bool
	// from and to are where it stands in the text that is being read, in bytes; 0
	// where nothing is known.
	from, to int
}

// fixed says whether the word stands for itself, or for a pipe.
func (r word) fixed() bool { return r.kind == Fixed }

// words reads one word of the text; braces may make several of it.
func (w *walker) words(node *syntax.Word, at state) []word {
	if !hasBrace(node) {
		return []word{w.single(node, at)}
	}
	return w.braced(node, at)
}

// hasBrace says whether unquoted text of the word holds a brace.
func hasBrace(word *syntax.Word) bool {
	return slices.ContainsFunc(word.Parts, func(p syntax.WordPart) bool {
		lit, ok := p.(*syntax.Lit)
		return ok && strings.Contains(lit.Value, "{")
	})
}

// braced reads a word with unquoted braces. It is believed to be what the
// parser makes of it only where it is plain: parsers and shells differ over odd
// ones.
func (w *walker) braced(node *syntax.Word, at state) []word {
	whole := w.single(node, at)
	unsure := func(r word) word {
		r.kind, r.one, r.front, r.shape = Unknown, false, "", Hole
		return r
	}
	split := &syntax.Word{Parts: slices.Clone(node.Parts)}
	syntax.SplitBraces(split)
	switch n := variants(split); {
	case n == 1 && (strings.Contains(whole.text, ",") || strings.Contains(whole.text, "..")), n > maxBraces:
		return []word{unsure(whole)}
	case n == 1:
		return []word{whole}
	}
	plain := plainBraces(node)
	var out []word
	for _, each := range expand.Braces(split) {
		r := w.single(each, at)
		if !plain {
			r = unsure(r)
		}
		r.odd = r.odd || whole.odd
		out = append(out, r)
	}
	return out
}

// plainBraces says whether a word is nothing but letters, signs that mean
// nothing to a shell, and braces that are all closed.
func plainBraces(word *syntax.Word) bool {
	depth := 0
	for _, c := range []byte(word.Lit()) {
		switch {
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth < 0 {
				return false
			}
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("_./,-@+:", c) >= 0:
		default:
			return false
		}
	}
	return depth == 0 && word.Lit() != "" && !strings.Contains(word.Lit(), "..")
}

// variants counts the words that braces make of word, more than maxBraces for
// a range, whose size is whatever its ends say.
func variants(word *syntax.Word) int {
	n := 1
	for _, p := range word.Parts {
		b, ok := p.(*syntax.BraceExp)
		if !ok {
			continue
		}
		if b.Sequence {
			return maxBraces + 1
		}
		sum := 0
		for _, e := range b.Elems {
			sum += variants(e)
		}
		if n *= max(sum, 1); n > maxBraces {
			return n
		}
	}
	return n
}

// single reads a word without regard to braces.
func (w *walker) single(node *syntax.Word, at state) word {
	if lit, ok := onlyLit(node); ok && (lit == "[" || strings.IndexAny(lit, `\*?[~`) < 0) {
		return word{text: lit, shape: lit, kind: Fixed, front: lit, one: true}
	}
	b := builder{w: w, at: at, kind: Fixed, one: true, fixed: true}
	if otherHome(node) {
		// ~user, ~+ and ~- lead wherever they lead, but to one word without a
		// dash in front.
		b.kind = Unknown
	}
	for _, p := range node.Parts {
		b.part(p)
	}
	return b.done(node)
}

func onlyLit(word *syntax.Word) (string, bool) {
	if len(word.Parts) != 1 {
		return "", false
	}
	lit, ok := word.Parts[0].(*syntax.Lit)
	if !ok {
		return "", false
	}
	return lit.Value, true
}

// otherHome says whether the word starts with a tilde that is not simply the
// home directory.
func otherHome(word *syntax.Word) bool {
	if len(word.Parts) == 0 {
		return false
	}
	lit, ok := word.Parts[0].(*syntax.Lit)
	return ok && strings.HasPrefix(lit.Value, "~") && !strings.HasPrefix(lit.Value, "~/") && (lit.Value != "~" || len(word.Parts) > 1)
}

// begins says whether the first part of a word is what the shell puts a folder
// in the place of: an unquoted tilde, or the variable of one.
func begins(p syntax.WordPart, sign byte) bool {
	if q, ok := p.(*syntax.DblQuoted); ok && sign == '$' && len(q.Parts) > 0 {
		p = q.Parts[0]
	}
	switch p := p.(type) {
	case *syntax.Lit:
		return sign == '~' && strings.HasPrefix(p.Value, "~")
	case *syntax.ParamExp:
		return sign == '$' && p.Param != nil && (p.Param.Value == "HOME" || p.Param.Value == "PWD")
	}
	return false
}

// builder puts the text of a word together.
type builder struct {
	w           *walker
	at          state
	text, shape strings.Builder
	front       string
	kind        Kind
	one, odd    bool
	// fixed: nothing so far is computed.
	fixed bool
}

func (b *builder) done(node *syntax.Word) word {
	r := word{text: b.text.String(), shape: b.shape.String(), kind: b.kind, front: b.front, one: b.one, odd: b.odd}
	if b.fixed {
		r.front = r.text
	}
	r.folder = r.text != "" && (r.text[0] == '~' || r.text[0] == '$') && !begins(node.Parts[0], r.text[0])
	if _, ok := node.Parts[0].(*syntax.ProcSubst); ok && len(node.Parts) == 1 {
		r.kind, r.pipe, r.front = Fixed, true, "/dev/fd/"
	}
	return r
}

// add writes fixed text.
func (b *builder) add(s string) {
	b.text.WriteString(s)
	b.shape.WriteString(s)
}

// hole writes text that the shell replaces.
func (b *builder) hole(source string, kind Kind) {
	if b.fixed {
		b.front, b.fixed = b.text.String(), false
	}
	b.kind = min(b.kind, kind)
	b.text.WriteString(source)
	b.shape.WriteString(Hole)
}

// part writes one part of a word.
func (b *builder) part(p syntax.WordPart) {
	switch p := p.(type) {
	case *syntax.Lit:
		b.unescape(p.Value)
	case *syntax.SglQuoted:
		if p.Dollar {
			// Not every shell decodes it, nor every one alike.
			b.hole(ansiC(p.Value), Unknown)
			return
		}
		b.add(p.Value)
	case *syntax.DblQuoted:
		if p.Dollar {
			b.hole("", Unknown)
		}
		for _, inner := range p.Parts {
			if lit, ok := inner.(*syntax.Lit); ok {
				b.add(unquote(lit.Value))
				continue
			}
			b.expansion(inner, true)
		}
	default:
		b.expansion(p, false)
	}
}

// expansion writes a part that the shell computes.
func (b *builder) expansion(p syntax.WordPart, quoted bool) {
	source := b.w.source(p)
	b.w.inside(p, b.at)
	switch p := p.(type) {
	case *syntax.ParamExp:
		if quoted && b.w.quotesInQuotes(p, b.at) {
			b.odd = true
		}
		if v, ok := b.w.value(p); ok {
			b.add(v)
			return
		}
		switch {
		case b.w.knownDir(p, b.at):
			b.add(source)
			return
		case !b.w.harmless(p):
			b.odd = true
		case p.Short && strings.Contains("?#$!", p.Param.Value) && b.fixed && b.text.Len() == 0:
			b.hole(source, Unknown)
			b.front = someFront // a number without a sign
			return
		}
		b.one = b.one && quoted && !manyWords(p)
	case *syntax.ArithmExp:
		b.odd = b.odd || !b.w.countable(p.X)
	case *syntax.CmdSubst:
		b.odd = b.odd || p.TempFile || p.ReplyVar
		if tame(p.Stmts) {
			first := b.fixed && b.text.Len() == 0
			b.hole(source, Unknown)
			if first {
				b.front = someFront
			}
			return
		}
		b.one = b.one && quoted
	case *syntax.ProcSubst:
	default:
		b.odd, b.one = true, false
	}
	b.hole(source, Unknown)
}

// unquote is text in double quotes without its backslashes.
func unquote(v string) string {
	if !strings.Contains(v, `\`) {
		return v
	}
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		if v[i] == '\\' && i+1 < len(v) && strings.IndexByte("$`\"\\\n", v[i+1]) >= 0 {
			i++
			if v[i] == '\n' {
				continue
			}
		}
		b.WriteByte(v[i])
	}
	return b.String()
}

// unescape writes unquoted text without its backslashes.
func (b *builder) unescape(v string) {
	from := 0
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '\\' && i+1 < len(v):
			b.add(v[from:i])
			if i++; v[i] != '\n' {
				b.add(v[i : i+1])
			}
			from = i + 1
		case c == '*' || c == '?' || c == '[':
			b.add(v[from:i])
			b.hole(v[i:i+1], Glob)
			from = i + 1
		}
	}
	b.add(v[from:])
}
