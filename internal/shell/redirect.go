package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// feed is what a command finds at its input: nothing special, or what the text
// or another command says.
type feed struct {
	is bool
	// texts are what here-documents and here-strings hold.
	texts []string
}

// redirects lists those of a statement that name a file. why is what is missing
// for the proof that they do no more than read and write these.
func (w *walker) redirects(all []*syntax.Redirect, at state) (out []Redirect, fed feed, why string) {
	for _, r := range all {
		got, odd := w.redirect(r, at, &fed)
		if odd {
			why = WhyRedirect
		}
		out = append(out, got...)
	}
	return out, fed, why
}

func (w *walker) redirect(r *syntax.Redirect, at state, fed *feed) (out []Redirect, odd bool) {
	// {name}>file assigns a variable.
	odd = r.N != nil && !digits(r.N.Value)
	if r.Word == nil {
		return nil, true
	}
	// In ">0>0" the first 0 belongs to the second ">".
	if end := int(r.Word.End().Offset()); end < len(w.text) && (w.text[end] == '<' || w.text[end] == '>') {
		odd = true
	}
	w.first(r.Word)
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		fed.is = true
		if r.Hdoc != nil {
			w.first(r.Hdoc)
			body, bodyOdd := w.document(r, at)
			fed.texts = append(fed.texts, body)
			w.hands(body)
			odd = odd || bodyOdd
		}
		// Shells differ over where one ends that began between backquotes.
		return nil, odd || w.backquotes > 0 || !plainDelimiter(w.source(r.Word)) || !w.endsThere(r.Word)
	case syntax.WordHdoc:
		fed.is = true
		body := w.single(r.Word, at)
		fed.texts = append(fed.texts, body.text)
		w.hands(body.text)
		return nil, odd || body.odd
	case syntax.DplIn, syntax.DplOut:
		if target := r.Word.Lit(); target != "" && strings.Trim(target, "0123456789-") == "" {
			fed.is = fed.is || r.Op == syntax.DplIn && target != "-"
			return nil, odd
		}
		odd = true // >&file is a file, or whatever a variable says
	}
	read, write := direction(r.Op)
	fed.is = fed.is || read
	targets := w.words(r.Word, at)
	for _, t := range targets {
		switch {
		case t.pipe && len(targets) == 1:
		case !t.fixed() || t.pipe || t.odd || len(targets) > 1 || t.text == "":
			odd = true
			out = append(out, Redirect{Target: t.text, Read: read, Write: write})
		case device(t.text):
		default:
			odd = odd || network(t.text)
			out = append(out, Redirect{Target: t.text, Literal: true, Read: read, Write: write})
			if write {
				w.writes(base(t.text))
			}
		}
	}
	return out, odd
}

// maxHanded bounds the texts that are noted as handed on.
const maxHanded = 64

// hands notes what a here-document or here-string holds, unless it is a text of
// many lines.
func (w *walker) hands(text string) {
	if text = strings.TrimSuffix(text, "\n"); text != "" && !strings.Contains(text, "\n") && len(w.inputs) < maxHanded {
		w.inputs = append(w.inputs, text)
	}
}

// document is the text of a here-document. Between quoted delimiters, all of it
// stands for itself.
func (w *walker) document(r *syntax.Redirect, at state) (text string, odd bool) {
	b := builder{w: w, at: at}
	quoted := strings.ContainsAny(w.source(r.Word), "'\"\\")
	for _, p := range r.Hdoc.Parts {
		lit, ok := p.(*syntax.Lit)
		switch {
		case !ok:
			b.expansion(p, true)
		case quoted:
			b.add(lit.Value)
		default:
			b.add(unquote(lit.Value))
		}
	}
	return b.text.String(), b.odd
}

// direction says which way a redirection to a file goes.
func direction(op syntax.RedirOperator) (read, write bool) {
	switch op {
	case syntax.RdrIn, syntax.DplIn:
		return true, false
	case syntax.RdrInOut:
		return true, true
	}
	return false, true
}

// plainDelimiter says whether the word that ends a here-document is one that
// every shell reads alike.
func plainDelimiter(source string) bool {
	word := strings.TrimPrefix(source, `\`)
	for _, q := range []string{"'", `"`} {
		if len(word) > 2 && word == source && strings.HasPrefix(word, q) && strings.HasSuffix(word, q) {
			word = word[1 : len(word)-1]
			break
		}
	}
	for i := range len(word) {
		if c := word[i]; (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && strings.IndexByte("_.-!", c) < 0 {
			return false
		}
	}
	return word != ""
}

// endsThere says whether the word ends where this parser says: it takes the #
// right behind a quoted delimiter for a comment.
func (w *walker) endsThere(word *syntax.Word) bool {
	end := int(word.End().Offset())
	return end >= len(w.text) || strings.IndexByte(" \t\n;|&<>()", w.text[end]) >= 0
}

// device says whether a path is one that holds nothing: where output goes to be
// dropped, and the descriptors that the command has anyway.
func device(p string) bool {
	switch p {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr":
		return true
	}
	n, ok := strings.CutPrefix(p, "/dev/fd/")
	return ok && digits(n)
}

// network says whether bash takes a path for a connection.
func network(p string) bool {
	return strings.HasPrefix(p, "/dev/tcp/") || strings.HasPrefix(p, "/dev/udp/")
}

func base(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }
