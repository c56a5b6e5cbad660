package shell

import (
	"reflect"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// FuzzPlain: what is read without the parser is what the parser reads.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{
		"git status --short", "ls", "  ls   -l  a.go ", "a=b c", "c a=b", "-x", "=ls", "1", "1 2", "a+=b", "%1", "@test x", "a@b:c/d", "+x", "then", "export a=b",
		"ls then", "ls }", "ls\tx", "ls # x", "a..b", "a,b", "./x --y=z,w:1%", "time ls", "function x", "nameref a", "eval ls", "in", "let x=1", "_ _", "a=", "x a=",
		strings.Repeat("w ", 300), "", "   ", "ls " + strings.Repeat("x", maxPlain-3), "ls " + strings.Repeat("x", maxPlain-2),
	} {
		f.Add(s)
	}
	for word := range clauses {
		f.Add(word)
		f.Add(word + " x")
		f.Add("x " + word)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := plainFile(text)
		if got == nil {
			return
		}
		want, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
		if err != nil {
			t.Fatalf("%q: the parser refuses it: %v", text, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q\nread without the parser: %#v\nby the parser: %#v", text, got.Stmts[0].Cmd, want.Stmts[0].Cmd)
		}
	})
}

func TestWhatIsPlainNeedsNoParser(t *testing.T) {
	for text, want := range map[string]int{
		"git status --short": 3, "  go test ./...  ": 3, "x a=b": 2, "": 0, "  ": 0,
		"a=b": 0, "a=b x": 0, "ls\nrm": 0, "ls;rm": 0, "ls $x": 0, "ls *": 0, "ls ~": 0, "ls {a}": 0, "ls 'a'": 0, `ls \a`: 0, "ls #": 0, "if": 0, "export x": 0,
		"ls > f": 0, "ls !": 0, "ls é": 0, "ls\x00": 0, "ls [a]": 0, "ls &": 0, "ls `x`": 0, "(ls)": 0,
	} {
		if got := plainWords(text); got != want {
			t.Errorf("%q holds %d plain words; want %d", text, got, want)
		}
	}
}
