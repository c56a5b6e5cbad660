package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// maxBraces bounds the words that one word with braces may become.
const maxBraces = 64

// reading is what one word of the text stands for.
type reading struct {
	texts   []string
	literal bool
}

// words reads one word. Braces are expanded where that stays small; a word
// with braces is not literal.
func (w *walker) words(word *syntax.Word) reading {
	text, literal := w.single(word)
	if !strings.Contains(text, "{") {
		return reading{[]string{text}, literal}
	}
	split := &syntax.Word{Parts: slices.Clone(word.Parts)}
	syntax.SplitBraces(split)
	n := variants(split)
	if n == 1 {
		// The parser and bash need not agree on every odd brace.
		odd := strings.Contains(text, ",") || strings.Contains(text, "..")
		return reading{[]string{text}, literal && !odd}
	}
	if n > maxBraces {
		return reading{[]string{text}, false}
	}
	var r reading
	for _, each := range expand.Braces(split) {
		t, _ := w.single(each)
		r.texts = append(r.texts, t)
	}
	return r
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

// single is the text of a word without its quotes, and whether it stands for
// itself.
func (w *walker) single(word *syntax.Word) (string, bool) {
	var b strings.Builder
	literal := !otherHome(word)
	for _, p := range word.Parts {
		literal = w.part(&b, p) && literal
	}
	return b.String(), literal
}

// otherHome says whether the word starts with a tilde that is not simply the
// home directory: ~user, ~+ and ~- lead wherever they lead.
func otherHome(word *syntax.Word) bool {
	if len(word.Parts) == 0 {
		return false
	}
	lit, ok := word.Parts[0].(*syntax.Lit)
	return ok && strings.HasPrefix(lit.Value, "~") && lit.Value != "~" && !strings.HasPrefix(lit.Value, "~/")
}

// part writes one part of a word; false if it does not stand for itself.
func (w *walker) part(b *strings.Builder, p syntax.WordPart) bool {
	switch p := p.(type) {
	case *syntax.Lit:
		return unescape(b, p.Value)
	case *syntax.SglQuoted:
		if p.Dollar {
			b.WriteString(ansiC(p.Value))
			return false
		}
		b.WriteString(p.Value)
		return true
	case *syntax.DblQuoted:
		literal := !p.Dollar
		for _, inner := range p.Parts {
			literal = w.quoted(b, inner) && literal
		}
		return literal
	}
	b.WriteString(w.source(p))
	return false
}

// quoted writes a part that stands in double quotes.
func (w *walker) quoted(b *strings.Builder, p syntax.WordPart) bool {
	lit, ok := p.(*syntax.Lit)
	if !ok {
		b.WriteString(w.source(p))
		return false
	}
	v := lit.Value
	for i := 0; i < len(v); i++ {
		if v[i] == '\\' && i+1 < len(v) && strings.IndexByte("$`\"\\\n", v[i+1]) >= 0 {
			i++
			if v[i] == '\n' {
				continue
			}
		}
		b.WriteByte(v[i])
	}
	return true
}

// unescape writes unquoted text without its backslashes; false if it holds a
// character that the shell would expand.
func unescape(b *strings.Builder, v string) bool {
	literal := true
	for i := 0; i < len(v); i++ {
		if v[i] == '\\' && i+1 < len(v) {
			i++
			if v[i] != '\n' {
				b.WriteByte(v[i])
			}
			continue
		}
		if strings.IndexByte("*?[", v[i]) >= 0 {
			literal = false
		}
		b.WriteByte(v[i])
	}
	return literal
}
