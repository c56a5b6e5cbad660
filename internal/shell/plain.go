package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// plainFile is the tree of the plainest of texts, one command of words that mean
// nothing to any shell but themselves, exactly as the parser makes it; nil for
// every other text. Most of what agents run is such, and the parser takes ten
// times as long. FuzzPlain holds the two together.
func plainFile(text string) *syntax.File {
	n := plainWords(text)
	if n == 0 {
		return nil
	}
	tree := &struct {
		file  syntax.File
		stmt  syntax.Stmt
		call  syntax.CallExpr
		stmts [1]*syntax.Stmt
	}{}
	words := make([]struct {
		word  syntax.Word
		lit   syntax.Lit
		parts [1]syntax.WordPart
	}, n)
	args, i := make([]*syntax.Word, n), 0
	for from := 0; from < len(text); {
		end := from
		for end < len(text) && text[end] != ' ' {
			end++
		}
		if end > from {
			w := &words[i]
			w.lit.ValuePos, w.lit.ValueEnd, w.lit.Value = plainPos(from), plainPos(end), text[from:end]
			w.parts[0] = &w.lit
			w.word.Parts = w.parts[:]
			args[i] = &w.word
			i++
		}
		from = end + 1
	}
	tree.call.Args = args
	tree.stmt.Position, tree.stmt.Cmd = args[0].Pos(), &tree.call
	tree.stmts[0] = &tree.stmt
	tree.file.Stmts = tree.stmts[:]
	return &tree.file
}

func plainPos(offset int) syntax.Pos { return syntax.NewPos(uint(offset), 1, uint(offset)+1) }

// maxPlain bounds the texts that are read without the parser, in bytes: its
// columns end somewhere.
const maxPlain = 4096

// plainWords counts the words of a plain text, 0 for any other.
func plainWords(text string) int {
	if len(text) > maxPlain {
		return 0
	}
	n, first := 0, ""
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && plainByte[text[end]] {
			end++
		}
		if end < len(text) && text[end] != ' ' {
			return 0
		}
		if end > i {
			if n++; n == 1 {
				first = text[i:end]
			}
		}
		i = end + 1
	}
	if n == 0 || strings.Contains(first, "=") || clauses[first] {
		return 0
	}
	return n
}

// plainByte are the characters that mean nothing to a shell within a word; "="
// does in the first one.
var plainByte = func() (out [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,+%@=") {
		out[c] = true
	}
	return out
}()

// clauses are the words that begin something else than a plain command.
var clauses = set("if then else elif fi for while until do done case esac in select function time coproc let declare local export readonly typeset nameref @test")
